"""What the analyst gets: frozen results that print, draw and report themselves."""
