"""What a refusal says must not tell on a single person either."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center import center as centers
from unpooled.center.approval.steward import HeldPayload, Steward, decide, pending
from unpooled.center.cohort import people
from unpooled.center.cohort.people import Cohort, RefusedQuestion, Rows
from unpooled.center.data.sources import Source, open_source
from unpooled.center.data.variables import Variable
from unpooled.center.policy import PerPerson, Policy
from unpooled.center.questions import (
    AboutPeople,
    Answer,
    CohortQuestion,
    FollowUpQuestion,
    LatticeQuestion,
    MomentsQuestion,
    PowersQuestion,
    Reason,
    Refusal,
    SizesQuestion,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.errors import HeldError


def center(variables: dict[str, Variable] | None = None) -> Center:
    random = np.random.default_rng(1)
    rows = pl.DataFrame(
        {
            "crp": random.gamma(4, 1, 200),
            "age": [58, *random.integers(20, 50, 199)],
            "visit": [1] * 200,
        }
    )
    key = CenterKey.from_seed(1, "Porto")
    return Center("Porto", open_source(rows), Policy(ad_hoc="free"), key, variables)


def reason(porto: Center, where: str) -> Reason:
    payload = porto.answer(encode(MomentsQuestion(variable="crp", where=where))).payload
    (refusal,) = decode_answer(payload).refusals
    return refusal.reason


def tell_nobody_from_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the rule out: from here on a center says where nobody is."""
    judged = Center._too_small

    def careless(part: Center, question: CohortQuestion, cohort: Cohort) -> list[Refusal]:
        empty = [group for group in cohort.groups if not cohort.members(group).any()]
        if empty and question.by is None:
            raise RefusedQuestion(Reason.ABSENT)
        return [
            msgspec.structs.replace(r, reason=Reason.ABSENT) if r.name in empty else r
            for r in judged(part, question, cohort)
        ]

    monkeypatch.setattr(Center, "_too_small", careless)


def halve(porto: Center, low: float, high: float) -> float:
    """The attack: ask of the one person aged 58 whether the value is above a limit."""
    for _ in range(30):
        middle = (low + high) / 2
        above = reason(porto, f"age == 58 and crp > {middle}") is not reason(porto, "age == 580")
        low, high = (middle, high) if above else (low, middle)
    return low


def test_no_series_of_refusals_finds_a_persons_value() -> None:
    porto = center()
    truth = float(np.random.default_rng(1).gamma(4, 1, 200)[0])
    assert abs(halve(porto, 0, 40) - truth) > 0.01
    assert {reason(porto, f"age == 58 and crp > {t}") for t in range(20)} == {Reason.TOO_SMALL}


def test_the_attack_works_where_nobody_and_too_few_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the rule taken out, the reasons of a condition differ and the value is found."""
    tell_nobody_from_a_few(monkeypatch)
    truth = float(np.random.default_rng(1).gamma(4, 1, 200)[0])
    assert abs(halve(center(), 0, 40) - truth) < 1e-6


def test_a_broken_limit_is_told_of_the_whole_column_and_never_of_chosen_people() -> None:
    porto = center({"crp": Variable(upper=5)})
    reasons = {reason(porto, where) for where in ("age != 58", "crp < 3", "crp > 2", "age < 40")}
    assert reasons == {Reason.OUTSIDE_LIMITS}
    assert reason(porto, "age == 58") == reason(porto, "age == 580") == Reason.TOO_SMALL


def visits() -> pl.DataFrame:
    """Sixty people; the one aged 58 came a second time, with a crp of 17.3218."""
    random = np.random.default_rng(0)
    age = random.integers(20, 50, 60)
    age[7] = 58
    return pl.DataFrame(
        {
            "who": [*range(60), 7],
            "visit": [1] * 60 + [2],
            "crp": [*random.gamma(4, 3, 60), 17.3218],
            "age": [*age, 58],
            "x": [*random.normal(size=60), 0.0],
        }
    )


def halve_repeated(question: AboutPeople, per_person: PerPerson | None) -> float:
    """The attack: all first visits, and the second one if its crp is above a limit."""
    policy = Policy(ad_hoc="free", person="who", per_person=per_person)
    porto = Center("Porto", open_source(visits()), policy, CenterKey.from_seed(1, "Porto"))
    low, high = 0.0, 200.0
    for _ in range(30):
        middle = (low + high) / 2
        chosen = f"visit == 1 or (age == 58 and crp > {middle} and visit == 2)"
        asked = msgspec.structs.replace(question, where=chosen)
        answer = {refusal.reason for refusal in refusals(porto, asked)}
        low, high = (middle, high) if Reason.REPEATED_PERSON in answer else (low, middle)
    return (low + high) / 2


def refusals(porto: Center, question: AboutPeople) -> tuple[Refusal, ...]:
    return decode_answer(porto.answer(encode(question)).payload).refusals


@pytest.mark.parametrize(
    ("question", "per_person"),
    [
        (SizesQuestion(variable="x"), None),
        (SizesQuestion(variable="x", by="visit"), "mean"),
        (FollowUpQuestion(variable="x", event="visit", by="visit"), "mean"),
    ],
)
def test_no_condition_finds_who_has_repeated_rows(
    question: AboutPeople, per_person: PerPerson | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the selected rows decide instead of all, the second visit's value is found."""
    assert abs(halve_repeated(question, per_person) - 17.3218) > 1
    result = people.find_cohort
    monkeypatch.setattr(centers, "check_persons", lambda *_: None)

    def of_the_selected(rows: Rows, question: CohortQuestion, *asked: Any) -> Cohort:
        chosen = result(rows, question, *asked)
        sql, parameters = chosen._condition()
        repeated = f"SELECT count(*) > count(DISTINCT who) FROM {rows.source.relation} WHERE {sql}"
        if question.where is not None and rows.source.rows(repeated, parameters)[0][0]:
            raise RefusedQuestion(Reason.REPEATED_PERSON)
        return chosen

    monkeypatch.setattr(centers, "find_cohort", of_the_selected)
    assert abs(halve_repeated(question, per_person) - 17.3218) < 1e-6


