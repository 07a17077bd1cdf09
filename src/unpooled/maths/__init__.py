"""Pure statistics on arrays: NumPy and SciPy alone, no files, wires or engines."""
