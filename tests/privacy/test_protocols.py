"""Attacks on protocols: all that one tells, together with everything ad hoc before and after it."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import polars as pl
import pytest

from tests.privacy.linear_attack import fewest_of_sums
from tests.privacy.overheard import Overheard, overheard
from unpooled import Federation
from unpooled.center import disclosure
from unpooled.center.questions import Grouping, Protocol, ProtocolVariable
from unpooled.errors import UnpooledError

K = 3
Random = np.random.Generator


def hospital(random: Random, size: int) -> pl.DataFrame:
    def lacking(values: list[object], share: float) -> list[object]:
        gone = random.random(size) < share
        return [None if without else value for value, without in zip(values, gone, strict=True)]

    return pl.DataFrame(
        {
            "arm": lacking(random.choice(["a", "b"], size).tolist(), random.choice([0, 0.05])),
            "sex": random.choice(["F", "M"], size).tolist(),
            "ward": lacking(random.choice(["x", "y", "z"], size).tolist(), 0.05),
            "age": random.integers(20, 90, size).tolist(),
            "crp": lacking(random.integers(0, 40, size).tolist(), random.choice([0, 0.03, 0.3])),
            "stage": lacking(random.choice(["I", "II", "III"], size).tolist(), 0.02),
        }
    )


def plan(random: Random, number: int) -> Protocol:
    """Random groupings, crossed and at the side, of random variables."""
    cuts = tuple(sorted({float(cut) for cut in random.integers(30, 80, random.integers(1, 3))}))
    possible = [
        Grouping(name="arm", levels=("a", "b")),
        Grouping(name="sex"),
        Grouping(name="band", of="age", cuts=cuts),
        Grouping(name="ward", with_=()),
    ]
    chosen = [g for g in possible if random.random() < 0.6]
    variables = {
        "crp": ProtocolVariable(kind="number", missing=(0.0,) if random.random() < 0.3 else ()),
        "stage": ProtocolVariable(levels=("I", "II", "III"), ordered=random.random() < 0.5),
    }
    return Protocol(title=f"plan {number}", groups=tuple(chosen), variables=variables)


def ad_hoc(fed: Federation, random: Random) -> None:
    """A question of its own, answered or not."""
    by = str(random.choice(["arm", "sex", "ward", ""])) or None
    where = str(random.choice(["", "age >= 60", "sex == 'F'", "age < 45 and arm == 'a'"])) or None
    method: Callable[..., object] = fed.describe if random.random() < 0.5 else fed.table
    with suppress(UnpooledError):
        method("crp", by, where=where)


def fewest(heard: Overheard) -> int:
    return min(fewest_of_sums(rows, K) for _, rows in heard.equations())


def after(seed: int) -> tuple[int, int]:
    """Of how few people some number speaks that follows from all; and how many numbers there are.

    Two protocols, and questions of their own before, between and after them.
    """
    random = np.random.default_rng(seed)
    frame = hospital(random, int(random.integers(24, 48)))
    with overheard() as heard, Federation.local({"A": frame}, k=K, seed=seed) as fed:
        for number in range(2):
            ad_hoc(fed, random)
            fed.ask_protocol(plan(random, number))
        ad_hoc(fed, random)
    return fewest(heard), sum(len(rows) for rows in heard.variables.values())


@pytest.fixture(autouse=True)
def _each_value_its_own_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disclosure, "_CROWD", 1)


@pytest.mark.parametrize("seed", [0, 1, 2, 5, 6, 8])
def test_nothing_that_follows_from_protocols_and_questions_speaks_of_fewer_than_k_people(
    seed: int,
) -> None:
    people, numbers = after(seed)
    assert people >= K
    assert numbers > 10
