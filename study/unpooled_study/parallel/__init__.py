"""The study of the parallel method against the full data."""
