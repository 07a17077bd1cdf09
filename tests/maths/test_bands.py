"""Bands and histograms of smooth distributions."""

import numpy as np
import pytest
from scipy import stats

from tests.draws import evenly
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.bands import draw, histogram_edges, histogram_errors
from unpooled.maths.density.distribution import Distribution, smooth
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, public_lattice


def fitted(centers: list[FloatArray], lattice: Lattice) -> Distribution:
    return smooth(
        [lattice_table(np.sort(x), lattice, 10, evenly, "tails") for x in centers], lattice
    )


def normal(seed: int, sizes: tuple[int, ...] = (400, 300, 200)) -> Distribution:
    random = np.random.default_rng(seed)
    return fitted([random.normal(size=n) for n in sizes], public_lattice(1.0))


def test_the_bands_hold_the_normal_curve() -> None:
    """SciPy's normal distribution lies within nine tenths of all bands at least."""
    held = []
    for seed in range(10):
        drawn = draw(normal(seed), points=31)
        for low, true, high in (
            (drawn.cdf_low, stats.norm.cdf(drawn.x), drawn.cdf_high),
            (drawn.density_low, stats.norm.pdf(drawn.x), drawn.density_high),
        ):
            held.append(np.mean((low <= true) & (true <= high)))
    assert np.mean(held) > 0.9


def test_a_band_is_the_same_each_time_and_narrows_with_people() -> None:
    few, many = normal(1, (60, 60)), normal(1, (6000, 6000))
    again = draw(few)
    assert np.array_equal(draw(few).density_high, again.density_high)
    widths = [np.mean(d.density_high - d.density_low) for d in (draw(few), draw(many))]
    assert widths[1] < widths[0] / 3


def test_the_density_adds_up_to_the_people_without_atoms() -> None:
    random = np.random.default_rng(3)
    values = np.concatenate((np.zeros(300), random.gamma(4, 1, 700)))
    drawn = draw(fitted([values], public_lattice(2.0, lower=0.0, atoms=(0.0,))))
    assert np.trapezoid(drawn.density, drawn.x) == pytest.approx(0.7, abs=0.03)


def test_a_kink_of_the_quantiles_is_no_spike_of_the_band() -> None:
    """Taken at points, the density went up to 12 times its peak where translation ends."""
    random = np.random.default_rng(34)
    drawn = draw(fitted([random.gamma(4, 1, n) for n in (150, 100, 60, 40)], public_lattice(2.0)))
    assert drawn.density_high.max() < 1.3 * drawn.density.max()


def test_people_who_share_one_value_can_be_drawn() -> None:
    drawn = draw(fitted([np.full(40, 3.0)], Lattice(step=1.0)))
    assert drawn.cdf[0] == pytest.approx(1.0, abs=1e-6)
    assert np.isfinite(drawn.density_high).all()


def test_a_histogram_has_20_to_50_bins_or_one_for_each_possible_value() -> None:
    """As the documentation says: a nice width is up to 1.6 times the thirtieth of the range."""
    for width in (1.0, 1.3, 1.7, 2.2, 3.0, 4.5, 4.8, 6.0, 8.0):
        lattice = public_lattice(width)
        edges = histogram_edges([fitted([np.linspace(0, 4 * width, 400)], lattice)], lattice)
        assert 20 <= len(edges) - 1 <= 50
    lattice = public_lattice(2.0, resolution=1.0)
    scores = np.repeat(np.arange(1.0, 10.0), 40)
    edges = histogram_edges([fitted([scores], lattice)], lattice)
    assert 9 <= len(edges) - 1 <= 11  # with those who could lie outside
    assert np.all(np.diff(edges[1:-1]) == 1)


def test_the_error_of_a_bin_is_the_binomial_one_within_centers() -> None:
    """SciPy's binomial distributions, added up over centers, people near the truth."""
    random = np.random.default_rng(6)
    sizes = (400, 300, 200)
    result = fitted([random.normal(size=n) for n in sizes], public_lattice(1.0))
    edges = np.array([-np.inf, -1.0, 0.0, 0.5, np.inf])
    shares = np.diff(stats.norm.cdf(edges))
    exact = np.sqrt(sum(stats.binom(n, shares).var() for n in sizes))
    assert histogram_errors(result, edges) == pytest.approx(exact, rel=0.06)


def test_a_bin_with_people_of_the_curve_has_an_error_though_nobody_is_placed_there() -> None:
    """Far out, beside bins where somebody is: at least that of the curve's share at one center."""
    for seed in range(8):
        random = np.random.default_rng(seed)
        lattice = public_lattice(5.0, lower=0.0)
        result = fitted([np.exp(random.normal(1.7, 0.75, n)) for n in (90, 60)], lattice)
        edges = np.concatenate(([0.0], np.arange(20.0, 60.0, 2.0), [np.inf]))
        shares = np.diff(result.cdf(edges[1:-1]), prepend=0.0, append=1.0)
        few = (shares > 0.001) & (shares < 0.02)
        assert few.any()
        exact = stats.binom(150, shares[few]).std()
        assert np.all(histogram_errors(result, edges)[few] > 0.9 * exact)


@pytest.mark.parametrize("most", [None, 1, 2, 7, 40])
def test_bins_ascend_within_the_limits_and_are_not_too_many(most: int | None) -> None:
    random = np.random.default_rng(4)
    lattice = public_lattice(2.0, lower=0.0)
    edges = histogram_edges([fitted([random.gamma(4, 1, 500)], lattice)], lattice, most)
    assert (edges[0], edges[-1]) == (0.0, np.inf)
    assert np.all(np.diff(edges) > 0)
    assert len(edges) - 1 <= (60 if most is None else most)


def test_bins_of_rounded_data_end_between_possible_values() -> None:
    lattice = public_lattice(3.0, resolution=1.0)
    values = np.random.default_rng(5).poisson(6, 500).astype(float)
    inner = histogram_edges([fitted([values], lattice)], lattice)[1:-1]
    assert set(inner % 1) == {0.5}


def test_no_bin_beside_a_limit_is_a_sliver() -> None:
    """Zeros of data in tenths: a bin of 0 to .05 beside bins of width 1 dwarfed all others."""
    random = np.random.default_rng(1)
    amounts = np.where(random.random(600) < 0.4, 0.0, np.round(random.gamma(2, 4, 600), 1))
    lattice = Lattice(0.5, origin=0.05, resolution=0.1, lower=0.0)
    widths = np.diff(histogram_edges([fitted([amounts], lattice)], lattice)[:-1])
    assert widths.min() >= 0.25 * np.median(widths)
