"""Counts for tests: people are kept, groups are treated alike, and levels hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpooled.maths.ranks.mann_whitney import table_test
from unpooled.maths.ranks.shift import shift
from unpooled.maths.tables.binning import Rule, cut, place_boundaries
from unpooled.maths.tables.chain import CenterPools, Chain, Pools, join
from unpooled.maths.tables.table import Table
from unpooled.maths.tables.test_counts import Alike, alike

GROUPS = ("x", "y")
Centers = list[tuple[np.ndarray, ...]]


def chain(centers: Centers) -> tuple[list[CenterPools], Table]:
    """What the centers tell, the largest one first, and the chain's own table."""
    rule = Rule(k=10)
    first, *others = sorted(centers, key=lambda groups: -sum(map(len, groups)))
    cuts = cut(first, rule)
    interior = place_boundaries(cuts.below, cuts.above, lambda below, above: 0.5)
    grown = Chain(GROUPS)
    edges = np.concatenate(([-np.inf], interior, [np.inf]))
    grown.begin(edges, dict(zip(GROUPS, cuts.counts, strict=True)))
    for center in others:
        assert grown.table is not None
        joined = join(center, grown.table.edges[1:-1], rule, lambda below, above: 0.5)
        part = dict(zip(GROUPS, joined.pools, strict=True))
        grown.join(joined.splits, part, (-np.inf, np.inf))
    assert grown.table is not None
    return grown.pools, grown.table


def people(seed: int, sizes: list[tuple[int, int]], digits: int = 3) -> Centers:
    random = np.random.default_rng(seed)
    return [tuple(np.sort(random.normal(size=n).round(digits)) for n in part) for part in sizes]


@given(
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(10, 80), st.integers(10, 80)), min_size=1, max_size=5),
    st.integers(0, 3),
)
def test_people_are_kept_and_neither_order_matters(
    seed: int, sizes: list[tuple[int, int]], digits: int
) -> None:
    answer, table = chain(people(seed, sizes, digits))
    result = alike(answer, table, GROUPS)
    assert result.counts.sum(axis=1) == pytest.approx(np.sum(sizes, axis=0))
    assert (result.counts >= 0).all()
    assert 0 <= result.decided <= 1 + 1e-12
    for again in (alike(answer[::-1], table, GROUPS), _swapped(alike(answer, table, GROUPS[::-1]))):
        assert again.counts == pytest.approx(result.counts)
        assert again.decided == pytest.approx(result.decided)


def _swapped(result: Alike) -> Alike:
    return Alike(result.counts[::-1], result.decided)


def test_of_one_center_they_are_its_own() -> None:
    answer, table = chain(people(1, [(200, 90)]))
    result = alike(answer, table, GROUPS)
    assert result.counts.tolist() == table.counts.tolist()
    assert result.decided == 1


def test_a_center_that_tells_one_group_better_than_the_other_adds_no_difference() -> None:
    """y of the second center is one pool: it is taken to lie as x does there."""
    pair = Pools(np.array([1, 1]), np.array([30, 30]))
    first = CenterPools(np.zeros(1), {"x": pair, "y": pair})
    halves, whole = Pools(pair.spans, np.array([10, 50])), Pools(np.array([2]), np.array([20]))
    second = CenterPools(np.zeros(1), {"x": halves, "y": whole})
    table = Table(np.array([-np.inf, 0, np.inf]), np.array([[40.0, 80], [40, 40]]), GROUPS)
    result = alike([first, second], table, GROUPS)
    assert result.counts == pytest.approx(np.array([[40, 80], [30 + 20 / 6, 30 + 100 / 6]]))
    assert table_test(result.counts[0], result.counts[1], "two-sided").p_value > 0.2
    assert table_test(table.counts[0], table.counts[1], "two-sided").p_value < 0.03


@pytest.mark.parametrize("levels", [(0, 0, 0, 0, 0), (0, 1, 2)], ids=["alike", "apart"])
def test_small_groups_without_an_effect_are_rejected_seldom(levels: tuple[float, ...]) -> None:
    """Where the chain's own counts are taken for people, every fourth sample is, or more."""
    random = np.random.default_rng(2)
    rejected = np.zeros(2)
    for _ in range(60):
        centers = [tuple(np.sort(random.normal(v, 1, n)) for n in (100, 25)) for v in levels]
        answer, table = chain(centers)
        for i, counts in enumerate((alike(answer, table, GROUPS).counts, table.counts)):
            rejected[i] += table_test(counts[0], counts[1], "two-sided").p_value < 0.05
    assert rejected[0] <= 6
    assert rejected[1] >= 15


@pytest.mark.parametrize(
    ("sizes", "keeps"),
    [([698, 476, 326], True), ([307, 250, 208, 172, 143, 118, 98, 81, 67, 56], False)],
)
def test_a_shift_is_told_where_it_is_hardly_drawn_towards_zero(
    sizes: list[int], keeps: bool
) -> None:
    """The paper's centers, a shift of 1 SD: with ten it came out .9 standard errors too small."""
    centers: Centers = [(x, y + 1) for x, y in people(3, [(n, n) for n in sizes])]
    answer, table = chain(centers)
    result = alike(answer, table, GROUPS)
    assert result.keeps_shifts == keeps
    near = shift(table.edges, *result.counts)
    error = (near.high - near.low) / 3.92
    assert (abs(near.estimate - shift_of_people(centers)) < error / 2) == keeps


def shift_of_people(centers: Centers) -> float:
    x, y = (np.concatenate(part) for part in zip(*centers, strict=True))
    return float(np.median(np.subtract.outer(y, x)))
