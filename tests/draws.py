"""Draws without chance, for tests of what is made of a table."""

import numpy as np

from unpooled.maths.arrays import FloatArray


def evenly(_: FloatArray, n: int) -> FloatArray:
    """Cells of about equally many people."""
    return np.asarray(np.arange(1, n + 1) / (n + 1))
