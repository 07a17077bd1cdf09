"""Merged levels: bounds that always hold the truth, estimates within them, exact coarse tables."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpooled.maths.arrays import IntArray
from unpooled.maths.categories.bounds import (
    Cell,
    PartialTable,
    coarse_table,
    count_bounds,
    estimated_counts,
    nothing_merged,
    subset_bounds,
)
from unpooled.maths.categories.contingency import chi2_test, cochran_armitage

LEVELS = ("I", "II", "III", "IV", "V")


def partial_table(truth: IntArray, parts: list[list[int]]) -> PartialTable:
    """What a center tells of its groups × levels when level j of group g is in part parts[g][j]."""
    levels = LEVELS[: truth.shape[1]]
    groups = []
    for row, part in zip(truth.tolist(), parts, strict=True):
        cells = []
        for number in sorted(set(part)):
            places = [place for place, one in enumerate(part) if one == number]
            count = sum(row[place] for place in places)
            cells.append(Cell(tuple(levels[place] for place in places), count))
        groups.append(tuple(cells))
    return PartialTable(levels, tuple(groups))


@st.composite
def studies(draw: st.DrawFn) -> tuple[list[IntArray], list[PartialTable]]:
    """What is true in some centers, and what they tell of it."""
    many, groups = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    levels = draw(st.integers(1, len(LEVELS)))
    counts = st.one_of(st.just(0), st.integers(0, 40))
    row = st.lists(counts, min_size=levels, max_size=levels)
    whole = st.just(list(range(levels)))
    some = st.lists(st.integers(0, levels - 1), min_size=levels, max_size=levels)
    truths, tables = [], []
    for _ in range(many):
        truth = np.array(draw(st.lists(row, min_size=groups, max_size=groups)))
        parts = draw(st.lists(st.one_of(whole, some), min_size=groups, max_size=groups))
        truths.append(truth)
        tables.append(partial_table(truth, parts))
    return truths, tables


@given(studies())
def test_bounds_hold_the_truth(study: tuple[list[IntArray], list[PartialTable]]) -> None:
    truths, centers = study
    truth, bounds = np.sum(truths, axis=0), count_bounds(centers)
    assert (bounds.low <= truth).all()
    assert (truth <= bounds.high).all()
    people = truth.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(bounds.people, people[:, 0])
    shares = 100 * truth / np.maximum(people, 1)
    assert (bounds.percent_low <= shares).all()
    assert (shares <= bounds.percent_high).all()
    for size in range(len(bounds.levels) + 1):
        for places in itertools.combinations(range(len(bounds.levels)), size):
            low, high = subset_bounds(centers, [LEVELS[place] for place in places])
            held = truth[:, places].sum(axis=1)
            assert (low <= held).all()
            assert (held <= high).all()


@given(studies())
def test_both_ends_of_a_bound_can_be_true(study: tuple[list[IntArray], list[PartialTable]]) -> None:
    """All people of each merged cell at a level, or none of them, tell the same."""
    _, centers = study
    bounds = count_bounds(centers)
    for place, level in enumerate(bounds.levels):
        for wanted, end in (True, bounds.high), (False, bounds.low):
            possible = np.zeros_like(end)
            for center in centers:
                for group, cells in enumerate(center.groups):
                    for cell in cells:
                        others = [part for part in cell.levels if (part == level) == wanted]
                        chosen = (others or cell.levels)[0]
                        possible[group, bounds.levels.index(chosen)] += cell.count
            np.testing.assert_array_equal(possible[:, place], end[:, place])


@given(studies())
def test_estimates_lie_within_bounds_and_keep_the_people(
    study: tuple[list[IntArray], list[PartialTable]],
) -> None:
    truths, centers = study
    bounds, estimate = count_bounds(centers), estimated_counts(centers)
    assert (bounds.low <= estimate.counts).all()
    assert (estimate.counts <= bounds.high).all()
    np.testing.assert_allclose(estimate.counts.sum(axis=1), bounds.people, atol=1e-7)
    counted = ~estimate.estimated
    np.testing.assert_array_equal(
        estimate.counts[counted], np.sum(truths, axis=0)[counted].astype(float)
    )


@given(studies())
def test_coarse_tables_are_exact_and_the_finest(
    study: tuple[list[IntArray], list[PartialTable]],
) -> None:
    truths, centers = study
    table = coarse_table(centers)
    places = [[LEVELS.index(level) for level in part] for part in table.parts]
    assert sorted(itertools.chain(*places)) == list(range(len(table.levels)))
    for counts, truth in zip(table.counts, truths, strict=True):
        summed = np.column_stack([truth[:, part].sum(axis=1) for part in places])
        np.testing.assert_array_equal(counts, summed)
    cells = [
        {LEVELS.index(level) for level in cell.levels}
        for center in centers
        for group in center.groups
        for cell in group
        if cell.count
    ]
    for part in table.joined:  # no part falls into two that no cell joins
        held = {LEVELS.index(level) for level in part}
        for size in range(1, len(held)):
            for some in map(set, itertools.combinations(sorted(held), size)):
                assert any(cell & some and (cell & held) - some for cell in cells)


@given(studies())
def test_all_is_exact_when_nothing_is_merged(
    study: tuple[list[IntArray], list[PartialTable]],
) -> None:
    truths, merged = study
    truth = np.sum(truths, axis=0)
    centers = [PartialTable.exact(LEVELS[: truth.shape[1]], table) for table in truths]
    assert nothing_merged(centers)
    bounds, estimate, table = (
        count_bounds(centers),
        estimated_counts(centers),
        coarse_table(centers),
    )
    for each in (bounds.low, bounds.high, estimate.counts, table.total):
        np.testing.assert_array_equal(each, truth)
    assert bounds.exact.all()
    assert not estimate.estimated.any()
    assert table.plain
    assert chi2_test(table.total) == chi2_test(truth)
    assert table.scores == tuple(range(truth.shape[1]))
    assert nothing_merged(merged) == coarse_table(merged).plain == count_bounds(merged).exact.all()


MERGED = PartialTable(
    ("I", "II", "III", "IV"),
    (
        (Cell(("I",), 20), Cell(("II",), 11), Cell(("III", "IV"), 14)),
        (Cell(("I",), 12), Cell(("II",), 13), Cell(("III",), 18), Cell(("IV",), 10)),
    ),
)
WHOLE = PartialTable.exact(("I", "II", "III", "IV"), [[30, 20, 12, 6], [25, 21, 20, 15]])


def test_one_center_that_merged() -> None:
    bounds = count_bounds([MERGED, WHOLE])
    assert bounds.low.tolist() == [[50, 31, 12, 6], [37, 34, 38, 25]]
    assert bounds.high.tolist() == [[50, 31, 26, 20], [37, 34, 38, 25]]
    assert bounds.percent_high[0, 3] == pytest.approx(100 * 20 / 113)
    low, high = subset_bounds([MERGED, WHOLE], ("III", "IV"))
    assert low.tolist() == high.tolist() == [32, 63]
    estimate = estimated_counts([MERGED, WHOLE])
    assert estimate.counts[0] == pytest.approx([50, 31, 12 + 14 * 2 / 3, 6 + 14 / 3])
    assert estimate.estimated.tolist() == [[False, False, True, True], [False] * 4]
    table = coarse_table([MERGED, WHOLE])
    assert table.joined == (("III", "IV"),)
    assert list(table.scores) == [0, 1, 2.5]
    assert table.total.tolist() == [[50, 31, 32], [37, 34, 63]]
    assert not table.plain
    assert cochran_armitage(table.total, table.scores).p_value == pytest.approx(0.0012, abs=5e-5)


def test_an_estimate_is_the_likeliest_allocation() -> None:
    """EM over overlapping cells finds the share that a search finds."""
    levels = ("a", "b", "c")
    cells = {"a": 9, "bc": 21, "b": 4, "ac": 16, "c": 5}
    centers = []
    for held, count in cells.items():
        others = tuple(level for level in levels if level not in held)
        centers.append(PartialTable(levels, ((Cell(tuple(held), count), Cell(others, 0)),)))
    shares = estimated_counts(centers).counts[0] / 55
    grid = np.linspace(0.001, 0.999, 999)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    c = np.where(a + b < 1, 1 - a - b, np.nan)
    place = {"a": a, "b": b, "c": c}
    likelihood = np.zeros_like(a)
    for held, count in cells.items():
        likelihood += count * np.log(np.sum([place[level] for level in held], axis=0))
    best = np.unravel_index(np.nanargmax(likelihood), a.shape)
    assert shares[:2] == pytest.approx([grid[best[0]], grid[best[1]]], abs=0.002)


def test_where_nothing_says_how_to_divide() -> None:
    """As in all groups together, and evenly where none knows."""
    unknown = Cell(("x", "y"), 10)
    alone = PartialTable(("x", "y"), ((unknown,),))
    assert estimated_counts([alone]).counts.tolist() == [[5, 5]]
    beside = PartialTable(("x", "y"), ((unknown,), (Cell(("x",), 30), Cell(("y",), 10))))
    assert estimated_counts([beside]).counts[0] == pytest.approx([7.5, 2.5])


def test_a_cell_of_nobody_merges_nothing() -> None:
    nobody = PartialTable(("x", "y"), ((Cell(("x", "y"), 0),),))
    assert nothing_merged([nobody])
    assert coarse_table([nobody, PartialTable.exact(("x", "y"), [[3, 4]])]).plain
    assert count_bounds([nobody]).percent_high.tolist() == [[100, 100]]


def test_chains_of_merges_join_all_they_touch() -> None:
    one = partial_table(np.array([[1, 2, 3, 4]]), [[0, 0, 1, 2]])
    two = partial_table(np.array([[5, 6, 7, 8]]), [[0, 1, 2, 1]])
    table = coarse_table([one, two])
    assert table.parts == (("I", "II", "IV"), ("III",))
    assert table.counts.tolist() == [[[7, 3]], [[19, 7]]]


def test_what_is_no_partial_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"hold each of \('x', 'y'\) once, got \['x'\]"):
        PartialTable(("x", "y"), ((Cell(("x",), 3),),))
    with pytest.raises(ValueError, match=r"got \['x', 'y', 'x'\]"):
        PartialTable(("x", "y"), ((Cell(("x", "y"), 3), Cell(("x",), 1)),))
    with pytest.raises(ValueError, match="whole number, not negative, got -1"):
        Cell(("x",), -1)
    with pytest.raises(ValueError, match=r"each once, got \('x', 'x'\)"):
        Cell(("x", "x"), 1)
    with pytest.raises(ValueError, match="at least one center"):
        count_bounds([])
    with pytest.raises(ValueError, match="same levels and groups"):
        coarse_table([MERGED, PartialTable.exact(("I", "II"), [[1, 2]])])
    with pytest.raises(ValueError, match=r"subset must be of the levels .* got \['VI'\]"):
        subset_bounds([MERGED], ["I", "VI"])
    with pytest.raises(ValueError, match=r"groups × 2 levels, got \(2,\)"):
        PartialTable.exact(("x", "y"), [1, 2])
