"""Frozen value objects of powder diffraction and of the decision record. No I/O, no engine."""
