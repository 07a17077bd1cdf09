"""How results are shown: text for terminals, HTML for notebooks, reports as HTML and Word."""
