"""Curves after what cells tell: normal posteriors, averaged by the evidence of their priors [1]_.

References
----------
.. [1] Tierney, Kadane (1986), Journal of the American Statistical Association 81, 82-86.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.slope_basis import GRID, NORMAL, PIECES, SHAPED, SlopeCurve

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
        at_centers = 1 / (self.rough[self.local, None] * now)
        precision[self.local, SHAPED:] = np.maximum(at_centers, _LOOSEST)
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


_LITTLE = 0.01  # evidence of a prior that is left out
_NONE = 1e-4  # evidence, against the best, of a prior that is not tried again
_LOST = 1e-13  # of the largest information about a coefficient: what rounding may take
_THIN = 10  # grid points per one whose variance is computed


@dataclass(frozen=True, slots=True)
class Posterior:
    """Normal posteriors of the coefficients, one per prior of some evidence, and their weights."""

    mean: FloatArray
    means: FloatArray
    precisions: FloatArray
    weights: FloatArray
    possible: Priors  # those that may still come to count
    squares: FloatArray  # E d² by the best prior, of the local ones where there are some
    rough: float  # τ of that prior

    @staticmethod
    def of(information: FloatArray, score: FloatArray, priors: Priors) -> "Posterior":
        """The posteriors, were a log likelihood quadratic, with this gradient at 0."""
        size = len(score)
        scores = score + priors.precision * priors.mean
        bordered = np.empty((len(scores), size + 1, size + 1))  # the root's last row: root⁻¹ score
        bordered[:, :size, :size] = information
        diagonal = np.arange(size)
        bordered[:, diagonal, diagonal] += priors.precision + _LOST * np.diag(information).max()
        bordered[:, size, :size] = bordered[:, :size, size] = scores
        bordered[:, size, size] = 1e300
        roots = np.linalg.cholesky(bordered)
        log = np.sum(roots[:, size, :size] ** 2, axis=1) / 2 + priors.log_weight
        log -= np.log(np.diagonal(roots, axis1=1, axis2=2)[:, :size]).sum(axis=1)
        log += np.log(priors.precision).sum(axis=1) / 2
        log -= np.sum(priors.precision * priors.mean**2, axis=1) / 2
        evidence = np.exp(log - log.max())
        some = evidence > _LITTLE * evidence.sum()
        weights, precisions = evidence[some] / evidence[some].sum(), bordered[some, :size, :size]
        means = np.asarray(
            np.linalg.solve(precisions, scores[some, :, None])[..., 0], dtype=np.float64
        )
        rows = np.where(priors.local, log, -np.inf) if priors.local.any() else log
        best = int(np.argmax(rows))
        inverse = np.linalg.inv(bordered[best, :size, :size])
        return Posterior(
            weights @ means,
            means,
            precisions,
            weights,
            priors.those(evidence > _NONE),
            ((inverse @ scores[best]) ** 2 + np.diag(inverse))[SHAPED:],
            float(priors.rough[best]),
        )

    def variance(self, curve: SlopeCurve) -> FloatArray:
        """The variance of the level at each grid point, as a share of p(1 − p)."""
        from scipy.special import ndtr

        effect = curve.effect[::_THIN]
        within = np.tensordot(self.weights, np.linalg.inv(self.precisions), 1)
        total = np.sum(effect @ within * effect, axis=1)
        total += self.weights @ ((self.means - self.mean) @ effect.T) ** 2
        p, density = ndtr(GRID), NORMAL / curve.slope
        return np.asarray(np.interp(GRID, GRID[::_THIN], total) * density**2 / (p * (1 - p)))
