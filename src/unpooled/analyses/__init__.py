"""The analyses: one file each, with what a center says (`summarise`) and what comes of it."""
