"""The workbench: the researcher's pages. Each button is one call of the library."""
