"""The smoothed distribution: against an independent smoother of the full data, and the data."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.draws import evenly
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.distribution import smooth
from unpooled.maths.density.smoothing import fit_curve
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable
from unpooled_study.parallel.populations import EVERY

P = np.array([0.02, 0.25, 0.5, 0.75, 0.98])


def _direct(values: FloatArray, levels: int, p: FloatArray) -> FloatArray:
    """The same model by plain generalised least squares, on SciPy's Yeo-Johnson."""
    n = len(values)
    q = np.interp((np.arange(levels) + 0.5) / levels, (np.arange(n) + 0.5) / n, values)
    q25, median, q75 = np.quantile(q, [0.25, 0.5, 0.75])
    unit = (q75 - q25) / 1.349
    y, lam = stats.yeojohnson((q - median) / unit)
    z = (y - y.mean()) / y.std()
    share = (np.arange(levels) + 0.5) / levels
    t, new = stats.norm.ppf(share), stats.norm.ppf(p)
    error = np.minimum.outer(share, share) - np.outer(share, share)
    error /= np.outer(stats.norm.pdf(t), stats.norm.pdf(t)) * n
    start = min(t[0], new[0])

    def wiener(a: FloatArray, b: FloatArray) -> FloatArray:
        less = np.minimum.outer(a - start, b - start)
        more = np.maximum.outer(a - start, b - start)
        return np.asarray(less**2 * (3 * more - less) / 6)

    line, log, result = np.stack((np.ones(levels), t), axis=1), [], []
    both = np.concatenate((t, new))
    taus = 10.0 ** np.arange(-5, 2.01, 0.25)
    for tau in taus:
        total = error + tau * wiener(t, t)
        inverse = np.linalg.inv(total)
        middle = line.T @ inverse @ line
        slope = np.linalg.solve(middle, line.T @ inverse)
        left = np.eye(levels) - line @ slope
        rest = left @ z
        determinants = np.linalg.slogdet(total)[1] + np.linalg.slogdet(middle)[1]
        log.append((np.log(tau) - determinants - rest @ inverse @ rest) / 2)
        straight = np.stack((np.ones(len(both)), both), axis=1) @ slope
        result.append(straight + tau * wiener(both, t) @ inverse @ left)
    weights = np.exp(np.array(log) - max(log))
    smoother = np.tensordot(weights / weights.sum(), np.array(result), 1)
    once = smoother @ z
    twiced = (2 * once - smoother @ once[:levels])[levels:]
    back = twiced * y.std() + y.mean()
    size = np.abs(back)
    exponent = np.where(back >= 0, lam, 2 - lam)
    x = np.copysign((1 + exponent * size) ** (1 / exponent) - 1, back)
    return np.asarray(median + unit * x)


@pytest.mark.parametrize("family", [stats.gamma(4), stats.norm(), stats.t(3)])
def test_the_curve_is_the_posterior_mean_less_what_smoothing_it_again_would_take(
    family: Any,
) -> None:
    x = np.sort(family.rvs(600, random_state=3))
    ours = fit_curve(x, np.ones(600), 60, -np.inf).quantile(P)
    np.testing.assert_allclose(ours, _direct(x, 60, P), rtol=0, atol=2e-3 * x.std())


def test_a_sharp_bend_beside_a_gap_is_not_rounded_off() -> None:
    """Smoothed once, the quantile at .75 is .005 too large."""
    family = EVERY["gap mixture"]
    one = np.ones(1)
    x = family.quantile((np.arange(1500) + 0.5) / 1500, one, one)
    p = np.array([0.75])
    result = fit_curve(x, np.ones(1500), 150, -np.inf).quantile(p)
    assert abs(result - family.quantile(p, one, one)) < 0.002


def test_cells_of_one_person_each_give_the_full_data_smoother() -> None:
    x = np.sort(np.random.default_rng(2).normal(size=1500))
    ones = np.ones(1500, dtype=np.int64)
    table = LatticeTable((x[1:] + x[:-1]) / 2, ones, x, np.zeros(1500))
    fitted = smooth([table], Lattice(0.1))
    assert fitted.curve is not None
    direct = _direct(x, 150, P)
    np.testing.assert_allclose(fitted.curve.quantile(P), direct, rtol=0, atol=2e-3)
    gap = np.abs(fitted.quantile(P) - direct)
    assert np.all(gap <= np.abs(np.quantile(x, P) - direct) + 0.05)


def _tables(draw: Any, lattice: Lattice, seed: int = 1) -> tuple[list[LatticeTable], FloatArray]:
    random = np.random.default_rng(seed)
    centers = [np.sort(draw.rvs(n, random_state=random)) for n in (400, 300, 200, 100)]
    return [lattice_table(x, lattice, 10, evenly) for x in centers], np.sort(
        np.concatenate(centers)
    )


