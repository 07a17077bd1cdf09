"""Pages in the browser: the researcher's workbench and, on the same foundation, others."""
