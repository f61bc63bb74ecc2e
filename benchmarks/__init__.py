"""Benchmarks that are run by hand; the tests use their fast parts."""
