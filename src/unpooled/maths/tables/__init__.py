"""The paper's chain: K-anonymous tables, joined center by center."""
