"""Pure functions from arrays to measures: R factors, residual features, checks. No I/O."""
