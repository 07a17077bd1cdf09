"""Few values by subtraction from other answers than means: tables, ranks and numbers of people.

Each attack succeeds on a center that does not look at what sums leave between them. It is told
means and ranks to their last digit, so that nothing but the rule can stop it.
"""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.taken_out import anything_goes, exact_numbers
from tests.privacy.test_composition import ask
from unpooled import Federation, Variable
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    AboutPeople,
    Aggregate,
    Answer,
    CenterJoin,
    CenterTable,
    GroupRanks,
    GroupRanksQuestion,
    JoinQuestion,
    LatticeQuestion,
    LatticeTables,
    Moments,
    MomentsQuestion,
    Ranks,
    RanksQuestion,
    Refusal,
    Sizes,
    SizesQuestion,
    TableQuestion,
)
from unpooled.center.questions import Reason as Why
from unpooled.center.records.keys import CenterKey
from unpooled.maths.ranks.mann_whitney import rank_statistics

K = 10


@pytest.fixture(autouse=True)
def to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    exact_numbers(monkeypatch)


WARDS = ("a", "c")  # of arm A


def arms() -> pl.DataFrame:
    """42 of 300 people died; of the 60 in arm B two, which no answer about B tells."""
    died = np.zeros(300, dtype=int)
    died[:25] = died[120:135] = died[240:242] = 1
    return pl.DataFrame(
        {
            "died": died,
            "arm": ["A"] * 240 + ["B"] * 60,
            "ward": ["a"] * 120 + ["c"] * 120 + ["b"] * 60,
            "sex": ["F", "M"] * 150,
        }
    )


def porto(ledger: Path | None = None, **declared: Any) -> Center:
    key = CenterKey.from_seed(1, "Porto")
    truth = {"died": Variable(**declared)}
    return Center("Porto", open_source(arms()), Policy(ad_hoc="free"), key, truth, ledger)


def deaths(aggregate: Aggregate | None) -> float | None:
    """The attack: how many died, as an answer about everybody or about arm A tells."""
    match aggregate:
        case Moments():
            answer = {m.group: m for m in aggregate.moments}
            some = answer.get("A", answer.get("all"))
            return None if some is None or some.mean is None else some.n * some.mean
        case CenterTable() | CenterJoin():
            (counts,) = (group.counts for group in aggregate.groups)
            return counts[1] if len(counts) == 2 else None
        case LatticeTables():
            (table,) = (group.table for group in aggregate.groups if group.group != "B")
            if len(table.counts) == 2:
                return table.counts[1]
            return None if table.means[0] is None else sum(table.counts) * table.means[0]
        case Ranks():
            return deaths_ranked(aggregate.u, aggregate.variance)
        case GroupRanks():
            return deaths_ranked(aggregate.pairs[0].u, aggregate.pairs[0].variance)
        case Sizes():
            return aggregate.sizes[0].n
        case _:
            return None


def deaths_ranked(u: float, variance: float) -> int | None:
    """U says how many more died in one ward of 120 than in the other; the variance, how many."""
    more = round(u / 120)
    fitting = []
    for x in range(max(0, -more), 61):  # at most half
        wards = [np.repeat([0.0, 1.0], [120 - n, n]) for n in (x, x + more)]
        if np.isclose(rank_statistics(wards[0], wards[1], k=K).variance, variance):
            fitting.append(x + x + more)
    return fitting[0] if len(fitting) == 1 else None


EVERYBODY = MomentsQuestion(variable="died")
ARM_A: dict[str, AboutPeople] = {
    "its table": TableQuestion(variable="died", by="arm", groups=("A",)),
    "a table under a condition": TableQuestion(variable="died", where="arm == 'A'"),
    "a join": JoinQuestion(variable="died", where="arm == 'A'", edges=(0.5,)),
    "tables on a lattice": LatticeQuestion(variable="died", by="arm"),
    "a lattice under a condition": LatticeQuestion(variable="died", where="arm == 'A'"),
    "ranks of its wards": RanksQuestion(variable="died", by="ward", groups=WARDS),
    "ranks of groups": GroupRanksQuestion(variable="died", by="ward", groups=WARDS),
    "the number of the dead": SizesQuestion(variable="died", where="died == 1 and arm == 'A'"),
}
ORDERS = [order for other in ARM_A.values() for order in permutations((EVERYBODY, other))]
NAMES = [f"{name}, {when}" for name in ARM_A for when in ("after the mean", "before it")]


def deaths_in_b(center: Center, questions: tuple[AboutPeople, ...]) -> float | None:
    """Everybody's, less those of arm A."""
    answer = {question: deaths(ask(center, question).aggregate) for question in questions}
    everybody = answer.pop(EVERYBODY)
    (others,) = answer.values()
    return None if everybody is None or others is None else everybody - others


