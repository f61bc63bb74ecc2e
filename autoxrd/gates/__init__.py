"""Pure functions that judge: preflight before the engine runs, acceptance after it."""
