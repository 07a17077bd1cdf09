"""Simulations: their seeds, the families they draw from, and the true quantiles."""

import msgspec
import numpy as np
import pytest
from scipy import stats

from unpooled_study.simulations.families import (
    AnyFamily,
    Exponential,
    Gamma,
    Lognormal,
    Mixture,
    Normal,
    Rounded,
    StudentT,
    Uniform,
    Weibull,
    ZeroInflated,
    label,
)
from unpooled_study.simulations.settings import (
    PROBABILITIES,
    QuantileSetting,
    paper_quantiles,
    paper_test,
)
from unpooled_study.simulations.simulation import simulate, true_quantiles

FAMILIES: list[AnyFamily] = [
    Normal(1.0, 2.0),
    Lognormal(0.2, 0.7),
    StudentT(3.0),
    Weibull(0.8, 2.0),
    Exponential(3.0),
    Uniform(-1.0, 4.0),
    Gamma(4.0, 0.5),
    Mixture((Normal(), Normal(4.0, 0.5)), (0.8, 0.2)),
    Rounded(Normal(), 0.5),
    ZeroInflated(Gamma(2.0), 0.3),
]


@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_what_is_drawn_has_the_cdf(family: AnyFamily) -> None:
    drawn = np.sort(family.draw(np.random.default_rng(1), 40_000))
    at = np.unique(np.quantile(drawn, np.linspace(0.01, 0.99, 99)))
    share = np.searchsorted(drawn, at, side="right") / len(drawn)
    assert np.abs(share - family.cdf(at)).max() < 1.63 / np.sqrt(len(drawn))  # 1 % of Kolmogorov


@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_families_survive_being_written_and_read(family: AnyFamily) -> None:
    assert msgspec.json.decode(msgspec.json.encode(family), type=AnyFamily) == family


@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_the_true_quantile_is_where_the_cdf_reaches_p(family: AnyFamily) -> None:
    setting = QuantileSetting((30, 20), ("sample",), family)
    scale, shift = np.array([[1.0, 1.3]]), np.array([[0.0, -0.2]])
    (result,) = true_quantiles(setting, scale, shift)

    def cdf(x: float) -> float:
        parts = (
            family.cdf(np.array([(x - b) / a])) for a, b in zip(scale[0], shift[0], strict=True)
        )
        return float(sum(w * part[0] for w, part in zip((0.6, 0.4), parts, strict=True)))

    for p, x in zip(PROBABILITIES, result, strict=True):
        assert cdf(x + 1e-7) >= p - 1e-12
        assert cdf(x - 1e-7) <= p + 1e-6


def test_one_gamma_center_has_the_quantiles_of_scipy() -> None:
    setting = QuantileSetting((1500,), ("sample",), Gamma(10.0))
    (result,) = true_quantiles(setting, np.ones((1, 1)), np.zeros((1, 1)))
    assert result == pytest.approx(stats.gamma.ppf(PROBABILITIES, 10), rel=1e-10)


def test_a_simulation_does_not_depend_on_those_around_it() -> None:
    for setting in (paper_test(10, (0.05, 0.1, 0.05)), paper_quantiles(4, 3)):
        together = simulate(setting, 5, 0, 6)
        apart = [simulate(setting, 5, start, stop) for start, stop in ((0, 2), (2, 5), (5, 6))]
        assert np.array_equal(together, np.concatenate(apart))


def test_seeds_and_settings_have_streams_of_their_own() -> None:
    settings = [paper_test(3, (0.0, 0.1, 0.0)), paper_test(3, (0.05, 0.1, 0.0))]
    rows = {
        tuple(simulate(s, seed, i, i + 1)[0]) for s in settings for seed in (1, 2) for i in (0, 1)
    }
    assert len(rows) == 8


def test_the_model_is_the_papers() -> None:
    """Variance of the centers' levels and effects, and the effect itself."""
    setting = paper_test(3, (0.5, 2.0, 1.0))
    levels, effects = [], []
    for i in range(400):
        random = np.random.default_rng(i)
        centers = setting.draw(random)
        levels += [x.mean() for x, _ in centers]
        effects += [y.mean() - x.mean() for x, y in centers]
    assert np.std(levels) == pytest.approx(2.0, rel=0.1)
    assert np.mean(effects) == pytest.approx(0.5, abs=0.1)
    assert np.std(effects) == pytest.approx(1.0, rel=0.1)
