"""What a center proposes as its answer. Nothing here needs to be trusted: the gate judges it."""
