"""The Yeo-Johnson fit at the coordinator, to the cells that centers tell in the parallel round.

The paper asks every center for exact moments of h_λ(x) at many λ, from which single values can be
decoded. The likelihood needs only sums over all people, and cells of at least K people with their
means and SDs nearly settle these: within a cell, h_λ is close to a parabola. So people are placed
in their cells as the pooled shape has them, with exactly the moments of each cell (`placing`), and
λ, mean and SD are fitted to the placed people. In the extreme cells, which decide on λ, it matters
that a sample of n people reaches less far than the distribution it comes from: see `_as_samples`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from unpooled.maths.density.placing import Points, place, refill
from unpooled.maths.density.pooled_shape import Shape
from unpooled.maths.lattice.cells import Cells
from unpooled.maths.lattice.lattice import Lattice, LatticeTable
from unpooled.maths.quantiles.quantile import check_probabilities
from unpooled.maths.quantiles.yeo_johnson import (
    DEFAULT_GRID,
    YeoJohnsonFit,
    fit_grid,
    fit_points,
    weighted_moments,
)

Search = Literal["likelihood", "grid"]
"""Where λ is looked for: everywhere in [−1, 2], or from its values on the public grid."""

_FEWEST_BOUNDARIES = 2  # one boundary and two tails carry no third parameter
_MOST_LEVELS = 32  # in larger cells a sample reaches nearly as far as its distribution
_MOST_ADRIFT = 0.25  # of all people: with more in open cells without means, fits were nonsense


@dataclass(frozen=True, slots=True)
class CellFit:
    """A fit to cells; `adrift` are the shares of people in the lowest and highest cells of tables
    that do not tell their means: the levels there rest on the shape of a tail."""

    fit: YeoJohnsonFit
    adrift: tuple[float, float]

    def rests_on_shape(self, p: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which of the levels p lie among people of whom only a limit is known."""
        p, (low, high) = check_probabilities(p), self.adrift
        return np.asarray((p < low) | (p > 1 - high))


def fit_cells(
    tables: Sequence[LatticeTable], lattice: Lattice, search: Search = "likelihood"
) -> CellFit:
    """The fit to the tables of all centers; a ValueError where they say too little for one.

    Examples
    --------
    >>> from unpooled.maths.lattice.cutting import lattice_table
    >>> x, lattice = np.arange(1.0, 1001.0), Lattice(step=20.0)
    >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
    >>> table = lattice_table(x, lattice, 10, draws, "tails")
    >>> fit_cells([table], lattice).fit.quantile([0.25, 0.5]).round(-1)
    array([280., 470.])
    >>> fit_points(x, np.ones(1000)).quantile([0.25, 0.5]).round(-1)  # of the people themselves
    array([280., 470.])
    """
    edges = np.unique(np.concatenate([table.edges for table in tables])) if tables else np.zeros(0)
    if len(edges) < _FEWEST_BOUNDARIES:
        rule = f"tables must have at least {_FEWEST_BOUNDARIES} boundaries between people"
        raise ValueError(f"{rule}, got {len(edges)}. Hint: fewer groups, or more people.")
    cells = Cells.of(tables, lattice)
    unlocated = np.isnan(cells.mean) & cells.several
    share = cells.count / cells.count.sum()
    adrift = float(share[unlocated & np.isinf(cells.high - cells.low)].sum())
    if adrift > _MOST_ADRIFT:
        rule = f"at most {_MOST_ADRIFT:.0%} of people may be in open cells without means"
        raise ValueError(f"{rule}, got {adrift:.0%}. Hint: declare limits for the variable.")
    placed = place(tables, lattice)
    points = Points(placed.values, placed.weights, placed.cells)
    change = np.diff(cells.center) > 0
    first, last = np.append(True, change), np.append(change, True)
    if placed.shape is not None:
        points = _as_samples(cells, points, placed.shape, first | last)
    if search == "grid":
        fit = fit_grid(weighted_moments(points.values, points.weights, DEFAULT_GRID))
    else:
        fit = fit_points(points.values, points.weights)
    low, high = (float(share[unlocated & end].sum()) for end in (first, last))
    return CellFit(fit, (low, high))


def _as_samples(
    cells: Cells, points: Points, shape: Shape, extreme: npt.NDArray[np.bool_]
) -> Points:
    """The points, with n at the levels (i − ½)/n in extreme cells of n people that tell their SD.

    It is told where nobody carries half of the squares, so nobody stands far outside. The whole
    tail of the shape with the same mean and SD would reach too far.
    """
    sampled = extreme & ~np.isnan(cells.sd) & cells.several & (cells.count <= _MOST_LEVELS)
    for n in np.unique(cells.count[sampled]).tolist():
        even = refill(cells, points, shape, np.linspace(0.0, 1.0, n + 1))
        fits = (sampled & (cells.count == n))[even.cell]
        others = ~(sampled & (cells.count == n))[points.cell]
        points = Points(
            np.concatenate((points.values[others], even.values[fits])),
            np.concatenate((points.weights[others], even.weights[fits])),
            np.concatenate((points.cell[others], even.cell[fits])),
        )
    return points
