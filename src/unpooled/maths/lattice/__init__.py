"""Cells on a public lattice, and what each may tell."""
