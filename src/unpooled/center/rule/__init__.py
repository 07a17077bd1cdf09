"""The rule: which answers may stand together, and the memory of all answers that it judges."""
