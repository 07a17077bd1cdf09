"""What waits for the steward, and who may approve it."""
