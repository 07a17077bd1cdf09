"""What the keepers compute on shares, whoever carries their messages."""
