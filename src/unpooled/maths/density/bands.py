"""A smooth distribution drawn with its pointwise bands, and as a histogram.

The band of the distribution function is F ± z·SE(F), centers being strata. That of the density
comes from a parametric bootstrap [1]_: people drawn anew from the curve go through transformation
and smoothing again, which no formula for either part alone does. Resampled people would stand on
each other, which smoothing takes for roughness.

References
----------
.. [1] Davison, Hinkley (1997), Bootstrap Methods and their Application, section 2.2.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.distribution import Distribution
from unpooled.maths.density.smoothing import Curve, fit_curve
from unpooled.maths.lattice.lattice import Lattice, nice_number

_REPLICATES = 50  # the band's width is known to 1/√100, 10 %
_OUTERMOST = 0.005  # the share of people left out on either side of a drawing
_AROUND = 9  # points over which people moved by limited translation are averaged
_MANY_VALUES = 20  # in a bin: then it matters little on which side its end falls
_BINS = 30  # of a histogram, aimed at: with a nice width there are 20 to 50
_GRID: FloatArray = np.linspace(-4.0, 4.0, 161)  # normal quantiles at which a curve is drawn


@dataclass(frozen=True, slots=True)
class Drawing:
    """A distribution at some points, with 95 % bands; the density is without atoms."""

    x: FloatArray
    cdf: FloatArray
    cdf_low: FloatArray
    cdf_high: FloatArray
    density: FloatArray
    density_low: FloatArray
    density_high: FloatArray

    def without(self, values: Collection[float]) -> "Drawing":
        """The same but for the points beside these values: who shares them is drawn apart."""
        step = float(self.x[1] - self.x[0]) if len(self.x) > 1 else 0.0
        near = [np.abs(self.x - value) <= 0.75 * step for value in values]
        keep = ~np.any(near, axis=0) if near else np.ones(len(self.x), dtype=np.bool_)
        return Drawing(*(getattr(self, name)[keep] for name in Drawing.__slots__))


def draw(distribution: Distribution, points: int = 121, level: float = 0.95) -> Drawing:
    """The distribution at equal steps between its outermost people.

    Examples
    --------
    >>> from unpooled.maths.density.distribution import smooth
    >>> from unpooled.maths.lattice.cutting import lattice_table
    >>> x, lattice = np.arange(1.0, 1001.0), Lattice(step=20.0)
    >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
    >>> drawn = draw(smooth([lattice_table(x, lattice, 10, draws)], lattice))
    >>> bool(np.all((drawn.cdf_low <= drawn.cdf) & (drawn.cdf <= drawn.cdf_high)))
    True
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    ends = distribution.quantile([_OUTERMOST, 1 - _OUTERMOST])
    x = np.linspace(ends[0], ends[1] if ends[1] > ends[0] else ends[0] + 1.0, points)
    cdf = distribution.cdf(x)
    inside = np.clip(cdf, 0.5 / distribution.people, 1 - 0.5 / distribution.people)
    reach = z * distribution.standard_error(inside)
    density, error = _density_with_error(distribution, x)
    around = z * error
    return Drawing(
        x,
        cdf,
        np.maximum(cdf - reach, 0.0),
        np.minimum(cdf + reach, 1.0),
        density,
        np.maximum(density - around, 0.0),
        density + around,
    )


