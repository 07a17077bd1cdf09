"""What stands on a card: its pictures, the same question as code, and its files."""
