"""How questions reach centers."""
