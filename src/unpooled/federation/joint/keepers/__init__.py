"""The keepers: three processes, and the channels between them."""
