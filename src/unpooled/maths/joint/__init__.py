"""Joint centers: shares, and the rule by which a secret table is cut, in the clear."""
