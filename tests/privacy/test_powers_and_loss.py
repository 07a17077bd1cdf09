"""Attacks on what quantile methods release: the loss recovers values, moments must not."""

import msgspec
import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.keys import CenterKey
from unpooled.center.memory import proposal
from unpooled.center.policy import Policy
from unpooled.data.sources import open_source
from unpooled.maths.arrays import FloatArray
from unpooled.maths.yeo_johnson import power_moments
from unpooled.questions import (
    Losses,
    LossQuestion,
    Powers,
    PowersQuestion,
    Reason,
    decode_answer,
    encode,
)


def center(values: FloatArray, policy: Policy) -> Center:
    source = open_source(pl.DataFrame({"v": values}))
    return Center("Haifa", source, policy, CenterKey.from_seed(1, "Haifa"))


def recovered(haifa: Center, low: float, high: float) -> list[float]:
    """Every value of a center: the loss at p = ½ bends at each, so halve until it is found."""

    def below(points: list[float]) -> list[float]:
        question = LossQuestion(variable="v", points=tuple(points), p=(0.5,) * len(points))
        aggregate = decode_answer(haifa.answer(encode(question)).payload).aggregate
        if not isinstance(aggregate, Losses):
            return []
        return list(aggregate.groups[0].at_most)

    found: list[float] = []
    ranges = [(low, high)]
    while ranges:
        middles = [(a + b) / 2 for a, b in ranges]
        counts = below([p for a, b in ranges for p in (a, (a + b) / 2, b)])
        if not counts:
            return []
        halves = []
        for i, ((a, b), middle) in enumerate(zip(ranges, middles, strict=True)):
            left, mid, right = counts[3 * i : 3 * i + 3]
            for lo, hi, people in ((a, middle, mid - left), (middle, b, right - mid)):
                if people and hi - lo < 1e-9:
                    found += [(lo + hi) / 2] * int(people)
                elif people:
                    halves.append((lo, hi))
        ranges = halves
    return sorted(found)


def test_the_loss_recovers_every_value_where_it_is_on_and_nothing_where_it_is_off() -> None:
    values = np.sort(np.random.default_rng(3).gamma(4, 1, 30))
    assert recovered(center(values, Policy()), 0, 40) == []
    got_out = recovered(center(values, Policy(quantile_loss=True)), 0, 40)
    assert got_out == pytest.approx(values.tolist(), abs=1e-8)


@pytest.mark.parametrize(
    ("lambdas", "reason"),
    [
        ((0.0,) * 8, Reason.NOT_ALLOWED),
        ((-1.5,), Reason.NOT_ALLOWED),
        ((40.0,), Reason.NOT_ALLOWED),  # a huge power is the maximum
        (tuple(np.linspace(-1, 2, 7).tolist()), Reason.TOO_MANY_POWERS),
    ],
)
def test_powers_that_would_isolate_people_are_refused(
    lambdas: tuple[float, ...], reason: Reason
) -> None:
    haifa = center(np.arange(29.0), Policy())
    question = PowersQuestion(variable="v", lambdas=lambdas)
    answer = decode_answer(haifa.answer(encode(question)).payload)
    assert answer.aggregate is None
    assert [refusal.reason for refusal in answer.refusals] == [reason]


def test_a_huge_power_would_give_the_maximum_away() -> None:
    """Why λ is bounded: the mean of (1 + x)^λ grows as the largest value alone."""
    values = np.random.default_rng(3).gamma(4, 1, 200)
    mean = np.mean((1 + values) ** 200.0)
    assert (len(values) * mean) ** (1 / 200) - 1 == pytest.approx(values.max(), rel=1e-3)


@pytest.mark.parametrize(("policy", "asked"), [(3, None), (3, 5), (5, 3)])
def test_powers_are_rounded_to_the_digits_of_the_policy_or_fewer(
    policy: int, asked: int | None
) -> None:
    """A question may ask for fewer digits, never for more."""
    values = np.random.default_rng(3).gamma(4, 1, 200)
    question = PowersQuestion(variable="v", lambdas=(0.3, 1.0), digits=asked)

    def told(digits: int | None) -> tuple[list[float], list[float]]:
        haifa = center(values, Policy(power_digits=digits))
        exact = msgspec.structs.replace(question, digits=asked if digits else None)
        said = decode_answer(haifa.answer(encode(exact)).payload).aggregate
        assert isinstance(said, Powers)
        (group,) = said.groups
        return [group.log_sum, *group.means], list(group.variances)

    (rounded, variances), (exact, exact_variances) = told(policy), told(None)
    assert variances == [float(f"{variance:.3g}") for variance in exact_variances]
    assert rounded == pytest.approx(exact, rel=1e-2)
    assert not set(rounded) & set(exact)


LAMBDAS = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)


def wards() -> pl.DataFrame:
    random = np.random.default_rng(3)
    ward = np.repeat(["a", "b", "c"], [150, 10, 40])
    return pl.DataFrame({"v": random.gamma(2, 8, 200).round(1), "ward": random.permutation(ward)})


def open_wards() -> Center:
    return Center("Haifa", open_source(wards()), Policy(), CenterKey.from_seed(1, "Haifa"))


def power_sums(haifa: Center, lambdas: tuple[float, ...], **fields: str) -> FloatArray | None:
    """Sums of logarithms, of the transformed values and of their squares."""
    question = PowersQuestion(variable="v", lambdas=lambdas, **fields)  # type: ignore[arg-type]
    said = decode_answer(haifa.answer(encode(question)).payload).aggregate
    if not isinstance(said, Powers):
        return None
    (told,) = said.groups
    means, variances = np.array(told.means), np.array(told.variances)
    return told.n * np.array([told.log_sum / told.n, *means, *(variances + means**2)])


def numbers_about_ward_b(haifa: Center) -> FloatArray | None:
    """Fifteen numbers about ten people, whom the center would not tell seven powers of."""
    everybody = power_sums(haifa, LAMBDAS)
    others = power_sums(haifa, LAMBDAS, where="ward != 'b'")
    return None if everybody is None or others is None else everybody - others


def test_a_difference_of_powers_speaks_for_as_many_people_as_powers_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert power_sums(open_wards(), LAMBDAS, where="ward == 'b'") is None
    assert numbers_about_ward_b(open_wards()) is None
    monkeypatch.setattr(proposal, "check_powers", lambda *_: None)
    found = numbers_about_ward_b(open_wards())
    assert found is not None
    ward_b = np.sort(wards().filter(pl.col("ward") == "b")["v"].to_numpy())
    moments = power_moments(ward_b, LAMBDAS)
    assert found[1:8] == pytest.approx(10 * moments.mean)
    assert len(found) > len(ward_b)  # more equations than people


def test_powers_of_a_large_difference_are_told() -> None:
    haifa = open_wards()
    assert power_sums(haifa, LAMBDAS) is not None
    assert power_sums(haifa, LAMBDAS, where="ward != 'c'") is not None
    assert power_sums(haifa, LAMBDAS, where="ward != 'c'") is not None


def test_powers_of_the_same_people_are_counted_over_all_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Forty people are enough for 7 λ at a time: without the rule, for any number of them."""

    def told(haifa: Center) -> int:
        answers = [
            power_sums(haifa, tuple(np.linspace(low, low + 0.1, 7).tolist()), where="ward == 'c'")
            for low in np.arange(-1, 1.5, 0.5)
        ]
        return sum(len(numbers) for numbers in answers if numbers is not None)

    assert told(open_wards()) == 15
    monkeypatch.setattr(proposal, "check_powers", lambda *_: None)
    assert told(open_wards()) > 40
