"""The Yeo-Johnson fit to cells: the exact fit of the same people as oracle, and its limits."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.cells import Moments
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, public_lattice
from unpooled.maths.quantiles.cell_fit import Search, fit_cells
from unpooled.maths.quantiles.yeo_johnson import (
    DEFAULT_GRID,
    fit_grid,
    fit_likelihood,
    fit_points,
    power_moments,
    weighted_moments,
)

P = np.array([0.02, 0.25, 0.5, 0.75, 0.98])
ERROR = np.array([0.87, 1.0, 1.26, 1.56, 3.55])  # SD of √n times the exact quantile, in 58 samples
DRAWS = keyed_draws(b"secret", "v")


def tables(
    centers: list[FloatArray], lattice: Lattice, moments: Moments = "tails", k: int = 10
) -> list[LatticeTable]:
    return [lattice_table(np.sort(x), lattice, k, DRAWS, moments) for x in centers]


def gamma(sizes: tuple[int, ...], seed: int = 1) -> list[FloatArray]:
    random = np.random.default_rng(seed)
    return [random.gamma(4.0, 0.5, n) for n in sizes]


def test_weighted_points_fit_as_repeated_people_do() -> None:
    x, times = np.array([0.5, 1.0, 2.5, 4.0, 9.0]), np.array([3, 7, 5, 2, 1])
    people = np.repeat(x, times)
    fit = fit_points(x, times.astype(float))
    z, lam = stats.yeojohnson(people)
    assert fit.lam == pytest.approx(lam, abs=1e-5)
    assert (fit.mean, fit.sd) == pytest.approx((z.mean(), z.std()), rel=1e-5)
    assert (fit.raw_mean, fit.raw_sd) == pytest.approx((people.mean(), people.std()))
    answer, exact = weighted_moments(x, times, DEFAULT_GRID), power_moments(people, DEFAULT_GRID)
    assert answer.n == exact.n
    assert answer.log_sum == pytest.approx(exact.log_sum)
    assert answer.mean == pytest.approx(exact.mean)
    assert answer.variance == pytest.approx(exact.variance)


@pytest.mark.parametrize("x", [[], [1.0, np.nan]])
def test_points_that_cannot_be_fitted(x: list[float]) -> None:
    with pytest.raises(ValueError, match="x must"):
        fit_points(x, np.ones(len(x)))


@pytest.mark.parametrize("search", ["likelihood", "grid"])
@pytest.mark.parametrize("moments", ["tails", "all"])
@pytest.mark.parametrize("sizes", [(698, 476, 326), (492, 368, 276, 208, 156)])
def test_it_is_near_the_exact_pooled_fit(
    sizes: tuple[int, ...], moments: Moments, search: Search
) -> None:
    """The mean of 12 differences within .12 standard errors, each one within .6."""
    lattice, off = public_lattice(1.0, lower=0.0), []
    for seed in range(12):
        centers = gamma(sizes, seed)
        people = np.concatenate(centers)
        exact = fit_likelihood(partial(power_moments, people))
        result = fit_cells(tables(centers, lattice, moments), lattice, search).fit
        off.append((result.quantile(P) - exact.quantile(P)) / standard_error(len(people)))
    assert np.all(np.abs(np.mean(off, axis=0)) < 0.12)
    assert np.abs(off).max() < 0.6


def standard_error(n: int) -> FloatArray:
    return np.asarray(ERROR / n**0.5)


def test_more_people_bring_it_to_the_exact_fit() -> None:
    """One cell of K people more or less matters less and less."""
    lattice, off = public_lattice(1.0, lower=0.0), []
    for n in (300, 3_000, 30_000):
        centers = gamma((n, n))
        exact = fit_points(np.concatenate(centers), np.ones(2 * n)).quantile(P)
        off.append(
            np.abs(fit_cells(tables(centers, lattice, "all"), lattice).fit.quantile(P) - exact)
        )
    assert np.all(off[2] < 0.005)
    assert off[2].max() < off[0].max()


@given(
    steps=st.integers(-3, 3),
    parts=st.integers(1, 4),
    seed=st.integers(0, 50),
    moments=st.sampled_from(["tails", "all"]),
)
@settings(max_examples=25, deadline=None)
def test_the_lattice_and_who_answers_first_hardly_matter(
    steps: int, parts: int, seed: int, moments: Any
) -> None:
    """A lattice moved by part of a step tells of the same people: so does another order."""
    centers = gamma((400, 300), seed)
    origins = (0.0, steps * 0.1 / (parts + 1))
    lattices = [Lattice(step=0.1, origin=origin, lower=0.0) for origin in origins]
    one, other = (
        fit_cells(tables(centers, part, moments), part).fit.quantile(P) for part in lattices
    )
    assert np.all(np.abs(one - other) < standard_error(700))
    turned = fit_cells(tables(centers[::-1], lattices[0], moments), lattices[0]).fit
    assert turned.quantile(P) == pytest.approx(one, rel=1e-5)


@given(lam=st.floats(-0.8, 1.8), mean=st.floats(-1, 3), seed=st.integers(0, 100))
@settings(max_examples=25, deadline=None)
def test_people_of_the_family_itself_are_found_again(lam: float, mean: float, seed: int) -> None:
    from unpooled.maths.quantiles.yeo_johnson import inverse_or_nan

    z = np.random.default_rng(seed).normal(mean, 0.3, 600)
    x = inverse_or_nan(z, lam)
    x = np.sort(x[np.isfinite(x)])
    if len(x) < 600 or np.ptp(x) > 30 * np.subtract(*np.quantile(x, [0.75, 0.25])):
        return  # a tail so long that its cells end on a scale of their own
    lattice = public_lattice(float(np.subtract(*np.quantile(x, [0.75, 0.25])) / 1.349))
    exact = fit_points(x, np.ones(600))
    result = fit_cells(tables([x[::2], x[1::2]], lattice), lattice).fit
    spread = x.std()
    assert result.quantile(P) == pytest.approx(exact.quantile(P), abs=0.12 * spread)


def test_the_grid_is_near_the_likelihood() -> None:
    lattice = public_lattice(1.0)
    answer = tables(gamma((300, 200)), lattice)
    one, other = (fit_cells(answer, lattice, search).fit for search in ("likelihood", "grid"))
    assert other.quantile(P) == pytest.approx(one.quantile(P), rel=1e-3)
    x = np.concatenate(gamma((300, 200)))
    exact = fit_grid(power_moments(x, DEFAULT_GRID)).quantile(P)
    assert other.quantile(P) == pytest.approx(exact, abs=0.1)


# --- too little to fit -------------------------------------------------------------------------


def test_one_boundary_is_refused() -> None:
    lattice = public_lattice(1.0)
    with pytest.raises(ValueError, match="at least 2 boundaries between people, got 1"):
        fit_cells(tables(gamma((24,)), lattice, "all"), lattice)
    with pytest.raises(ValueError, match="got 0"):
        fit_cells([], lattice)


def test_cells_without_means_are_refused_where_many_people_are_in_open_ones() -> None:
    lattice = public_lattice(1.0)
    with pytest.raises(ValueError, match="at most 25% of people may be in open cells"):
        fit_cells(tables(gamma((45, 45)), lattice, "none"), lattice)


def test_without_the_rule_they_give_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    from unpooled.maths.quantiles import cell_fit

    monkeypatch.setattr(cell_fit, "_MOST_ADRIFT", 1.0)
    lattice, worst = public_lattice(1.0), []
    for seed in range(10):
        centers = gamma((60,), seed)
        exact = fit_points(np.concatenate(centers), np.ones(60)).quantile(P)
        result = fit_cells(tables(centers, lattice, "none"), lattice).fit.quantile(P)
        worst.append(np.nanmax(np.abs(result - exact) / standard_error(60)))
    assert max(worst) > 2


def test_levels_among_people_of_whom_only_a_limit_is_known_are_marked() -> None:
    lattice = public_lattice(1.0)
    centers = gamma((307, 250))
    untold = fit_cells(tables(centers, lattice, "none"), lattice)
    assert untold.rests_on_shape(P).tolist() == [True, False, False, False, True]
    answer = fit_cells(tables(centers, lattice, "tails"), lattice)
    assert not answer.rests_on_shape(P).any()
    assert answer.adrift == (0.0, 0.0)


def test_one_value_is_refused() -> None:
    edges, counts, alike = np.array([1.0, 2.0]), np.full(3, 10), np.zeros(3)
    table = LatticeTable(edges, counts, np.full(3, 2.0), alike)
    with pytest.raises(ValueError, match="values must differ"):
        fit_cells([table], Lattice(step=1.0))
