"""The shape of everybody's distribution, straight from what the cells of all tables tell.

On the working scale of `smoothing` the quantile z(t) at the normal quantile t rises with the slope
exp η(t), so that it always rises:

    η(t) = a + b·t + c₋·min(t, 0)² + c₊·max(t, 0)² + w(t),   w a Wiener process of variance τ.

η = 0 is the normal distribution, b skews it, c = −½ is a hard edge (the uniform distribution has
one on either side) and c > 0 a heavy tail: each tail has a number of its own (`Priors` says what
is likely). The counts of a center's cells are multinomial; mean and SD of a cell are about normal
around those of the distribution within it. Of both the expected values are linear in η near any
curve, so Fisher's scoring [1]_ finds the posterior; priors are averaged by their evidence [3]_.
Unlike people placed by guess, this counts a cell of twenty people for what it tells: a count, a
mean and an SD.

References
----------
.. [1] Green (1984), Journal of the Royal Statistical Society B 46, 149-192.
.. [2] Irons, Tuck (1969), International Journal for Numerical Methods in Engineering 1, 275-277.
.. [3] Tierney, Kadane (1986), Journal of the American Statistical Association 81, 82-86.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.cell_scores import SeenCells
from unpooled.maths.density.slope_basis import (
    END,
    GRID,
    NORMAL,
    PIECES,
    SHAPED,
    STEP,
    SlopeCurve,
    Unit,
    basis,
)
from unpooled.maths.density.smoothing import WorkingScale, even_quantiles, levels_for, middles
from unpooled.maths.lattice.cells import Cells

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


_STEPS = 30
_LEAST = 0.1  # of a step is taken at least, where steps go back and forth
_SEEN = 3.0  # normal quantiles between which steps are measured
_ROUGHER = 2.0  # s of a piece from which on local priors are tried
_CLOSE = 0.1  # in η, and in SDs of where the curve is: the next step would be smaller
_LONGEST = 1.5  # step in η
_ASTRAY = 3.0  # the next step, where the search did not meet: last digits decide where it is
_FIRST_LEVELS = 100  # between which the first slopes are taken
_FLAT = 1e-6  # prior precision of the level in the first curve
_SHRUNK = 0.1  # and of the rest
_UNKNOWN = 1e6  # times the sampling variance is as good as anything


@dataclass(frozen=True, slots=True)
class Shape:
    """Values at ascending normal quantiles t.

    `kept` is the posterior variance as a share of the sampling variance of a quantile: above 1,
    cells tell less than their people would.
    """

    t: FloatArray
    values: FloatArray
    kept: FloatArray

    def quantile(self, p: FloatArray) -> FloatArray:
        """The values at the levels p."""
        from scipy.special import ndtri

        return np.asarray(np.interp(ndtri(p), self.t, self.values))

    def slope(self, p: FloatArray, around: FloatArray) -> FloatArray:
        """By how much values rise per level, around p; beyond both ends as just before them."""
        from scipy.special import ndtr

        first, last = ndtr(self.t[[0, -1]])
        aside = np.minimum(around, (last - first) / 4) / 2
        at = np.clip(p, first + aside, last - aside)
        return np.asarray((self.quantile(at + aside) - self.quantile(at - aside)) / (2 * aside))

    def kept_at(self, p: FloatArray) -> FloatArray:
        """The share of the sampling variance that stays at the levels p."""
        from scipy.special import ndtri

        return np.asarray(np.interp(ndtri(p), self.t, self.kept))


def fit_shape(cells: Cells, values: FloatArray, weights: FloatArray, lower: float) -> Shape:
    """The shape of cells of more than one value; the search starts at weighted, ascending people.

    Where the search does not meet, as over a wide gap between centers, the shape is empty: what it
    was would hang on the last digits, and so on the machine.

    Examples
    --------
    >>> from unpooled.maths.lattice.cutting import lattice_table
    >>> from unpooled.maths.lattice.lattice import Lattice
    >>> x, lattice = np.arange(1.0, 1001.0), Lattice(step=20.0)
    >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
    >>> cells = Cells.of([lattice_table(x, lattice, 10, draws)], lattice)
    >>> fit_shape(cells, x, np.ones(1000), -np.inf).quantile(np.array([0.02, 0.5])).round(-1)
    array([ 20., 500.])
    """
    quantiles = even_quantiles(values, weights, levels_for(float(weights.sum())))
    scale = WorkingScale.of(quantiles, lower)
    unit = Unit.of(quantiles, values)
    seen = SeenCells.of(cells, unit)
    search = _Search(_first(values, weights, scale), even_priors())
    for _ in range(_STEPS):
        curve = SlopeCurve.of(search.theta, scale, unit)
        posterior = search.look(*seen.information(curve))
        left = search.step(posterior.mean)
        if left < _CLOSE and search.priors_stay:
            break
    kept = np.clip(posterior.variance(curve) * seen.count.sum(), 0.0, _UNKNOWN)
    curve = SlopeCurve.of(search.theta, scale, unit)
    inside = (curve.x > unit.inside[0]) & (curve.x < unit.inside[1]) & (left < _ASTRAY)
    return Shape(GRID[inside], unit.location + unit.size * curve.x[inside], kept[inside])


def _first(values: FloatArray, weights: FloatArray, scale: WorkingScale) -> FloatArray:
    """Coefficients for the slopes between quantiles of the people."""
    from scipy.special import ndtri

    p = np.arange(_FIRST_LEVELS + 1) / _FIRST_LEVELS
    p[[0, -1]] = 0.2 / _FIRST_LEVELS, 1 - 0.2 / _FIRST_LEVELS
    t, z = ndtri(p), scale.forth(np.interp(p, middles(weights), values))
    slopes = np.log(np.maximum(np.diff(z) / np.diff(t), 0.02))
    at = np.round(((t[1:] + t[:-1]) / 2 + END) / STEP).astype(int)
    rows = basis()[at]
    ridge = np.array([_FLAT, *[_SHRUNK] * (rows.shape[1] - 1)])
    solved = np.linalg.solve(rows.T @ rows + np.diag(ridge), rows.T @ slopes)
    return np.concatenate(([np.interp(0.0, t, z)], solved))


@dataclass(slots=True)
class _Search:
    """Fisher's scoring: the coefficients so far, and the priors that are still possible."""

    theta: FloatArray
    priors: Priors
    variances: FloatArray | None = None  # s of the local priors, once there are some
    priors_stay: bool = True  # none were added in the last look
    taken: float = 1.0  # share of the last step
    before: FloatArray | None = None  # what a whole one would have changed

    def look(self, information: FloatArray, score: FloatArray) -> Posterior:
        """The posterior at what was found here, and the priors for the next time."""
        posterior = Posterior.of(information, score + information @ self.theta, self.priors)
        self.priors = posterior.possible
        variances = relative_variances(posterior.squares, posterior.rough)
        self.priors_stay = self.variances is not None or variances.max() <= _ROUGHER
        if not self.priors_stay:
            self.variances, self.priors = np.ones(PIECES), self.priors.and_local()
        if self.variances is not None:
            self.priors = self.priors.with_variances(self.variances, variances)
            self.variances = variances
        return posterior

    def step(self, mean: FloatArray) -> float:
        """Go to this mean or part of the way, and say how far it was.

        Around a gap, whole steps may go back and forth forever: two in a row tell which share of
        them would have met (Aitken's relaxation [2]_).
        """
        move = mean - self.theta
        bend = basis() @ move[1:]
        longest = float(np.abs(np.append(bend[np.abs(GRID) < _SEEN], move[0])).max())
        now, share = np.append(bend * NORMAL, move[0]), 1.0
        if self.before is not None and (back := float(self.before @ (self.before - now))) > 0:
            apart = float(np.sum((self.before - now) ** 2))
            share = min(max(self.taken * back / apart, _LEAST), 1.0)
        self.before = now
        self.taken = min(share, _LONGEST / max(longest, _CLOSE))
        self.theta = self.theta + self.taken * move
        return longest
