"""Squared distances in units of a covariance that may be singular, as those of counts are."""

import numpy as np

from unpooled.maths.arrays import FloatArray

_NONE = 1e-9  # a direction with less than this share of the largest spread has none


def squared_distance(difference: FloatArray, covariance: FloatArray) -> tuple[float, int, bool]:
    """dᵀ C⁻ d, the rank of C, and whether d lies where C has spread.

    Counts of all levels sum to a total, so their covariance has no inverse. Any generalised
    inverse gives the same distance: that of all levels but one. Variables are brought to variance 1
    first, so that rare levels are not taken for directions without spread.

    Examples
    --------
    >>> squared_distance(np.array([3.0, 0.0]), np.diag([4.0, 0.0]))
    (2.25, 1, True)
    """
    spread = np.sqrt(np.diag(covariance))
    kept = spread > 0
    inside = not difference[~kept].any()
    if not kept.any():
        return 0.0, 0, inside
    unit = difference[kept] / spread[kept]
    correlation = covariance[np.ix_(kept, kept)] / np.outer(spread[kept], spread[kept])
    roots, axes = np.linalg.eigh(correlation)
    real = roots > _NONE * roots[-1]
    along = axes.T @ unit
    outside = float(along[~real] @ along[~real])
    inside = inside and outside <= _NONE * float(unit @ unit)
    return float((along[real] ** 2 / roots[real]).sum()), int(np.count_nonzero(real)), inside
