"""Refusals tell, too: after so many of a day a center answers nothing until the next."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.approval.steward import Steward, decide, pending
from unpooled.center.data.sources import open_source
from unpooled.center.policy import AdHoc, Policy
from unpooled.center.questions import (
    CatalogueQuestion,
    Question,
    Reason,
    SizesQuestion,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.errors import HeldError, InputError

PEOPLE = pl.DataFrame({"los": range(60), "arm": (["a"] * 50 + ["b"] * 10), "age": range(20, 80)})
ANSWERED = SizesQuestion(variable="los", by="arm", groups=("a",))
REFUSED = SizesQuestion(variable="los", where="age < 30")
IN_PART = SizesQuestion(variable="los", by="arm", groups=("a", "c"))


class Clock:
    """What day a center takes it for."""

    def __init__(self) -> None:
        self.day = datetime.now(UTC).strftime("%Y-%m-%d")

    def __call__(self) -> str:
        return self.day


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("unpooled.center.center._today", clock)
    return clock


def open_center(
    ledger: Path | None = None,
    refusals: int | None = 3,
    steward: Steward | None = None,
    ad_hoc: AdHoc = "groupings",
) -> Center:
    declared: dict[str, tuple[float, ...]] = {"arm": ()}
    policy = Policy(k=10, ad_hoc=ad_hoc, groupings=declared, refusals_a_day=refusals)
    key = CenterKey.from_seed(1, "Haifa")
    return Center("Haifa", open_source(PEOPLE), policy, key, ledger=ledger, steward=steward)


def reasons(center: Center, question: Question, ticket: str | None = None) -> list[str]:
    payload = center.answer(encode(question), ticket).payload
    return [refusal.reason for refusal in decode_answer(payload).refusals]


def is_spent(center: Center) -> bool:
    answer = decode_answer(center.answer(encode(ANSWERED)).payload)
    if answer.aggregate is not None:
        return False
    assert [(r.reason, r.limit) for r in answer.refusals] == [(Reason.BUDGET, 3)]
    return True


def test_the_third_refusal_of_a_day_is_the_last_word_until_the_next(clock: Clock) -> None:
    center = open_center()
    for _ in range(3):
        assert not is_spent(center)
        assert reasons(center, REFUSED) == [Reason.ONLY_GROUPINGS]
    for question in (ANSWERED, REFUSED, IN_PART, CatalogueQuestion()):
        assert reasons(center, question) == [Reason.BUDGET]
    assert [entry.kind for entry in center.ledger][-4:] == ["refusal"] * 4
    clock.day = "2999-01-01"
    assert not is_spent(center)
    assert reasons(center, REFUSED) == [Reason.ONLY_GROUPINGS]


def test_a_restart_does_not_renew_the_budget(clock: Clock, tmp_path: Path) -> None:
    for _ in range(3):
        center = open_center(tmp_path / "Haifa.ledger")
        assert not is_spent(center)
        reasons(center, REFUSED)
        center.close()
    for _ in range(2):  # nor do questions that find it spent count for more
        center = open_center(tmp_path / "Haifa.ledger")
        assert is_spent(center)
        center.close()
    clock.day = "2999-01-01"
    center = open_center(tmp_path / "Haifa.ledger")
    assert not is_spent(center)
    center.close()


def test_refusals_of_yesterday_do_not_count_today(clock: Clock) -> None:
    center = open_center()
    for _ in range(2):
        reasons(center, REFUSED)
    clock.day = "2999-01-01"
    for _ in range(2):
        reasons(center, REFUSED)
    assert not is_spent(center)
    reasons(center, REFUSED)
    assert is_spent(center)


@pytest.mark.parametrize("kept", [True, False])
def test_a_group_that_is_refused_beside_one_that_is_answered_counts(
    clock: Clock, tmp_path: Path, kept: bool
) -> None:
    """Else who names everybody beside every guess would ask for ever."""
    ledger = tmp_path / "Haifa.ledger" if kept else None
    center = open_center(ledger)
    for _ in range(3):
        assert reasons(center, IN_PART) == [Reason.TOO_SMALL]
    if kept:
        center.close()
        center = open_center(ledger)
    assert is_spent(center)
    center.close()


@pytest.mark.parametrize("words", [("age < 79",), ("los < 30", "los >= 30 and los < 55")])
def test_a_hint_counts_like_a_refusal(clock: Clock, tmp_path: Path, words: tuple[str, ...]) -> None:
    """That people are nearly those of an earlier answer, or are the last that can be told of."""
    center = open_center(tmp_path / "Haifa.ledger", refusals=1, ad_hoc="free")
    for where in words:
        question = SizesQuestion(variable="los", where=where)
        answer = decode_answer(center.answer(encode(question)).payload)
        assert answer.aggregate is not None
    assert (answer.nearest, answer.shuts_out) in ((("all",), ()), ((), ("all", "arm")))
    for _ in range(2):
        assert reasons(center, ANSWERED) == [Reason.BUDGET]
        center.close()
        center = open_center(tmp_path / "Haifa.ledger", refusals=1, ad_hoc="free")
    center.close()


def test_an_answer_that_is_fetched_again_counts_once(clock: Clock) -> None:
    center = open_center()
    for _ in range(5):
        assert reasons(center, REFUSED, "a" * 32) == [Reason.ONLY_GROUPINGS]
    assert not is_spent(center)


def test_a_stewards_own_no_tells_nothing_and_does_not_count(clock: Clock, tmp_path: Path) -> None:
    steward, ledger = Steward(tmp_path / "Haifa.pending"), tmp_path / "Haifa.ledger"
    center = open_center(ledger, steward=steward)
    with pytest.raises(HeldError):
        center.answer(encode(ANSWERED))
    (held,) = pending(tmp_path / "Haifa.pending")
    decide(tmp_path / "Haifa.pending", held, "refused")
    for _ in range(4):
        assert reasons(center, ANSWERED) == [Reason.REFUSED_BY_STEWARD]
    center.close()
    center = open_center(ledger)
    assert not is_spent(center)
    center.close()


def test_without_a_budget_refusals_have_no_end() -> None:
    center = open_center(refusals=None)
    for _ in range(20):
        assert reasons(center, REFUSED) == [Reason.ONLY_GROUPINGS]
    assert decode_answer(center.answer(encode(ANSWERED)).payload).aggregate is not None


def test_a_budget_of_none_is_an_error() -> None:
    with pytest.raises(InputError, match="refusals_a_day must be at least 1, got 0"):
        Policy(refusals_a_day=0)
