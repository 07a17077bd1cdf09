"""No number leaves more precisely than 1/20 of its own standard error."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from unpooled.maths.moments import MeanSD
from unpooled.maths.precision import (
    PARTS,
    are_ranks_rounded,
    is_mean_rounded,
    is_mean_sd_rounded,
    is_unit,
    is_variance_rounded,
    nearest,
    round_mean,
    round_mean_sd,
    round_ranks,
    round_variance,
    unit,
)
from unpooled.maths.ranks.mann_whitney import RankStatistics, rank_statistics

magnitudes = st.builds(
    lambda digits, power: digits * 10.0**power, st.floats(1, 10), st.integers(-12, 12)
)
people = st.one_of(st.integers(3, 400), st.integers(3, 10_000_000))
offsets = st.one_of(st.just(0.0), st.floats(-1e9, 1e9), magnitudes)


def is_multiple(value: float, own: float) -> bool:
    """Whether a float is the one nearest to a whole number of units."""
    exact = Fraction(repr(own))
    return float(round(Fraction(value) / exact) * exact) == value


@settings(max_examples=1000)
@given(magnitudes)
def test_the_unit_is_the_smallest_of_1_2_5_that_is_not_finer_than_the_rule(error: float) -> None:
    own = unit(error)
    assert is_unit(own)
    assert error / PARTS * (1 - 1e-8) <= own <= 2.5 * error / PARTS * (1 + 1e-8)


@pytest.mark.parametrize("power", range(-300, 300, 7))
@pytest.mark.parametrize("digit", [1, 2, 5])
def test_units_at_their_borders_do_not_depend_on_a_last_digit(power: int, digit: int) -> None:
    own = float(f"{digit}e{power}")
    for error in (PARTS * own, math.nextafter(PARTS * own, 0), math.nextafter(PARTS * own, 9e299)):
        assert unit(error) == own
    assert unit(PARTS * own * 1.001) > own


@pytest.mark.parametrize("error", [0.0, -1.0, math.inf, math.nan])
def test_a_number_without_an_error_has_no_unit(error: float) -> None:
    with pytest.raises(ValueError, match="must be positive and finite"):
        unit(error)


@pytest.mark.parametrize("number", [0.0, -0.1, 0.3, 1.5, 12.0, 0.1 + 1e-16, math.inf, math.nan])
def test_other_numbers_are_no_units(number: float) -> None:
    assert not is_unit(number)


@settings(max_examples=1000)
@given(people, offsets, magnitudes)
@example(300, 1e9, 1e-9)
@example(3, -1e9, 1e-12)
def test_mean_and_sd_keep_the_rule_and_stay_when_rounded_again(
    n: int, mean: float, sd: float
) -> None:
    told = round_mean_sd(MeanSD(n, mean, sd))
    assert is_mean_sd_rounded(n, told.mean, told.sd)
    assert round_mean_sd(told) == told
    own = unit(told.sd / math.sqrt(2 * (n - 1)))
    assert is_multiple(told.sd, own)
    assert abs(told.sd - sd) <= own
    own = unit(told.sd / math.sqrt(n))
    assert abs(told.mean - mean) <= own / 2 + math.ulp(mean)
    assert math.ulp(mean) >= own or is_multiple(told.mean, own)


@settings(max_examples=500)
@given(people, offsets, magnitudes, st.sampled_from(["mean", "sd"]), st.integers(1, 10**6))
def test_numbers_with_more_digits_do_not_pass(
    n: int, mean: float, sd: float, which: str, parts: int
) -> None:
    told = round_mean_sd(MeanSD(n, mean, sd))
    errors = {"mean": told.sd / math.sqrt(n), "sd": told.sd / math.sqrt(2 * (n - 1))}
    more = getattr(told, which) + unit(errors[which]) / (parts + 1)
    assume(more != getattr(told, which))
    assume(math.ulp(more) < unit(errors[which]))
    assert not is_mean_sd_rounded(**{"n": n, "mean": told.mean, "sd": told.sd, which: more})


@pytest.mark.parametrize(
    ("n", "mean", "sd"),
    [
        (1, 2.0, 0.0),
        (300, math.nan, 1.0),
        (300, 1.0, math.inf),
        (300, 0.0, -1.0),
        (300, -0.0, 2.0),
        (300, 0.0, 1e300),
        (300, 0.0, 5e-324),
    ],
)
def test_what_is_no_mean_and_sd_does_not_pass(n: int, mean: float, sd: float) -> None:
    assert not is_mean_sd_rounded(n, mean, sd)


def test_one_value_that_all_share_is_told_as_it_is() -> None:
    told = round_mean_sd(MeanSD(30, 1.23456789, 0.0))
    assert told == MeanSD(30, 1.23456789, 0.0)
    assert is_mean_sd_rounded(30, 1.23456789, 0.0)


@settings(max_examples=500)
@given(people, offsets, magnitudes)
def test_a_mean_without_sd_is_a_multiple_of_the_unit_told_with_it(
    n: int, mean: float, sd: float
) -> None:
    told, own = round_mean(MeanSD(n, mean, sd))
    assert is_mean_rounded(told, own)
    assert own >= sd / math.sqrt(n) / PARTS * (1 - 1e-8)
    assert abs(told - mean) <= own / 2 + math.ulp(mean)


def test_a_mean_of_one_value_has_no_unit() -> None:
    with pytest.raises(ValueError, match="must differ"):
        round_mean(MeanSD(30, 1.0, 0.0))


@settings(max_examples=1000)
@given(magnitudes, st.integers(1, 10_000_000))
def test_a_variance_keeps_the_rule_and_stays_when_rounded_again(variance: float, n: int) -> None:
    told = round_variance(variance, n)
    assert is_variance_rounded(told, n)
    own = unit(told * math.sqrt(2 / n))
    assert is_multiple(told, own)
    assert abs(told - variance) <= own
    assert not is_variance_rounded(told + own / 3, n)


@st.composite
def ranks(draw: st.DrawFn) -> RankStatistics:
    """Any ranks, also such as no people have."""
    n_x, n_y = draw(people), draw(people)
    share = draw(st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 0.0, 1.0])))
    null = n_x * n_y * (n_x + n_y + 1) / 3
    part = st.one_of(st.floats(1e-6, 1), st.just(0.0))
    u = min(max(share * (n_x * n_y), -n_x * n_y), n_x * n_y)
    return RankStatistics(n_x, n_y, u, null * draw(part), 0.25 / min(n_x, n_y) * draw(part))


@settings(max_examples=1000)
@given(ranks())
def test_ranks_keep_the_rule_and_stay_when_rounded_again(own: RankStatistics) -> None:
    told = round_ranks(own)
    assert round_ranks(told) == told
    assert are_ranks_rounded(told.n_x, told.n_y, told.u, told.variance, told.effect_variance)
    error = max(math.sqrt(told.variance), 2 * own.n_x * own.n_y * math.sqrt(told.effect_variance))
    if error > 0:
        assert is_multiple(told.u, unit(error))
        assert abs(told.u - own.u) <= unit(error)


def test_ranks_of_people_stay_near() -> None:
    random = np.random.default_rng(4)
    own = rank_statistics(np.sort(random.normal(0, 1, 60)), np.sort(random.normal(0.5, 1, 90)))
    told = round_ranks(own)
    error = math.sqrt(own.variance)
    assert abs(told.u - own.u) < error / 8
    assert told.variance == pytest.approx(own.variance, rel=0.02)
    assert told.effect_variance == pytest.approx(own.effect_variance, rel=0.02)
    assert are_ranks_rounded(60, 90, told.u, told.variance, told.effect_variance)
    assert not are_ranks_rounded(60, 90, told.u + 1, told.variance, told.effect_variance)
    assert not are_ranks_rounded(60, 90, told.u, own.variance, told.effect_variance)
    assert not are_ranks_rounded(60, 90, told.u, told.variance, own.effect_variance)


def test_groups_that_do_not_overlap_stay_within_all_pairs() -> None:
    own = rank_statistics(np.arange(33.0), np.arange(40.0, 71.0))
    assert (own.u, own.effect_variance) == (33 * 31, 0.0)
    told = round_ranks(own)
    assert told.u == 1020.0  # of 1,023 pairs, in units of 10
    assert told.u == -round_ranks(rank_statistics(np.arange(40.0, 71.0), np.arange(33.0))).u


def test_where_all_are_tied_nothing_else_may_be_told() -> None:
    assert are_ranks_rounded(30, 30, 0.0, 0.0, 0.0)
    assert not are_ranks_rounded(30, 30, 7.0, 0.0, 0.0)


def test_ranks_that_cannot_be_do_not_pass() -> None:
    assert not are_ranks_rounded(30, 30, 901.0, 18000.0, 0.005)
    assert not are_ranks_rounded(30, 30, math.nan, 18000.0, 0.005)
    assert not are_ranks_rounded(30, 30, 0.0, math.inf, 0.005)


@settings(max_examples=500)
@given(offsets, magnitudes)
def test_the_nearest_multiple_is_near_and_stays(value: float, error: float) -> None:
    own = unit(error)
    told = nearest(value, own)
    assert nearest(told, own) == told
    assert abs(told - value) <= own / 2 + math.ulp(value)
    assert math.copysign(1, told) == 1 or told < 0  # no -0.0
