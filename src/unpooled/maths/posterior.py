"""Curves after what cells tell: normal posteriors, averaged by the evidence of their priors [1]_.

References
----------
.. [1] Tierney, Kadane (1986), Journal of the American Statistical Association 81, 82-86.
"""

from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.priors import Priors
from unpooled.maths.slopes import GRID, NORMAL, SHAPED, SlopeCurve

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
        found = np.sum(effect @ within * effect, axis=1)
        found += self.weights @ ((self.means - self.mean) @ effect.T) ** 2
        p, density = ndtr(GRID), NORMAL / curve.slope
        return np.asarray(np.interp(GRID, GRID[::_THIN], found) * density**2 / (p * (1 - p)))
