"""Several answers, each of them legal, subtracted from each other.

Each attack is tried on a center that forgets, where it succeeds, and on a real one.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.keys import CenterKey
from unpooled.center.memory.memory import Memory
from unpooled.center.policy import Policy
from unpooled.data.sources import open_source
from unpooled.questions import (
    AboutPeople,
    Answer,
    MomentsQuestion,
    Reason,
    Sizes,
    SizesQuestion,
    decode_answer,
    encode,
)

K = 10


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on no center remembers an answer."""
    return lambda: monkeypatch.setattr(Memory, "remember", lambda *_: None)


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
    return Center("Porto", source, policy or Policy(), CenterKey.from_seed(1, "Porto"))


def ask(center: Center, question: AboutPeople) -> Answer:
    return decode_answer(center.answer(encode(question)).payload)


def told(center: Center, **fields: object) -> dict[str, tuple[int, float]]:
    """n and mean of each group, as far as they are told."""
    said = ask(center, MomentsQuestion(variable="crp", **fields)).aggregate  # type: ignore[arg-type]
    groups = () if said is None else said.moments  # type: ignore[union-attr]
    return {m.group: (m.n, m.mean) for m in groups if m.mean is not None}


def sums(answers: dict[str, tuple[int, float]]) -> list[tuple[int, float]]:
    return [(n, n * mean) for n, mean in answers.values()]


def difference(more: list[tuple[int, float]], less: list[tuple[int, float]]) -> tuple[int, float]:
    """How many people one has more than the other, and what their values add up to."""
    n = sum(n for n, _ in more) - sum(n for n, _ in less)
    return n, sum(s for _, s in more) - sum(s for _, s in less)


def one_person_more(center: Center) -> float | None:
    """The value of the one person that a condition leaves out."""
    everybody, others = told(center), told(center, where="id != 0")
    n, value = difference(sums(everybody), sums(others))
    return value if n == 1 else None


def test_one_person_more_by_where(forgetful: Callable[[], None]) -> None:
    assert one_person_more(open_center()) is None
    forgetful()
    assert one_person_more(open_center()) == pytest.approx(hospital()["crp"][0])


def refused_group(center: Center, questions: list[dict[str, str]]) -> tuple[int, float] | None:
    """The seven controls, whom the center refuses: all people, less the patients."""
    answers = [sums(told(center, **question)) for question in questions]
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
    assert [r.reason for r in last.refusals] == [Reason.WOULD_DIFFER]
    forgetful()
    n, total = refused_group(open_center(), questions) or (0, 0.0)
    assert n == 7
    assert total == pytest.approx(hospital()["crp"][113:].sum())


def remainder_of_three(center: Center) -> int | None:
    """Women and men by themselves, then both in one condition that takes one person more."""
    parts = [told(center, by="sex", groups=(sex,), where="id != 0") for sex in ("F", "M")]
    whole = told(center, where="age > 0")
    if not all((*parts, whole)):
        return None
    return difference(sums(whole), [p for part in parts for p in sums(part)])[0]


def test_the_remainder_of_several_disjoint_sets(forgetful: Callable[[], None]) -> None:
    assert remainder_of_three(open_center()) is None
    forgetful()
    assert remainder_of_three(open_center()) == 1


def complements(center: Center) -> float | None:
    """Two conditions that leave out one person between them: neither is near the whole."""
    young = told(center, where="age < 35 and id != 0")
    old = told(center, where="age >= 35 and id != 0")
    everybody = told(center)
    if not (young and old and everybody):
        return None
    return difference(sums(everybody), sums(young) + sums(old))[1]


def test_two_subsets_that_are_complements(forgetful: Callable[[], None]) -> None:
    assert complements(open_center()) is None
    forgetful()
    assert complements(open_center()) == pytest.approx(hospital()["crp"][0])


def test_missing_values_are_told_of_no_difference_either() -> None:
    """Of 12 people without a value, 11 are women: the one man is not told by subtraction."""
    rows = hospital().with_columns(
        crp=pl.when(pl.col("id") < 12).then(None).otherwise(pl.col("crp")),
        sex=pl.when(pl.col("id") < 11).then(pl.lit("F")).otherwise(pl.lit("M")),
        ward=pl.when(pl.col("id") % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b")),
    )
    rows = rows.with_columns(sex=pl.when(pl.col("id") > 60).then(pl.lit("F")).otherwise("sex"))
    center = open_center(rows)
    said = ask(center, MomentsQuestion(variable="crp")).aggregate
    assert said is not None
    assert said.moments[0].missing == 12  # type: ignore[union-attr]
    grouped = ask(center, MomentsQuestion(variable="crp", by="sex")).aggregate
    assert grouped is not None
    assert {m.group: m.missing for m in grouped.moments} == {"F": None, "M": None}  # type: ignore[union-attr]


def answered(center: Center, where: str) -> bool:
    return ask(center, SizesQuestion(variable="crp", where=where)).aggregate is not None


def halve(center: Center) -> float:
    """The one person aged 58: everybody, but for that person if the value is below a limit."""
    told(center)
    low, high = 0.0, 40.0
    for _ in range(30):
        middle = (low + high) / 2
        above = answered(center, f"age != 58 or crp > {middle}")
        low, high = (middle, high) if above else (low, middle)
    return low


def test_no_series_of_refusals_finds_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of the same people in other words is refused like one that differs by a person."""
    truth = hospital()["crp"][0]
    assert abs(halve(open_center()) - truth) > 0.01
    from unpooled.center.memory import proposal

    monkeypatch.setattr(proposal, "condition", lambda _: frozenset())
    assert halve(open_center()) == pytest.approx(truth, abs=1e-6)


def test_the_same_words_are_answered_again_and_in_any_order() -> None:
    center = open_center()
    assert answered(center, "sex == 'F' and age > 30")
    assert answered(center, "30 < age and sex == 'F'")
    again = SizesQuestion(variable="crp", by="sex", groups=("F",), where="age > 30")
    assert isinstance(ask(center, again).aggregate, Sizes)
    assert not answered(center, "not sex == 'M' and age > 30")


def test_other_variables_are_not_concerned() -> None:
    center = open_center()
    assert told(center)
    assert not told(center, where="id != 0")
    age = SizesQuestion(variable="age", where="id != 0")
    assert ask(center, age).aggregate is not None
