"""The analyses at the coordinator, a file each: what is asked, and how answers are combined."""
