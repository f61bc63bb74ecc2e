"""Load on the service: a stub in place of the engine, everything else real."""
