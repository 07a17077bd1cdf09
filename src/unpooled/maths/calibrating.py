"""What exact ranks within centers say about ranks between centers.

A center's exact U_l and the U_l of its pseudo-people differ, because people do not stand exactly
where tables place them. The same people are compared with those of other centers, so the same
displacement is in the U between centers. To first order both are sums over people, of g and h:
how many of the other group lie below less above, in the own center and in all others. Within a cell
people are draws from its placed shape, given its count and the moments it tells; hence

    cov = Σ w g⊥h⊥,   var = Σ w g⊥² + Σ w w′ c,

⊥ what 1, v and v² (as far as told) leave of g and h in a cell. The last sum is the second order,
over all pairs of people in the same piece of two overlapping cells: c is what is left of
sign(y − x) on a square, expanded in Legendre polynomials: 1/3, less 1/15 for each mean told and
1/35 for each SD. The U between centers is corrected by cov/var·(exact U_l − placed U_l).
"""

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.placing import Placed

BoolArray = npt.NDArray[np.bool_]
_LEFT = np.array([1 / 6, 1 / 6 - 1 / 15, 1 / 6 - 1 / 15 - 1 / 35])  # a group's part of c


def correction(x: Placed, y: Placed, missed: dict[int, float]) -> float:
    """What to add to the U between centers, when centers' own U are missed by so much.

    Examples
    --------
    >>> cells, told = np.repeat([0, 1], 20), np.zeros(40, int)
    >>> v, one, no = np.arange(40.0), np.ones(40), np.zeros(40, bool)
    >>> x, y = (Placed(a, one, cells, no, cells, told, a) for a in (v, v + 0.5))
    >>> correction(x, y, {0: 20.0, 1: 0.0}) >= 0
    True
    """
    if not len(x.cells) or not len(y.cells):
        return 0.0
    centers = 1 + int(max(x.centers.max(), y.centers.max()))
    parts = x.by_center(centers), y.by_center(centers)
    var, cov = np.zeros(centers), np.zeros(centers)
    for own, other, split in ((x, y, parts), (y, x, parts[::-1])):
        within, everyone = _compared(own, *split), other.below_minus_above(own.values)
        g, h = (_left_over(own, values) for values in (within, everyone - within))
        var += np.bincount(own.centers, own.weights * g * g, centers)
        cov += np.bincount(own.centers, own.weights * g * h, centers)
    total = 0.0
    for center, miss in missed.items():
        if miss and cov[center] > 0:
            pairs = _second_order(parts[0][center], parts[1][center])
            total += miss * cov[center] / (var[center] + pairs)
    return total


def _compared(own: Placed, mine: list[Placed], theirs: list[Placed]) -> FloatArray:
    """The same among people of the own center."""
    found = np.empty(len(own.values))
    pairs = zip(mine, theirs, strict=True)
    parts = [other.below_minus_above(part.values) for part, other in pairs]
    found[np.argsort(own.centers, kind="stable")] = np.concatenate(parts)
    return found


def _left_over(placed: Placed, f: FloatArray) -> FloatArray:
    """f less its weighted regression, in each cell, on 1 and the moments that the cell tells."""
    cell, weights = placed.cells, placed.weights
    people = np.maximum(np.bincount(cell, weights), 1e-300)

    def less(f: FloatArray, on: FloatArray, where: BoolArray) -> FloatArray:
        square = np.bincount(cell, weights * on * on, len(people))
        slope = np.bincount(cell, weights * f * on, len(people)) / np.maximum(square, 1e-300)
        return np.asarray(f - np.where(where, slope[cell] * on, 0.0))

    one = np.ones(len(f))
    everywhere = np.ones(len(f), dtype=np.bool_)
    v = less(placed.scaled, one, everywhere)
    spread = np.sqrt(np.bincount(cell, weights * v * v, len(people)) / people)
    v = v / np.where(spread > 0, spread, 1.0)[cell]
    square = less(less(v * v, one, everywhere), v, everywhere)
    f = less(f, one, everywhere)
    return less(less(f, v, placed.told > 0), square, placed.told > 1)


def _second_order(x: Placed, y: Placed) -> float:
    """Σ w w′ c over the pieces that cells of x and y have in common."""
    cuts = np.sort(np.concatenate([_starts(part) for part in (x, y)]))
    pieces = [np.searchsorted(cuts, part.values, "right") for part in (x, y)]
    (people_x, left_x), (people_y, left_y) = (
        (np.bincount(piece, part.weights, len(cuts) + 1),
         np.bincount(piece, part.weights * _LEFT[part.told], len(cuts) + 1))
        for piece, part in zip(pieces, (x, y), strict=True)
    )  # fmt: skip
    return float(left_x @ people_y + people_x @ left_y)


def _starts(placed: Placed) -> FloatArray:
    """The least value in each cell; cells of one center do not overlap."""
    first = np.flatnonzero(np.diff(placed.cells, prepend=-1))
    return placed.values[first]
