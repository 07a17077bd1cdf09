"""Questions whose refusal is the answer: what a center declines to say must not depend on a person.

An oracle needs no number. Each attack reads only whether and why a center refuses.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.curious import K, Score, answer, ask, open_center, reasons, total
from unpooled.center import Center
from unpooled.center.data.variables import Variable
from unpooled.center.questions import (
    CatalogueQuestion,
    FollowUpQuestion,
    GroupRanksQuestion,
    LatticeQuestion,
    MomentsQuestion,
    Question,
    RanksQuestion,
    SizesQuestion,
    SurvivalQuestion,
    TableQuestion,
)

FEW = K - 1
Random = np.random.Generator


def hospital(random: Random, people: int = 120, carriers: int = 0) -> pl.DataFrame:
    """People of whom one is aged 58, and so many carriers of a virus."""
    hiv = random.permutation(np.arange(people) < carriers).astype(int)
    return pl.DataFrame(
        {
            "crp": random.gamma(4, 1, people),
            "age": [58, *random.integers(20, 50, people - 1).tolist()],
            "born": np.arange(people),
            "hiv": hiv,
            "copies": np.where(hiv == 1, random.integers(20, 9_000, people), 0),
            "ward": ["a", "b"] * (people // 2),
        }
    )


# --- a raised K --------------------------------------------------------------------------------


def smaller(center: Center, where: str, k: int) -> bool | None:
    """Whether fewer than k people meet a condition; None where a question has no K."""
    fields: dict[str, Any] = {"variable": "crp", "where": where, "k": k}
    try:
        question = SizesQuestion(**fields)
    except TypeError:
        return None
    return "too-small" in reasons(center, question)


def size_attack(random: Random) -> Score:
    """How many are no carriers, by bisection of K; the others are carriers."""
    people, carriers = 120, int(random.integers(1, K))
    center = open_center(hospital(random, people, carriers))
    assert ask(center, SizesQuestion(variable="crp")), "an honest question must be answered"
    low, high = K, people + 1  # at least low people, fewer than high
    while high - low > 1:
        k = (low + high) // 2
        aggregate = smaller(center, "hiv == 0", k)
        if aggregate is None:
            return Score(tried=1)
        low, high = (low, k) if aggregate else (k, high)
    return Score(int(people - low == carriers), 1, 1)


def test_no_raised_k_tells_the_size_of_a_refused_group() -> None:
    """Seven questions gave the number of carriers, 1 to 9, in 20 of 20 centers."""
    result = total(size_attack(np.random.default_rng(seed)) for seed in range(20))
    assert not result.beats(0.2), result


def bisection_attack(random: Random) -> Score:
    """The value of the one person aged 58: everybody but them is one person too few."""
    rows = hospital(random)
    center = open_center(rows)
    assert ask(center, SizesQuestion(variable="crp")), "an honest question must be answered"
    low, high = 0.0, 40.0
    for _ in range(34):
        middle = (low + high) / 2
        left_out = smaller(center, f"not (age == 58 and crp < {middle!r})", len(rows))
        if left_out is None:
            return Score(tried=1)
        low, high = (low, middle) if left_out else (middle, high)
    return Score(int(abs(low - rows["crp"][0]) < 1e-6), 1, 1)


def test_no_raised_k_finds_a_value_by_halves() -> None:
    """Thirty-four questions, nearly all refused, gave the value to 1e-6 in 10 of 10 centers."""
    result = total(bisection_attack(np.random.default_rng(seed)) for seed in range(10))
    assert not result.beats(0.05), result


def test_a_question_that_names_k_cannot_be_read() -> None:
    center = open_center(hospital(np.random.default_rng(0)))
    payload = json.dumps({"ask": "sizes", "variable": "crp", "k": 20}).encode()
    aggregate = json.loads(center.answer(payload).payload)
    assert aggregate["aggregate"] is None
    assert [refusal["reason"] for refusal in aggregate["refusals"]] == ["unreadable-question"]


# --- a condition that takes up one person ------------------------------------------------------


def taken_up(variable: str, born: int, kind: str) -> Question:
    """A question about all who are no carriers, and one person."""
    where = f"hiv == 0 or born == {born}"
    if kind == "ranks":
        return GroupRanksQuestion(variable=variable, by="ward", groups=("a", "b"), where=where)
    return MomentsQuestion(variable=variable, where=where)


def looks_like_a_carrier(center: Center, question: Question) -> bool:
    """Whether somebody has a rare value, by a reason, a field or what is withheld."""
    aggregate = answer(center, question)
    if any(refusal["reason"] == "few-values" for refusal in aggregate["refusals"]):
        return True
    moments = (aggregate["aggregate"] or {}).get("moments", ())
    return any(group.get("values", 0) == 1 or group.get("mean") is None for group in moments)


def carrier_attack(random: Random, variable: str, kind: str, *, again: bool) -> Score:
    """As many carriers as others, each claimed to be one or not; `again` asks one center."""
    rows = hospital(random, people=200, carriers=40)
    carriers = rows.filter(pl.col("hiv") == 1)["born"].to_list()[:4]
    others = rows.filter(pl.col("hiv") == 0)["born"].to_list()[:4]
    center, result = open_center(rows, free=False), Score()
    for born in random.permutation([*carriers, *others]).tolist():
        if not again:
            center = open_center(rows, free=False)
        aggregate = looks_like_a_carrier(center, taken_up(variable, born, kind))
        result += Score(int(aggregate == (born in carriers)), 1, 1)
    return result


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("kind", ["ranks", "describe"])
@pytest.mark.parametrize("variable", ["hiv", "copies"])
def test_what_is_withheld_does_not_tell_who_is_a_carrier(
    variable: str, kind: str, again: bool
) -> None:
    """Ranks gave 80 of 80 people, in one center or in fresh ones; `describe` only in fresh ones."""
    result = total(
        carrier_attack(np.random.default_rng(seed), variable, kind, again=again)
        for seed in range(10)
    )
    assert result.tried == 80
    assert not result.beats(0.5), result


# --- a small set that one person completes ----------------------------------------------------


def completed_attack(random: Random) -> Score:
    """Nine people and, if they are a carrier, a tenth: only ten are enough for an answer."""
    rows = hospital(random, people=200, carriers=40)
    carriers = rows.filter(pl.col("hiv") == 1)["born"].to_list()[:4]
    others = rows.filter(pl.col("hiv") == 0)["born"].to_list()
    center, result = open_center(rows, free=False), Score()
    assert ask(center, SizesQuestion(variable="crp")), "an honest question must be answered"
    tried = random.permutation([*carriers, *others[:4]]).tolist()
    for place, born in enumerate(tried):
        truth = ", ".join(map(str, others[4 + place * FEW : 4 + (place + 1) * FEW]))
        where = f"born in ({truth}) or (born == {born} and hiv == 1)"
        aggregate = "too-small" not in reasons(center, SizesQuestion(variable="crp", where=where))
        result += Score(int(aggregate == (born in carriers)), 1, 1)
    return result


def test_too_small_does_not_tell_who_completes_a_set() -> None:
    """Without any K in the question it told 80 of 80 people, each in one question."""
    result = total(completed_attack(np.random.default_rng(seed)) for seed in range(10))
    assert not result.beats(0.5), result


def named_attack(random: Random) -> Score:
    """The same by columns of text, in the words that a policy without a word of its own allowed."""
    rows = hospital(random, people=200, carriers=40).with_columns(
        name=pl.col("born").cast(str), hiv=pl.col("hiv").replace_strict({0: "no", 1: "yes"})
    )
    carriers = rows.filter(pl.col("hiv") == "yes")["name"].to_list()[:4]
    others = rows.filter(pl.col("hiv") == "no")["name"].to_list()
    center, result = open_center(rows, free=False), Score()
    assert ask(center, SizesQuestion(variable="crp")), "an honest question must be answered"
    for place, name in enumerate(random.permutation([*carriers, *others[:4]]).tolist()):
        truth = ", ".join(f"'{one}'" for one in others[4 + place * FEW : 4 + (place + 1) * FEW])
        where = f"name in ({truth}) or (name == '{name}' and hiv == 'yes')"
        aggregate = "too-small" not in reasons(center, SizesQuestion(variable="crp", where=where))
        result += Score(int(aggregate == (name in carriers)), 1, 1)
    return result


def test_no_column_is_a_grouping_unless_it_is_declared() -> None:
    """All columns of text were, where none was declared: 80 of 80 people, each in one question."""
    result = total(named_attack(np.random.default_rng(seed)) for seed in range(10))
    assert not result.beats(0.5), result


@pytest.mark.parametrize(
    "where",
    [
        "ward == 'a' or ward == 'b'",
        "not ward == 'a'",
        "ward != 'a'",
        "ward is missing",
        "age >= 31",
        "age == 30",
        "ward == 'a' and age >= 30 and sex == 'F'",
        "born == 3",
    ],
)
def test_a_condition_joins_levels_of_at_most_two_declared_groupings(where: str) -> None:
    """Any condition over them was allowed, also one that singles a person out."""
    rows = hospital(np.random.default_rng(0)).with_columns(sex=pl.lit("F"))
    declared: dict[str, tuple[float, ...]] = {"ward": (), "sex": (), "age": (30, 40)}
    center = open_center(rows, free=False, groupings=declared)
    for allowed in ("ward in ('a')", "ward == 'b' and age >= 30 and age < 40"):
        assert ask(center, SizesQuestion(variable="crp", where=allowed))
    assert reasons(center, SizesQuestion(variable="crp", where=where)) == ("only-groupings",)


# --- the order of checks -----------------------------------------------------------------------


@dataclass(frozen=True)
class Worlds:
    """Two centers of nine people that differ in what they have, and who is asked how."""

    name: str
    one: dict[str, list[Any]]
    other: dict[str, list[Any]]
    questions: Sequence[Question]
    declared: Variable = field(default_factory=Variable)
    policy: dict[str, Any] = field(default_factory=dict)


PLAIN = [float(value) for value in range(1, FEW + 1)]
GROUPED = {"by": "arm", "groups": ("x", "y")}
SURVIVAL: list[Question] = [
    FollowUpQuestion(variable="v", event="died"),
    SurvivalQuestion(variable="v", event="died", horizon=60),
]
VALUES: list[Question] = [
    SizesQuestion(variable="v"),
    MomentsQuestion(variable="v"),
    TableQuestion(variable="v"),
    LatticeQuestion(variable="v"),
    RanksQuestion(variable="v", by="arm", groups=("x", "y")),
    GroupRanksQuestion(variable="v", by="arm", groups=("x", "y")),
]
WORLDS = (
    Worlds("event", {"died": [1] * FEW}, {"died": [0] + [1] * (FEW - 1)}, SURVIVAL),
    Worlds("negative", {"v": [-1.0, *PLAIN[1:]]}, {"v": PLAIN}, SURVIVAL),
    Worlds("infinite", {"v": [inf, *PLAIN[1:]]}, {"v": PLAIN}, VALUES),
    Worlds("limits", {"v": [99.0, *PLAIN[1:]]}, {"v": PLAIN}, VALUES, Variable(lower=0, upper=50)),
    Worlds(
        "resolution", {"v": [x + 0.5 for x in PLAIN]}, {"v": PLAIN}, VALUES, Variable(resolution=1)
    ),
    Worlds("text", {"v": [*map(str, PLAIN[1:]), "high"]}, {"v": PLAIN}, VALUES),
    Worlds("missing", {"v": [None, *PLAIN[1:]]}, {"v": PLAIN}, VALUES),
    Worlds("twice", {"id": [1, 1, *range(3, FEW + 1)]}, {}, VALUES, policy={"person": "id"}),
)


def told_apart(worlds: Worlds) -> list[str]:
    """Which kinds of questions tell one center of nine people from the other."""
    common: dict[str, list[Any]] = {
        "v": PLAIN,
        "died": [0, 1] * (FEW // 2) + [1] * (FEW % 2),
        "arm": ["x"] * 4 + ["y"] * (FEW - 4),
        "id": list(range(FEW)),
    }
    result = []
    for question in worlds.questions:
        aggregate = []
        for part in (worlds.one, worlds.other):
            rows = pl.DataFrame({**common, **part})
            center = open_center(rows, variables={"v": worlds.declared}, **worlds.policy)
            aggregate.append(answer(center, question))
        if aggregate[0] != aggregate[1]:
            result.append(type(question).__name__)
    return result


@pytest.mark.parametrize("worlds", WORLDS, ids=[worlds.name for worlds in WORLDS])
def test_nine_people_are_too_few_whatever_they_have(worlds: Worlds) -> None:
    """Six of the eight were told apart, by reasons that came before `too-small`."""
    assert told_apart(worlds) == []


# --- what a column is --------------------------------------------------------------------------


def test_the_catalogue_does_not_tell_that_one_person_has_decimals(tmp_path: Path) -> None:
    """A file's column was `integer`, and `float` as soon as one of 120 people had 63.5."""
    rows = hospital(np.random.default_rng(0)).select("age", "ward")
    ages = ["63.5", *map(str, rows["age"].to_list()[1:])]
    aggregate = []
    for name, some in (("a", rows), ("b", rows.with_columns(age=pl.Series(ages)))):
        file = tmp_path / f"{name}.csv"
        some.write_csv(file)
        aggregate.append(answer(open_center(file), CatalogueQuestion()))
    assert aggregate[0] == aggregate[1]
