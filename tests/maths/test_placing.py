"""Placed people have the moments that were released, and stay in their cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.draws import evenly
from unpooled.maths.density.placing import place, tail
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, public_lattice


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("family", ["normal", "exponential", "standard_cauchy"])
def test_people_in_each_cell_have_its_moments(seed: int, family: str) -> None:
    x = np.sort(getattr(np.random.default_rng(seed), family)(size=300))
    lattice = Lattice(0.1)
    table = lattice_table(x, lattice, 10, evenly)
    placed = place([table], lattice)
    cell = np.searchsorted(table.edges, placed.values)
    weight = np.bincount(cell, placed.weights)
    np.testing.assert_allclose(weight, table.counts)
    mean = np.bincount(cell, placed.weights * placed.scaled) / weight
    np.testing.assert_allclose(mean, table.means, atol=1e-9)
    spread = np.sqrt(np.bincount(cell, placed.weights * (placed.scaled - mean[cell]) ** 2) / weight)
    answer = ~np.isnan(table.sds)
    assert np.median(np.abs(spread[answer] / table.sds[answer] - 1)) < 0.02


@given(st.integers(8, 32), st.floats(0.1, 10), st.floats(0.25, 1.4))
def test_a_tail_has_the_mean_and_sd_asked_for(n: int, mean: float, variation: float) -> None:
    excess = tail(n, mean, variation * mean)
    assert np.all(np.diff(excess) >= 0)
    assert excess[0] >= 0
    assert excess.mean() == pytest.approx(mean)
    assert excess.std() == pytest.approx(variation * mean, rel=0.02)


def test_a_dominated_tail_is_heavy() -> None:
    excess = tail(12, 1.0, np.nan)
    squares = (excess - 1) ** 2
    assert squares[-1] / squares.sum() == pytest.approx(0.75, abs=0.01)


def test_declared_limits_hold_and_atoms_stay() -> None:
    x = np.sort(np.concatenate((np.zeros(30), np.random.default_rng(1).exponential(size=170))))
    lattice = Lattice(0.1, lower=0.0)
    placed = place([lattice_table(x, lattice, 10, evenly)], lattice)
    assert placed.values.min() == 0
    assert placed.weights[placed.shared].sum() == 30


def test_large_cells_get_weighted_points() -> None:
    x = np.sort(np.random.default_rng(1).normal(size=20_000))
    lattice = Lattice(0.1)
    placed = place([lattice_table(x, lattice, 10, evenly)], lattice)
    assert placed.people == pytest.approx(20_000)
    assert len(placed.values) < 5_000


def test_a_center_with_a_gap_borrows_its_shape() -> None:
    """Of a small center's people, fewer stand in the gap when a large center shows it."""
    lattice, in_gap = Lattice(0.1), np.zeros(2)
    for seed in range(8):
        random = np.random.default_rng(seed)
        large, small = (
            np.sort(np.concatenate((random.normal(0, 1, 4 * n), random.normal(4, 0.5, n))))
            for n in (200, 9)
        )
        tables = [lattice_table(x, lattice, 20, evenly) for x in (large, small)]
        with_large, alone = place(tables, lattice), place(tables[1:], lattice)
        for i, (placed, center) in enumerate(((with_large, 1), (alone, 0))):
            inside = (placed.values > 2.2) & (placed.values < 2.8) & (placed.centers == center)
            in_gap[i] += placed.weights[inside].sum()
    assert in_gap[0] < 0.75 * in_gap[1]


def test_rounded_values_can_be_put_back_on_their_grid() -> None:
    x = np.sort(np.random.default_rng(1).poisson(6.0, 400).astype(float))
    lattice = Lattice(1.0, origin=0.5, resolution=1.0, lower=0.0)
    placed = place([lattice_table(x, lattice, 10, evenly)], lattice).on_grid(1.0)
    np.testing.assert_array_equal(placed.values, np.round(placed.values))
    assert placed.people == pytest.approx(400)


def test_a_table_without_moments_still_has_tails() -> None:
    nothing = np.full(3, np.nan)
    table = LatticeTable(np.array([0.0, 1.0]), np.array([10, 20, 10]), nothing, nothing)
    placed = place([table], Lattice(1.0))
    assert placed.values[0] < 0 < 1 < placed.values[-1]
    two = LatticeTable(np.array([0.0]), np.array([10, 10]), nothing[:2], nothing[:2])
    with pytest.raises(ValueError, match="must tell"):
        place([two], Lattice(1.0))


def test_a_table_is_read_on_its_own_lattice() -> None:
    """Two open cells have the width of ten steps, which another center's lattice does not give."""
    x = np.sort(np.random.default_rng(2).normal(0, 2, 44))
    table = lattice_table(x, public_lattice(2.0), 10, evenly, "tails")
    assert len(table.counts) == 2
    part, other = (place([table], public_lattice(scale)) for scale in (2.0, 0.5))
    np.testing.assert_array_equal(part.values, other.values)


@pytest.mark.parametrize("v", [0.97, 0.999, 1.0])
def test_people_far_outside_stand_where_they_are_said_to_be(v: float) -> None:
    means, sds = np.array([-0.1, 0.5, v]), np.array([0.05, 0.3, 0.0005])
    table = LatticeTable(np.array([0.0, 1.0]), np.full(3, 10), means, sds)
    placed = place([table], Lattice(0.1), refilled=False)
    part = placed.cells == 2
    assert placed.scaled[part].mean() == pytest.approx(v, abs=5e-4)


def test_no_tables_are_an_error() -> None:
    with pytest.raises(ValueError, match="at least one center"):
        place([], Lattice(1.0))


def test_an_extreme_cell_without_a_mean_continues_the_density_of_its_neighbour() -> None:
    nothing = np.full(3, np.nan)
    table = LatticeTable(np.array([4.0, 5.0]), np.array([16, 16, 16]), nothing, nothing)
    placed = place([table], Lattice(1.0, lower=0.0, upper=9.0), refilled=False)
    levels = (np.arange(16) + 0.5) / 16
    np.testing.assert_allclose(placed.values[:16], 4 * stats.beta(4, 1).ppf(levels))
    np.testing.assert_allclose(placed.values[32:], 5 + 4 * stats.beta(1, 4).ppf(levels))
