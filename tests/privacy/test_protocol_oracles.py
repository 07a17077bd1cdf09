"""Oracles in protocols: what is merged, refused or shared must not count people who are not told.

The policy is the default: nobody approves, and people are grouped by what is declared.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.privacy.curious import K, Score, answer, open_center, total
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Grouping,
    JointQuestion,
    Protocol,
    ProtocolCheckQuestion,
    ProtocolQuestion,
    ProtocolVariable,
)
from unpooled.center.questions.joint import JointPlan, Keeper
from unpooled.center.records.keys import CenterKey

Random = np.random.Generator
PEOPLE = 200
CRP = ProtocolVariable(kind="number")


def least(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The least of these numbers that is enough."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def blocks(center: Center, protocol: Protocol, part: int) -> int:
    """Of how many blocks a check says that this part would be told."""
    checked = answer(center, ProtocolCheckQuestion(protocol=protocol))["aggregate"]
    return len(checked["parts"][part]["blocks"])


# --- a raised K --------------------------------------------------------------------------------


def raised_attack(random: Random) -> Score:
    """How many are 70 or older, who are told of nowhere: they are enough while K is no higher."""
    age = random.integers(20, 90, PEOPLE)
    center = open_center(pl.DataFrame({"age": age}), free=False)
    older, codes = int((age >= 70).sum()), tuple(map(float, range(20, 70)))

    def too_many(k: int) -> bool:
        variables = {"age": ProtocolVariable(kind="number", missing=codes)}
        return blocks(center, Protocol(title="x", k=k, variables=variables), 1) == 0

    return Score(int(least(too_many, K, PEOPLE) == older + 1), 1, 1)


def test_no_raised_k_in_checks_counts_people() -> None:
    """Eight checks gave the number in 10 of 10 centers, and of it without one age the age's own."""
    result = total(raised_attack(np.random.default_rng(seed)) for seed in range(10))
    assert not result.beats(0.1), result


@pytest.mark.parametrize(("wanted", "k"), [(None, K), (5, K), (11, 2 * K), (2 * K, 2 * K)])
def test_a_protocol_s_k_raises_the_center_s_in_doubles(wanted: int | None, k: int) -> None:
    center = open_center(pl.DataFrame({"crp": range(PEOPLE)}), free=False)
    protocol = Protocol(title="x", k=wanted, variables={"crp": CRP})
    assert answer(center, ProtocolQuestion(protocol=protocol))["aggregate"]["k"] == k


# --- codes that mean "missing" -----------------------------------------------------------------


def largest_attack(random: Random) -> Score:
    """The age of the tenth oldest: checks that take all younger ages for missing."""
    age = np.sort(random.integers(20, 90, PEOPLE))
    center = open_center(pl.DataFrame({"age": age}), free=False)

    def too_few(limit: int) -> bool:
        codes = tuple(map(float, range(20, limit)))
        variables = {"age": ProtocolVariable(kind="number", missing=codes)}
        return blocks(center, Protocol(title="x", variables=variables), 1) == 0

    return Score(int(least(too_few, 60, 90) - 1 == age[-K]), 1, 1)


def test_codes_that_mean_missing_do_not_find_a_value_by_halves() -> None:
    """Five checks gave it in 10 of 10 centers."""
    result = total(largest_attack(np.random.default_rng(seed)) for seed in range(10))
    assert not result.beats(0.2), result


def cut_attack(random: Random) -> Score:
    """How old the twentieth oldest are, where ages are grouped by a cut at 50 alone."""
    age = np.sort(random.integers(20, 90, PEOPLE))
    rows = pl.DataFrame({"age": age, "crp": random.gamma(4, 1, PEOPLE)})
    center = open_center(rows, free=False, groupings={"age": (50.0,)})

    def too_few(limit: int) -> bool:
        """Whether fewer than 2K of those over 50 are left without these."""
        codes = tuple(map(float, range(50, limit)))
        band = Grouping(name="age", cuts=(50.0,), missing=codes)
        return blocks(center, Protocol(title="x", groups=(band,), variables={"crp": CRP}), 0) < 3

    return Score(int(least(too_few, 70, 90) - 1 == age[-2 * K]), 1, 1)


def test_codes_of_a_grouping_do_not_cut_it_elsewhere() -> None:
    """Five checks gave it in 10 of 10 centers; with a cut other than 50 all are refused."""
    result = total(cut_attack(np.random.default_rng(seed)) for seed in range(10))
    assert not result.beats(0.2), result


