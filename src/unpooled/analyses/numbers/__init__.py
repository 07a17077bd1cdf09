"""Analyses of a variable that is a number."""
