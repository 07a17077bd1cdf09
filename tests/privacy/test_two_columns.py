"""Two answers about different variables, put together: their people are the same people.

Each answer is legal by itself. A memory that is kept for each variable does not see the other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.curious import K, Score, ask, open_center, total
from unpooled import Federation
from unpooled.center import Center
from unpooled.center.cohort.people import Cohort
from unpooled.center.questions import (
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
from unpooled.errors import UnpooledError
from unpooled.maths import big_arrays
from unpooled.maths.arrays import BoolArray, FloatArray

Random = np.random.Generator
ITEMS = tuple(f"item_{number}" for number in range(1, 10))
COLUMNS = tuple(f"gene_{number}" for number in range(40))


def hospital(random: Random, people: int = 120) -> pl.DataFrame:
    """People of whom one is aged 58; nine items of 0 to 3 and their sum; many other columns."""
    items = {item: random.choice(4, people, p=(0.4, 0.25, 0.2, 0.15)) for item in ITEMS}
    return pl.DataFrame(
        {
            "age": [58, *random.integers(20, 50, people - 1).tolist()],
            "died": random.integers(0, 2, people),
            "arm": random.choice(["A", "B"], people),
            "months": random.exponential(30, people).round(1),
            "relapse": random.integers(0, 2, people),
            "crp": random.gamma(4, 1, people),
            "ldl": random.normal(3, 1, people),
            **items,
            "phq": sum(items.values()),
            **{column: random.normal(0, 1, people) for column in COLUMNS},
        }
    )


def told_size(center: Center, variable: str, where: str | None = None) -> int | None:
    """How many people have a value, where that is told."""
    sizes = ask(center, SizesQuestion(variable=variable, where=where)).get("sizes", ())
    return sizes[0]["n"] if sizes else None


def told_sum(center: Center, variable: str, where: str | None = None) -> float | None:
    """What the values of some people add up to, where that is told."""
    question = MomentsQuestion(variable=variable, where=where)
    for group in ask(center, question).get("moments", ()):
        if group["mean"] is not None:
            return float(group["n"] * group["mean"])
    return None


# --- one person more or less -------------------------------------------------------------------


def people_told(answer: dict[str, Any]) -> int:
    """How many people an answer speaks of, whatever it says of them."""
    if "n_x" in answer:
        return int(answer["n_x"] + answer["n_y"])
    result = 0
    for group in answer.get("groups") or answer.get("sizes") or answer.get("moments") or ():
        tables = [group.get(name) for name in ("table", "events", "censored", "either")]
        cells = sum(sum(table["counts"]) for table in tables if table)
        result += group.get("n") or sum(group.get("counts", ())) or cells
    return int(result)


ARMS: dict[str, Any] = {"by": "arm", "groups": ("A", "B")}
KINDS: dict[str, Callable[[str], Question]] = {
    "sizes": lambda where: SizesQuestion(variable="ldl", where=where),
    "describe": lambda where: MomentsQuestion(variable="ldl", where=where),
    "chain": lambda where: TableQuestion(variable="ldl", where=where),
    "lattice": lambda where: LatticeQuestion(variable="ldl", where=where),
    "ranks": lambda where: RanksQuestion(variable="ldl", where=where, **ARMS),
    "group ranks": lambda where: GroupRanksQuestion(variable="ldl", where=where, **ARMS),
    "follow-up": lambda where: FollowUpQuestion(variable="months", event="relapse", where=where),
    "survival": lambda where: SurvivalQuestion(
        variable="months", event="relapse", horizon=60, where=where
    ),
}


def attribute_attack(random: Random, kind: str) -> Score:
    """Whether the one person aged 58 died: everybody by one column, all but them by another."""
    rows = hospital(random)
    center = open_center(rows)
    everybody = told_size(center, "crp")
    assert everybody == len(rows), "an honest question must be answered"
    others = people_told(ask(center, KINDS[kind]("not (age == 58 and died == 1)")))
    if not others:
        return Score(tried=1)
    return Score(int((everybody - others) == rows["died"][0]), 1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_two_columns_do_not_tell_an_attribute_of_one_person(kind: str) -> None:
    """Six kinds of answers gave it in 16 of 16 centers each; ranks were refused by chance."""
    result = total(attribute_attack(np.random.default_rng(seed), kind) for seed in range(16))
    assert not result.beats(0.5), result


def fresh_columns_attack(random: Random) -> Score:
    """Their value by halves, with a column that nobody asked for at every step."""
    rows = hospital(random)
    center = open_center(rows)
    everybody = told_size(center, "ldl")
    low, high = 0.0, 40.0
    for column in COLUMNS:
        middle = (low + high) / 2
        others = told_size(center, column, f"not (age == 58 and crp < {middle!r})")
        below = others is not None and others != everybody
        low, high = (low, middle) if below else (middle, high)
    return Score(int(abs(low - rows["crp"][0]) < 1e-6), 1, 1)


def test_fresh_columns_do_not_find_a_value_by_halves() -> None:
    """Forty columns gave it to 1e-6 in 10 of 10 centers."""
    result = total(fresh_columns_attack(np.random.default_rng(seed)) for seed in range(10))
    assert not result.beats(0.05), result


def items_attack(random: Random) -> Score:
    """The sum score of one person: the items of everybody, less the scores of all others."""
    rows = hospital(random)
    center = open_center(rows)
    items = [told_sum(center, item) for item in ITEMS]
    assert any(item is not None for item in items), "honest means must be told"
    others = told_sum(center, "phq", "age != 58")
    truth = [item for item in items if item is not None]
    if others is None or len(truth) < len(ITEMS):
        return Score(tried=1)
    return Score(int(round(sum(truth) - others) == rows["phq"][0]), 1, 1)


def test_items_do_not_tell_the_sum_score_of_one_person() -> None:
    """Ten questions gave it in 17 of 17 centers that told every item's mean."""
    result = total(items_attack(np.random.default_rng(seed)) for seed in range(20))
    assert not result.beats(0.2), result


