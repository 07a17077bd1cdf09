"""Any number of answers together: what follows from all of them speaks of at least K people.

The attacker writes down whom each answer counts and solves for a few people.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.curious import K, Score, ask, open_center, total
from tests.privacy.linear_attack import Labels, People, Told, claims
from tests.privacy.overheard import overheard
from unpooled.center import Center
from unpooled.center.cohort.people import Cohort
from unpooled.center.questions import (
    AboutPeople,
    GroupRanksQuestion,
    LatticeQuestion,
    MomentsQuestion,
    RanksQuestion,
    SizesQuestion,
    SurvivalQuestion,
    TableQuestion,
)
from unpooled.maths.moments import MeanSD
from unpooled.maths.precision import round_mean, round_mean_sd

Random = np.random.Generator

# --- the harness -------------------------------------------------------------------------------


def labels(*people: int) -> Labels:
    return np.array(people, dtype=np.int64)


def test_sets_of_words_are_combined_over_all_variables() -> None:
    everybody, others = Told(labels(1, 1, 1, 1, 1)), Told(labels(1, 1, 1, 1, 0))
    assert claims([everybody], 3) == {}
    assert claims([everybody, others], 3) == {None: 1}


def test_words_are_combined_with_the_cells_of_each_variable_by_itself() -> None:
    words = Told(labels(1, 1, 1, 0, 0, 0))
    one = Told(labels(1, 1, 2, 2, 2, 2), "crp")
    other = Told(labels(1, 1, 1, 1, 2, 2), "ldl")
    assert claims([one, other], 2) == {}  # beside each other they would tell of two
    assert claims([words, one], 2) == {"crp": 1}
    assert claims([words, other], 2) == {"ldl": 1}
    assert claims([words, one, other], 2) == {"crp": 1, "ldl": 1}


# --- random sequences of questions -------------------------------------------------------------

SMALL_K = 3
VARIABLES = ("yes", "stage", "crp")


def hospital(random: Random) -> pl.DataFrame:
    """Twenty to sixty people, some without one value or another."""
    people = int(random.integers(20, 61))

    def some(values: Any, missing: float) -> list[Any]:
        lacks = random.random(people) < missing
        return [None if none else value for value, none in zip(values, lacks, strict=True)]

    missing = random.choice([0.0, 0.03, 0.2], 4)
    return pl.DataFrame(
        {
            "yes": some(random.integers(0, 2, people).tolist(), missing[0]),
            "stage": some(random.integers(1, 4, people).tolist(), missing[1]),
            "crp": some(random.gamma(4, 1, people).round(1).tolist(), missing[2]),
            "ward": some(random.choice(["a", "b", "c"], people).tolist(), missing[3]),
            "sex": random.choice(["F", "M"], people).tolist(),
        }
    )


def simple(random: Random) -> str:
    """A condition on one column."""
    match int(random.integers(4)):
        case 0:
            return f"yes == {random.integers(0, 2)}"
        case 1:
            return f"stage == {random.integers(1, 4)}"
        case 2:
            return f"crp > {round(float(random.gamma(4, 1)), 1)}"
        case _:
            return f"ward == '{random.choice(['a', 'b', 'c'])}'"


def condition(random: Random) -> str | None:
    """Everybody, or a condition of one or two parts."""
    one, other = simple(random), simple(random)
    return (None, one, f"{one} and {other}", f"{one} or {other}")[int(random.integers(4))]


GROUPS: Mapping[str | None, tuple[str, ...]] = {
    None: ("all",),
    "sex": ("F", "M"),
    "ward": ("a", "b", "c"),
}


HORIZON = 6.0


def question_of(random: Random, where: str | None) -> AboutPeople:
    """A question about one variable, in groups or not."""
    variable = str(random.choice(VARIABLES))
    by = (None, "sex", "ward")[int(random.integers(3))]
    fields: dict[str, Any] = {"variable": variable, "where": where}
    if by is not None:
        fields |= {"by": by, "groups": GROUPS[by]}
    if random.random() < 0.15:
        return SurvivalQuestion(**(fields | {"variable": "crp"}), event="yes", horizon=HORIZON)
    kinds: tuple[type[AboutPeople], ...] = (
        SizesQuestion,
        MomentsQuestion,
        LatticeQuestion,
        TableQuestion,
        *((GroupRanksQuestion,) if by else ()),
        *((RanksQuestion,) if by == "sex" else ()),
    )
    return kinds[int(random.integers(len(kinds)))](**fields)


def counted(question: AboutPeople, cohort: Cohort, aggregate: dict[str, Any]) -> Iterator[Told]:
    """Whom each number of people in an answer counts.

    The attacker has the center's own draws: who counts for a missing value, and whom a condition
    means where a few lack what it asks for, or where the answer is that of a nearby set.
    """
    values = cohort.value()
    answer = aggregate.get("groups") or aggregate.get("sizes") or aggregate.get("moments") or ()
    if "n_x" in aggregate:
        x, y = question.groups or ()
        answer = [{"group": x, "n": aggregate["n_x"]}, {"group": y, "n": aggregate["n_y"]}]
    for group in answer:
        if isinstance(question, SurvivalQuestion):
            yield from by_status(question, cohort, group)
            continue
        people, part = cohort.members(group["group"]), cohort.counted(group["group"])
        table = group.get("table") or {"counts": group.get("counts") or [group["n"]]}
        edges = table.get("edges", aggregate.get("edges", []))
        yield Told(people.astype(np.int64))
        cell = np.where(part, np.searchsorted(edges, values) + 1, 0)
        counts = table["counts"]
        result = np.bincount(cell, minlength=len(counts) + 1)[1:]
        assert result.tolist() == counts, "the harness must know whom a count is about"
        yield Told(cell, question.variable)
        if group.get("missing"):
            yield Told((people & ~part).astype(np.int64), question.variable)
        yield from of_values(question.variable, part, values, group)


def by_status(question: SurvivalQuestion, cohort: Cohort, group: dict[str, Any]) -> Iterator[Told]:
    """Whom the cells of a group's event times, and of its censoring times, count."""
    people, status = cohort.members(group["group"]), cohort.status()
    times = np.minimum(cohort.value(), question.horizon)
    seen = people & (status > 0) & ~np.isnan(times)
    had = seen & (status == 1) & (cohort.value() <= question.horizon)
    followed = np.zeros_like(seen)
    if group["followed"] is not None:
        followed = seen & ~had & (times >= question.horizon)
        assert followed.sum() == group["followed"]
        for variable in (question.variable, question.event):
            yield Told(followed.astype(np.int64), variable)
    yield Told(people.astype(np.int64))
    for name, some in (("events", had), ("censored", seen & ~had), ("either", seen & ~followed)):
        table = group[name]
        if table is not None:
            cell = np.where(some, np.searchsorted(table["edges"], times) + 1, 0)
            counts = np.bincount(cell, minlength=len(table["counts"]) + 1)[1:]
            assert counts.tolist() == table["counts"], "the harness must know whom a count is about"
            yield from (Told(cell, variable) for variable in (question.variable, question.event))