def _density_with_error(distribution: Distribution, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The curve's density, the bootstrap's standard error, and what limited translation moves."""
    curve, placed = distribution.curve, distribution.placed
    drawn = distribution.density(x, x[1] - x[0])
    if curve is None:
        return drawn, np.zeros(len(x))
    people = float(placed.weights[~placed.shared].sum())
    single = people / distribution.people
    random = np.random.default_rng(0)  # the same tables always give the same band
    again = [_again(curve, people, distribution.lattice.lower, random) for _ in range(_REPLICATES)]
    smooth = _density(curve, x)
    square = np.mean([(_density(fit, x) - smooth) ** 2 for fit in again], axis=0)
    moved = np.convolve(drawn - single * smooth, np.full(_AROUND, 1 / _AROUND), "same")
    return single * smooth, np.sqrt(single**2 * square + moved**2)


def _again(curve: Curve, people: float, lower: float, random: np.random.Generator) -> Curve:
    """The curve of as many people drawn from this one; at its levels they are uniform spacings."""
    levels = len(curve.t)
    shape = np.full(levels + 1, people / levels)
    shape[[0, -1]] /= 2
    reached = np.cumsum(random.gamma(shape))
    values = curve.quantile(reached[:-1] / reached[-1])
    has_value = ~np.isnan(values)
    weights = np.full(levels, people / levels)
    return fit_curve(values[has_value], weights[has_value], levels, lower)


def _density(curve: Curve, x: FloatArray) -> FloatArray:
    """The share of people per unit, around each of equally spaced points."""
    from scipy.special import ndtr

    levels, half = ndtr(_GRID), (x[1] - x[0]) / 2
    values = curve.quantile(levels)
    has_value = ~np.isnan(values)
    values, levels = np.maximum.accumulate(values[has_value]), levels[has_value]
    reached = [np.interp(x + side, values, levels) for side in (half, -half)]
    return np.asarray((reached[0] - reached[1]) / (2 * half))


def histogram_edges(
    distributions: Sequence[Distribution], lattice: Lattice, max_bins: int | None = None
) -> FloatArray:
    """Bins of one nice width for all groups; the outer ones reach to the limits, or are open.

    On coarsely rounded data they end halfway between possible values.
    """
    ends = [d.quantile([2 * _OUTERMOST, 1 - 2 * _OUTERMOST]) for d in distributions]
    low, high = min(float(e[0]) for e in ends), max(float(e[1]) for e in ends)
    most = max(_BINS if max_bins is None else max_bins, 1)
    width = nice_number((high - low) / min(_BINS, most)) if high > low else 1.0
    edges = _inner_edges(low, high, width, lattice)
    while max_bins is not None and len(edges) + 1 > max_bins and len(edges) > 1:
        width = nice_number(1.6 * width)
        edges = _inner_edges(low, high, width, lattice)
    edges = edges if max_bins is None else edges[: max_bins - 1]
    return np.concatenate(([lattice.lower], edges, [lattice.upper]))


def histogram_errors(distribution: Distribution, edges: FloatArray) -> FloatArray:
    """The standard error of the number of people in each bin, centers being strata.

    Where the smooth distribution has more people in a bin than are placed there, they count too, in
    every center alike.

    Examples
    --------
    >>> from unpooled.maths.density.distribution import smooth
    >>> from unpooled.maths.lattice.cutting import lattice_table
    >>> x, lattice = np.arange(1.0, 1001.0), Lattice(step=20.0)
    >>> half = np.array([-np.inf, 500.0, np.inf])
    >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
    >>> histogram_errors(smooth([lattice_table(x, lattice, 10, draws)], lattice), half).round(1)
    array([15.8, 15.8])
    """
    placed, bins = distribution.placed, len(edges) - 1
    bin_ = np.searchsorted(edges[1:-1], placed.values)
    cell = placed.centers * bins + bin_
    people = np.bincount(cell, placed.weights, len(distribution.sizes) * bins)
    people = people.reshape(-1, bins)
    smooth = np.diff(distribution.cdf(edges[1:-1]), prepend=0.0, append=1.0)
    missing = np.maximum(smooth - people.sum(axis=0) / distribution.people, 0.0)
    share = np.minimum(people / distribution.sizes[:, None] + missing, 1.0)
    return np.asarray(np.sqrt(distribution.sizes @ (share * (1 - share))))


def _inner_edges(low: float, high: float, width: float, lattice: Lattice) -> FloatArray:
    origin = 0.0
    if lattice.resolution is not None:
        width = lattice.resolution * max(1.0, round(width / lattice.resolution))
        if width < _MANY_VALUES * lattice.resolution:
            origin = lattice.resolution / 2
    first, last = np.floor((low - origin) / width), np.ceil((high - origin) / width)
    edges = origin + width * np.arange(first, last + 1)
    least = width / 4  # a sliver beside a limit, where many may stand, would dwarf all other bins
    return edges[(edges > lattice.lower + least) & (edges < lattice.upper - least)]
