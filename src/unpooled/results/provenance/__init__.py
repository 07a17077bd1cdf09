"""How results came about: who answered, who refused, and what left the centers."""
