"""Several answers, each of them legal, subtracted from each other.

Each attack is tried on a center without its rules, where it succeeds, and on a real one.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.proposal import summarise
from unpooled.center.questions import (
    AboutPeople,
    Answer,
    MomentsQuestion,
    Reason,
    Sizes,
    SizesQuestion,
    decode_answer,
    encode,
    moments,
)
from unpooled.center.records.keys import CenterKey
from unpooled.center.rule.memory import Draft, Memory

K = 10


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on no center remembers an answer, or rounds one, or gives it for a nearby set."""

    def forget() -> None:
        monkeypatch.setattr(Memory, "remember", lambda *_: None)
        monkeypatch.setattr(Center, "_nearest", lambda *_: [])
        monkeypatch.setattr(summarise, "round_mean_sd", lambda exact: exact)
        monkeypatch.setattr(moments, "is_mean_sd_rounded", lambda *_: True)

    return forget


def hospital() -> pl.DataFrame:
    random = np.random.default_rng(5)
    crp = random.gamma(4, 1, 120)
    return pl.DataFrame(
        {
            "crp": crp,
            "id": np.arange(120),
            "arm": ["patient"] * 113 + ["control"] * 7,
            "sex": random.permutation(["F"] * 60 + ["M"] * 60),
            "age": [58, *random.integers(20, 50, 119)],
        }
    )


def open_center(rows: pl.DataFrame | None = None, policy: Policy | None = None) -> Center:
    source = open_source(hospital() if rows is None else rows)
    return Center("Porto", source, policy or Policy(ad_hoc="free"), CenterKey.from_seed(1, "Porto"))


def ask(center: Center, question: AboutPeople) -> Answer:
    return decode_answer(center.answer(encode(question)).payload)


def answer_to(center: Center, **fields: object) -> dict[str, tuple[int, float]]:
    """n and mean of each group, as far as they are told."""
    answer = ask(center, MomentsQuestion(variable="crp", **fields)).aggregate  # type: ignore[arg-type]
    groups = () if answer is None else answer.moments
    return {m.group: (m.n, m.mean) for m in groups if m.mean is not None}


def sums(answers: dict[str, tuple[int, float]]) -> list[tuple[int, float]]:
    return [(n, n * mean) for n, mean in answers.values()]


def difference(more: list[tuple[int, float]], less: list[tuple[int, float]]) -> tuple[int, float]:
    """How many people one has more than the other, and what their values add up to."""
    n = sum(n for n, _ in more) - sum(n for n, _ in less)
    return n, sum(s for _, s in more) - sum(s for _, s in less)


def one_person_more(center: Center) -> float | None:
    """The value of the one person that a condition leaves out."""
    everybody, others = answer_to(center), answer_to(center, where="id != 0")
    n, value = difference(sums(everybody), sums(others))
    return value if n == 1 else None


def test_one_person_more_by_where(forgetful: Callable[[], None]) -> None:
    assert one_person_more(open_center()) is None
    forgetful()
    assert one_person_more(open_center()) == pytest.approx(hospital()["crp"][0])


def refused_group(center: Center, questions: list[dict[str, str]]) -> tuple[int, float] | None:
    """The seven controls, whom the center refuses: all people, less the patients."""
    answers = [sums(answer_to(center, **question)) for question in questions]
    if not all(answers):
        return None
    less, more = sorted(answers, key=lambda parts: sum(n for n, _ in parts))
    return difference(more, less)


@pytest.mark.parametrize("questions", [[{}, {"by": "arm"}], [{"by": "arm"}, {}]])
def test_a_refused_small_group_by_subtraction(
    questions: list[dict[str, str]], forgetful: Callable[[], None]
) -> None:
    center = open_center()
    assert refused_group(center, questions) is None
    last = ask(center, SizesQuestion(variable="crp", **questions[1]))  # type: ignore[arg-type]
    assert [r.reason for r in last.refusals] == [Reason.WOULD_ISOLATE]
    forgetful()
    n, total = refused_group(open_center(), questions) or (0, 0.0)
    assert n == 7
    assert total == pytest.approx(hospital()["crp"][113:].sum())


def remainder_of_three(center: Center) -> int | None:
    """Women and men by themselves, then both in one condition that takes one person more."""
    parts = [answer_to(center, by="sex", groups=(sex,), where="id != 0") for sex in ("F", "M")]
    whole = answer_to(center, where="age > 0")
    if not all((*parts, whole)):
        return None
    return difference(sums(whole), [p for part in parts for p in sums(part)])[0]


def test_the_remainder_of_several_disjoint_sets(forgetful: Callable[[], None]) -> None:
    assert remainder_of_three(open_center()) in (None, 0)
    forgetful()
    assert remainder_of_three(open_center()) == 1


