"""A center's table on the lattice: exact counts, at least K people, nothing that can be decoded."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.draws import evenly
from unpooled.maths.lattice.cells import is_rounded, rounded, telling_cells, units
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, OpenScale, public_lattice

VALUES = st.lists(st.floats(-50, 50, allow_nan=False), min_size=20, max_size=150)


@given(VALUES, st.integers(1, 10), st.sampled_from([0.1, 1.0, 7.0]))
def test_every_cell_has_k_people_and_its_boundaries_are_lattice_points(
    values: list[float], k: int, step: float
) -> None:
    x = np.sort(values)
    table = lattice_table(x, Lattice(step), k, evenly)
    assert table.counts.min() >= k
    assert table.people == len(x)
    np.testing.assert_allclose(table.edges / step, np.round(table.edges / step), atol=1e-6)
    limits = np.concatenate(([-np.inf], table.edges, [np.inf]))
    counted = [np.sum((x > a) & (x <= b)) for a, b in pairwise(limits)]
    np.testing.assert_array_equal(table.counts, counted)


@given(
    VALUES | st.lists(st.sampled_from([-0.1, 0.4, 0.6, 1.5, 2.2]), min_size=20, max_size=40),
    st.integers(1, 10),
    st.sampled_from([0.1, 1.0, 7.0, 50.0]),
)
@example([-0.1] * 8 + [0.4] * 6 + [1.5] * 10, 10, 1.0)
@example([-4.4] * 5 + [-4.3] * 5 + [-4.2] * 10, 5, 0.1)
def test_people_are_told_apart_wherever_a_point_leaves_k_on_both_sides(
    values: list[float], k: int, step: float
) -> None:
    x = np.sort(values)
    points = step * np.arange(np.floor(x[0] / step), np.ceil(x[-1] / step) + 1)
    below = np.searchsorted(x, points, "right")
    table = lattice_table(x, Lattice(step), k, evenly)
    assert (len(table.counts) > 1) == bool(np.any((below >= k) & (below <= len(x) - k)))


@given(VALUES)
def test_moments_are_rounded_and_near_the_true_ones(values: list[float]) -> None:
    x = np.sort(values)
    table = lattice_table(x, Lattice(1.0), 5, evenly)
    assert is_rounded(table.edges, Lattice(1.0), table.counts, table.means, table.sds)
    limits = np.concatenate(([-np.inf], table.edges, [np.inf]))
    scale = OpenScale.of(limits, 1.0)
    parts = np.where(np.isnan(scale.unit), np.diff(limits), 1 / 5) / 200
    one = units(table.edges, Lattice(1.0), table.counts, table.sds)
    ends = np.cumsum(table.counts)
    for i, part in enumerate(parts.tolist()):
        cell = x[ends[i] - table.counts[i] : ends[i]]
        if table.sds[i] != 0:
            cell = scale.at(i).forth(cell)
        if len(parts) > 1 and table.sds[i] != 0 and not math.isnan(table.means[i]):
            assert one.mean[i] >= part * (1 - 1e-9)
            assert abs(table.means[i] - cell.mean()) <= one.mean[i] / 2 + 1e-9
        if len(parts) > 1 and table.sds[i] > 0:
            error = table.sds[i] / math.sqrt(len(cell) - 1)
            assert one.mean[i] >= error / 20 * (1 - 1e-8)
            assert one.sd[i] >= max(part, error / math.sqrt(2) / 20) * (1 - 1e-8)
            assert abs(table.sds[i] - cell.std()) <= one.sd[i] + 1e-9


CELLS = st.tuples(
    st.integers(3, 200),
    st.one_of(st.just(math.nan), st.floats(0, 1), st.floats(0, 1e-3)),
    st.one_of(st.just(math.nan), st.floats(0, 0.5), st.floats(0, 1e-3)),
)


@settings(max_examples=300)
@given(
    st.lists(st.floats(0.05, 50), min_size=1, max_size=6),
    st.lists(CELLS, min_size=7, max_size=7),
    st.floats(-1e9, 1e9),
    st.sampled_from([1e-3, 0.1, 1.0, 50.0]),
    st.sampled_from([(-math.inf, math.inf), (-3e9, math.inf), (-3e9, 3e9)]),
)
def test_rounded_moments_of_any_cells_stay_when_rounded_again(
    widths: list[float],
    cells: list[tuple[int, float, float]],
    offset: float,
    step: float,
    limits: tuple[float, float],
) -> None:
    edges = offset + step * np.cumsum(widths)
    if not np.all(np.diff(edges) > 0):
        return
    lattice = Lattice(step, lower=limits[0], upper=limits[1])
    counts = np.array([n for n, _, _ in cells[: len(edges) + 1]])
    low, high = lattice.mean_limits(edges)
    shares = np.array([[share, spread] for _, share, spread in cells[: len(edges) + 1]]).T
    means, sds = low + (high - low) * shares[0], (high - low) * shares[1]
    answer = rounded(edges, lattice, counts, means, sds)
    assert is_rounded(edges, lattice, counts, *answer)
    part = units(edges, lattice, counts, answer[1])
    assert np.all(np.isnan(answer[0]) | (low - part.mean <= answer[0]) & (answer[0] <= high))
    spread = answer[1] > 0
    error = answer[1] / np.sqrt(counts - 1)
    assert np.all((part.mean >= error / 20 * (1 - 1e-8))[spread])
    assert np.all((part.sd >= error / math.sqrt(2) / 20 * (1 - 1e-8))[spread])
    more = answer[0] + part.mean / 3
    finer = ~np.isnan(more) & (more != answer[0]) & (answer[1] != 0)
    finer &= part.mean > 8 * np.spacing(np.maximum(np.abs(answer[0]), np.abs(part.start)))
    for cell in np.flatnonzero(finer).tolist():
        moved = np.where(np.arange(len(more)) == cell, more, answer[0])
        assert not is_rounded(edges, lattice, counts, moved, answer[1])


@pytest.mark.parametrize("n", [10, 40])
def test_an_open_cell_of_few_people_tells_less(n: int) -> None:
    x = np.sort(np.random.default_rng(2).standard_t(3, 10 * n))
    edges = np.array([x[n], x[-n]]).round(1)
    ends = np.searchsorted(x, edges, "right")
    counts = np.diff(ends, prepend=0, append=len(x))
    part = units(edges, Lattice(0.1), counts, np.array([0.15, np.nan, np.nan]))
    assert part.mean[0] == pytest.approx({10: 0.005, 40: 0.002}[n])
    assert part.mean[2] == pytest.approx({10: 0.005, 40: 0.005}[n])
    assert part.sd[0] == pytest.approx({10: 0.002, 40: 0.001}[n])


def test_fewer_than_2k_people_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2k = 20 people, got 19"):
        lattice_table(np.arange(19.0), Lattice(1.0), 10, evenly)


def test_an_sd_that_one_person_carries_is_withheld() -> None:
    x = np.sort(np.append(np.linspace(0, 1, 39), 100.0))
    table = lattice_table(x, Lattice(0.1), 10, evenly)
    assert math.isnan(table.sds[-1])
    assert not math.isnan(table.sds[0])


def gap_between(low: int, high: int) -> LatticeTable:
    random = np.random.default_rng(2)
    x = np.sort(np.concatenate((random.normal(0, 1, low), random.normal(9, 0.5, high))))
    return lattice_table(x, Lattice(0.1), 10, evenly, "tails")


def test_extreme_cells_and_gaps_tell_their_moments_others_do_not() -> None:
    table = gap_between(157, 75)
    gap = int(np.searchsorted(table.edges, 5.0))
    assert 0 < gap < len(table.edges)
    answer = np.flatnonzero(~np.isnan(table.means))
    assert {0, gap, len(table.edges)} <= set(answer.tolist())
    assert len(answer) < len(table.counts) / 2
    assert not np.isnan(table.sds[gap])


def test_which_cells_tell_is_seen_from_their_edges() -> None:
    edges = gap_between(157, 75).edges
    answer, widths = telling_cells(edges, 0.1, "tails"), np.diff(edges).tolist()
    for cell, (left, width, right) in enumerate(
        zip(widths, widths[1:], widths[2:], strict=False), 2
    ):
        assert answer[cell] == (width > 1.3 * max(left, right) and width > 0.25)
    assert telling_cells(edges, 0.1, "all").all()
    assert not telling_cells(edges, 0.1, "none").any()
    assert telling_cells(np.zeros(0), 0.1, "tails").tolist() == [True]
    assert telling_cells(np.array([0.0, 9.0]), 0.1, "tails").tolist() == [True, False, True]


def test_all_cells_tell_their_moments_where_the_policy_says_so() -> None:
    table = lattice_table(
        np.sort(np.random.default_rng(1).normal(size=700)), Lattice(0.02), 10, evenly
    )
    assert not np.isnan(table.means).any()
    assert np.isnan(table.sds).mean() < 0.1  # where one person carries it


@pytest.mark.parametrize(("different", "mean", "sd"), [(2, False, False), (5, True, False)])
def test_moments_of_few_different_values_are_withheld(different: int, mean: bool, sd: bool) -> None:
    x = np.sort(np.concatenate((np.zeros(15), 10 + np.arange(15.0) % different)))
    table = lattice_table(x, Lattice(5.0, origin=2.5), 10, evenly)
    assert len(table.edges) == 1
    assert math.isnan(table.means[-1]) is not mean
    assert math.isnan(table.sds[-1]) is not sd


def test_a_value_that_k_people_share_is_told_exactly() -> None:
    x = np.sort(np.concatenate((np.zeros(30), np.linspace(0.01, 3, 70))))
    table = lattice_table(x, Lattice(0.1, lower=0.0), 10, evenly)
    assert (table.edges[0], table.counts[0], table.means[0], table.sds[0]) == (0.0, 30, 0.0, 0.0)


def test_a_declared_atom_has_a_cell_of_its_own() -> None:
    x = np.sort(np.concatenate((np.full(30, 1.37), np.linspace(0, 3, 70))))
    table = lattice_table(x, Lattice(0.5, atoms=(1.37,)), 10, evenly)
    at = int(np.searchsorted(table.edges, 1.37))
    assert (table.edges[at], table.counts[at], table.means[at]) == (1.37, 30, 1.37)


@pytest.mark.parametrize("declared", [{"lower": 0.0}, {"atoms": (0.0,)}])
def test_k_people_at_a_limit_or_atom_keep_a_cell_of_their_own(
    declared: dict[str, float | tuple[float, ...]],
) -> None:
    """Two people beside 16 zeros join the larger cell on their other side."""
    x = np.concatenate((np.zeros(16), np.linspace(0.05, 4.0, 40)))
    table = lattice_table(x, public_lattice(1.0, **declared), 10, evenly, "tails")  # type: ignore[arg-type]
    assert table.counts[0] == 16
    assert (table.means[0], table.sds[0]) == (0.0, 0.0)
    assert table.counts.min() >= 10


def test_fewer_than_k_people_at_a_limit_are_not_told_apart() -> None:
    x = np.concatenate((np.zeros(9), np.linspace(0.05, 4.0, 40), np.full(9, 5.0)))
    table = lattice_table(x, public_lattice(1.0, lower=0.0, upper=5.0), 10, evenly)
    assert table.counts.min() >= 10
    assert not (table.sds == 0).any()


@given(st.lists(st.sampled_from([0.0, 0.0, 0.3, 1.0, 2.5, 5.0]), min_size=20, max_size=80))
def test_cells_beside_atoms_have_k_people_too(values: list[float]) -> None:
    x = np.sort(values)
    table = lattice_table(x, public_lattice(1.0, lower=0.0, upper=5.0, atoms=(1.0,)), 10, evenly)
    assert table.counts.min() >= 10
    assert table.people == len(x)
    zeros, others = int((x == 0).sum()), int((x > 0).sum())
    assert (table.counts[0] == zeros) == (zeros >= 10 and (others == 0 or others >= 10))


def test_tails_and_none_tell_less() -> None:
    x, lattice = np.arange(100.0), Lattice(1.0)
    tails, none = (lattice_table(x, lattice, 10, evenly, moments) for moments in ("tails", "none"))
    answer = ~np.isnan(tails.means)
    assert answer[[0, -1]].all()
    assert not answer[1:-1].any()
    assert np.isnan(none.means).all()
    np.testing.assert_array_equal(tails.counts, none.counts)


def test_the_table_moves_with_the_lattice() -> None:
    x = np.sort(np.random.default_rng(3).normal(size=200))
    one = lattice_table(x, Lattice(0.1), 10, evenly)
    moved = lattice_table(8 * x + 16, Lattice(0.8), 10, evenly)
    np.testing.assert_allclose(moved.edges, 8 * one.edges + 16)
    np.testing.assert_allclose(moved.means[1:-1], 8 * one.means[1:-1] + 16)
    np.testing.assert_allclose(moved.sds[1:-1], 8 * one.sds[1:-1])
    for moments in ("means", "sds"):  # of open cells: on a scale that moves along
        ends = (getattr(table, moments)[[0, -1]] for table in (one, moved))
        np.testing.assert_allclose(*ends)


def test_the_step_is_a_round_number_near_a_tenth_of_the_scale() -> None:
    assert [public_lattice(scale=s).step for s in (1, 3, 40)] == pytest.approx([0.1, 0.2, 5])
    assert public_lattice(scale=27, resolution=1).step == 2
    with pytest.raises(ValueError, match="scale or resolution"):
        public_lattice()


def test_a_table_checks_its_parts() -> None:
    with pytest.raises(ValueError, match="ascend"):
        LatticeTable(np.array([2.0, 1.0]), np.ones(3, dtype=np.int64), np.ones(3), np.ones(3))
