"""Under a condition, and in few values, "nobody" must look like "a few"."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

from tests.privacy.taken_out import anything_goes
from unpooled.center import Center
from unpooled.center.cohort.people import Cohort, Rows, find_cohort
from unpooled.center.data.sources import Source, open_source
from unpooled.center.data.variables import Variable
from unpooled.center.policy import Policy
from unpooled.center.proposal.summarise import Summary
from unpooled.center.questions import (
    Aggregate,
    FollowUpQuestion,
    GroupRanksQuestion,
    LatticeQuestion,
    LatticeTables,
    Moments,
    MomentsQuestion,
    Question,
    RanksQuestion,
    Reason,
    Refusal,
    SizesQuestion,
    SurvivalQuestion,
    SurvivalTables,
    Terms,
    decode_answer,
    encode,
    lattice,
    survival,
)
from unpooled.center.records.keys import CenterKey
from unpooled.maths.arrays import BoolArray
from unpooled.maths.lattice import cells, cutting


def people() -> pl.DataFrame:
    """One person is 58 years old, has the event and no lactate value."""
    random = np.random.default_rng(2)
    n = 1000
    return pl.DataFrame(
        {
            "crp": random.gamma(4, 1, n),
            "weight": random.normal(75, 12, n),
            "lactate": [None, *random.gamma(2, 1, n - 1).tolist()],
            "age": [58, *random.integers(20, 50, n - 1).tolist()],
            "time": np.round(random.exponential(300, n) + 1),
            "died": [1, *random.integers(0, 2, n - 1).tolist()],
            "sex": random.choice(["F", "M"], n),
        }
    )


def porto(rows: pl.DataFrame) -> Center:
    return Center(
        "Porto", open_source(rows), Policy(ad_hoc="free"), CenterKey.from_seed(1, "Porto")
    )


def tell(center: Center, question: Question) -> Aggregate | None:
    return decode_answer(center.answer(encode(question)).payload).aggregate


def halve(is_there: Callable[[Center, str], bool | None]) -> float:
    """The attack: each question halves where the crp of the one aged 58 may lie."""
    low, high = 0.0, 40.0
    center = porto(people())
    for weight in np.linspace(50, 100, 16):
        middle = (low + high) / 2
        there = is_there(center, f"weight > {weight} and age < 58 or age == 58 and crp > {middle}")
        if there is not None:
            low, high = (middle, high) if there else (low, middle)
    return abs(low - float(people()["crp"][0]))


def lacks_a_value(center: Center, where: str) -> bool | None:
    answer = tell(center, MomentsQuestion(variable="lactate", where=where))
    return answer.moments[0].missing is not None if isinstance(answer, Moments) else None


def present(cohort: Cohort, group: str) -> BoolArray:
    return cohort.members(group) & ~np.isnan(cohort._own_values())


def test_missing_values_under_a_condition_find_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert halve(lacks_a_value) > 1
    monkeypatch.setattr(Cohort, "counted", present)  # the rule taken out
    assert halve(lacks_a_value) > 1  # the gate has it, too
    monkeypatch.setattr(Terms, "check_people", lambda *_: None)
    anything_goes(monkeypatch)
    assert halve(lacks_a_value) < 0.01


@pytest.mark.parametrize("fields", [{}, {"by": "sex"}, {"by": "sex", "groups": ("F",)}])
def test_nobody_missing_looks_like_a_few(fields: dict[str, Any]) -> None:
    """Whether nobody lacks a value or a few do, all of a group are counted."""

    def answer_to(lacking: int) -> list[tuple[int, int | None]]:
        rows = people().sort("sex").with_row_index("id")
        gone = rows.with_columns(
            crp=pl.when(pl.col("id") < lacking).then(None).otherwise(pl.col("crp"))
        )
        answer = tell(porto(gone), MomentsQuestion(variable="crp", **fields))
        assert isinstance(answer, Moments)
        return [(group.n, group.missing) for group in answer.moments]

    complete = answer_to(0)
    assert {missing for _, missing in complete} == {None}
    assert all(answer_to(few) == complete for few in (1, 9))
    (n, missing), *others = answer_to(10)  # they are women
    assert (n, missing) == (complete[0][0] - 10, 10)
    assert others == complete[1:]


def test_an_empty_status_under_a_condition_looks_like_a_small_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack: each time variable tells once whether the one aged 58 is above a limit."""
    crp = float(people()["crp"][0])

    def answer_to(variable: str, limit: float) -> str | None:
        where = f"died == 0 or (age == 58 and crp > {limit})"
        question = SurvivalQuestion(variable=variable, event="died", horizon=5000.0, where=where)
        answer = tell(porto(people()), question)
        return answer.groups[0].below if isinstance(answer, SurvivalTables) else "refused"

    def attack() -> list[bool]:
        return [answer_to(v, crp - 0.1) != answer_to(v, crp + 0.1) for v in ("time", "weight")]

    assert attack() == [False, False]
    assert answer_to("time", crp) == "events"
    statuses = Summary._statuses

    def without_the_condition(summary: Summary, *asked: Any, **named: Any) -> Any:
        bare = msgspec.structs.replace(summary.question, where=None)
        return statuses(replace(summary, question=bare), *asked, **named)

    monkeypatch.setattr(Summary, "_statuses", without_the_condition)  # the rule taken out
    assert answer_to("time", crp + 0.1) == "refused"  # the gate has it, too
    monkeypatch.setattr(survival, "_check_statuses", lambda *_: None)
    assert attack() == [True, True]


