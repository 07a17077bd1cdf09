"""Times to an event."""
