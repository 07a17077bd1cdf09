"""Attacks on the paper's own iteration: moments at many λ, and the loss that no center tells."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.taken_out import anything_goes, exact_numbers
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import Powers, PowersQuestion, Reason, Refusal, decode_answer, encode
from unpooled.center.questions.powers import GRID, NUMBERS
from unpooled.center.records.keys import CenterKey
from unpooled.maths.arrays import FloatArray
from unpooled.maths.quantiles.yeo_johnson import power_moments

PAPER = Policy(ad_hoc="free", paper_iteration=True)


def center(values: FloatArray, policy: Policy) -> Center:
    source = open_source(pl.DataFrame({"v": values}))
    return Center("Haifa", source, policy, CenterKey.from_seed(1, "Haifa"))


def test_no_powers_are_told_by_default() -> None:
    question = encode(PowersQuestion(variable="v", lambdas=(0.0, 1.0)))
    answer = decode_answer(center(np.arange(300.0), Policy(ad_hoc="free")).answer(question).payload)
    assert answer.aggregate is None
    assert [refusal.reason for refusal in answer.refusals] == [Reason.NOT_ALLOWED]


def test_no_center_tells_a_loss() -> None:
    """At p = ½ it bends at each value, so that halving finds all of them: nobody may ask for it."""
    asked = b'{"ask":"loss","variable":"v","points":[1.0],"p":[0.5]}'
    for policy in (PAPER, Policy(ad_hoc="free")):
        answer = decode_answer(center(np.arange(300.0), policy).answer(asked).payload)
        assert answer.aggregate is None
        assert answer.refusals == (Refusal(reason=Reason.UNREADABLE_QUESTION),)


@pytest.mark.parametrize(
    "lambdas",
    [
        (0.0, 0.3),
        (-1.5,),
        (40.0,),  # a huge power is the maximum
        tuple(np.linspace(-1, 2, 70).tolist()),
        (),
    ],
)
def test_powers_beside_the_grid_are_refused(lambdas: tuple[float, ...]) -> None:
    haifa = center(np.arange(300.0), PAPER)
    question = PowersQuestion(variable="v", lambdas=lambdas)
    answer = decode_answer(haifa.answer(encode(question)).payload)
    assert answer.aggregate is None
    assert answer.refusals == (Refusal(reason=Reason.NOT_ALLOWED),)


@pytest.mark.parametrize("lambdas", [GRID[:1], GRID])
def test_powers_of_too_few_people_are_refused(lambdas: tuple[float, ...]) -> None:
    """Two people for each number of the grid, however few of them are named."""
    question = PowersQuestion(variable="v", lambdas=lambdas)
    refused = decode_answer(center(np.arange(29.0), PAPER).answer(encode(question)).payload)
    assert refused.aggregate is None
    assert refused.refusals == (Refusal(reason=Reason.TOO_SMALL, limit=2 * NUMBERS),)
    answer = decode_answer(center(np.arange(30.0), PAPER).answer(encode(question)).payload)
    assert isinstance(answer.aggregate, Powers)


def test_a_huge_power_would_give_the_maximum_away() -> None:
    """Why λ is bounded: the mean of (1 + x)^λ grows as the largest value alone."""
    values = np.random.default_rng(3).gamma(4, 1, 200)
    mean = np.mean((1 + values) ** 200.0)
    assert (len(values) * mean) ** (1 / 200) - 1 == pytest.approx(values.max(), rel=1e-3)


def test_powers_are_told_to_four_digits() -> None:
    values = np.random.default_rng(3).gamma(4, 1, 200)
    question = PowersQuestion(variable="v", lambdas=GRID)
    answer = decode_answer(center(values, PAPER).answer(encode(question)).payload).aggregate
    assert isinstance(answer, Powers)
    (group,) = answer.groups
    exact = power_moments(np.sort(values), GRID)
    rounded = [group.log_sum, *group.means, *group.variances]
    assert list(group.variances) == [float(f"{v:.4g}") for v in exact.variance.tolist()]
    assert rounded == pytest.approx([exact.log_sum, *exact.mean, *exact.variance], rel=1e-2)
    assert not set(rounded) & {exact.log_sum, *exact.mean.tolist(), *exact.variance.tolist()}


def wards() -> pl.DataFrame:
    random = np.random.default_rng(3)
    ward = np.repeat(["a", "b", "c"], [150, 10, 40])
    return pl.DataFrame({"v": random.gamma(2, 8, 200).round(1), "ward": random.permutation(ward)})


def open_wards() -> Center:
    return Center("Haifa", open_source(wards()), PAPER, CenterKey.from_seed(1, "Haifa"))


def power_sums(
    haifa: Center, lambdas: tuple[float, ...] = GRID, **fields: object
) -> FloatArray | None:
    """Sums of logarithms, of the transformed values and of their squares, of all groups."""
    question = PowersQuestion(variable="v", lambdas=lambdas, **fields)  # type: ignore[arg-type]
    answer = decode_answer(haifa.answer(encode(question)).payload).aggregate
    if not isinstance(answer, Powers):
        return None
    total = np.zeros(1 + 2 * len(lambdas))
    for each in answer.groups:
        means, variances = np.array(each.means), np.array(each.variances)
        total += each.n * np.array([each.log_sum / each.n, *means, *(variances + means**2)])
    return total


OTHERS: dict[str, Any] = {"by": "ward", "groups": ("a", "c")}


def numbers_about_ward_b(haifa: Center, *, everybody_first: bool) -> FloatArray | None:
    """Fifteen numbers about ten people, whom the center would not tell seven powers of."""
    asked: list[dict[str, Any]] = [{}, OTHERS] if everybody_first else [OTHERS, {}]
    answer = [power_sums(haifa, **fields) for fields in asked]
    everybody, others = answer if everybody_first else answer[::-1]
    return None if everybody is None or others is None else everybody - others


@pytest.mark.parametrize("everybody_first", [True, False])
def test_a_difference_of_powers_speaks_for_as_many_people_as_powers_need(
    everybody_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact_numbers(monkeypatch)
    assert power_sums(open_wards(), by="ward", groups=("b",)) is None
    assert numbers_about_ward_b(open_wards(), everybody_first=everybody_first) is None
    anything_goes(monkeypatch)
    result = numbers_about_ward_b(open_wards(), everybody_first=everybody_first)
    assert result is not None
    ward_b = np.sort(wards().filter(pl.col("ward") == "b")["v"].to_numpy())
    moments = power_moments(ward_b, GRID)
    assert result[1:8] == pytest.approx(10 * moments.mean)
    assert len(result) > len(ward_b)  # more equations than people


def test_powers_of_a_large_difference_are_told() -> None:
    haifa = open_wards()
    assert power_sums(haifa) is not None
    assert power_sums(haifa, by="ward", groups=("c",)) is not None
    assert power_sums(haifa) is not None


@pytest.mark.parametrize("where", ["ward != 'b'", "ward == 'c'", "v > 3"])
def test_powers_under_a_condition_are_refused(where: str) -> None:
    assert power_sums(open_wards(), where=where) is None


def test_powers_of_the_same_people_are_counted_over_all_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One λ of everybody at a time, then one of the others: each alone is three numbers."""

    def lambdas_answered(haifa: Center) -> int:
        asked = [(power_sums(haifa, (lam,)), power_sums(haifa, (lam,), **OTHERS)) for lam in GRID]
        return sum(everybody is not None and others is not None for everybody, others in asked)

    assert lambdas_answered(open_wards()) == 0
    anything_goes(monkeypatch)
    assert lambdas_answered(open_wards()) == len(GRID)
