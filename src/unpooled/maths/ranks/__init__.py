"""Rank tests and their effects."""
