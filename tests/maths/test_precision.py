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


def is_multiple(value: float, part: float) -> bool:
    """Whether a float is the one nearest to a whole number of units."""
    exact = Fraction(repr(part))
    return float(round(Fraction(value) / exact) * exact) == value


@settings(max_examples=1000)
@given(magnitudes)
def test_the_unit_is_the_smallest_of_1_2_5_that_is_not_finer_than_the_rule(error: float) -> None:
    part = unit(error)
    assert is_unit(part)
    assert error / PARTS * (1 - 1e-8) <= part <= 2.5 * error / PARTS * (1 + 1e-8)


@pytest.mark.parametrize("power", range(-300, 300, 7))
@pytest.mark.parametrize("digit", [1, 2, 5])
def test_units_at_their_borders_do_not_depend_on_a_last_digit(power: int, digit: int) -> None:
    part = float(f"{digit}e{power}")
    for error in (
        PARTS * part,
        math.nextafter(PARTS * part, 0),
        math.nextafter(PARTS * part, 9e299),
    ):
        assert unit(error) == part
    assert unit(PARTS * part * 1.001) > part


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
    answer = round_mean_sd(MeanSD(n, mean, sd))
    assert is_mean_sd_rounded(n, answer.mean, answer.sd)
    assert round_mean_sd(answer) == answer
    part = unit(answer.sd / math.sqrt(2 * (n - 1)))
    assert is_multiple(answer.sd, part)
    assert abs(answer.sd - sd) <= part
    part = unit(answer.sd / math.sqrt(n))
    assert abs(answer.mean - mean) <= part / 2 + math.ulp(mean)
    assert math.ulp(mean) >= part or is_multiple(answer.mean, part)


@settings(max_examples=500)
@given(people, offsets, magnitudes, st.sampled_from(["mean", "sd"]), st.integers(1, 10**6))
def test_numbers_with_more_digits_do_not_pass(
    n: int, mean: float, sd: float, which: str, parts: int
) -> None:
    answer = round_mean_sd(MeanSD(n, mean, sd))
    errors = {"mean": answer.sd / math.sqrt(n), "sd": answer.sd / math.sqrt(2 * (n - 1))}
    more = getattr(answer, which) + unit(errors[which]) / (parts + 1)
    assume(more != getattr(answer, which))
    assume(math.ulp(more) < unit(errors[which]))
    assert not is_mean_sd_rounded(**{"n": n, "mean": answer.mean, "sd": answer.sd, which: more})


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
    answer = round_mean_sd(MeanSD(30, 1.23456789, 0.0))
    assert answer == MeanSD(30, 1.23456789, 0.0)
    assert is_mean_sd_rounded(30, 1.23456789, 0.0)


@settings(max_examples=500)
@given(people, offsets, magnitudes)
def test_a_mean_without_sd_is_a_multiple_of_the_unit_told_with_it(
    n: int, mean: float, sd: float
) -> None:
    answer, part = round_mean(MeanSD(n, mean, sd))
    assert is_mean_rounded(answer, part)
    assert part >= sd / math.sqrt(n) / PARTS * (1 - 1e-8)
    assert abs(answer - mean) <= part / 2 + math.ulp(mean)


def test_a_mean_of_one_value_has_no_unit() -> None:
    with pytest.raises(ValueError, match="must differ"):
        round_mean(MeanSD(30, 1.0, 0.0))


@settings(max_examples=1000)
@given(magnitudes, st.integers(1, 10_000_000))
def test_a_variance_keeps_the_rule_and_stays_when_rounded_again(variance: float, n: int) -> None:
    answer = round_variance(variance, n)
    assert is_variance_rounded(answer, n)
    part = unit(answer * math.sqrt(2 / n))
    assert is_multiple(answer, part)
    assert abs(answer - variance) <= part
    assert not is_variance_rounded(answer + part / 3, n)


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
def test_ranks_keep_the_rule_and_stay_when_rounded_again(part: RankStatistics) -> None:
    answer = round_ranks(part)
    assert round_ranks(answer) == answer
    assert are_ranks_rounded(
        answer.n_x, answer.n_y, answer.u, answer.variance, answer.effect_variance
    )
    error = max(
        math.sqrt(answer.variance), 2 * part.n_x * part.n_y * math.sqrt(answer.effect_variance)
    )
    if error > 0:
        assert is_multiple(answer.u, unit(error))
        assert abs(answer.u - part.u) <= unit(error)


def test_ranks_of_people_stay_near() -> None:
    random = np.random.default_rng(4)
    part = rank_statistics(np.sort(random.normal(0, 1, 60)), np.sort(random.normal(0.5, 1, 90)))
    answer = round_ranks(part)
    error = math.sqrt(part.variance)
    assert abs(answer.u - part.u) < error / 8
    assert answer.variance == pytest.approx(part.variance, rel=0.02)
    assert answer.effect_variance == pytest.approx(part.effect_variance, rel=0.02)
    assert are_ranks_rounded(60, 90, answer.u, answer.variance, answer.effect_variance)
    assert not are_ranks_rounded(60, 90, answer.u + 1, answer.variance, answer.effect_variance)
    assert not are_ranks_rounded(60, 90, answer.u, part.variance, answer.effect_variance)
    assert not are_ranks_rounded(60, 90, answer.u, answer.variance, part.effect_variance)


def test_groups_that_do_not_overlap_stay_within_all_pairs() -> None:
    part = rank_statistics(np.arange(33.0), np.arange(40.0, 71.0))
    assert (part.u, part.effect_variance) == (33 * 31, 0.0)
    answer = round_ranks(part)
    assert answer.u == 1020.0  # of 1,023 pairs, in units of 10
    assert answer.u == -round_ranks(rank_statistics(np.arange(40.0, 71.0), np.arange(33.0))).u


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
    part = unit(error)
    answer = nearest(value, part)
    assert nearest(answer, part) == answer
    assert abs(answer - value) <= part / 2 + math.ulp(value)
    assert math.copysign(1, answer) == 1 or answer < 0  # no -0.0
