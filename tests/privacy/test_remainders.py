"""Few values by subtraction: what two means leave between them is judged like a mean of its own.

Each attack succeeds on a center that looks at each set by itself.
"""

from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.test_composition import ask, open_center
from unpooled.center import Center
from unpooled.center.keys import CenterKey
from unpooled.center.memory import proposal
from unpooled.center.memory.remainders import remainders
from unpooled.center.policy import Policy
from unpooled.data.sources import open_source
from unpooled.maths.arrays import BoolArray
from unpooled.questions import GroupMoments, Moments, MomentsQuestion, PowersQuestion

Asked = dict[str, object]


def arms() -> pl.DataFrame:
    """42 of 300 people died; of the 60 in arm B two, which no answer about B tells."""
    died = np.zeros(300, dtype=int)
    died[:40] = died[240:242] = 1
    return pl.DataFrame({"died": died, "arm": ["A"] * 240 + ["B"] * 60, "sex": ["F", "M"] * 150})


def described(center: Center, **fields: object) -> dict[str, GroupMoments]:
    said = ask(center, MomentsQuestion(**fields)).aggregate  # type: ignore[arg-type]
    return {m.group: m for m in said.moments} if isinstance(said, Moments) else {}


def deaths(answer: dict[str, GroupMoments], group: str) -> float | None:
    told = answer.get(group)
    return None if told is None or told.mean is None else told.n * told.mean


def deaths_in_b(center: Center, *questions: Asked) -> float | None:
    """Everybody's, less those of arm A."""
    found: dict[str, float | None] = {}
    for asked in questions:
        answer = described(center, variable="died", **asked)
        arm_a = asked.get("where") == "arm != 'B'"
        found["A" if arm_a or "by" in asked else "all"] = deaths(
            answer, "A" if "by" in asked else "all"
        )
    everybody, others = found["all"], found["A"]
    return None if everybody is None or others is None else everybody - others


EVERYBODY: Asked = {}
ARM_A: list[Asked] = [{"by": "arm"}, {"by": "arm", "groups": ("A",)}, {"where": "arm != 'B'"}]
PLAIN = [order for others in ARM_A for order in permutations((EVERYBODY, others))]


@pytest.mark.parametrize("questions", PLAIN)
def test_few_deaths_do_not_follow_from_two_means(
    questions: tuple[Asked, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = described(open_center(arms()), variable="died", where="arm == 'B'")
    assert deaths(direct, "all") is None
    assert deaths_in_b(open_center(arms()), *questions) is None
    monkeypatch.setattr(proposal, "values_left", lambda *_: 0)
    assert deaths_in_b(open_center(arms()), *questions) == pytest.approx(2)


def test_what_is_withheld_still_says_how_many_there_are() -> None:
    center = open_center(arms())
    assert described(center, variable="died")["all"].mean == pytest.approx(0.14)
    told = described(center, variable="died", by="arm")
    assert {group: (m.n, m.mean, m.sd) for group, m in told.items()} == {
        "A": (240, None, None),
        "B": (60, None, None),
    }
    by_sex = described(center, variable="died", by="sex")
    assert all(m.mean is not None for m in by_sex.values())  # both leave each other enough


def test_one_person_apart_among_people_alike_stays_hidden() -> None:
    """288 people with all kinds of values, 11 with a 5 and one with a 6."""
    random = np.random.default_rng(0)
    rows = pl.DataFrame({"x": [*random.normal(50, 10, 288).round(2), *[5.0] * 11, 6.0]})
    center = open_center(rows)
    assert described(center, variable="x")["all"].mean is not None
    assert described(center, variable="x", where="x not in (5, 6)")["all"].mean is None
    lambdas = (0.0, 1.0)
    question = PowersQuestion(variable="x", lambdas=lambdas, where="x not in (5, 6)")
    assert ask(center, question).aggregate is None


def test_of_three_to_seven_values_the_sd_alone_is_withheld() -> None:
    """The twelve people of ward b take four values: their mean may be told, their SD not."""
    random = np.random.default_rng(1)
    rows = pl.DataFrame(
        {"x": [*random.normal(9, 3, 200), *[1.0, 2.0, 3.0, 4.0] * 3], "b": [0] * 200 + [1] * 12}
    )
    center = open_center(rows)
    assert described(center, variable="x")["all"].sd is not None
    first = described(center, variable="x", where="b == 0")
    assert first["all"].mean is not None
    assert first["all"].sd is None
    assert described(center, variable="x", where="b == 0") == first


def test_continuous_values_are_told_as_ever() -> None:
    random = np.random.default_rng(2)
    rows = pl.DataFrame(
        {"x": random.normal(9, 3, 300), "arm": ["A", "B", "C"] * 100, "sex": ["F", "M"] * 150}
    )
    center = open_center(rows)
    for fields in ({}, {"by": "arm"}, {"by": "sex"}, {"where": "arm != 'B'"}, {}):
        answer = described(center, variable="x", **fields)
        assert all(m.mean is not None and m.sd is not None for m in answer.values())


def test_means_are_remembered_after_a_restart(tmp_path: Path) -> None:
    def opened() -> Center:
        key = CenterKey.load_or_create(tmp_path / "Porto.key")
        ledger = tmp_path / "Porto.ledger"
        return Center("Porto", open_source(arms()), Policy(), key, None, ledger)

    center = opened()
    assert described(center, variable="died")["all"].mean is not None
    center.close()
    again = opened()
    assert described(again, variable="died", by="arm")["A"].mean is None
    assert described(again, variable="died")["all"].mean is not None
    again.close()


@settings(max_examples=100)
@given(st.lists(st.integers(1, 255), min_size=1, max_size=5), st.integers(1, 255))
def test_a_remainder_is_a_combination_of_told_sets(told: list[int], new: int) -> None:
    def people(bits: int) -> BoolArray:
        return np.array([bool(bits >> i & 1) for i in range(8)])

    sets = [people(bits) for bits in told]
    own = people(new)
    rank = np.linalg.matrix_rank(np.array([*sets, own], dtype=float))
    for left in remainders(sets, own):
        assert np.linalg.matrix_rank(np.array([*sets, own, left], dtype=float)) == rank
    nested = [some & ~own for some in sets if not (own & ~some).any() and (some & ~own).any()]
    found = [left.tolist() for left in remainders(sets, own)]
    assert all(left.tolist() in found for left in nested)
