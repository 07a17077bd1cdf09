"""`python -m unpooled` is the command line too."""

from unpooled.cli import main

main()
