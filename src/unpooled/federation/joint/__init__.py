"""Joint centers: centers too small to answer alone, put together by secure computation."""