def test_codes_are_settled_by_the_first_check_also_after_a_restart(tmp_path: Path) -> None:
    rows = pl.DataFrame({"crp": range(PEOPLE)})

    def answered(center: Center, *codes: float) -> bool:
        variables = {"crp": ProtocolVariable(kind="number", missing=codes)}
        return blocks(center, Protocol(title="x", variables=variables), 1) == 1

    center = open_center(rows, free=False, folder=tmp_path)
    assert answered(center, 3.0)
    assert not answered(center, 4.0)
    center.close()
    again = open_center(rows, free=False, folder=tmp_path)
    assert not answered(again, 4.0)
    assert answered(again, 3.0)
    again.close()


# --- levels of few people ----------------------------------------------------------------------


def levels_attack(random: Random, *, ordered: bool) -> Score:
    """Whom a protocol finds that names 200 values of a column, of which hardly any is anybody's.

    Where the smallest were joined first, all values that nobody has ended up in one cell: the
    others had as many people as values. Where values rise, a cell began with somebody's.
    """
    values = random.choice(1000, PEOPLE, replace=False)
    center = open_center(pl.DataFrame({"code": values}), free=False)
    levels = tuple(str(value) for value in range(200))
    variables = {"code": ProtocolVariable(levels=levels, ordered=ordered)}
    question = ProtocolQuestion(protocol=Protocol(title="x", variables=variables))
    part = answer(center, question)["aggregate"]["parts"][1]["answer"]["aggregate"]
    there, result = {str(value) for value in values.tolist()}, Score()
    for cell in part["groups"][0]["cells"]:
        named = [level for level in cell["levels"] if level != "other"]
        if ordered:
            claims = [named[0]] if named and named[0] != levels[0] else []
        else:
            claims = named if len(named) == cell["count"] else []
        right = sum(claim in there for claim in claims)
        result += Score(right, len(claims), len(named))
    return result


def test_levels_that_are_merged_do_not_say_who_is_there() -> None:
    """It gave the values of 176 people in 10 centers, and all of them were right."""
    result = total(levels_attack(np.random.default_rng(seed), ordered=False) for seed in range(10))
    assert result.tried > 1000
    assert not result.beats(0.3), result


def test_levels_that_rise_are_not_cut_beside_somebody() -> None:
    """The first level of a cell behind another was somebody's in 38 of 38 cells; any is in .2."""
    result = total(levels_attack(np.random.default_rng(seed), ordered=True) for seed in range(30))
    assert result.claimed > 30
    assert not result.beats(0.25), result


# --- whether people count in a joint center ----------------------------------------------------


def joint_attack(random: Random) -> Score:
    """The twentieth smallest value of a column that may not be asked for, by halves."""
    crp = random.gamma(4, 1, PEOPLE).round(3)
    rows = pl.DataFrame({"crp": crp, "age": range(PEOPLE)})
    keepers = {name: digit * 64 for name, digit in zip("xyz", "012", strict=True)}
    policy, key = Policy(variables=("age",)), CenterKey.from_seed(1, "Porto")
    center = Center("Porto", open_source(rows), policy, key, keepers=keepers)
    named = tuple(Keeper(name=name, public=public) for name, public in keepers.items())

    def small(cut: float) -> bool:
        """Whether the center says that it has fewer than 2K people on one side."""
        question = JointQuestion(
            protocol=Protocol(
                title="x",
                groups=(Grouping(name="crp", cuts=(cut,)),),
                variables={"age": ProtocolVariable(kind="number")},
            ),
            plan=JointPlan(k=K, groupings=(), parts=()),
            members=("Porto",),
            keepers=named,
        )
        return [no["reason"] for no in answer(center, question)["refusals"]] != ["not-joint"]

    low, high = 0.0, float(np.median(crp))
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if small(middle) else (low, middle)
    return Score(int(abs(high - np.sort(crp)[2 * K - 1]) < 1e-6), 1, 1)


def test_whether_a_center_may_join_does_not_find_a_value_by_halves() -> None:
    """Thirty questions, all refused, gave it in 5 of 5 centers, whatever the policy allowed."""
    result = total(joint_attack(np.random.default_rng(seed)) for seed in range(5))
    assert not result.beats(0.2), result
