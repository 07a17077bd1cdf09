"""Joining centers, against the paper's appendix, the golden cases and the invariants."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.golden import cases
from tests.maths.strategies import centers
from tests.maths.test_binning import half
from unpooled.maths.arrays import FloatArray
from unpooled.maths.tables.binning import Rule, cut, place_boundaries
from unpooled.maths.tables.chain import Join, Pools, join, pool_starts, reallocate
from unpooled.maths.tables.table import Table


def first_table(groups: list[FloatArray], rule: Rule) -> Table:
    cuts = cut(groups, rule)
    edges = place_boundaries(cuts.below, cuts.above, half)
    names = tuple("abcd"[: len(groups)])
    return Table(
        np.concatenate(([-np.inf], edges, [np.inf])), cuts.counts.astype(np.float64), names
    )


def add(table: Table, joined: Join) -> Table:
    return reallocate(table, joined, table.groups, (table.edges[0], table.edges[-1]))


def golden_table(case: dict[str, Any]) -> tuple[Table, list[FloatArray]]:
    given_ = case["inputs"]
    edges = np.array([-np.inf, *(float(b) for b in given_["bins"])])
    table = Table(edges, np.array([given_["fx"], given_["fy"]], dtype=np.float64), ("x", "y"))
    return table, [np.sort(np.array(given_[g], dtype=np.float64)) for g in "xy"]


def test_the_appendix_of_the_paper_comes_out_exactly() -> None:
    (case,) = (c for c in cases("join") if c["id"] == "join-01-paper-appendix")
    table, groups = golden_table(case)
    joined = join(groups, table.edges[1:-1], Rule(k=10), half)
    result = add(table, joined)
    assert result.edges[1:].tolist() == [2, 4, 5, 6, 8]
    assert result.counts[0] == pytest.approx([12 + 120 / 22, 10 + 100 / 22, 15, 15, 23], abs=1e-12)
    assert result.counts[0][:2] == pytest.approx([17.4545454545, 14.5454545454])
    assert result.counts[1].tolist() == [17, 17, 17, 17, 23]


@pytest.mark.parametrize("case", cases("join"), ids=lambda case: case["id"])
def test_golden_joins_come_out_or_differ_where_the_reference_is_wrong(
    case: dict[str, Any],
) -> None:
    table, groups = golden_table(case)
    if case["id"] == "join-05-tiny-x5":  # "refuse to release x of this center"
        with pytest.raises(ValueError, match="got 5"):
            join(groups, table.edges[1:-1], Rule(k=case["K"]), half)
        return
    result = add(table, join(groups, table.edges[1:-1], Rule(k=case["K"]), half))
    reference = case["reference"]
    same = result.edges[1:].tolist() == [float(b) for b in reference["bins"]]
    if case["flags"]:
        assert not same
    else:
        assert same
        assert result.counts == pytest.approx(
            np.array([reference["fx"], reference["fy"]]), abs=1e-9
        )


def test_a_value_on_an_edge_belongs_to_the_bin_below_it() -> None:
    (case,) = (c for c in cases("join") if c["flags"] == ["HALF_OPEN"])
    table, groups = golden_table(case)
    result = add(table, join(groups, table.edges[1:-1], Rule(k=10), half))
    assert result.edges[1:].tolist() == [1.5, 2.0, np.inf]
    assert result.counts[0].tolist() == [22, 22, 32]


@pytest.mark.parametrize("case", cases("fix_student_frequencies"), ids=lambda case: case["id"])
def test_golden_pools_come_out(case: dict[str, Any]) -> None:
    people = np.array(case["inputs"]["student"])
    edges = np.arange(1.0, len(people))
    values = np.repeat(np.arange(len(people)) + 0.5, people)
    starts = pool_starts(people, edges, values, (-np.inf, np.inf), Rule(k=case["K"]), half)
    pools = [part.tolist() for part in np.split(people, starts[1:])]
    assert pools == case["reference"]["subsets"]
    spread = reallocate(
        Table(np.arange(len(people) + 1.0), np.array([case["inputs"]["teacher"]]), ("x",)),
        Join(
            np.array([]), (Pools(np.array(list(map(len, pools))), np.array(list(map(sum, pools)))),)
        ),
        ("x",),
        (0.0, float(len(people))),
    )
    added = spread.counts[0] - case["inputs"]["teacher"]
    assert added == pytest.approx(case["reference"]["fixed"], abs=1e-9)


@pytest.mark.parametrize("case", cases("tabular_summary"), ids=lambda case: case["id"])
def test_golden_chain_comes_out(case: dict[str, Any]) -> None:
    people = [
        [np.sort(np.array(center[g], dtype=np.float64)) for g in "xy"]
        for center in case["inputs"]["centers"]
    ]
    table = first_table(people[0], Rule(k=case["K"]))
    for groups in people[1:]:
        table = add(table, join(groups, table.edges[1:-1], Rule(k=case["K"]), half))
    reference = case["reference"]
    assert table.edges[1:] == pytest.approx([float(b) for b in reference["bins"]])
    assert table.counts == pytest.approx(np.array([reference["fx"], reference["fy"]]))


@settings(max_examples=1000)
@given(centers(most_centers=12))
def test_everything_released_is_legal_and_people_are_conserved(
    drawn: tuple[list[list[FloatArray]], Rule],
) -> None:
    people, rule = drawn
    table = first_table(people[0], rule)
    expected = np.array([len(x) for x in people[0]], dtype=np.float64)
    for groups in people[1:]:
        joined = join(groups, table.edges[1:-1], rule, half)
        for x, pools in zip(groups, joined.pools, strict=True):
            assert not rule.illegal_cells(pools.counts).any()
            assert len(pools.counts) < 3 or pools.counts[1:-1].min() > 0
            assert pools.counts.sum() == len(x)
        grown = add(table, joined)
        assert set(table.edges) <= set(grown.edges)
        table = grown
        expected += [len(x) for x in groups]
    assert table.people == pytest.approx(expected, rel=1e-12)


@settings(max_examples=500)
@given(centers(most_centers=2))
def test_pools_hold_the_people_of_their_bins(
    drawn: tuple[list[list[FloatArray]], Rule],
) -> None:
    people, rule = drawn
    table = first_table(people[0], rule)
    joined = join(people[-1], table.edges[1:-1], rule, half)
    edges = np.union1d(table.edges, joined.splits)
    for x, pools in zip(people[-1], joined.pools, strict=True):
        ends = edges[np.cumsum(pools.spans)]
        reached = [int((x <= end).sum()) for end in ends]
        assert np.cumsum(pools.counts).tolist() == reached


def test_a_group_that_the_center_does_not_have_is_split_evenly() -> None:
    table = Table(np.array([0.0, 10.0, 20.0]), np.array([[10.0, 20.0], [30.0, 40.0]]), ("x", "y"))
    joined = Join(np.array([5.0]), (Pools(np.array([1, 1, 1]), np.array([10, 10, 10])),))
    result = reallocate(table, joined, ("x",), (0.0, 20.0))
    assert result.counts.tolist() == [[15, 15, 30], [15, 15, 40]]


@pytest.mark.parametrize(
    ("joined", "problem"),
    [
        (Join(np.array([10.0]), ()), "must not repeat an edge"),
        (Join(np.array([]), (Pools(np.array([1]), np.array([10])),)), "must cover all 2 bins"),
        (Join(np.array([]), (Pools(np.array([2]), np.array([5, 5])),)), "one count"),
    ],
)
def test_a_join_that_does_not_fit_the_table_is_an_error(joined: Join, problem: str) -> None:
    table = Table(np.array([0.0, 10.0, 20.0]), np.array([[10.0, 20.0]]), ("x",))
    with pytest.raises(ValueError, match=problem):
        reallocate(table, joined, ("x",)[: len(joined.pools)], (0.0, 20.0))


def test_a_group_that_is_not_pooled_is_added_exactly() -> None:
    old = np.array([[4.6, 5.6, 2.7], [4.6, 5.6, 2.7]])
    pools = (
        Pools(np.array([2, 1]), np.array([12, 13])),
        Pools(np.array([1, 1, 1]), np.array([11, 12, 13])),
    )
    table = Table(np.arange(4.0), old, ("a", "b"))
    counts = add(table, Join(np.array([]), pools)).counts
    assert counts[1].tolist() == (old[1] + [11, 12, 13]).tolist()
    assert counts[0] == pytest.approx(old[0] + [12 * 4.6 / 10.2, 12 * 5.6 / 10.2, 13])


def test_groups_far_apart_still_split_the_bins() -> None:
    """Where one group has nobody, its empty bins must not take the other group's splits back."""
    random = np.random.default_rng(2)
    rule = Rule(k=10)
    people = [[np.sort(random.normal(0, 1, n)), np.sort(random.normal(6, 1, n))] for n in (60, 170)]
    table = first_table(people[0], rule)
    joined = join(people[1], table.edges[1:-1], rule, half)
    assert len(joined.splits) >= 8
    assert add(table, joined).bins > table.bins
