"""The shape of everybody's distribution, straight from what the cells of all tables tell.

On the working scale of `smoothing` the quantile z(t) at the normal quantile t rises with the slope
exp η(t), so that it always rises:

    η(t) = a + b·t + c₋·min(t, 0)² + c₊·max(t, 0)² + w(t),   w a Wiener process of variance τ.

η = 0 is the normal distribution, b skews it, c = −½ is a hard edge (the uniform distribution has
one on either side) and c > 0 a heavy tail: each tail has a number of its own. The counts of a
center's cells are multinomial; mean and SD of a cell are about normal around those of the
distribution within it. Of both the expected values are linear in η near any curve, so Fisher's
scoring [1]_ finds the posterior; priors are averaged by their evidence [2]_. Unlike people placed
by guess, this counts a cell of twenty people for what it tells: a count, a mean and an SD.

References
----------
.. [1] Green (1984), Journal of the Royal Statistical Society B 46, 149-192.
.. [2] Tierney, Kadane (1986), Journal of the American Statistical Association 81, 82-86.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.cell_scores import SeenCells
from unpooled.maths.cells import Cells
from unpooled.maths.slopes import END, GRID, NORMAL, STEP, WAVES, SlopeCurve, Unit, basis
from unpooled.maths.smoothing import WorkingScale, even_quantiles, levels_for, middles

_ROUGH: FloatArray = np.logspace(-5, 2, 8)  # τ: from a parametric curve to no smoothing
_TAILED: FloatArray = np.array([1e-4, 1e-2, 1.0])  # variance of b and c: normal to hard edges
_LITTLE = 0.01  # evidence of a prior that is left out
_NONE = 1e-12  # evidence, against the best, of a prior that is not tried again
_FREE = 1e-6  # prior precision of where the curve is and how steep
_STEPS = 12
_CLOSE = 0.05  # in η: the next step would be smaller
_LONGEST = 1.5  # step in η
_FIRST_LEVELS = 100  # between which the first slopes are taken
_SHRUNK = 0.1  # prior precision of the waves in the first curve
_THIN = 10  # grid points per one whose variance is computed


@dataclass(frozen=True, slots=True)
class Shape:
    """Values at ascending normal quantiles t.

    `kept` is the posterior variance as a share of the sampling variance of a quantile.
    """

    t: FloatArray
    values: FloatArray
    kept: FloatArray

    def quantile(self, p: FloatArray) -> FloatArray:
        """The values at the levels p."""
        from scipy.special import ndtri

        return np.asarray(np.interp(ndtri(p), self.t, self.values))

    def kept_at(self, p: FloatArray) -> FloatArray:
        """The share of the sampling variance that stays at the levels p."""
        from scipy.special import ndtri

        return np.asarray(np.interp(ndtri(p), self.t, self.kept))


def fit_shape(cells: Cells, values: FloatArray, weights: FloatArray, lower: float) -> Shape:
    """The shape of cells of more than one value; the search starts at weighted, ascending people.

    Examples
    --------
    >>> from unpooled.maths.lattice import Lattice, lattice_table
    >>> x, lattice = np.arange(1.0, 1001.0), Lattice(step=20.0)
    >>> cells = Cells.of([lattice_table(x, lattice, k=10)], lattice)
    >>> fit_shape(cells, x, np.ones(1000), -np.inf).quantile(np.array([0.02, 0.5])).round(-1)
    array([ 20., 500.])
    """
    quantiles = even_quantiles(values, weights, levels_for(float(weights.sum())))
    scale = WorkingScale.of(quantiles, lower)
    unit = Unit.of(quantiles, values)
    seen = SeenCells.of(cells, unit)
    theta, priors = _first(values, weights, scale), _precisions()
    for _ in range(_STEPS):
        curve = SlopeCurve.of(theta, scale, unit)
        information, score = seen.information(curve)
        posterior = _Posterior.of(information, score + information @ theta, priors)
        priors = posterior.priors
        move = posterior.mean - theta
        bend = basis() @ move[1:]
        longest = float(np.abs(bend[np.abs(GRID) < 3]).max())
        theta = theta + move * min(1.0, _LONGEST / max(longest, _CLOSE))
        if longest < _CLOSE:
            break
    kept = np.clip(posterior.variance(curve) * seen.count.sum(), 0.0, 1.0)
    curve = SlopeCurve.of(theta, scale, unit)
    inside = (curve.x > unit.inside[0]) & (curve.x < unit.inside[1])
    return Shape(GRID[inside], unit.location + unit.size * curve.x[inside], kept[inside])


@lru_cache(maxsize=1)
def _precisions() -> FloatArray:
    """Prior precisions of all coefficients, a row per pair of τ and the variance of b and c."""
    return np.array(
        [
            [_FREE, _FREE, *[1 / tailed] * 3, *[1 / rough] * WAVES]
            for rough in _ROUGH
            for tailed in _TAILED
        ]
    )


def _first(values: FloatArray, weights: FloatArray, scale: WorkingScale) -> FloatArray:
    """Coefficients for the slopes between quantiles of the people."""
    from scipy.special import ndtri

    p = np.arange(_FIRST_LEVELS + 1) / _FIRST_LEVELS
    p[[0, -1]] = 0.2 / _FIRST_LEVELS, 1 - 0.2 / _FIRST_LEVELS
    t, z = ndtri(p), scale.forth(np.interp(p, middles(weights), values))
    slopes = np.log(np.maximum(np.diff(z) / np.diff(t), 0.02))
    at = np.round(((t[1:] + t[:-1]) / 2 + END) / STEP).astype(int)
    rows = basis()[at]
    ridge = np.array([_FREE, *[_SHRUNK] * (rows.shape[1] - 1)])
    found = np.linalg.solve(rows.T @ rows + np.diag(ridge), rows.T @ slopes)
    return np.concatenate(([np.interp(0.0, t, z)], found))


@dataclass(frozen=True, slots=True)
class _Posterior:
    """Normal posteriors of the coefficients, one per prior of some evidence, and their weights."""

    mean: FloatArray
    means: FloatArray
    precisions: FloatArray
    weights: FloatArray
    priors: FloatArray

    @staticmethod
    def of(information: FloatArray, score: FloatArray, prior: FloatArray) -> "_Posterior":
        size = len(score)
        bordered = np.empty((len(prior), size + 1, size + 1))  # the root's last row: root⁻¹ score
        bordered[:, :size, :size] = information
        bordered[:, np.arange(size), np.arange(size)] += prior
        bordered[:, size, :size] = bordered[:, :size, size] = score
        bordered[:, size, size] = 1e300
        roots = np.linalg.cholesky(bordered)
        log = np.sum(roots[:, size, :size] ** 2, axis=1) / 2 + np.log(prior).sum(axis=1) / 2
        log -= np.log(np.diagonal(roots, axis1=1, axis2=2)[:, :size]).sum(axis=1)
        evidence = np.exp(log - log.max())
        some = evidence > _LITTLE * evidence.sum()
        weights, precisions = evidence[some] / evidence[some].sum(), bordered[some, :size, :size]
        scores = np.broadcast_to(score[:, None], (len(weights), size, 1))
        means = np.asarray(np.linalg.solve(precisions, scores)[..., 0], dtype=np.float64)
        possible = prior[evidence > _NONE]
        return _Posterior(weights @ means, means, precisions, weights, possible)

    def variance(self, curve: SlopeCurve) -> FloatArray:
        """The variance of the level at each grid point, as a share of p(1 − p)."""
        from scipy.special import ndtr

        effect = curve.effect[::_THIN]
        within = np.tensordot(self.weights, np.linalg.inv(self.precisions), 1)
        found = np.sum(effect @ within * effect, axis=1)
        found += self.weights @ ((self.means - self.mean) @ effect.T) ** 2
        p = ndtr(GRID[::_THIN])
        density = (NORMAL / curve.slope)[::_THIN]
        return np.asarray(np.interp(GRID, GRID[::_THIN], found * density**2 / (p * (1 - p))))
