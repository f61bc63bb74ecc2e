"""Reading patterns, instruments and structures; artifacts by SHA-256."""
