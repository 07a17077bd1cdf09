"""Few different values: means, SDs and ranks would be counts of single people."""

import json

import numpy as np
import polars as pl
import pytest

from tests.privacy.taken_out import anything_goes
from tests.privacy.test_composition import open_center
from unpooled import Federation
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Answer,
    LatticeQuestion,
    MomentsQuestion,
    PowersQuestion,
    Question,
    Ranks,
    RanksQuestion,
    Reason,
    Refusal,
    SizesQuestion,
    decode_answer,
    encode,
)
from unpooled.maths.moments import MeanSD
from unpooled.maths.precision import round_mean_sd, round_ranks
from unpooled.maths.ranks.mann_whitney import RankStatistics, rank_statistics
from unpooled.results.numbers.describe import CenterDescription


def described(values: object) -> CenterDescription:
    (center,) = Federation.local({"A": pl.DataFrame({"v": values})}).describe("v").centers
    return center


def test_the_mean_of_two_values_is_a_count_and_is_withheld() -> None:
    """Ten people, one of them with a 1: the mean .1 says so."""
    people = {
        "few": pl.DataFrame({"v": [0.0] * 9 + [1.0]}),
        "many": pl.DataFrame({"v": [0.0] * 40 + [1.0] * 40}),
    }
    assert np.mean(people["few"]["v"].to_numpy()) * 10 == pytest.approx(1)  # the attack
    result = Federation.local(people).describe("v")
    answer = {c.center: (c.mean, c.sd) for c in result.centers}
    assert answer["few"] == (None, None)
    assert answer["many"][0] == 0.5  # both values belong to many: nothing to hide
    assert result.groups[0].mean == 0.5  # over many alone: the mean of both would give that of few


def splits_of_three(answer: CenterDescription) -> list[tuple[int, int, int]]:
    """The attack: how many of twelve people have a 0, a 1, a 2, as a mean and an SD allow."""
    result = []
    for a in range(13):
        for b in range(13 - a):
            part = MeanSD.of(np.repeat([0.0, 1.0, 2.0], [a, b, 12 - a - b]))
            if answer.mean is None or answer.sd is None or round_mean_sd(part) == told_as(answer):
                result.append((a, b, 12 - a - b))
    return result


def told_as(answer: CenterDescription) -> MeanSD:
    assert answer.mean is not None
    assert answer.sd is not None
    return MeanSD(answer.n, answer.mean, answer.sd)