@pytest.mark.parametrize("family", [stats.gamma(4), stats.uniform(), stats.t(3), stats.expon()])
def test_quantiles_stay_near_the_data_and_inside_their_intervals(
    family: Any,
) -> None:
    scale = float(np.diff(family.ppf([0.25, 0.75]))[0]) / 1.349
    lattice = Lattice(scale / 10)
    tables, x = _tables(family, lattice)
    fitted = smooth(tables, lattice)
    estimate = fitted.quantile(P)
    low, high = fitted.interval(P)
    assert np.all(low <= estimate)
    assert np.all(estimate <= high)
    error = 2 * np.sqrt(P * (1 - P) / len(x))
    assert np.all(np.quantile(x, P - error.clip(max=P)) <= estimate)
    assert np.all(estimate <= np.quantile(x, np.minimum(P + error, 1)))
    np.testing.assert_allclose(fitted.cdf(estimate), P, atol=0.01)


def test_quantiles_move_with_the_lattice() -> None:
    random = np.random.default_rng(1)
    x = np.sort(random.normal(size=500))
    one = smooth([lattice_table(x, Lattice(0.1), 10, evenly)], Lattice(0.1))
    two = smooth([lattice_table(4 * x + 8, Lattice(0.4), 10, evenly)], Lattice(0.4))
    np.testing.assert_allclose(two.quantile(P), 4 * one.quantile(P) + 8, rtol=1e-5)


def test_hard_edges_are_seen_far_from_zero_too() -> None:
    """Where the curve fails the shape takes its place, around a billion too."""
    random = np.random.default_rng(1)
    people = [random.exponential(size=n) for n in (40, 60, 80, 120)]
    centers = [np.sort(np.round(x * 2**14) / 2**14) for x in people]
    for away in (0.0, 2.0**30):
        tables = [lattice_table(x + away, Lattice(1 / 8), 10, evenly, "tails") for x in centers]
        assert smooth(tables, Lattice(1 / 8))._failed(np.array([0.01])).all()


def test_hard_edges_of_few_people_are_found() -> None:
    """The curve leaves the people there, and the shape takes its place."""
    square = np.zeros((60, 2))
    for seed in range(60):
        random = np.random.default_rng(seed)
        centers = [np.sort(random.exponential(size=n)) for n in (40, 60, 80, 120)]
        fitted = smooth(
            [lattice_table(x, Lattice(0.1), 10, evenly, "tails") for x in centers], Lattice(0.1)
        )
        curve = fitted._near(np.array([0.02]), fitted.curve)[0]
        square[seed] = np.array([fitted.quantile(0.02)[0], curve]) + np.log(0.98)
    ours, curves = np.mean(square**2, axis=0)
    assert ours < 0.92 * curves


@pytest.mark.parametrize("family", [stats.uniform(), stats.expon(), stats.norm(), stats.cauchy()])
def test_percentiles_rise(family: Any) -> None:
    """Also where the shape takes the curve's place."""
    lattice = Lattice(float(np.diff(family.ppf([0.25, 0.75]))[0]) / 13.49)
    levels = np.arange(1, 200) / 200
    for seed in range(30):
        result = smooth(_tables(family, lattice, seed)[0], lattice).quantile(levels)
        assert np.diff(result).min() >= 0, seed


def test_a_longer_level_gives_a_longer_interval() -> None:
    tables, _ = _tables(stats.norm(), Lattice(0.1))
    fitted = smooth(tables, Lattice(0.1))
    wide, narrow = (np.subtract(*fitted.interval(P, level)[::-1]) for level in (0.99, 0.8))
    assert np.all(wide > narrow)
    with pytest.raises(ValueError, match="level must lie"):
        fitted.interval(P, 95)


def test_what_the_shape_knows_of_a_tail_shortens_the_interval_there() -> None:
    """Hard edges that nobody declared: the curve, rough in them, knows less than the shape."""
    tables, _ = _tables(stats.uniform(), Lattice(0.02))
    fitted = smooth(tables, Lattice(0.02))
    shape = fitted.placed.shape
    assert shape is not None
    unknown = replace(shape, kept=np.ones(len(shape.kept)))
    other = replace(fitted, placed=replace(fitted.placed, shape=unknown))
    p = np.array([0.02, 0.0999, 0.1001, 0.1999, 0.2001, 0.5, 0.98])
    ours, others = (np.subtract(*one.interval(p)[::-1]) for one in (fitted, other))
    assert (ours / others)[[0, -1]].max() < 0.95
    assert (ours / others)[3:6] == pytest.approx(1.0, abs=1e-3)
    assert ours[1:5:2] == pytest.approx(ours[2:6:2], rel=1e-2)  # no step where tails begin


def test_zeros_are_met_exactly() -> None:
    random = np.random.default_rng(4)
    lattice = Lattice(0.1, lower=0.0)
    tables = []
    for n in (400, 200):
        x = np.where(random.random(n) < 0.3, 0.0, random.lognormal(size=n))
        tables.append(lattice_table(np.sort(x), lattice, 10, evenly))
    fitted = smooth(tables, lattice)
    assert fitted.quantile([0.1, 0.2]).tolist() == [0.0, 0.0]
    assert fitted.quantile(0.5)[0] > 0
    assert fitted.cdf(0.0) == pytest.approx(0.3, abs=0.06)


