"""The loop: observe, plan, preflight, execute, measure, gate, record."""
