"""Questions and protocols in words, for stewards and analysts alike; all texts in one place."""
