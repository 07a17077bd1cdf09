"""What is simulated and how: families, settings, methods, and runs that are kept."""
