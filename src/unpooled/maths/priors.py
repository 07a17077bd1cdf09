"""What is thought of a quantile curve before people are seen.

The coefficients of `slopes` are normal: d_j, by which w climbs in piece j, has the variance τ,
skewness and tails have the variance v, each of several. Tails of curves that are otherwise smooth
may also end in a hard edge, c = −½. The data choose, by evidence.

With one τ a curve draws a gap only if it is rough everywhere. It may also be rough in places: d_j
then has the variance τs_j, s_j being inverse-gamma with ν degrees of freedom [1]_. Given E d_j² and
τ of the best such prior, s_j is taken as (ν + E d_j²/τ)/(ν + 1) for all of them; the height of its
density against s = 1 stands for how likely it is.

References
----------
.. [1] Lange, Little, Taylor (1989), Journal of the American Statistical Association 84, 881-896.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.slopes import PIECES, SHAPED

_ROUGH = np.logspace(-5, 2, 8)  # τ: from a parametric curve to no smoothing
_TAILED = (1e-4, 1e-2, 1.0)  # v: from normal to any tail
_EDGE = -0.5
_SHARP = 1e-3  # variance of c at an edge
_BESIDE = 1e-2  # v of the rest where a tail is an edge
_SMOOTH = 0.3  # τ below which there are edges: rougher curves bend as they like
_FREE = 1e-6  # precision of where the curve is and how steep
_LOOSEST = 1e-3  # precision: η stays within 13, so d within some 35
_FREEDOM = 1.0  # ν: single pieces may be much steeper than all others


@dataclass(frozen=True, slots=True)
class Priors:
    """Normal priors, a row each: mean and precision of the coefficients, and a log weight.

    `rough` is τ, `local` says which rows have a variance s of their own for each piece.
    """

    mean: FloatArray
    precision: FloatArray
    log_weight: FloatArray
    rough: FloatArray
    local: npt.NDArray[np.bool_]

    def those(self, rows: npt.NDArray[np.bool_]) -> "Priors":
        """Some of the rows."""
        return Priors(
            self.mean[rows],
            self.precision[rows],
            self.log_weight[rows],
            self.rough[rows],
            self.local[rows],
        )

    def and_local(self) -> "Priors":
        """These rows and, for curves that are rough in places, those without edges, with s = 1."""
        more = even_priors()
        more = more.those(np.asarray(~more.mean.any(axis=1)))
        return Priors(
            np.concatenate((self.mean, more.mean)),
            np.concatenate((self.precision, more.precision)),
            np.concatenate((self.log_weight, more.log_weight)),
            np.concatenate((self.rough, more.rough)),
            np.concatenate((self.local, ~more.local)),
        )

    def with_variances(self, before: FloatArray, now: FloatArray) -> "Priors":
        """The same, with s changed in the local rows."""
        precision, log_weight = self.precision.copy(), self.log_weight.copy()
        own = 1 / (self.rough[self.local, None] * now)
        precision[self.local, SHAPED:] = np.maximum(own, _LOOSEST)
        log_weight[self.local] += _log_density(now) - _log_density(before)
        return replace(self, precision=precision, log_weight=log_weight)


def relative_variances(squares: FloatArray, rough: float) -> FloatArray:
    """s, where w climbs with these expected squares.

    Examples
    --------
    >>> relative_variances(np.array([0.1, 0.1, 10.0]), rough=0.1)
    array([ 1. ,  1. , 50.5])
    """
    return np.asarray((_FREEDOM + squares / rough) / (_FREEDOM + 1))


def _log_density(variances: FloatArray) -> float:
    """Of log s, less that at s = 1, the mode."""
    return -_FREEDOM / 2 * float(np.sum(np.log(variances) + 1 / variances - 1))


@lru_cache(maxsize=1)
def even_priors() -> Priors:
    """All priors of curves that are equally rough everywhere."""
    beside, edge, skew = (0.0, 1 / _BESIDE), (_EDGE, 1 / _SHARP), 1 / _BESIDE
    edges = [(skew, *edge, *beside), (skew, *beside, *edge), (skew, *edge, *edge)]
    tails = [(1 / v, 0.0, 1 / v, 0.0, 1 / v) for v in _TAILED]
    rows = [(tau, *tail) for tau in _ROUGH for tail in tails]
    rows += [(tau, *tail) for tau in _ROUGH if tau < _SMOOTH for tail in edges]
    rough, skews, left, left_precision, right, right_precision = np.array(rows).T
    mean = np.zeros((len(rows), SHAPED + PIECES))
    mean[:, 3:SHAPED] = np.stack((left, right), axis=1)
    precision = np.repeat(1 / rough[:, None], SHAPED + PIECES, axis=1)
    precision[:, :2] = _FREE
    precision[:, 2:SHAPED] = np.stack((skews, left_precision, right_precision), axis=1)
    return Priors(mean, precision, np.zeros(len(rows)), rough, np.zeros(len(rows), dtype=np.bool_))
