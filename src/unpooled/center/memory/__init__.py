"""What a center remembers: for every variable, which people its answers have spoken for."""
