"""The Yeo-Johnson transformation and its fits: SciPy on pooled data, golden cases, invariants."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from unpooled.maths.arrays import FloatArray
from unpooled.maths.quantiles.yeo_johnson import (
    DEFAULT_GRID,
    PowerMoments,
    YeoJohnsonFit,
    are_moments_rounded,
    fit_grid,
    fit_likelihood,
    inverse,
    inverse_or_nan,
    log_likelihood,
    pool,
    power_moments,
    round_moments,
    transform,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "golden.json").read_text("utf-8"))
CASES = [case for case in GOLDEN["cases"] if case["kind"] == "quantiles"]

reals = st.floats(-1e12, 1e12)
lambdas = st.one_of(st.floats(-1, 3), st.sampled_from([0.0, 1.0, 2.0, 1e-12, 2 - 1e-12]))

Draw = Callable[[np.random.Generator], FloatArray]
FAMILIES: dict[str, Draw] = {
    "Gamma 4": lambda random: random.gamma(4, 1, 1500),
    "Gamma 10": lambda random: random.gamma(10, 1, 1500),
    "lognormal .5": lambda random: random.lognormal(0.5, 0.5, 1500),
    "lognormal 1": lambda random: random.lognormal(3, 1, 1500),
    "normal": lambda random: random.normal(0, 1, 1500),
    "normal, far from 0": lambda random: random.normal(3200, 500, 1500),
    "normal, negative": lambda random: random.normal(-50, 10, 1500),
    "counts": lambda random: random.poisson(4, 1500).astype(np.float64),
    "t3": lambda random: random.standard_t(3, 1500),
    "uniform": lambda random: random.uniform(0, 10, 1500),
    "left-skewed": lambda random: 10 - random.gamma(4, 1, 1500),
}


def centers_of(x: FloatArray, digits: int | None = None) -> Callable[[FloatArray], PowerMoments]:
    """A round over five centers of unequal size."""
    parts = np.split(x, [len(x) // 10, len(x) // 4, len(x) // 2, 4 * len(x) // 5])

    def evaluate(asked: FloatArray) -> PowerMoments:
        answer = [power_moments(part, asked) for part in parts]
        return pool([round_moments(one, digits) for one in answer] if digits else answer)

    return evaluate


def standard_error(x: FloatArray, lam: float) -> float:
    left, middle, right = (stats.yeojohnson_llf(lam + k, x).item() for k in (-1e-3, 0, 1e-3))
    return float(1e-3 / np.sqrt(2 * middle - left - right))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), lambdas)
def test_the_transform_is_scipys(x: list[float], lam: float) -> None:
    theirs = [stats.yeojohnson(np.array([value, value]), lam)[0] for value in x]
    assert transform(x, lam) == pytest.approx(theirs, rel=1e-9)


@given(reals, st.floats(0, 2))
def test_the_inverse_undoes_the_transform(x: float, lam: float) -> None:
    assert inverse(transform(x, lam), lam) == pytest.approx(x, rel=1e-9)


@given(st.floats(-1e3, 1e3), st.floats(-1, 3))
def test_the_inverse_undoes_the_transform_where_its_range_ends(x: float, lam: float) -> None:
    """Outside [0, 2] h_λ flattens out, and digits of x are lost in it."""
    lost = (1 + abs(x)) ** max(0.0, -lam if x >= 0 else lam - 2)
    assert inverse(transform(x, lam), lam) == pytest.approx(x, rel=1e-9 + 1e-14 * lost, abs=1e-14)


@given(reals, reals, lambdas)
def test_the_transform_increases_with_x(x: float, y: float, lam: float) -> None:
    low, high = transform(sorted([x, y]), lam)
    assert low <= high


@given(reals, lambdas)
def test_mirroring_x_mirrors_lambda_about_one(x: float, lam: float) -> None:
    assert transform(-x, lam) == pytest.approx(-transform(x, 2 - lam), rel=1e-9)


@given(st.floats(0, 1e6), st.sampled_from([1e-3, 1e-8, 1e-14, 1e-300]))
def test_the_transform_is_continuous_at_zero_and_two(x: float, near: float) -> None:
    """The first-order term is e log²(1+x) / 2: nothing is lost on the way to the limit."""
    log = np.log1p(x)
    for lam in (near, -near):
        expected = log + lam * log**2 / 2
        assert transform(x, lam) == pytest.approx(expected, rel=1e-15 + 60 * near**2)
    assert transform(-x, 2.0) == -log
    assert transform(-x, 2 - 1e-14) == pytest.approx(-log, rel=1e-12)


def test_integers_are_not_truncated() -> None:
    assert transform(np.array([3, 4]), 0.5) == pytest.approx([2.0, 2 * (5**0.5 - 1)])


@pytest.mark.parametrize(
    ("z", "lam", "range_text"),
    [(1.0, -1.0, r"\(-inf, 1\)"), (-0.6, 4.0, r"\(-0.5, inf\)"), (800.0, 0.0, r"\(-inf, inf\)")],
)
def test_no_inverse_out_of_range(z: float, lam: float, range_text: str) -> None:
    with pytest.raises(ValueError, match=f"z must lie in {range_text}.*got {z:g}"):
        inverse([0.0, z], lam)
    assert np.isnan(inverse_or_nan([0.0, z], lam)).tolist() == [False, True]


def test_what_is_not_finite_is_an_error() -> None:
    with pytest.raises(ValueError, match="x must be finite"):
        transform([1.0, np.nan], 1.0)
    with pytest.raises(ValueError, match="lam must be finite"):
        transform([1.0], np.inf)
    with pytest.raises(ValueError, match="transform of x must be finite"):
        transform([1e200], 2.0)


@given(st.lists(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=9), min_size=1, max_size=5))
def test_pooled_moments_are_those_of_all_people(centers: list[list[float]]) -> None:
    pooled = pool([power_moments(center, DEFAULT_GRID) for center in centers])
    all_people = power_moments(np.concatenate(centers), DEFAULT_GRID)
    assert pooled.n == all_people.n
    assert pooled.log_sum == pytest.approx(all_people.log_sum, abs=1e-9)
    assert pooled.mean == pytest.approx(all_people.mean, rel=1e-9, abs=1e-9)
    rounding = 1e-9 * all_people.variance + 1e-12 * (1 + all_people.mean**2)
    assert np.all(np.abs(pooled.variance - all_people.variance) <= rounding)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_log_likelihood_is_scipys(family: str) -> None:
    x = FAMILIES[family](np.random.default_rng(2))
    ours = log_likelihood(centers_of(x)(DEFAULT_GRID))
    assert ours == pytest.approx([stats.yeojohnson_llf(lam, x).item() for lam in DEFAULT_GRID])


def test_moments_that_cannot_be() -> None:
    good = power_moments([1, 2, 5], [0.0, 1.0])
    with pytest.raises(ValueError, match="all at the same λ"):
        pool([good, power_moments([1, 2], [0.0, 2.0])])
    with pytest.raises(ValueError, match="one or more centers"):
        pool([])
    with pytest.raises(ValueError, match="at least one value"):
        power_moments([], [1.0])
    with pytest.raises(ValueError, match="variance ≥ 0"):
        PowerMoments(3, 0.0, good.lambdas, good.mean, -good.variance)
    with pytest.raises(ValueError, match="equally long"):
        PowerMoments(3, 0.0, good.lambdas, good.mean[:1], good.variance)
    with pytest.raises(ValueError, match="must differ"):
        fit_grid(power_moments([3.0, 3.0, 3.0], DEFAULT_GRID))
    with pytest.raises(ValueError, match="read-only"):
        good.mean[0] = 1.0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_iterative_fit_is_scipys_in_three_rounds(family: str, seed: int) -> None:
    x = FAMILIES[family](np.random.default_rng(seed))
    z, lam = stats.yeojohnson(x)
    asked: list[FloatArray] = []

    def evaluate(lambdas: FloatArray) -> PowerMoments:
        asked.append(lambdas)
        return centers_of(x)(lambdas)

    fit = fit_likelihood(evaluate)
    assert fit.lam == pytest.approx(np.clip(lam, -1, 2), abs=1e-6)
    assert fit.at_bound == (not -1 < lam < 2)
    assert fit.rounds == len(asked) == 3
    assert [len(lambdas) for lambdas in asked] == [7, 3, 1]
    assert -1 <= np.concatenate(asked).min() <= np.concatenate(asked).max() <= 2
    if not fit.at_bound:
        assert (fit.mean, fit.sd) == pytest.approx((z.mean(), z.std()), rel=1e-5)
    assert (fit.raw_mean, fit.raw_sd) == pytest.approx((x.mean(), x.std()), rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_pass_is_within_a_hundredth_of_a_standard_error(family: str, seed: int) -> None:
    x = FAMILIES[family](np.random.default_rng(seed))
    lam = float(np.clip(stats.yeojohnson(x)[1], -1, 2))
    fit = fit_grid(centers_of(x)(DEFAULT_GRID))
    assert abs(fit.lam - lam) < 0.01 * standard_error(x, lam)
    z = transform(x, fit.lam)
    assert (fit.mean, fit.sd) == pytest.approx((z.mean(), z.std()), rel=1e-4)
    best = fit_grid(centers_of(x)(DEFAULT_GRID), refine=False)
    assert best.rounds == 1
    assert best.lam == max(DEFAULT_GRID, key=lambda value: stats.yeojohnson_llf(value, x).item())
    assert best.mean == pytest.approx(transform(x, best.lam).mean(), rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_five_digits_cost_little(family: str, seed: int) -> None:
    x = FAMILIES[family](np.random.default_rng(seed))
    lam = float(np.clip(stats.yeojohnson(x)[1], -1, 2))
    allowed = 0.05 * standard_error(x, lam)
    assert abs(fit_grid(centers_of(x, digits=5)(DEFAULT_GRID)).lam - lam) < allowed
    assert abs(fit_likelihood(centers_of(x, digits=5)).lam - lam) < allowed


@settings(max_examples=300)
@given(
    st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30),
    st.sampled_from([1e-6, 1.0, 1e6]),
    st.integers(3, 6),
)
def test_rounded_moments_stay_when_rounded_again(
    values: list[float], scale: float, digits: int
) -> None:
    answer = round_moments(power_moments(scale * np.array(values), DEFAULT_GRID), digits)
    assert are_moments_rounded(answer, digits)
    finer = replace(answer, log_sum=answer.log_sum + answer.n * 10.0 ** -(digits + 1))
    assert not are_moments_rounded(finer, digits)


def test_rounding_to_significant_digits_is_found_out() -> None:
    """Platelet counts: all means at λ = −1 are 1.0000, and the quantiles would be off by SDs."""
    x = np.random.default_rng(5).normal(250_000, 60_000, 1500)

    def short(m: PowerMoments) -> PowerMoments:
        mean = np.array([float(f"{value:.5g}") for value in m.mean])
        return PowerMoments(m.n, m.log_sum, m.lambdas, mean, m.variance)

    parts = [short(power_moments(part, DEFAULT_GRID)) for part in np.split(x, 5)]
    with pytest.raises(ValueError, match=r"contradiction. Hint: round_moments"):
        fit_grid(pool(parts))
    exact, rounded = (fit_grid(centers_of(x, digits)(DEFAULT_GRID)) for digits in (None, 5))
    assert rounded.quantile([0.02, 0.98]) == pytest.approx(exact.quantile([0.02, 0.98]), rel=1e-4)


odd = st.one_of(st.integers(-3, 9).map(float), st.floats(-1e4, 1e4))


@settings(max_examples=60)
@given(st.lists(odd, min_size=2, max_size=40))
@example([-1e6] * 29 + [1e6])
def test_no_sample_is_too_odd_for_the_fits(values: list[float]) -> None:
    x = np.array(values)
    if np.ptp(x) < 1e-3:
        return

    def loss(lam: float) -> float:
        return -float(log_likelihood(power_moments(x, [lam]))[0])

    result = optimize.minimize_scalar(loss, bounds=(-1, 2), method="bounded")
    best = min(result.fun, loss(-1.0), loss(2.0))
    fit = fit_likelihood(lambda asked: power_moments(x, asked))
    assert loss(fit.lam) <= best + 1e-4
    assert loss(fit_grid(power_moments(x, DEFAULT_GRID)).lam) <= best + 0.05


@pytest.mark.parametrize("seed", range(6))
def test_a_flat_likelihood_is_not_searched_too_closely(seed: int) -> None:
    x = np.random.default_rng(seed).exponential(1e-5, 1000)
    assert fit_likelihood(centers_of(x)).lam == fit_grid(centers_of(x)(DEFAULT_GRID)).lam == -1


def test_a_bound_is_flagged_and_bounds_can_be_moved() -> None:
    x = 42 - np.random.default_rng(6).gamma(1.5, 2, 800)
    for fit in (fit_likelihood(centers_of(x)), fit_grid(centers_of(x)(DEFAULT_GRID))):
        assert (fit.lam, fit.at_bound) == (2.0, True)
    wide = fit_likelihood(centers_of(x), bounds=(-1.0, 12.0))
    assert wide.lam == pytest.approx(stats.yeojohnson(x)[1], abs=1e-6)
    assert not wide.at_bound
    with pytest.raises(ValueError, match="bounds must be two increasing"):
        fit_likelihood(centers_of(x), bounds=(1.0, 1.0))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_golden_quantiles(case: dict[str, Any]) -> None:
    centers, reference = case["inputs"]["centers"], case["reference"]
    fit = fit_likelihood(lambda asked: pool([power_moments(c, asked) for c in centers]))
    assert fit.lam == pytest.approx(reference["yj_data_lambda"], rel=1e-4)
    assert fit.mean == pytest.approx(reference["yj_data_mu"], rel=1e-3)
    assert fit.sd == pytest.approx(reference["yj_data_sd"], rel=1e-3)
    quantiles = fit.quantile(case["inputs"]["q"])
    assert quantiles == pytest.approx(reference["normal_quantile"], rel=1e-4)
    grid = fit_grid(pool([power_moments(c, DEFAULT_GRID) for c in centers]))
    assert grid.quantile(case["inputs"]["q"]) == pytest.approx(quantiles, rel=1e-4)


@given(st.lists(st.floats(0.001, 0.999), min_size=2, max_size=9))
def test_quantiles_rise_with_p(p: list[float]) -> None:
    fit = YeoJohnsonFit(0.3, 1.5, 0.5, 2.0, 1.2, 1, at_bound=False)
    assert np.all(np.diff(fit.quantile(sorted(p))) >= 0)


def test_a_quantile_out_of_range_is_nan() -> None:
    beyond = YeoJohnsonFit(-1.0, 0.8, 0.15, 9.0, 30.0, 1, at_bound=True)
    assert np.isnan(beyond.quantile([0.5, 0.98])).tolist() == [False, True]


def test_a_quantile_that_cantelli_rules_out_is_nan() -> None:
    """λ = 2 and values 0 or 10: mean − 2.05 sd is −31.5 there, and its inverse −5e13."""
    x = np.repeat([0.0, 10.0], [750, 750])
    z = transform(x, 2.0)
    fit = YeoJohnsonFit(2.0, z.mean(), z.std(), x.mean(), x.std(), 1, at_bound=True)
    assert inverse(fit.mean - 2.05 * fit.sd, 2.0) < -1e13
    assert np.isnan(fit.quantile([0.02, 0.5])).tolist() == [True, False]