def of_values(
    variable: str, people: People, values: np.ndarray[Any, Any], group: dict[str, Any]
) -> Iterator[Told]:
    """Of few values, those whose number of people follows from mean and SD as they are told.

    All that would be told in the same digits may be meant.
    """
    scale = np.unique(values[~np.isnan(values)])
    if group.get("mean") is None or len(scale) > 3:
        return
    n, fitting = group["n"], []
    for few in product(range(n + 1), repeat=len(scale) - 1):
        if sum(few) <= n:
            counts = np.array([*few, n - sum(few)])
            if fits(MeanSD.of(np.repeat(scale, counts)), group):
                fitting.append(counts)
    assert fitting, "what is told must be what the people have"
    pinned = np.all(np.array(fitting) == fitting[0], axis=0)
    result = np.zeros(len(people), dtype=np.int64)
    for label, value in enumerate(scale[pinned], 1):
        result[people & (values == value)] = label
    if result.any():
        yield Told(result, variable)


def fits(meant: MeanSD, group: dict[str, Any]) -> bool:
    """Whether people with this mean and SD would be told like a group."""
    if group.get("sd") is not None:
        rounded = round_mean_sd(meant)
        return (rounded.mean, rounded.sd) == (group["mean"], group["sd"])
    return meant.sd > 0 and round_mean(meant) == (group["mean"], group["unit"])


