"""The distribution of everybody, from the cells of all centers."""
