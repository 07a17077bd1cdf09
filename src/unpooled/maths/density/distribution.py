"""The distribution of all centers' people together, from one round of released tables.

Quantiles with intervals, distribution function and density. Values that many people share (atoms)
stay exact; the rest is smooth (`smoothing`). Intervals are of Woodruff's kind [1]_.

References
----------
.. [1] Woodruff (1952), Journal of the American Statistical Association 47, 635-646.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.density.placing import Placed, place
from unpooled.maths.density.pooled_shape import Shape
from unpooled.maths.density.smoothing import (
    Curve,
    can_smooth,
    fit_curve,
    levels_for,
    limited_translation,
    middles,
)
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, nearest_multiples
from unpooled.maths.quantiles.quantile import check_probabilities


@dataclass(frozen=True, slots=True)
class Counted:
    """The cells' lower and upper limits, each ascending, and how many people are in those so far.

    Examples
    --------
    >>> table = LatticeTable(np.array([1.0, 2.0]), [10, 10, 10], [np.nan] * 3, [np.nan] * 3)
    >>> counted = Counted.of([table], Lattice(1.0, lower=0.0))
    >>> counted.at_most(np.array([9.0, 10.0])), counted.at_least(np.array([10.0, 11.0]))
    (array([0., 1.]), array([1., 2.]))
    """

    lows: FloatArray
    from_lows: FloatArray
    highs: FloatArray
    up_to_highs: FloatArray

    @classmethod
    def of(cls, tables: Sequence[LatticeTable], lattice: Lattice) -> "Counted":
        """What the tables of all centers count."""
        limits = [lattice.limits(table.edges) for table in tables]
        counts = np.concatenate([table.counts for table in tables])
        counted = []
        for ends in (
            np.concatenate([x[:-1] for x in limits]),
            np.concatenate([x[1:] for x in limits]),
        ):
            order = np.argsort(ends, kind="stable")
            counted += [ends[order], np.cumsum(counts[order]).astype(np.float64)]
        return cls(*counted)

    def at_most(self, people: FloatArray) -> FloatArray:
        """The highest limit below which at most so many people can stand."""
        at = np.searchsorted(self.from_lows, people, "right")
        return np.asarray(self.lows[np.minimum(at, len(self.lows) - 1)])

    def at_least(self, people: FloatArray) -> FloatArray:
        """The lowest limit below which at least so many people must stand."""
        at = np.searchsorted(self.up_to_highs, people, "left")
        return np.asarray(self.highs[np.minimum(at, len(self.highs) - 1)])


_TRANSFORMED = 0.4  # of the sampling variance: what choosing a transformation may cost
_BLURRED = 1.2  # times the sampling variance: cells that leave more tell too little
_OUTER = 0.1  # the share of people in either tail
_TRUSTED = 0.75  # of what the shape knows of tails: edges that differ between centers blur it
_ASKED = 0.02  # level at which a curve is asked whether it holds in a tail
_GRID = np.linspace(-5.0, 5.0, 401)  # normal quantiles at which the distribution is drawn

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Distribution:
    """What the tables say about everybody; made by `smooth`."""

    placed: Placed
    levels: FloatArray  # of the placed people, one by one
    sizes: FloatArray  # people per center
    lattice: Lattice
    curve: Curve | None  # None where everybody shares a few values
    ends: tuple[float, float]  # the outermost boundaries
    counted: Counted

    @property
    def people(self) -> float:
        """How many people it speaks for."""
        return float(self.sizes.sum())

    def quantile(self, p: npt.ArrayLike) -> FloatArray:
        """The quantiles at p; on rounded data they are possible values.

        Examples
        --------
        >>> from unpooled.maths.lattice.cutting import lattice_table
        >>> x, lattice = np.arange(1.0, 1001.0), Lattice(step=20.0)
        >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
        >>> smooth([lattice_table(x, lattice, 10, draws)], lattice).quantile([0.25, 0.5]).round(-1)
        array([250., 500.])
        """
        return self._possible(self._unrounded(check_probabilities(p)))

    def interval(self, p: npt.ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Confidence limits of the quantiles at p.

        Woodruff's levels p ± z·SE, the SE shortened by what smoothing gains; how far the quantile
        moves between these levels is the geometric mean of what the curve (in tails where it fails,
        the shape) and the pooled people say. The interval lies around the middle of the estimate,
        which may be biased, and the people's own quantile. Where cells tell too little (`blur`) it
        is longer, and the shape's quantile lies in it, as far as counts allow.
        """
        from scipy.special import ndtri

        if not 0 < level < 1:
            raise ValueError(f"level must lie in (0, 1), got {level}. Hint: for 95 % use 0.95.")
        p = check_probabilities(p)
        z = float(ndtri((1 + level) / 2))
        moves, failed = self._moves(p, z, self.curve), self._failed(p)
        if failed.any():
            moves = np.where(failed, self._moves(p, z, self.placed.shape), moves)
        down, up = moves
        blur, estimate = z * self.blur(p), self._unrounded(p)
        middle = (estimate + self._pooled(p)) / 2
        shaped = np.where(blur > 0, self._drawn(p, self.placed.shape), estimate)
        least, most = self._certain(p, z)
        low = np.maximum(np.minimum(middle - np.hypot(down, blur), shaped), least)
        high = np.minimum(np.maximum(middle + np.hypot(up, blur), shaped), most)
        return (
            self._possible(np.minimum.reduce((middle - down, estimate, low))),
            self._possible(np.maximum.reduce((middle + up, estimate, high))),
        )

    def _moves(self, p: FloatArray, z: float, smooth: Curve | Shape | None) -> FloatArray:
        """How far quantiles move down and up over z shortened errors, by a smooth distribution."""
        kept, by_shape = self._kept(p, smooth), self._kept(p, self.placed.shape)
        tail = np.clip(2 - np.minimum(p, 1 - p) / _OUTER, 0.0, 1.0)
        kept = kept - _TRUSTED * tail * np.maximum(kept - by_shape, 0.0)  # tails stand by the shape
        shortened = np.sqrt(_TRANSFORMED + (1 - _TRANSFORMED) * kept)
        reach = z * shortened * self.standard_error(p)
        drawn, pooled = self._drawn(p, smooth), self._pooled(p)
        moves = []
        for sign in (-1, 1):
            there = np.clip(p + sign * reach, 0.1 / self.people, 1 - 0.1 / self.people)
            curve, people = self._drawn(there, smooth) - drawn, self._pooled(there) - pooled
            moves.append(np.sqrt(np.maximum(sign * curve, 0.0) * np.maximum(sign * people, 0.0)))
        return np.stack(moves)

    def blur(self, p: npt.ArrayLike) -> FloatArray:
        """The standard error that cells add at p, where they tell less than their people would.

        It is 0 elsewhere, and where many people share a value. People stand closer than cells can
        tell at a pole of the density; or too few of them lie beyond p.
        """
        p, shape = check_probabilities(p), self.placed.shape
        if shape is None:
            return np.zeros(len(p))
        at, inner = self._among_others(p)
        others = float(self.placed.weights[~self.placed.shared].sum())
        strata = self.standard_error(p) / np.sqrt(p * (1 - p) / self.people)
        error = strata * np.sqrt(inner * (1 - inner) / others)
        added = np.sqrt(np.maximum(shape.kept_at(inner) - _BLURRED, 0.0))
        blur = shape.slope(inner, error) * error * added
        return np.where(self.placed.shared[at], 0.0, blur)

    def _certain(self, p: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """Between which limits the quantiles lie by counts and sampling error alone.

        Open cells end a step beyond the outermost placed people.
        """
        reach = z * self.standard_error(p)
        low, high = self.span
        least = self.counted.at_most(self.people * (p - reach))
        most = self.counted.at_least(self.people * (p + reach))
        return np.maximum(least, low), np.minimum(most, high)

    @property
    def span(self) -> tuple[float, float]:
        """A step beyond the outermost placed people, within declared limits."""
        low, high = self.placed.values[[0, -1]].tolist()
        step = self.lattice.step
        return max(low - step, self.lattice.lower), min(high + step, self.lattice.upper)

    def standard_error(self, p: FloatArray) -> FloatArray:
        """The standard error of the share of people below the quantile, centers being strata."""
        at = np.searchsorted(self.placed.values, self._pooled(p), "right")
        below = np.empty((len(p), len(self.sizes)))
        for row, end in enumerate(at):
            below[row] = np.bincount(
                self.placed.centers[:end], self.placed.weights[:end], len(self.sizes)
            )
        share = np.clip(below / self.sizes, 0.0, 1.0)
        unbiased = self.sizes**2 / np.maximum(self.sizes - 1, 1)
        error = np.sqrt((share * (1 - share)) @ unbiased) / self.people
        single = np.sqrt(p * (1 - p) / self.people)
        return np.clip(error, single / 10, single)

    def beyond(self, p: npt.ArrayLike) -> BoolArray:
        """Where a quantile lies outside all boundaries: it rests on the shape of a tail.

        Not so where many people share it, or where a declared limit is as near as boundaries are.
        """
        p = check_probabilities(p)
        q, (low, high) = self._unrounded(p), self.ends
        reach = high - low if low <= high else np.inf
        outside = (q < low) & (self.lattice.lower <= low - reach)
        outside |= (q > high) & (self.lattice.upper >= high + reach)
        return np.asarray(outside & ~self.placed.shared[self._among_others(p)[0]])

    def too_far(self, p: npt.ArrayLike) -> BoolArray:
        """Where fewer than one person is expected beyond a quantile: nobody can tell it.

        Not so where the people of its cell can have one value alone.
        """
        p = check_probabilities(p)
        rare = self.people * np.minimum(p, 1 - p) < 1 - 1e-9
        for i in np.flatnonzero(rare):
            cell = self.placed.cells[self._among_others(p[i : i + 1])[0]]
            values = self._possible(self.placed.values[self.placed.cells == cell])
            rare[i] = values.min() < values.max()
        return rare

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """The share of people at or below x."""
        levels, values = self._drawing()
        x = np.asarray(x, dtype=np.float64)
        at = np.searchsorted(values, x, "right")
        flat = np.interp(x, values, levels, left=0.0, right=1.0)
        return np.asarray(np.maximum(flat, np.concatenate(([0.0], levels))[at]))

    def density(self, x: npt.ArrayLike, width: float) -> FloatArray:
        """The share of people per unit, without atoms, in an interval of this width around x.

        Where limited translation begins and ends, quantiles have kinks: at a point, the density
        may be anything.
        """
        levels, values = self._drawing()
        rising = np.where(np.diff(values) > 0, np.diff(levels), 0.0)
        reached = np.concatenate(([0.0], np.cumsum(rising)))
        x = np.asarray(x, dtype=np.float64)
        low, high = (np.interp(x + side * width / 2, values, reached) for side in (-1, 1))
        return np.asarray((high - low) / width)

    def _drawing(self) -> tuple[FloatArray, FloatArray]:
        from scipy.special import ndtr

        levels = ndtr(_GRID)
        return levels, np.maximum.accumulate(self._unrounded(levels))

    def _unrounded(self, p: FloatArray) -> FloatArray:
        """The curve, kept near the pooled people; in tails where it fails, the shape, kept so too.

        Where the two meet, quantiles still rise.
        """
        near, failed = self._near(p, self.curve), self._failed(p)
        if not failed.any():
            return near
        low, high = self._near(np.array([_OUTER, 1 - _OUTER]), self.curve)
        shaped = self._near(p, self.placed.shape)
        shaped = np.where(p < _OUTER, np.minimum(shaped, low), np.maximum(shaped, high))
        return np.where(failed, shaped, near)

    def _failed(self, p: FloatArray) -> BoolArray:
        """Where p lies in a tail whose people the curve would leave: mostly an undeclared edge."""
        if self.placed.shape is None:
            return np.zeros(len(p), dtype=np.bool_)
        asked = np.array([_ASKED, 1 - _ASKED])
        gone = np.abs(self._drawn(asked, self.curve) - self._near(asked, self.curve))
        lower, upper = gone > 1e-9 * (self.placed.values[-1] - self.placed.values[0])
        return np.asarray((p < _OUTER) & lower | (p > 1 - _OUTER) & upper)

    def _near(self, p: FloatArray, smooth: Curve | Shape | None) -> FloatArray:
        """The quantiles of a smooth distribution, within its limited translation."""
        drawn, kept = self._drawn(p, smooth), self._kept(p, smooth)
        error = self.standard_error(p)
        return limited_translation(drawn, kept, error, p, self.placed.values, self.levels)

    def _pooled(self, p: FloatArray) -> FloatArray:
        return np.interp(p, self.levels, self.placed.values)

    def _drawn(self, p: FloatArray, smooth: Curve | Shape | None) -> FloatArray:
        """The quantiles of a smooth distribution, with the shared values in their places."""
        if smooth is None:
            return self._pooled(p)
        at, inner = self._among_others(p)
        drawn = np.where(self.placed.shared[at], self.placed.values[at], smooth.quantile(inner))
        return np.where(np.isnan(drawn), self._pooled(p), np.clip(drawn, *self.span))

    def _kept(self, p: FloatArray, smooth: Curve | Shape | None) -> FloatArray:
        """The share of the sampling variance that a smooth distribution leaves at p, at most 1."""
        if smooth is None:
            return np.ones(len(p))
        return np.minimum(smooth.kept_at(self._among_others(p)[1]), 1.0)

    def _among_others(self, p: FloatArray) -> tuple[IntArray, FloatArray]:
        """Which of the placed people stands at p, and its level among those of no shared value."""
        shared, weights = self.placed.shared, self.placed.weights / self.people
        at = np.minimum(np.searchsorted(np.cumsum(weights), p), len(weights) - 1)
        below = np.cumsum(np.where(shared, weights, 0.0))[at]
        others = max(float(weights[~shared].sum()), 1e-300)
        return at, np.clip((p - below) / others, 1e-12, 1 - 1e-12)

    def _possible(self, x: FloatArray) -> FloatArray:
        if self.lattice.resolution is not None:
            x = nearest_multiples(x, self.lattice.resolution)
        return np.clip(x, self.lattice.lower, self.lattice.upper)


def smooth(tables: Sequence[LatticeTable], lattice: Lattice) -> Distribution:
    """The distribution of all people, from their centers' tables on one lattice.

    Examples
    --------
    >>> from unpooled.maths.lattice.cutting import lattice_table
    >>> x, lattice = np.arange(1.0, 1001.0), Lattice(step=20.0)
    >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
    >>> low, high = smooth([lattice_table(x, lattice, 10, draws)], lattice).interval(0.5)
    >>> bool(low[0] < 500 < high[0])
    True
    """
    placed = place(tables, lattice)
    single = ~placed.shared
    values, weights = placed.values[single], placed.weights[single]
    levels = levels_for(float(weights.sum()))
    curve = fit_curve(values, weights, levels, lattice.lower) if can_smooth(values) else None
    edges = np.concatenate([table.edges for table in tables])
    ends = (float(edges.min()), float(edges.max())) if len(edges) else (np.inf, -np.inf)
    sizes = np.array([table.people for table in tables], dtype=np.float64)
    counted = Counted.of(tables, lattice)
    return Distribution(placed, middles(placed.weights), sizes, lattice, curve, ends, counted)
