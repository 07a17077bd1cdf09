"""P-values adjusted for testing several variables at once.

Both take and give natural logarithms of p-values, so that tiny ones keep their order.
"""

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray


def holm(log_p: npt.ArrayLike) -> FloatArray:
    """Holm's adjusted log p-values: the chance of any false finding stays at the level [1]_.

    Parameters
    ----------
    log_p
        Natural logarithms of the p-values, in any order; the answer has the same order.

    References
    ----------
    .. [1] Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> np.exp(holm(np.log([0.01, 0.04, 0.03])))
    array([0.03, 0.06, 0.06])
    """
    values, order = _ascending(log_p)
    remaining = np.arange(len(values), 0, -1)
    return _restore(np.maximum.accumulate(values + np.log(remaining)), order)


def benjamini_hochberg(log_p: npt.ArrayLike) -> FloatArray:
    """Benjamini and Hochberg's adjusted log p-values: the share of false findings stays low [1]_.

    Parameters
    ----------
    log_p
        Natural logarithms of the p-values, in any order; the answer has the same order.

    References
    ----------
    .. [1] Benjamini, Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300.

    Examples
    --------
    >>> np.exp(benjamini_hochberg(np.log([0.01, 0.04, 0.03])))
    array([0.03, 0.04, 0.04])
    """
    values, order = _ascending(log_p)
    ranks = np.arange(1, len(values) + 1)
    scaled = values + np.log(len(values) / ranks)
    return _restore(np.minimum.accumulate(scaled[::-1])[::-1], order)


def _ascending(log_p: npt.ArrayLike) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    values = np.asarray(log_p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"log_p must be one row of numbers, got {values.ndim} dimensions")
    wrong = values[~(values <= 0)]
    if len(wrong):
        raise ValueError(f"log_p must be logarithms of p-values, at most 0, got {wrong[0]}")
    order = np.argsort(values, kind="stable")
    return values[order], order


def _restore(adjusted: FloatArray, order: npt.NDArray[np.intp]) -> FloatArray:
    restored = np.empty_like(adjusted)
    restored[order] = np.minimum(adjusted, 0.0)
    return restored
