"""What people open: the command line, and the example hospitals."""
