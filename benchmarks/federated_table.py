"""The whole way, from frames through questions, gate and ledger to a table, against bare maths."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.five_centers import NAMES, SEED, K, arrays, bare_maths, frames
from benchmarks.side_by_side import Row, side_by_side
from unpooled import Federation
from unpooled.maths.tables.table import Table
from unpooled.results.numbers.table import TableResult

PEOPLE = 1_000_000  # rows of each center


def rows() -> Iterator[Row]:
    """From polars and pandas frames, with 1,000 bins and with as many as K allows."""
    groups = arrays(PEOPLE)
    for kind in ("polars", "pandas"):
        centers = frames(kind, PEOPLE)
        for max_bins, rounds in ((1_000, 8), (None, 3)):
            ours = partial(federated_table, centers, max_bins)
            bare = partial(bare_maths, groups, max_bins)
            _check_same(ours(), bare())
            yield Row(
                "federated_table",
                f"{len(NAMES)} × {PEOPLE:,} rows, {kind}, {bins_text(max_bins)} / bare maths",
                side_by_side(ours, bare, rounds),
                target=3.0,
            )


def federated_table(centers: dict[str, object], max_bins: int | None) -> TableResult:
    """Open the frames and ask for the table."""
    federation = Federation.local(centers, k=K, seed=SEED)
    return federation.table("los", by="sex", max_bins=max_bins)


def bins_text(max_bins: int | None) -> str:
    """How many bins there may be, in words."""
    return "no bound" if max_bins is None else f"{max_bins:,} bins"


def _check_same(result: TableResult, table: Table) -> None:
    """Both ways must give the very same table, otherwise their times say nothing."""
    same = np.array_equal(result.edges, table.edges) and np.array_equal(result.counts, table.counts)
    if not same:
        raise ValueError("the federated table and the bare maths must give the same table")
