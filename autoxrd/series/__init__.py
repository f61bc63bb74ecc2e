"""Refine many patterns of one specimen, each from its neighbour's model: temperature and time series."""
