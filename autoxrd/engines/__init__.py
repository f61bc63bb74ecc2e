"""Crystallographic engines behind one contract; each runs in its own process."""
