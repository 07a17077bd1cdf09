"""A center's rows, and the words that choose among them."""
