"""How results look: text for terminals, HTML for notebooks and reports, charts by Altair."""
