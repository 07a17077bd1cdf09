"""The shape of everybody's distribution, straight from what the cells of all tables tell.

On the working scale of `smoothing` the quantile z(t) at the normal quantile t rises with the slope
exp η(t), so that it always rises:

    η(t) = a + b·t + c₋·min(t, 0)² + c₊·max(t, 0)² + w(t),   w a Wiener process of variance τ.

η = 0 is the normal distribution, b skews it, c = −½ is a hard edge (the uniform distribution has
one on either side) and c > 0 a heavy tail: each tail has a number of its own (`priors` says what
is likely). The counts of a center's cells are multinomial; mean and SD of a cell are about normal
around those of the distribution within it. Of both the expected values are linear in η near any
curve, so Fisher's scoring [1]_ finds the posterior; priors are averaged by their evidence. Unlike
people placed by guess, this counts a cell of twenty people for what it tells: a count, a mean and
an SD.

References
----------
.. [1] Green (1984), Journal of the Royal Statistical Society B 46, 149-192.
.. [2] Irons, Tuck (1969), International Journal for Numerical Methods in Engineering 1, 275-277.
"""

from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.cell_scores import SeenCells
from unpooled.maths.density.posterior import Posterior, Priors, even_priors, relative_variances
from unpooled.maths.density.slope_basis import (
    END,
    GRID,
    NORMAL,
    PIECES,
    STEP,
    SlopeCurve,
    Unit,
    basis,
)
from unpooled.maths.density.smoothing import WorkingScale, even_quantiles, levels_for, middles
from unpooled.maths.lattice.stacked_cells import Cells

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
