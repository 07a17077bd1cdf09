"""Few values by subtraction: what two means leave between them is judged like a mean of its own.

Each attack succeeds on a center without the rule. It is told means to their last digit, so that
nothing but the rule can stop it.
"""

from itertools import permutations, product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.taken_out import anything_goes, exact_numbers
from tests.privacy.test_composition import ask, open_center
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import GroupMoments, Moments, MomentsQuestion
from unpooled.center.records.keys import CenterKey
from unpooled.center.rule.disclosure import Told
from unpooled.maths.arrays import Places

Asked = dict[str, object]


@pytest.fixture(autouse=True)
def to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    exact_numbers(monkeypatch)


def arms() -> pl.DataFrame:
    """42 of 300 people died; of the 60 in arm B two, which no answer about B tells."""
    died = np.zeros(300, dtype=int)
    died[:40] = died[240:242] = 1
    return pl.DataFrame({"died": died, "arm": ["A"] * 240 + ["B"] * 60, "sex": ["F", "M"] * 150})


def described(center: Center, **fields: object) -> dict[str, GroupMoments]:
    answer = ask(center, MomentsQuestion(**fields)).aggregate  # type: ignore[arg-type]
    return {m.group: m for m in answer.moments} if isinstance(answer, Moments) else {}


def deaths(answer: dict[str, GroupMoments], group: str) -> float | None:
    answers = answer.get(group)
    return None if answers is None or answers.mean is None else answers.n * answers.mean


def deaths_in_b(center: Center, *questions: Asked) -> float | None:
    """Everybody's, less those of arm A."""
    result: dict[str, float | None] = {}
    for asked in questions:
        answer = described(center, variable="died", **asked)
        arm_a = asked.get("where") == "arm != 'B'"
        result["A" if arm_a or "by" in asked else "all"] = deaths(
            answer, "A" if "by" in asked else "all"
        )
    everybody, others = result["all"], result["A"]
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
    anything_goes(monkeypatch)
    assert deaths_in_b(open_center(arms()), *questions) == pytest.approx(2)


def test_what_is_withheld_still_says_how_many_there_are() -> None:
    center = open_center(arms())
    assert described(center, variable="died")["all"].mean == pytest.approx(0.14)
    answer = described(center, variable="died", by="arm")
    assert {group: (m.n, m.mean, m.sd) for group, m in answer.items()} == {
        "A": (240, None, None),
        "B": (60, None, None),
    }
    by_sex = described(center, variable="died", by="sex")
    assert all(m.mean is not None for m in by_sex.values())  # both leave each other enough


def test_one_person_apart_among_people_alike_stays_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """288 people with all kinds of values, 11 with a 5 and one with a 6."""
    random = np.random.default_rng(0)
    rows = pl.DataFrame(
        {
            "x": [*random.normal(50, 10, 288).round(2), *[5.0] * 11, 6.0],
            "ward": ["a"] * 144 + ["b"] * 144 + ["c"] * 12,
        }
    )

    def attack(**others: object) -> float | None:
        """What the twelve have together, less twelve times 5."""
        center = open_center(rows, Policy(ad_hoc="free", paper_iteration=True))
        everybody = described(center, variable="x")["all"]
        answer = described(center, variable="x", **others)
        if everybody.mean is None or any(m.mean is None for m in answer.values()):
            return None
        rest = sum(m.n * m.mean for m in answer.values() if m.mean is not None)
        return everybody.n * everybody.mean - rest - 60

    apart: list[Asked] = [{"where": "x not in (5, 6)"}, {"by": "ward", "groups": ("a", "b")}]
    assert [attack(**others) for others in apart] == [None, None]
    anything_goes(monkeypatch)
    assert [attack(**others) for others in apart] == [pytest.approx(1), pytest.approx(1)]


def test_mean_and_sd_of_four_values_do_not_follow_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twelve people of ward b take four values: mean and SD leave three ways to deal them."""
    random = np.random.default_rng(1)
    rows = pl.DataFrame(
        {"x": [*random.normal(9, 3, 200), *[1.0, 2.0, 3.0, 4.0] * 3], "b": [0] * 200 + [1] * 12}
    )

    def attack() -> list[tuple[int, ...]]:
        center = open_center(rows)
        everybody = described(center, variable="x")["all"]
        others = described(center, variable="x", where="b == 0")["all"]
        assert described(center, variable="x", where="b == 0")["all"] == others
        assert everybody.sd is not None
        if others.mean is None or others.sd is None:
            return []
        (n, total, squares) = np.subtract(sums(everybody), sums(others))
        deals = (deal for deal in product(range(13), repeat=4) if sum(deal) == n)
        values = np.array([1.0, 2.0, 3.0, 4.0])
        return [
            deal
            for deal in deals
            if np.allclose([values @ deal, values**2 @ deal], [total, squares], atol=1e-6)
        ]

    assert attack() == []
    anything_goes(monkeypatch)
    assert attack() == [(2, 6, 0, 4), (3, 3, 3, 3), (4, 0, 6, 2)]


def sums(answer: GroupMoments) -> tuple[float, float, float]:
    """n, Σx and Σx²."""
    assert answer.mean is not None
    assert answer.sd is not None
    return (
        answer.n,
        answer.n * answer.mean,
        (answer.n - 1) * answer.sd**2 + answer.n * answer.mean**2,
    )


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
        return Center("Porto", open_source(arms()), Policy(ad_hoc="free"), key, None, ledger)

    center = opened()
    assert described(center, variable="died")["all"].mean is not None
    center.close()
    again = opened()
    assert described(again, variable="died", by="arm")["A"].mean is None
    assert described(again, variable="died")["all"].mean is not None
    again.close()


@settings(max_examples=100)
@given(st.lists(st.integers(1, 255), min_size=1, max_size=5), st.integers(1, 255))
def test_what_follows_is_a_combination_of_told_sets(answer: list[int], new: int) -> None:
    def people(bits: int) -> Places:
        return np.array([bits >> i & 1 for i in range(8)], dtype=np.int32)

    truth, sets = Told.nothing(8, 1), [people(bits) for bits in answer]
    for number, part in enumerate(sets, 1):
        truth = truth.heard(part, np.ones(1, dtype=np.int64), number)
    ranks = [np.linalg.matrix_rank(np.array(some)) for some in (sets, [*sets, people(new)])]
    assert truth.follows(people(new)) == (ranks[0] == ranks[1])