def test_a_center_with_several_rows_per_person_is_told_to_say_per_person() -> None:
    few = (Refusal(reason=Reason.TOO_SMALL, limit=10),)  # comes first, whatever the rows are
    for where in (None, "visit == 1", "age == 58", "age == 580", "x > 0"):
        key = CenterKey.from_seed(1, "Porto")
        question = SizesQuestion(variable="crp", where=where)
        porto = Center("Porto", open_source(visits()), Policy(ad_hoc="free", person="who"), key)
        repeated = (Refusal(reason=Reason.REPEATED_PERSON),)
        assert refusals(porto, question) == (few if where and "58" in where else repeated)
    policy = Policy(ad_hoc="free", person="who", per_person="first")
    for where in (None, "visit == 1", "x > 0"):
        question = SizesQuestion(variable="crp", where=where)
        porto = Center("Porto", open_source(visits()), policy, key)
        assert refusals(porto, question) == ()


SECOND = "age == 58 and (visit == 1 or crp > {})"  # two rows of one person, or one


@pytest.mark.parametrize(
    "question",
    [
        SizesQuestion(variable="x"),
        LatticeQuestion(variable="x"),
        MomentsQuestion(variable="x"),
        PowersQuestion(variable="x", lambdas=(1.0,)),
    ],
)
def test_the_limit_of_a_refusal_does_not_tell_on_repeated_rows(question: AboutPeople) -> None:
    """Nor does it fail to come, unrecorded, where one person has two of the rows."""
    key = CenterKey.from_seed(1, "Porto")
    porto = Center("Porto", open_source(visits()), Policy(ad_hoc="free", person="who"), key)
    answer = []
    for crp in (10.0, 30.0):
        chosen = msgspec.structs.replace(question, where=SECOND.format(crp))
        answer.append(decode_answer(porto.answer(encode(chosen)).payload).refusals)
    assert answer[0] == answer[1]
    assert len(porto.ledger) == 2


def test_a_file_without_rows_is_refused_with_the_limit_in_force() -> None:
    rows = pl.DataFrame({"x": pl.Series([], dtype=pl.String)})
    porto = Center(
        "Porto", open_source(rows), Policy(ad_hoc="free"), CenterKey.from_seed(1, "Porto")
    )
    for question, limit in ((SizesQuestion(variable="x"), 10), (LatticeQuestion(variable="x"), 20)):
        (refusal,) = decode_answer(porto.answer(encode(question)).payload).refusals
        assert refusal == Refusal(reason=Reason.TOO_SMALL, limit=limit)


@pytest.mark.parametrize("steward", [False, True])
def test_powers_name_no_group_that_nobody_named(tmp_path: Path, steward: bool) -> None:
    rows = pl.DataFrame({"x": np.arange(60.0), "name": ["F"] * 40 + ["Smith, J"] * 20})
    porto = Center(
        "Porto",
        open_source(rows),
        Policy(ad_hoc="free", paper_iteration=True),
        CenterKey.from_seed(1, "Porto"),
        steward=Steward(tmp_path / "Porto.pending") if steward else None,
    )
    question = PowersQuestion(variable="x", by="name", lambdas=(0.0, 1.0))
    if steward:
        with pytest.raises(HeldError):
            porto.answer(encode(question))
        (held,) = pending(tmp_path / "Porto.pending")
        payload = held.answer.encode()
    else:
        payload = porto.answer(encode(question)).payload
        assert len(porto.ledger) == 1
    assert decode_answer(payload).aggregate is not None
    assert b"Smith" not in payload
    named = msgspec.structs.replace(question, groups=("F", "Smith, J"))
    if not steward:
        (refusal,) = decode_answer(porto.answer(encode(named)).payload).refusals
        assert refusal == Refusal(reason=Reason.TOO_SMALL, name="Smith, J", limit=30)


