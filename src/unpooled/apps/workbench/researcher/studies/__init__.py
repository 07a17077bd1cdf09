"""Studies: a protocol is built, looked at, and asked once."""
