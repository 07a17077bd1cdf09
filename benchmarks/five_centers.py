"""Five synthetic centers, as frames and as the arrays of their groups, and the bare maths on them.

The bare maths is what any implementation has to do: sort, cut the first center's table, let the
others join, reallocate. No frames, no questions, no bytes, no gate, no ledger.
"""

from typing import Any

import numpy as np

from unpooled.center.proposal.keyed_boundaries import keyed_weight
from unpooled.center.records.keys import CenterKey
from unpooled.maths.arrays import FloatArray
from unpooled.maths.tables.binning import Rule, Weight, cut, place_boundaries
from unpooled.maths.tables.chain import join, reallocate
from unpooled.maths.tables.table import Table

NAMES = ("A", "B", "C", "D", "E")
GROUPS = ("F", "M")
K = 10
SEED = 1
OPEN = (-np.inf, np.inf)

Rows = tuple[FloatArray, np.ndarray[Any, np.dtype[np.bool_]]]  # values, and who is in group F


def draw(center: int, n: int) -> Rows:
    """Skewed values such as lengths of stay, in two groups of about the same size."""
    random = np.random.default_rng((SEED, center))
    return random.gamma(2.0, 3.0, n), random.random(n) < 0.5


def frames(kind: str, n: int) -> dict[str, object]:
    """A frame of `n` rows per center, with a column of numbers and one of text."""
    return {name: _frame(kind, draw(center, n)) for center, name in enumerate(NAMES)}


def _frame(kind: str, rows: Rows) -> object:
    values, in_f = rows
    columns = {"los": values, "sex": np.where(in_f, *GROUPS)}
    if kind == "polars":
        import polars

        return polars.DataFrame(columns)
    import pandas

    return pandas.DataFrame(columns)


def arrays(n: int) -> dict[str, list[FloatArray]]:
    """The same values, group by group."""
    drawn = ((name, draw(center, n)) for center, name in enumerate(NAMES))
    return {name: [values[in_f], values[~in_f]] for name, (values, in_f) in drawn}


def bare_maths(centers: dict[str, list[FloatArray]], max_bins: int | None) -> Table:
    """Sort, cut, join and reallocate, with the rule and the keyed boundaries of `fed.table`."""
    table: Table | None = None
    for name, groups in centers.items():
        weight = keyed_weight(CenterKey.from_seed(SEED, name).secret, "los")
        table = _add(table, [np.sort(values) for values in groups], max_bins, weight)
    if table is None:
        raise ValueError("there must be at least one center")
    return table


def _add(
    table: Table | None, groups: list[FloatArray], max_bins: int | None, weight: Weight
) -> Table:
    room = None if max_bins is None else max_bins - (0 if table is None else table.bins)
    rule = Rule(k=K, bin=least_bin(sum(map(len, groups)), room))
    if table is None:
        cuts = cut(groups, rule)
        interior = place_boundaries(cuts.below, cuts.above, weight)
        edges = np.concatenate(([OPEN[0]], interior, [OPEN[1]]))
        return Table(edges, cuts.counts.astype(np.float64), GROUPS)
    joined = join(groups, table.edges[1:-1], rule, weight)
    return reallocate(table, joined, GROUPS, OPEN)


def least_bin(people: int, room: int | None) -> int:
    """How many people a bin must hold for at most `room` bins; so many that none is when 0."""
    if room is None:
        return 1
    return -(-people // room) if room > 0 else people + 1
