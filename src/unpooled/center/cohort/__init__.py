"""The people that a question is about: which ones its words choose, and their blocks."""
