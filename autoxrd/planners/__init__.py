"""Planners propose typed actions; they never write a number into the model."""
