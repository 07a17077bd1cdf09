"""The paper's simulation study beside its published figures, studies of one's own, and planning."""
