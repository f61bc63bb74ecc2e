"""Pure functions that judge: preflight before the engine runs, acceptance after it, the audit at the end."""
