"""Joint centers."""