def test_mean_and_sd_of_three_values_decode_the_people(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.repeat([0.0, 1.0, 2.0], [5, 4, 3])
    assert len(splits_of_three(described(values))) == 91  # whatever they are
    anything_goes(monkeypatch)
    assert splits_of_three(described(values)) == [(5, 4, 3)]


def test_ranks_of_two_values_decode_the_people_and_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = np.repeat([0.0, 1.0], [9, 3]), np.repeat([0.0, 1.0], [4, 8])
    rows = pl.DataFrame({"v": np.concatenate([x, y]), "g": ["x"] * 12 + ["y"] * 12})

    def attack() -> list[tuple[int, int]]:
        """How many ones there are in each group, as far as ranks tell."""
        answer = ranks_told(rows)
        return [
            (a, b)
            for a in range(13)
            for b in range(13)
            if answer is None
            or round_ranks(
                rank_statistics(
                    np.repeat([0.0, 1.0], [12 - a, a]), np.repeat([0.0, 1.0], [12 - b, b]), k=10
                )
            )
            == answer
        ]

    assert len(attack()) == 169
    fed = Federation.local({"A": rows})
    result = fed.compare("v", by="g", method="all")
    assert ("A", "few-values") in {(r.center, r.reason) for r in result.refusals}
    anything_goes(monkeypatch)
    assert (3, 8) in attack()
    assert len(attack()) <= 4  # up to swapping the two values


def ranks_told(rows: pl.DataFrame) -> RankStatistics | None:
    question = RanksQuestion(variable="v", by="g", groups=("x", "y"))
    aggregate = decode_answer(open_center(rows).answer(encode(question)).payload)
    if aggregate.aggregate is None:
        assert aggregate.refusals == (Refusal(reason=Reason.FEW_VALUES),)
        return None
    answer = aggregate.aggregate
    assert isinstance(answer, Ranks)
    return RankStatistics(answer.n_x, answer.n_y, answer.u, answer.variance, answer.effect_variance)


def test_a_sum_never_speaks_for_two_people_among_many_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """990 people have a 0: n times the mean is the sum of the others.

    Rounded to 1/20 of its standard error it still says how many of five there are.
    """
    for others in ([5.0, 7.0], [5.0, 5.0, 6.0, 7.0, 7.0]):
        values = np.array([0.0] * 990 + others)
        answer = described(values)
        assert (answer.mean, answer.sd) == (None, None)
        with monkeypatch.context() as patched:
            anything_goes(patched)
            free = described(values)
            if len(others) > 2:
                assert free.mean is not None
                assert free.n * free.mean == pytest.approx(sum(others), rel=0.05)


SEVEN = [3.2, 8.8, 12.4, 17.5, 29.9, 44.1, 61.0]


@pytest.mark.parametrize("others", [SEVEN, list(np.linspace(3, 60, 29))])
def test_powers_never_speak_for_a_few_people_among_many_alike(others: list[float]) -> None:
    """Fifteen numbers would be enough to solve for seven people among 200 zeros.

    Two people for each number are too many to solve for: of 29 they are refused, of 30 told.
    """

    def asked(others: list[float]) -> Answer:
        rows = pl.DataFrame({"v": [0.0] * 200 + others})
        question = PowersQuestion(variable="v", lambdas=(0.0, 1.0))
        payload = open_center(rows, Policy(paper_iteration=True)).answer(encode(question)).payload
        return decode_answer(payload)

    assert asked(others).aggregate is None
    assert asked(others).refusals == (Refusal(reason=Reason.FEW_VALUES),)
    assert asked(list(np.linspace(3, 60, 30))).aggregate is not None


def test_ranks_never_decode_one_group_with_the_help_of_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """x spreads over ten values and y over two: U gives the split of y."""
    x, y = np.repeat(np.arange(10.0), 12), np.repeat([0.0, 1.0], [37, 3])
    rows = pl.DataFrame({"v": [*x, *y], "g": ["x"] * 120 + ["y"] * 40})

    def attack() -> list[int]:
        """How many of the 40 have a 1, as far as ranks tell."""
        answer, computed = ranks_told(rows), []
        for ones in range(41):
            part = np.repeat([0.0, 1.0], [40 - ones, ones])
            if answer is None or round_ranks(rank_statistics(x, part, k=10)) == answer:
                computed.append(ones)
        return computed

    assert len(attack()) == 41
    result = Federation.local({"A": rows}).compare("v", by="g", method="all")
    refused = [(r.center, r.group, r.reason) for r in result.refusals]
    assert ("A", None, "few-values") in refused
    anything_goes(monkeypatch)
    assert attack() == [3]


QUESTIONS: list[Question] = [
    SizesQuestion(variable="v"),
    MomentsQuestion(variable="v"),
    LatticeQuestion(variable="v"),
    RanksQuestion(variable="v", by="g", groups=("x", "y")),
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("k", [1, 13, 36])
def test_no_question_brings_its_own_k(question: Question, k: int) -> None:
    """By a higher K more values were rare, so that the few who have one did not show."""
    rows = pl.DataFrame({"v": np.arange(80.0), "g": ["x", "y"] * 40})
    center = open_center(rows)
    asked = json.dumps({**json.loads(encode(question)), "k": k}).encode()
    answer = decode_answer(center.answer(asked).payload)
    assert answer.aggregate is None
    assert answer.refusals == (Refusal(reason=Reason.UNREADABLE_QUESTION),)
    assert decode_answer(center.answer(encode(question)).payload).aggregate is not None