def asked(random: Random) -> tuple[list[Told], int]:
    """All that a center told in six to eight questions, and how many it answered."""
    rows = hospital(random)
    center = open_center(rows, k=SMALL_K)
    answer, answered = list[Told](), 0
    with overheard() as people:
        for _ in range(int(random.integers(6, 9))):
            question = question_of(random, condition(random))
            aggregate = ask(center, question)
            answered += bool(aggregate)
            if aggregate:
                answer += counted(question, people.cohorts[-1], aggregate)
    return answer, answered


SEQUENCES = 60


def test_random_questions_together_speak_of_k_people() -> None:
    """Sixteen of sixty sequences told of one or two people, always by more than one variable."""
    result, answered = [], 0
    for seed in range(SEQUENCES):
        answer, some = asked(np.random.default_rng(seed))
        answered += some
        result += [(seed, claims(answer, SMALL_K))] if claims(answer, SMALL_K) else []
    assert answered > SEQUENCES, "honest questions must be answered"
    assert not result, f"{len(result)} of {SEQUENCES}"


# --- a sum that is hidden behind others --------------------------------------------------------


def wards(random: Random) -> pl.DataFrame:
    """Four wards in which many died, and a fifth with few deaths; each in three bays."""
    few = int(random.integers(1, K))
    deaths = [*random.integers(18, 28, 4).tolist(), few]
    died = [random.permutation(np.arange(60) < number).astype(int) for number in deaths]
    return pl.DataFrame(
        {
            "died": np.concatenate(died),
            "ward": np.repeat(np.arange(1, 6), 60),
            "bay": np.tile(np.arange(3), 100),
        }
    )


def told_deaths(center: Center, where: str | None) -> float | None:
    """How many died among these people, where their mean is told."""
    answer = ask(center, MomentsQuestion(variable="died", where=where)).get("moments", ())
    return None if not answer or answer[0]["mean"] is None else answer[0]["n"] * answer[0]["mean"]


DECOYS = ("ward in (1, 2) and bay < 2", "ward in (3, 4) and bay < 2")
WARDS = tuple(f"ward == {number}" for number in range(1, 5))


def decoy_attack(random: Random, decoys: tuple[str, ...]) -> Score:
    """Everybody's deaths less those of four wards; larger sets hide that nothing else is left."""
    rows = wards(random)
    center = open_center(rows)
    for where in decoys:
        told_deaths(center, where)
    parts = [told_deaths(center, where) for where in WARDS]
    assert parts[0] is not None, "an honest mean must be told"
    everybody = told_deaths(center, None)
    truth = int(rows.filter(pl.col("ward") == 5)["died"].sum())
    if everybody is None or None in parts:
        return Score(tried=1)
    claimed = round(everybody - sum(part for part in parts if part is not None))
    return Score(int(claimed == truth), 1, 1)


@pytest.mark.parametrize("decoys", [(), DECOYS], ids=["plain", "decoys"])
def test_few_deaths_do_not_follow_from_many_means(decoys: tuple[str, ...]) -> None:
    """With two decoys seven questions gave the deaths in 20 of 20 centers; without, in none."""
    result = total(decoy_attack(np.random.default_rng(seed), decoys) for seed in range(20))
    assert not result.beats(0.15), result
