"""How a federation is set up: kits, certificates, settings, and a check of them."""