@pytest.mark.parametrize("questions", ORDERS, ids=NAMES)
def test_few_deaths_do_not_follow_from_a_mean_and_another_answer(
    questions: tuple[AboutPeople, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert deaths_in_b(porto(), questions) is None
    anything_goes(monkeypatch)
    assert deaths_in_b(porto(), questions) == pytest.approx(2)


THE_DEAD = SizesQuestion(variable="died", where="died == 1")
BY_DEATH = SizesQuestion(variable="died", by="died", groups=("1",))
MEAN_OF_A = MomentsQuestion(variable="died", where="arm == 'A'")


@pytest.mark.parametrize("number", [THE_DEAD, BY_DEATH], ids=["by a condition", "by groups"])
@pytest.mark.parametrize("other", [MEAN_OF_A, ARM_A["ranks of its wards"]], ids=["mean", "ranks"])
@pytest.mark.parametrize("number_first", [True, False])
def test_few_deaths_do_not_follow_from_the_number_of_all(
    number: AboutPeople, other: AboutPeople, number_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who died are a set that crosses arm A; but all others live, so it is a sum."""
    questions = (number, other) if number_first else (other, number)

    def attack() -> float | None:
        center = porto()
        answer = {question: deaths(ask(center, question).aggregate) for question in questions}
        dead, of_a = answer[number], answer[other]
        return None if dead is None or of_a is None else dead - of_a

    assert attack() is None
    anything_goes(monkeypatch)
    assert attack() == pytest.approx(2)


def test_a_number_of_those_above_a_value_is_told_beside_means_of_many_values() -> None:
    """Of people who are not alike a number is no sum."""
    rows = pl.DataFrame({"crp": np.random.default_rng(1).gamma(2, 4, 300), "arm": ["A", "B"] * 150})
    center = Center(
        "Porto", open_source(rows), Policy(ad_hoc="free"), CenterKey.from_seed(1, "Porto")
    )
    assert ask(center, MomentsQuestion(variable="crp", by="arm")).aggregate is not None
    high = ask(center, SizesQuestion(variable="crp", where="crp >= 10")).aggregate
    assert isinstance(high, Sizes)


def test_a_cell_does_not_tell_the_mean_that_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits, the one cell of a table on a lattice has a mean: that is the deaths again."""
    asked = (EVERYBODY, LatticeQuestion(variable="died", where="arm == 'A'"))
    assert deaths_in_b(porto(lower=0.0, upper=1.0), asked) is None
    anything_goes(monkeypatch)
    assert deaths_in_b(porto(lower=0.0, upper=1.0), asked) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("join_first", [True, False])
def test_squares_beside_a_cell_of_two_values_do_not_count_a_few(
    join_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In arm A 40 people have a 1 and two a 2; in arm B three have a 1 and ten a 2.

    Σx² − 2Σx is 0 for everybody but the ones; with 42 of A in the upper cell, it is how many more
    have a 2 in A than a 1 in B.
    """
    scores = [0] * 198 + [1] * 40 + [2] * 2 + [0] * 47 + [1] * 3 + [2] * 10
    rows = pl.DataFrame({"score": scores, "arm": ["A"] * 240 + ["B"] * 60})
    join = JoinQuestion(variable="score", where="arm == 'A'", edges=(0.5,))
    mean = MomentsQuestion(variable="score")
    policy, key = Policy(ad_hoc="free"), CenterKey.from_seed(1, "Porto")

    def attack() -> float | None:
        center = Center("Porto", open_source(rows), policy, key)
        asked: list[AboutPeople] = [join, mean] if join_first else [mean, join]
        result = {type(question): ask(center, question).aggregate for question in asked}
        moments, cells = result[MomentsQuestion], result[JoinQuestion]
        assert isinstance(moments, Moments)
        (answer,) = moments.moments
        if answer.mean is None or answer.sd is None or not isinstance(cells, CenterJoin):
            return None
        ((_, upper),) = (group.counts for group in cells.groups)
        squares = (answer.n - 1) * answer.sd**2 + answer.n * answer.mean**2
        return squares - 2 * answer.n * answer.mean + upper

    assert attack() is None
    anything_goes(monkeypatch)
    assert attack() == pytest.approx(2 - 3)


def test_a_table_tells_less_instead_of_nothing() -> None:
    center = porto()
    ask(center, EVERYBODY)
    table = ask(center, ARM_A["its table"])
    assert isinstance(table.aggregate, CenterTable)
    assert table.aggregate.groups[0].counts == (240,)
    lattice = ask(center, ARM_A["a lattice under a condition"])
    assert isinstance(lattice.aggregate, LatticeTables)
    assert lattice.aggregate.groups[0].table.counts == (240,)
    refused: Answer = ask(center, ARM_A["ranks of its wards"])
    assert refused.refusals == (Refusal(reason=Why.WOULD_ISOLATE, limit=K),)


def test_tables_and_ranks_are_remembered_after_a_restart(tmp_path: Path) -> None:
    for name in ("its table", "ranks of its wards", "the number of the dead"):
        ledger = tmp_path / f"{len(name)}.ledger"
        center = porto(ledger)
        assert deaths(ask(center, ARM_A[name]).aggregate) == 40
        center.close()
        again = porto(ledger)
        assert deaths(ask(again, EVERYBODY).aggregate) is None
        assert deaths(ask(again, ARM_A[name]).aggregate) == 40
        again.close()


def test_a_variable_of_two_values_is_told_in_every_way_where_enough_people_have_each() -> None:
    random = np.random.default_rng(1)
    frames = {
        name: pl.DataFrame(
            {
                "died": (random.random(size) < 0.3).astype(int),
                "arm": random.choice(["A", "B"], size),
                "sex": random.choice(["F", "M"], size),
            }
        )
        for name, size in {"Haifa": 500, "Bern": 300}.items()
    }
    questions = {
        "describe": lambda fed: fed.describe("died"),
        "by arm": lambda fed: fed.describe("died", by="arm"),
        "by sex": lambda fed: fed.describe("died", by="sex"),
        "compare": lambda fed: fed.compare("died", by="arm", method="all"),
        "quantiles": lambda fed: fed.quantiles("died", by="arm"),
        "table": lambda fed: fed.table("died", by="arm"),
    }
    for seed in range(4):
        fed = Federation.local(frames, k=K, seed=1)
        for name in np.random.default_rng(seed).permutation(list(questions)):
            result = questions[name](fed)
            assert not result.refusals
            if name in ("describe", "by arm", "by sex"):
                assert all(c.mean is not None and c.sd is not None for c in result.centers)
