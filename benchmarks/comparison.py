"""compare(method="all") in one process against the same statistics on bare sorted arrays."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import polars as pl

from benchmarks.side_by_side import Row, side_by_side
from unpooled import Federation
from unpooled.center.proposal.keyed_boundaries import keyed_draws, keyed_weight
from unpooled.center.records.keys import CenterKey
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.distribution import smooth
from unpooled.maths.density.placing import place
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import public_lattice
from unpooled.maths.ranks.cross_center import cross_center, hodges_lehmann
from unpooled.maths.ranks.effect import center_effect, heterogeneity, overall_effect
from unpooled.maths.ranks.mann_whitney import (
    RankStatistics,
    fisher_test,
    rank_statistics,
    sum_test,
    table_test,
    weighted_test,
)
from unpooled.maths.ranks.shift import shift
from unpooled.maths.tables.binning import Rule, cut, place_boundaries
from unpooled.maths.tables.chain import join, reallocate
from unpooled.maths.tables.table import Table

CENTERS, PEOPLE, SEED, K = 10, 1_500, 1, 10
PAPER = ["weighted", "sum", "fisher", "table"]
Groups = tuple[FloatArray, FloatArray]


def rows() -> Iterator[Row]:
    """Ten centers of 1,500 people."""
    people = _people()
    frames = {
        f"c{i}": pl.DataFrame({"v": np.concatenate(groups), "g": _labels(groups)})
        for i, groups in enumerate(people)
    }
    opened = Federation.local(frames, k=K, seed=SEED)
    what = f'compare(method="all"), {CENTERS} × {PEOPLE:,} people'
    bare = partial(bare_maths, people)
    four = partial(_paper_maths, people)
    yield Row(
        "comparison",
        f"{what}, from frames not read before / bare maths",
        side_by_side(lambda: compare(_forgetful(frames)), bare, rounds=10),
        target=5.0,
    )
    yield Row(
        "comparison",
        f"{what}, asked again / bare maths",
        side_by_side(partial(compare, opened), bare, rounds=10),
    )
    yield Row(
        "comparison",
        "the same with the paper's four tests alone, from frames not read before / bare maths",
        side_by_side(lambda: compare(_forgetful(frames), PAPER), four, rounds=10),
        target=5.0,
    )


def compare(federation: Federation, method: str | list[str] = "all") -> object:
    """All five tests, the effect, the shift and the heterogeneity."""
    return federation.compare("v", by="g", groups=("x", "y"), method=method)


def _forgetful(frames: dict[str, pl.DataFrame]) -> Federation:
    """A new federation, so that no center has its people sorted already."""
    return Federation.local(frames, k=K, seed=SEED)


def _people() -> list[Groups]:
    random = np.random.default_rng(SEED)
    half = PEOPLE // 2
    return [
        (np.sort(random.normal(0, 1, half)), np.sort(random.normal(0.1, 1, half)))
        for _ in range(CENTERS)
    ]


def _labels(groups: Groups) -> list[str]:
    return ["x"] * len(groups[0]) + ["y"] * len(groups[1])


def bare_maths(people: list[Groups]) -> None:
    """Everything that the comparison reports, from arrays that are already sorted."""
    _parallel(people, _paper_maths(people))


def _paper_maths(people: list[Groups]) -> list[RankStatistics]:
    ranks = [rank_statistics(x, y) for x, y in people]
    for test in (weighted_test, sum_test, fisher_test):
        test(ranks, "two-sided")
    overall_effect(ranks)
    heterogeneity(ranks)
    for center in ranks:
        center_effect(center)
    table = _table(people)
    x, y = table.counts
    table_test(x, y, "two-sided")
    shift(table.edges, x, y)
    return ranks


def _parallel(people: list[Groups], ranks: list[RankStatistics]) -> None:
    """The parallel row: both groups' tables, placed people, smooth curves, test and shift."""
    lattice = public_lattice(scale=1.0)
    groups = zip(*people, strict=True)
    draws = keyed_draws(b"secret", "v")
    tables = [
        [lattice_table(part, lattice, K, draws, "tails") for part in group] for group in groups
    ]
    for group in tables:
        smooth(group, lattice)
    x, y = (place(group, lattice) for group in tables)
    together = cross_center(x, y, list(ranks))
    together.test("two-sided")
    center_effect(together.statistics)
    hodges_lehmann(x, y, u=together.statistics.u)


def _table(people: list[Groups]) -> Table:
    weights = [keyed_weight(CenterKey.from_seed(SEED, f"c{i}").secret, "v") for i in range(CENTERS)]
    cuts = cut(people[0], Rule(k=K))
    inner = place_boundaries(cuts.below, cuts.above, weights[0])
    edges = np.concatenate(([-np.inf], inner, [np.inf]))
    table = Table(edges, cuts.counts.astype(np.float64), ("x", "y"))
    for groups, weight in zip(people[1:], weights[1:], strict=True):
        joined = join(groups, table.edges[1:-1], Rule(k=K), weight)
        table = reallocate(table, joined, ("x", "y"), (-np.inf, np.inf))
    return table
