"""The paper's simulation study: its claims, tables and figures, and the page of all."""
