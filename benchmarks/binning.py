"""One center's table from unsorted values, against sorting alone."""

from collections.abc import Iterator

import numpy as np

from benchmarks.five_centers import K, least_bin
from benchmarks.side_by_side import Ratio, Row, side_by_side
from unpooled.center.proposal.keyed_boundaries import keyed_weight
from unpooled.maths.arrays import FloatArray
from unpooled.maths.tables.binning import Rule, cut, place_boundaries


def rows() -> Iterator[Row]:
    """With 1,000 bins, then with as many as K allows."""
    yield Row(
        "binning",
        "1,000 bins of 2 × 5,000,000 values, sort and keyed boundaries included / np.sort",
        _ratio(5_000_000, 1_000, rounds=6),
        target=1.5,
    )
    yield Row(
        "binning",
        f"K = {K}, no bound, 2 × 1,000,000 values, the same / np.sort",
        _ratio(1_000_000, None, rounds=7),
        target=20.0,
    )


def _ratio(n: int, max_bins: int | None, rounds: int) -> Ratio:
    random = np.random.default_rng(1)
    groups = [random.normal(size=n), random.normal(0.2, size=n)]
    rule = Rule(k=K, bin=least_bin(2 * n, max_bins))
    weight = keyed_weight(b"a center's secret", "los")

    def sort() -> list[FloatArray]:
        return [np.sort(values) for values in groups]

    def table() -> None:
        cuts = cut(sort(), rule)
        place_boundaries(cuts.below, cuts.above, weight)

    return side_by_side(table, sort, rounds)