def test_rounded_data_give_possible_values() -> None:
    random = np.random.default_rng(4)
    lattice = Lattice(1.0, origin=0.5, resolution=1.0, lower=0.0)
    x = np.sort(random.poisson(7.0, 600).astype(float))
    fitted = smooth([lattice_table(x, lattice, 10, evenly)], lattice)
    np.testing.assert_array_equal(fitted.quantile(P), np.quantile(x, P, method="inverted_cdf"))


def test_quantiles_beyond_all_boundaries_are_flagged() -> None:
    tables, _ = _tables(stats.norm(), Lattice(0.1))
    flags = smooth(tables, Lattice(0.1)).beyond([0.001, 0.5, 0.999])
    assert flags.tolist() == [True, False, True]


@pytest.mark.parametrize("family", [stats.beta(0.5, 0.5), stats.weibull_min(0.5)])
def test_intervals_cover_where_people_stand_closer_than_cells_can_tell(family: Any) -> None:
    """At a pole the lattice's step is a hundred times the people's own standard error or more."""
    p, step = np.array([0.02]), float(np.diff(family.ppf([0.25, 0.75]))[0]) / 13.49
    covered = 0
    for seed in range(40):
        tables, _ = _tables(family, Lattice(step), seed)
        fitted = smooth(tables, Lattice(step))
        low, high = fitted.interval(p)
        covered += bool(low[0] <= family.ppf(0.02) <= high[0])
        assert fitted.blur(p)[0] > 0
    assert covered >= 34


def test_intervals_cover_where_few_people_lie_beyond_an_edge() -> None:
    """Fifteen of 1500 people: the cells leave about twice the sampling variance there."""
    p, lattice, covered = np.array([0.01, 0.99]), Lattice(0.05), []
    sizes = (56, 81, 92, 109, 126, 133, 137, 143, 307, 316)
    for seed in range(60):
        random = np.random.default_rng(seed)
        centers = [np.sort(random.random(n)) for n in sizes]
        fitted = smooth([lattice_table(x, lattice, 20, evenly, "tails") for x in centers], lattice)
        low, high = fitted.interval(p)
        covered.append((low <= p) & (p <= high))
    assert np.mean(covered) > 0.9  # 0.87 without what cells leave open


def test_intervals_do_not_leave_what_counts_make_certain() -> None:
    """Scores from 1 to 10, of which nothing is declared: cells between them say little."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        scores = [np.sort(random.integers(1, 11, n).astype(float)) for n in (150, 300, 300)]
        fitted = smooth(
            [lattice_table(x, Lattice(0.2), 10, evenly, "tails") for x in scores], Lattice(0.2)
        )
        p = np.arange(1, 100) / 100
        low, high = fitted.interval(p)
        assert fitted.blur(p).min() >= 0
        assert low.min() > -2, seed
        assert high.max() < 13, seed


def test_an_atom_among_others_is_one_value() -> None:
    """It has a cell of its own, of which nothing but the count is told."""
    random = np.random.default_rng(2)
    lattice = Lattice(0.1, atoms=(0.0,))
    centers = [np.where(random.random(n) < 0.4, 0.0, random.normal(size=n)) for n in (300, 200)]
    fitted = smooth(
        [lattice_table(np.sort(x), lattice, 10, evenly, "tails") for x in centers], lattice
    )
    assert fitted.quantile([0.4, 0.5, 0.6]).tolist() == [0.0, 0.0, 0.0]
    assert float(fitted.placed.weights[fitted.placed.shared].sum()) == sum(
        int((x == 0).sum()) for x in centers
    )
    assert fitted.blur([0.5]).tolist() == [0.0]


@pytest.mark.parametrize("family", [stats.norm(), stats.gamma(4), stats.uniform()])
def test_cells_that_tell_enough_do_not_blur(family: Any) -> None:
    lattice = Lattice(float(np.diff(family.ppf([0.25, 0.75]))[0]) / 13.49)
    assert smooth(_tables(family, lattice)[0], lattice).blur(P).tolist() == [0.0] * len(P)


def test_everybody_alike_is_no_error() -> None:
    lattice = Lattice(1.0)
    fitted = smooth([lattice_table(np.full(50, 3.0), lattice, 10, evenly)], lattice)
    assert fitted.quantile(P).tolist() == [3.0] * 5
    assert fitted.interval(P)[0].tolist() == [3.0] * 5
    assert fitted.blur(P).tolist() == [0.0] * 5


def test_strata_that_differ_make_the_error_smaller() -> None:
    x = np.sort(np.random.default_rng(1).normal(size=300))
    lattice = Lattice(0.1)
    apart = smooth([lattice_table(x + s, lattice, 10, evenly) for s in (0.0, 10.0)], lattice)
    assert apart.standard_error(np.array([0.5]))[0] < 0.3 * np.sqrt(0.25 / 600)


def test_the_density_sums_to_one() -> None:
    tables, _ = _tables(stats.gamma(4), Lattice(0.2))
    fitted = smooth(tables, Lattice(0.2))
    grid = np.linspace(-2, 30, 4000)
    assert np.trapezoid(fitted.density(grid, grid[1] - grid[0]), grid) == pytest.approx(1, abs=0.02)