def complements(center: Center) -> float | None:
    """Two conditions that leave out one person between them: neither is near the whole."""
    young = answer_to(center, where="age < 35 and id != 0")
    old = answer_to(center, where="age >= 35 and id != 0")
    everybody = answer_to(center)
    if not (young and old and everybody):
        return None
    n, value = difference(sums(everybody), sums(young) + sums(old))
    return value if n == 1 else None


def test_two_subsets_that_are_complements(forgetful: Callable[[], None]) -> None:
    assert complements(open_center()) is None
    forgetful()
    assert complements(open_center()) == pytest.approx(hospital()["crp"][0])


def one_man_without_a_value(center: Center) -> int | None:
    """Of 12 people without a value 11 are women: all, less the women."""
    missing = [
        {m.group: m.missing for m in answer.moments}
        for by in (None, "sex")
        if (answer := ask(center, MomentsQuestion(variable="crp", by=by)).aggregate) is not None
    ]
    everybody, by_sex = missing if len(missing) == 2 else ({}, {})
    if everybody.get("all") is None or by_sex.get("F") is None:
        return None
    return int(everybody["all"] - by_sex["F"])


def test_missing_values_are_told_of_no_difference_either(forgetful: Callable[[], None]) -> None:
    rows = hospital().with_columns(
        crp=pl.when(pl.col("id") < 12).then(None).otherwise(pl.col("crp")),
        sex=pl.when((pl.col("id") < 11) | (pl.col("id") > 60))
        .then(pl.lit("F"))
        .otherwise(pl.lit("M")),
    )
    answer = ask(open_center(rows), MomentsQuestion(variable="crp")).aggregate
    assert answer is not None
    assert answer.moments[0].missing == 12
    assert one_man_without_a_value(open_center(rows)) is None
    forgetful()
    assert one_man_without_a_value(open_center(rows)) == 1


def answered(center: Center, where: str) -> bool:
    return ask(center, SizesQuestion(variable="crp", where=where)).aggregate is not None


def halve(center: Center) -> float:
    """The one person aged 58: everybody, but for that person if the value is below a limit."""
    answer_to(center)
    low, high = 0.0, 40.0
    for _ in range(30):
        middle = (low + high) / 2
        above = answered(center, f"age != 58 or crp > {middle}")
        low, high = (middle, high) if above else (low, middle)
    return low


def test_no_series_of_refusals_finds_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of the same people in other words is answered like one that differs by a person."""
    truth = hospital()["crp"][0]
    assert abs(halve(open_center()) - truth) > 0.01
    monkeypatch.setattr(Center, "_nearest", lambda *_: [])  # the rules taken out
    monkeypatch.setattr("unpooled.center.center.is_plain", lambda _: True)
    assert halve(open_center()) == pytest.approx(truth, abs=1e-6)


def test_whether_a_condition_leaves_out_one_person_or_nobody_does_not_show() -> None:
    center = open_center()
    everybody = ask(center, MomentsQuestion(variable="crp"))
    some, none = (
        ask(center, MomentsQuestion(variable="crp", where=where))
        for where in ("id != 0", "id > -1")
    )
    assert some == none
    assert some.nearest == ("all",)
    assert some.aggregate == everybody.aggregate


def test_what_follows_from_earlier_sets_is_refused_like_what_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack: two sets together, and the one person aged 58 if this is a woman."""

    def oracle() -> list[bool]:
        answer = []
        for sex in ("F", "M"):
            center = open_center(hospital().with_columns(sex=pl.lit(sex)))
            young, old = "age < 35 and id > 0", "age >= 35 and 0 < id and id < 80"
            assert answered(center, young)
            assert answered(center, old)
            answer.append(answered(center, f"{young} or {old} or age == 58 and sex == 'F'"))
        return answer

    assert oracle() == [False, False]
    monkeypatch.setattr(Draft, "follows", lambda *_: False)  # the rule taken out
    assert oracle() == [False, True]


def test_the_same_words_are_answered_again_and_in_any_order() -> None:
    center = open_center()
    assert answered(center, "sex == 'F' and age > 30")
    assert answered(center, "30 < age and sex == 'F'")
    again = SizesQuestion(variable="crp", by="sex", groups=("F",), where="age > 30")
    assert isinstance(ask(center, again).aggregate, Sizes)
    other = ask(center, SizesQuestion(variable="crp", where="not sex == 'M' and age > 30"))
    assert other.nearest == ("all",)


def test_people_are_judged_over_all_variables() -> None:
    """Two complete columns would undo each other: a set is answered as the other column's was."""
    center = open_center()
    young = ask(center, SizesQuestion(variable="crp", where="age < 40 and id != 3")).aggregate
    other = ask(center, SizesQuestion(variable="age", where="age < 40"))
    assert other.nearest == ("all",)
    assert other.aggregate == young
