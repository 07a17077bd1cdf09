"""The array types of the maths."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int32]  # per person: an atom, a part, a cell


def read_only(values: npt.ArrayLike) -> FloatArray:
    """A float64 copy that nobody can change."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array
