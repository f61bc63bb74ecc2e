"""How good are the refinements? Real patterns with known truth, run through the command and set beside it."""
