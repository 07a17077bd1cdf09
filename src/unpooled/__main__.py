"""`python -m unpooled` is the command line too."""

from unpooled.apps.cli import main

main()
