"""Whether a set of people is a combination of others."""

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray

SignArray = npt.NDArray[np.int8]

_EXACT = 1e-6  # how close a combination must come to a set, person by person


def solve(sets: SignArray, wanted: FloatArray) -> FloatArray | None:
    """Coefficients of the rows that give the wanted one exactly, or None."""
    random = np.random.default_rng(0).integers(-(2**40), 2**40, len(sets) + 1)
    keys = random[:-1] @ sets.astype(np.int64) + random[-1] * wanted.astype(np.int64)
    distinct = np.unique(keys, return_index=True)[1]
    few, right = sets[:, distinct].astype(np.float64), wanted[distinct]
    solved = np.linalg.lstsq(few @ few.T, few @ right, rcond=None)[0]
    found = np.asarray(solved, dtype=np.float64)
    found[np.abs(found) < _EXACT] = 0.0
    return found if np.abs(found @ sets - wanted).max() < _EXACT else None
