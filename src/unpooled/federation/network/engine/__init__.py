"""What runs inside the engine's own processes, and the process of the engine."""