def test_who_carries_the_spread_of_few_values_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack tells one person with a rare value from two."""

    def answer_to(rare: int) -> Any:
        answer = tell(porto(pl.DataFrame({"v": [0.0] * 200 + [1.0] * rare})), LATTICE)
        assert isinstance(answer, LatticeTables)
        table = answer.groups[0].table
        return [(mean is None, sd is None) for mean, sd in zip(table.means, table.sds, strict=True)]

    assert answer_to(1) == answer_to(2) == [(True, True)]
    monkeypatch.setattr(cells, "telling_values", lambda *_: 8)
    monkeypatch.setattr(cutting, "nowhere", lambda *_: False)
    monkeypatch.setattr(lattice, "nowhere", lambda *_: False)
    assert answer_to(1) == answer_to(2) == [(True, True)]  # the gate has it, too
    anything_goes(monkeypatch)
    assert answer_to(1) != answer_to(2)


def test_the_scale_never_speaks_for_two_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred people cost nothing, and two do: the attack reads how far the two differ."""

    def scales() -> list[float]:
        result = []
        for apart in (0.04, 3.0, 700.0, 51_000.0):
            answer = tell(porto(pl.DataFrame({"v": [0.0] * 100 + [1e5, 1e5 + apart]})), LATTICE)
            assert isinstance(answer, LatticeTables)
            result.append(answer.scale)
        return result

    assert scales() == [1.0] * 4
    spread = Source.spread
    monkeypatch.setattr(Source, "spread", lambda part, name, _: spread(part, name, 0))
    assert len(set(scales())) == 4


def test_as_many_others_as_two_cells_need_have_a_scale() -> None:
    values = [0.0] * 100 + np.linspace(100, 900, 20).tolist()
    for others, scale in ((20, 200.0), (19, 1.0)):
        answer = tell(porto(pl.DataFrame({"v": values[: 100 + others]})), LATTICE)
        assert isinstance(answer, LatticeTables)
        assert answer.scale == scale


@pytest.mark.parametrize("dtype", [pl.String, pl.Float64])
def test_an_empty_column_is_all_missing_only_where_nobody_may_be_told(dtype: Any) -> None:
    """Where it may not, one of text looks like one with text, and one of numbers like a few."""

    def answer_to(zero_cells: bool, *last: str | float | None) -> Reason:
        values = pl.Series([*[None] * 59, *last], dtype=dtype)
        policy = Policy(ad_hoc="free", zero_cells=zero_cells)
        key = CenterKey.from_seed(1, "Porto")
        center = Center("Porto", open_source(pl.DataFrame({"v": values})), policy, key)
        payload = center.answer(encode(MomentsQuestion(variable="v"))).payload
        return decode_answer(payload).refusals[0].reason

    one = "Smith" if dtype is pl.String else 3.0
    assert answer_to(False, None) == answer_to(False, one)
    assert answer_to(True, None) is Reason.ALL_MISSING


LATTICE = LatticeQuestion(variable="v")
MEANINGLESS: list[Question] = [
    RanksQuestion(variable="crp"),
    RanksQuestion(variable="crp", groups=("F", "M")),
    RanksQuestion(variable="crp", by="sex"),
    RanksQuestion(variable="crp", by="sex", groups=("F",)),
    RanksQuestion(variable="crp", by="sex", groups=("F", "F")),
    RanksQuestion(variable="crp", by="sex", groups=("F", "M", "X")),
    GroupRanksQuestion(variable="crp"),
    GroupRanksQuestion(variable="crp", by="sex", groups=()),
    GroupRanksQuestion(variable="crp", by="sex", groups=("F", "M", "F")),
    FollowUpQuestion(variable="died", event="died"),
    FollowUpQuestion(variable="time", event="died", by="sex", groups=()),
    SurvivalQuestion(variable="died", event="died", horizon=1.0),
    SurvivalQuestion(variable="time", event="died", by="sex", groups=(), horizon=60.0),
    SurvivalQuestion(variable="time", event="died", horizon=0.0),
    SurvivalQuestion(variable="time", event="died", horizon=-3.0),
    MomentsQuestion(variable="crp", by="age", groups=tuple(map(str, range(1001)))),
]


@pytest.mark.parametrize("question", MEANINGLESS)
def test_a_question_without_meaning_is_unreadable(question: Question) -> None:
    answer = decode_answer(porto(people()).answer(encode(question)).payload)
    assert answer.aggregate is None
    assert answer.refusals == (Refusal(reason=Reason.UNREADABLE_QUESTION),)


def test_a_group_behind_many_others_is_refused_whether_somebody_is_in_it() -> None:
    """The number of a group must not overflow only where somebody has it."""
    many = tuple(f"x{i}" for i in range(999))
    rows = Rows(open_source(people()), Policy(ad_hoc="free"), b"secret")
    answer = []
    for above in (0, 1e6):  # the one aged 58 has such a value, or not
        question = SizesQuestion(
            variable="crp", by="age", groups=(*many, "58"), where=f"crp > {above}"
        )
        answer.append(int(find_cohort(rows, question, Variable()).members("58").sum()))
    assert answer == [1, 0]
