"""Asked once: a protocol, and the book from which every analysis is computed."""
