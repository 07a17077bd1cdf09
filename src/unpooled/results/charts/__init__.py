"""Charts, from plain numbers."""
