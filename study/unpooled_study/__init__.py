"""The paper's simulation study next to its published figures, own studies, and planning."""