# --- a column and nearly the same again --------------------------------------------------------


def told_mean(center: Center, variable: str) -> float | None:
    """The mean of all who have a value, where it is told."""
    answer = ask(center, MomentsQuestion(variable=variable)).get("moments", ())
    return answer[0]["mean"] if answer else None


def copy_attack(random: Random, people: int) -> float:
    """How far off the claim is of a value that one of two columns lacks, in SDs."""
    crp = random.normal(0, 1, people).round(3)
    site = np.where(crp > crp[0], "high", "low")  # who is alike says little of where they are
    rows = {"crp": crp, "checked": [None, *crp[1:].tolist()], "site": site}
    center = open_center(pl.DataFrame(rows))
    everybody, others = told_mean(center, "crp"), told_mean(center, "checked")
    assert everybody is not None, "an honest mean must be told"
    claimed = 0.0 if others is None else people * everybody - (people - 1) * others
    return abs(claimed - float(crp[0]))


def without_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on a mean is of those who have a value, beside the count of all."""
    monkeypatch.setattr(Cohort, "value", Cohort.known_values)
    chosen = big_arrays.chosen

    def with_value(values: FloatArray, who: BoolArray) -> FloatArray:
        some = chosen(values, who)
        return some[~np.isnan(some)]

    monkeypatch.setattr(big_arrays, "chosen", with_value)


def test_means_of_those_with_a_value_would_tell_what_a_copy_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why the draws are there, rounded as means are: .1 SD off in the median, of 30 people."""
    without_draws(monkeypatch)
    off = [copy_attack(np.random.default_rng(seed), 30) for seed in range(30)]
    assert float(np.median(off)) < 0.2


@pytest.mark.parametrize("people", [30, 120])
def test_a_copy_without_one_value_does_not_tell_that_value(people: int) -> None:
    """Exact means gave it to 1e-15. The mean, as anybody would guess, is .67 SD off."""
    off = [copy_attack(np.random.default_rng(seed), people) for seed in range(60)]
    assert float(np.median(off)) > 0.4


# --- a condition beside the cells of its variable ----------------------------------------------


def cells_of(
    center: Center, table: type[TableQuestion | LatticeQuestion]
) -> tuple[list[float], list[int]]:
    """The edges and counts of a variable's own table."""
    answer = ask(center, table(variable="crp"))
    if table is TableQuestion:
        return answer["edges"], answer["groups"][0]["counts"]
    part = answer["groups"][0]["table"]
    return part["edges"], part["counts"]


def between_attack(random: Random, table: type[TableQuestion | LatticeQuestion]) -> Score:
    """How many lie between a limit of a condition and the next edge of the variable's table."""
    rows = hospital(random)
    limit = round(float(random.uniform(2, 7)), 2)
    center = open_center(rows)
    edges, counts = cells_of(center, table)
    crp = rows["crp"].to_numpy()
    above = told_size(center, "ldl", f"crp > {limit}")
    after = [*edges, np.inf]
    upper = int(np.searchsorted(after, limit))
    truth = int(((crp > limit) & (crp <= after[upper])).sum())
    lower = int((crp <= limit).sum()) - sum(counts[:upper])
    small = 0 < truth < K or 0 < lower < K
    if above is None:
        return Score(tried=int(small))
    claimed = above - sum(counts[upper + 1 :])
    right = claimed == truth and small
    return Score(int(right), int(small or right), int(small))


@pytest.mark.parametrize("table", [TableQuestion, LatticeQuestion])
def test_a_condition_beside_its_variable_s_table_does_not_count_few_people(
    table: type[TableQuestion | LatticeQuestion],
) -> None:
    """Chain tables gave 26 of 27 small counts, lattice tables 25 of 26."""
    result = total(between_attack(np.random.default_rng(seed), table) for seed in range(30))
    assert result.tried > 10
    assert result.right == 0, result


# --- a grouping beside another -----------------------------------------------------------------


def refused_group_attack(random: Random) -> Score:
    """How many people a group has that is too small to be told: everybody, less the others."""
    people, few = 120, int(random.integers(1, K))
    ward = random.permutation(["a"] * 60 + ["b"] * (60 - few) + ["c"] * few)
    rows = hospital(random, people).with_columns(ward=pl.Series(ward))
    fed = Federation.local({"Porto": rows}, seed=1)
    assert fed.describe("crp").to_dict()["groups"][0]["n"] == people
    try:
        others = fed.describe("ldl", by="ward", groups=("a", "b")).to_dict()["groups"]
    except UnpooledError:
        return Score(tried=1)
    answer = [group["n"] for group in others]
    if len(answer) < 2:
        return Score(tried=1)
    return Score(int(people - sum(answer) == few), 1, 1)


def test_groups_of_another_column_do_not_tell_the_size_of_a_small_group() -> None:
    """Two questions gave it in 20 of 20 centers."""
    result = total(refused_group_attack(np.random.default_rng(seed)) for seed in range(20))
    assert not result.beats(0.2), result
