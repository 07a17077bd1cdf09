"""Quantiles of the outer tenths of weighted people, by generalised Pareto tails.

Beyond a high threshold nearly every distribution has such a tail [1]_; a hard edge is one of them.
Shape and scale follow from the mean and the variance of the excesses [2]_.

References
----------
.. [1] Pickands (1975), Annals of Statistics 3, 119-131.
.. [2] Hosking, Wallis (1987), Technometrics 29, 339-349.
"""

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.smoothing import middles

_SHARE = 0.1  # of the people at either end: few enough for a tail, enough for two moments
_EXPONENTIAL = 1e-6  # shapes nearer to 0 are told by this one


def tail_quantiles(p: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """The quantiles at p of ascending values; NaN between the tails and where there is none.

    Examples
    --------
    >>> x = (np.arange(1000) + 0.5) / 1000
    >>> tail_quantiles(np.array([0.02, 0.5, 0.99]), x, np.ones(1000)).round(3)
    array([0.02,  nan, 0.99])
    """
    found = np.full(len(p), np.nan)
    lower, upper = p < _SHARE, p > 1 - _SHARE
    found[lower] = -_beyond(p[lower], -values[::-1], weights[::-1])
    found[upper] = _beyond(1 - p[upper], values, weights)
    return found


def _beyond(share: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """The values that so large shares of people exceed."""
    threshold = np.interp(1 - _SHARE, middles(weights), values)
    over = values > threshold
    excess, weight = values[over] - threshold, weights[over]
    if not weight.sum() > 0:
        return np.full(len(share), np.nan)
    mean = float(np.average(excess, weights=weight))
    variance = float(np.average(excess**2, weights=weight)) - mean**2
    if not variance > 0:
        return np.full(len(share), np.nan)
    shape = (1 - mean**2 / variance) / 2
    shape = shape if abs(shape) > _EXPONENTIAL else _EXPONENTIAL
    times = np.maximum(weight.sum() / weights.sum() / np.maximum(share, 1e-300), 1.0)
    return np.asarray(threshold + mean * (1 - shape) * np.expm1(shape * np.log(times)) / shape)
