"""What analyses of a number give."""
