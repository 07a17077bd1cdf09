"""Quantiles, and the transforms that the paper fits."""