def test_a_refusal_that_breaks_a_rule_leaves_as_a_bare_failure_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with a refusal: that none comes, and none is recorded, would tell too."""

    def careless(*_: object) -> Cohort:
        raise RefusedQuestion(Reason.TOO_SMALL, "Smith", 7)

    monkeypatch.setattr(centers, "find_cohort", careless)
    porto = center()
    question = encode(SizesQuestion(variable="crp"))
    bare = Answer(k=10, aggregate=None, refusals=(Refusal(reason=Reason.FAILED),))
    assert decode_answer(porto.answer(question).payload) == bare
    (entry,) = porto.ledger
    assert (entry.kind, decode_answer(entry.answer.encode())) == ("refusal", bare)

    folder = tmp_path / "Porto.pending"
    key = CenterKey.from_seed(1, "Porto")
    rows = pl.DataFrame({"crp": np.arange(60.0)})
    porto = Center("Porto", open_source(rows), Policy(ad_hoc="free"), key, steward=Steward(folder))
    with pytest.raises(HeldError):
        porto.answer(question)
    (held,) = pending(folder)
    assert decode_answer(held.answer.encode()) == bare


NEVER = "never"  # what nobody's event column says: every row with a value is censored


@pytest.mark.parametrize(
    ("odd", "declared", "reason"),
    [
        (-1.0, Variable(), Reason.NEGATIVE_TIME),
        (np.inf, Variable(), Reason.NOT_FINITE),
        (500.0, Variable(upper=100), Reason.OUTSIDE_LIMITS),
    ],
)
def test_a_time_that_breaks_a_rule_does_not_tell_who_has_a_status(
    odd: float, declared: Variable, reason: Reason, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: one person's time is odd, so the refusal says if that person has died."""

    def attack() -> bool:
        """Whether a date of death makes a difference."""
        answer = []
        for died in (None, "2021-02-03"):
            dates = [died, *["2020-01-01"] * 25, *[None] * 34]
            rows = pl.DataFrame({"days": [odd, *np.arange(1.0, 60.0)], "death": dates})
            key = CenterKey.from_seed(1, "Porto")
            porto = Center(
                "Porto", open_source(rows), Policy(ad_hoc="free"), key, {"days": declared}
            )
            question = FollowUpQuestion(variable="days", event="death", event_is=NEVER)
            answer.append([refusal.reason for refusal in refusals(porto, question)])
        assert answer[1] == [reason]
        return answer[0] != answer[1]

    assert not attack()

    def extremes(source: Source, variable: str) -> tuple[float | None, float | None]:
        truth = source.derived(f"(SELECT * FROM {source.relation} WHERE death IS NOT NULL)")
        return judged(truth, variable)

    judged = Source.extremes
    monkeypatch.setattr(Source, "extremes", extremes)  # the rule taken out
    assert attack()


def named_groups(values: list[str], by: str) -> dict[str, Reason]:
    """The attack: name every value that somebody could have, and see which are refused how."""
    question = SizesQuestion(variable="crp", by=by, groups=tuple(values))
    answer = decode_answer(center().answer(encode(question)).payload)
    return {str(refusal.name): refusal.reason for refusal in answer.refusals}


def test_a_list_of_groups_does_not_say_who_is_there() -> None:
    ages = [str(age) for age in range(18, 100)]
    assert set(named_groups(ages, "age").values()) == {Reason.TOO_SMALL}


def test_without_the_rule_a_list_of_groups_names_every_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell_nobody_from_a_few(monkeypatch)
    result = named_groups([str(age) for age in range(50, 100)], "age")
    assert [age for age, why in result.items() if why is Reason.TOO_SMALL] == ["58"]


def is_held_after_a_refusal(folder: Path, before: int, after: int) -> bool:
    """The attack: ask what was refused again, to see whether its answer has changed."""
    folder.mkdir()
    question = encode(SizesQuestion(variable="crp"))

    def porto(people: int) -> Center:
        rows = open_source(pl.DataFrame({"crp": range(people)}))
        key, steward = CenterKey.from_seed(1, "Porto"), Steward(folder / "Porto.pending")
        return Center("Porto", rows, Policy(ad_hoc="free"), key, steward=steward)

    with pytest.raises(HeldError):
        porto(before).answer(question)
    (held,) = pending(folder / "Porto.pending")
    decide(folder / "Porto.pending", held, "refused")
    try:
        (refusal,) = decode_answer(porto(after).answer(question).payload).refusals
    except HeldError:
        return True
    assert refusal.reason is Reason.REFUSED_BY_STEWARD
    return False


def test_a_stewards_refusal_does_not_tell_that_somebody_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_held_after_a_refusal(tmp_path / "same", 60, 60)
    assert not is_held_after_a_refusal(tmp_path / "one more", 60, 61)
    monkeypatch.setattr(
        HeldPayload, "file", lambda held, decision, by=None: f"{held.name}.{decision}"
    )
    assert not is_held_after_a_refusal(tmp_path / "same, of bytes", 60, 60)
    assert is_held_after_a_refusal(tmp_path / "one more, of bytes", 60, 61)
