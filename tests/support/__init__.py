"""Doubles that several test packages share."""
