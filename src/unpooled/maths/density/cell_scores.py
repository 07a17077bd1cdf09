"""What the cells of all tables say about a curve: Fisher's information and the score.

A step in the curve's coefficients moves people over the limits of cells and within them. Counts are
multinomial. Given the count n, mean and mean square of a cell are about normal around those of the
curve within it, with the covariance of v and v² there, over n.
"""

from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.density.slope_basis import (
    END,
    GRID,
    NORMAL,
    STEP,
    SlopeCurve,
    Unit,
    between,
    integral,
)
from unpooled.maths.lattice.cells import Cells
from unpooled.maths.lattice.lattice import OpenScale

_NARROW = 4  # grid points: the moments of narrower cells say nothing about the shape
_FLAT = 1e-3  # the same, in SDs of the quantiles
_PEAKED = 0.02  # of its own size is the least variance of a square that its skewness leaves
_SHRUNKEN = 0.05  # of its SD is the least that a curve may leave to a cell: else it is off
_MOST_CELLS = 5000  # that are looked at: enough to know a shape


@dataclass(frozen=True, slots=True)
class SeenCells:
    """Cells in units of x, each center's outer ones open, as a curve may leave declared limits.

    Mean and SD are on the cell's `scale`. `people` is how many the center of a cell has.
    """

    low: FloatArray
    high: FloatArray
    count: FloatArray
    people: FloatArray
    mean: FloatArray
    sd: FloatArray
    scale: OpenScale

    @staticmethod
    def of(cells: Cells, unit: Unit) -> "SeenCells":
        few = max(1, int(cells.several.sum()) // _MOST_CELLS)
        i: IntArray = np.flatnonzero(cells.several & (cells.center % few == 0))
        center, count = cells.center[i], cells.count[i].astype(np.float64)
        people: FloatArray = np.bincount(center, count).astype(np.float64)
        change = center[1:] != center[:-1]
        first, last = np.append(True, change), np.append(change, True)
        low = np.where(first, -np.inf, (cells.low[i] - unit.location) / unit.size)
        high = np.where(last, np.inf, (cells.high[i] - unit.location) / unit.size)
        mean, sd, scale = cells.mean[i], cells.sd[i], cells.scale.at(i)
        inside = np.isnan(scale.unit)
        mean = np.where(inside, (mean - unit.location) / unit.size, mean)
        sd = np.where(inside, sd / unit.size, sd)
        scale = OpenScale((scale.limit - unit.location) / unit.size, scale.unit / unit.size)
        return SeenCells(low, high, count, people[center], mean, sd, scale)

    def information(self, curve: SlopeCurve) -> tuple[FloatArray, FloatArray]:
        """Fisher's information about the coefficients, and the score."""
        limits = _Limits.of(self, curve)
        share, seen = limits.share, self.count / self.people
        rows = limits.inflow - limits.outflow
        weight = self.people / np.maximum(share, seen / 2)  # an empty-looking cell has its people
        information = (rows * weight[:, None]).T @ rows
        score = rows.T @ (weight * (seen - share))
        wide = (limits.end - limits.start >= _NARROW) & ~(self.high - self.low < _FLAT)
        with_mean = np.flatnonzero(~np.isnan(self.mean) & wide)
        if len(with_mean):
            more, further = self._moments(curve, limits, with_mean)
            information, score = information + more, score + further
        return information, score

    def _moments(
        self, curve: SlopeCurve, limits: "_Limits", with_mean: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same from means and SDs, given the counts."""
        least = np.maximum(_SHRUNKEN * np.nan_to_num(self.sd[with_mean]), 1e-6)
        scale = self.scale.at(with_mean)
        inner = _Within.of(
            _Sums.of(curve, limits.start[with_mean], limits.end[with_mean], scale), least
        )
        share = limits.share[with_mean, None]
        inflow, outflow = limits.inflow[with_mean] / share, limits.outflow[with_mean] / share
        low, high = (
            ((scale.forth(np.where(np.isinf(limit), 0.0, limit)) - inner.mean) / inner.sd)[:, None]
            for limit in (self.low[with_mean], self.high[with_mean])
        )
        of_mean = inner.mean_moved + low * inflow - high * outflow
        of_square = inner.square_moved + (low**2 - 1) * inflow - (high**2 - 1) * outflow
        off = (self.mean[with_mean] - inner.mean) / inner.sd
        square = (self.sd[with_mean] / inner.sd) ** 2 + off**2 - 1
        has_sd, n = ~np.isnan(square), self.count[with_mean]
        square = np.where(has_sd, square, 0.0)
        on_mean = n * np.where(has_sd, 1 + inner.skew**2 / inner.free, 1.0)
        both = n * np.where(has_sd, -inner.skew / inner.free, 0.0)
        on_square = n * np.where(has_sd, 1 / inner.free, 0.0)
        cross = (of_mean * both[:, None]).T @ of_square
        information = (of_mean * on_mean[:, None]).T @ of_mean + cross + cross.T
        information += (of_square * on_square[:, None]).T @ of_square
        score = of_mean.T @ (on_mean * off + both * square)
        return information, score + of_square.T @ (both * off + on_square * square)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Where cells begin and end on the grid, their shares, and the flow of people over either."""

    start: FloatArray
    end: FloatArray
    share: FloatArray
    inflow: FloatArray
    outflow: FloatArray

    @staticmethod
    def of(seen: SeenCells, curve: SlopeCurve) -> "_Limits":
        from scipy.special import ndtr

        density = NORMAL / curve.slope
        places, levels, flows = [], [], []
        for limit in (seen.low, seen.high):
            t = np.interp(limit, curve.x, GRID)
            at = (t + END) / STEP
            places.append(at)
            levels.append(np.where(np.isinf(limit), limit > 0, ndtr(t)))
            reached = (limit > curve.x[0]) & (limit < curve.x[-1])
            flow = np.where(reached, between(at, density), 0.0)
            flows.append(flow[:, None] * between(at, curve.effect))
        share = np.maximum(levels[1] - levels[0], 0.1 / seen.people)
        return _Limits(places[0], places[1], share, flows[0], flows[1])


@dataclass(frozen=True, slots=True)
class _Sums:
    """Integrals over cells under the normal density: of powers 0 to 4 of v, and of what moves v.

    v is x, in open cells the cell's own scale; `moved` and `times` are dv and v·dv per coefficient.
    """

    powers: FloatArray
    moved: FloatArray
    times: FloatArray

    @staticmethod
    def of(curve: SlopeCurve, start: FloatArray, end: FloatArray, scale: OpenScale) -> "_Sums":
        cells, coefficients = len(start), curve.effect.shape[1]
        sums = _Sums(*(np.empty((cells, columns)) for columns in (5, coefficients, coefficients)))
        inside = np.isnan(scale.unit)
        if inside.any():
            sums._of_x(curve, start, end, np.flatnonzero(inside))
        if not inside.all():
            sums._of_v(curve, start, end, scale)
        return sums

    def _of_x(self, curve: SlopeCurve, start: FloatArray, end: FloatArray, cells: IntArray) -> None:
        """Fill in cells between two limits, from integrals up to each grid point."""

        def within(rows: FloatArray) -> FloatArray:
            total = integral(rows)
            return between(end[cells], total) - between(start[cells], total)

        moved = (NORMAL * curve.rise)[:, None] * curve.effect
        self.powers[cells] = within(np.vander(curve.x, 5, increasing=True) * NORMAL[:, None])
        self.moved[cells], self.times[cells] = within(moved), within(curve.x[:, None] * moved)

    def _of_v(
        self, curve: SlopeCurve, start: FloatArray, end: FloatArray, scale: OpenScale
    ) -> None:
        """Fill in open cells, each with its own v along the grid."""
        cells = scale.open
        cell_scale, grid = scale.at(cells).at((..., None)), np.arange(len(GRID) - 1)
        first, last = start[cells, None], end[cells, None]
        reached = np.clip(np.minimum(last, grid + 1) - np.maximum(first, grid), 0.0, 1.0)
        weights = np.zeros((len(cells), len(GRID)))
        weights[:, :-1] += reached
        weights[:, 1:] += reached
        weights *= NORMAL * (STEP / 2)
        v = cell_scale.forth(curve.x)
        moving = weights * (curve.rise * cell_scale.slope(curve.x))
        self.moved[cells], self.times[cells] = moving @ curve.effect, (moving * v) @ curve.effect
        for power in range(5):
            self.powers[cells, power] = weights.sum(axis=1)
            weights *= v


@dataclass(frozen=True, slots=True)
class _Within:
    """A curve within cells, in their own SDs: (v − mean)/SD, v as in `_Sums`.

    `free` is the variance of its square that it does not explain itself; mean and mean square move
    as coefficients do when nobody crosses a limit.
    """

    mean: FloatArray
    sd: FloatArray
    skew: FloatArray
    free: FloatArray
    mean_moved: FloatArray
    square_moved: FloatArray

    @staticmethod
    def of(sums: _Sums, least: FloatArray) -> "_Within":
        mass, *raw = sums.powers.T
        mean, second, third, fourth = (moment / mass for moment in raw)
        sd = np.maximum(np.sqrt(np.maximum(second - mean**2, 0.0)), least)
        skew = (third - 3 * mean * second + 2 * mean**3) / sd**3
        tail = (fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4) / sd**4 - 1
        return _Within(
            mean,
            sd,
            skew,
            np.maximum(tail - skew**2, _PEAKED * (1 + skew**2)),
            sums.moved / (sd * mass)[:, None],
            2 * (sums.times - mean[:, None] * sums.moved) / (sd**2 * mass)[:, None],
        )
