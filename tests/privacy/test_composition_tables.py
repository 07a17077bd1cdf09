"""Several tables of the same people, by other groups, edges or bins, minus each other."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.linear_attack import fewest_people
from tests.privacy.overheard import Overheard, overheard
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    AboutPeople,
    JoinQuestion,
    LatticeQuestion,
    MomentsQuestion,
    RanksQuestion,
    Reason,
    SizesQuestion,
    TableQuestion,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.center.rule.memory import Memory
from unpooled.maths.arrays import FloatArray


def open_center(rows: pl.DataFrame, k: int) -> Center:
    key = CenterKey.from_seed(1, "Porto")
    return Center("Porto", open_source(rows), Policy(ad_hoc="free", k=k, moments="all"), key)


def hospital(seed: int, size: int, levels: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    values = random.integers(0, levels, size).astype(float)
    shift = random.random(size) < 0.5
    return pl.DataFrame(
        {
            "v": values + 2 * shift,
            "arm": np.where(shift, "a", "b"),
            "sex": random.choice(["F", "M", "X"], size, p=[0.5, 0.4, 0.1]),
            "age": random.integers(20, 60, size),
            "id": np.arange(size),
        }
    ).with_columns(v=pl.when(pl.col("id") % 17 == 0).then(None).otherwise(pl.col("v")))


QUESTIONS: list[Callable[..., AboutPeople]] = [
    SizesQuestion,
    MomentsQuestion,
    TableQuestion,
    LatticeQuestion,
    lambda **f: TableQuestion(room=4, **f),
    lambda **f: JoinQuestion(edges=(1.5, 3.5, 6.5), **f),
    lambda **f: JoinQuestion(edges=(2.5, 4.5), **f),
]
WHERE = [None, None, None, "age < 40", "sex != 'X'", "id != 3", "v < 4", "arm == 'a' or id > 20"]


@st.composite
def questions(draw: st.DrawFn) -> AboutPeople:
    by = draw(st.sampled_from([None, "arm", "sex"]))
    groups = {"arm": ("a", "b"), "sex": ("F",)}.get(by or "", ()) if draw(st.booleans()) else ()
    fields: dict[str, Any] = {
        "variable": "v",
        "by": by,
        "groups": groups or None,
        "where": draw(st.sampled_from(WHERE)),
    }
    if by == "arm" and groups and draw(st.integers(0, 4)) == 0:
        return RanksQuestion(**fields)
    asked: AboutPeople = draw(st.sampled_from(QUESTIONS))(**fields)
    return asked


def fewest_after(
    rows: pl.DataFrame, asked: list[AboutPeople], k: int, forgets: bool = False
) -> int:
    """Of how few people some number speaks that follows from all answers together."""
    center = open_center(rows, k)
    with pytest.MonkeyPatch.context() as patch, overheard() as answers:
        if forgets:
            patch.setattr(Memory, "remember", lambda *_: None)
            patch.setattr(Center, "_nearest", lambda *_: [])
        for question in asked:
            answer = decode_answer(center.answer(encode(question)).payload)
            assert Reason.FAILED not in [refusal.reason for refusal in answer.refusals], question
    return min(fewest_people([row > 0 for row in rows], k) for rows in counts(answers))


def counts(answer: Overheard) -> Iterator[list[FloatArray]]:
    """The numbers of people among what was told: each person is in one or not."""
    for _, equations in answer.equations():
        yield [row for row in equations if np.isin(row, (0, 1)).all()]


def test_what_follows_from_the_rest_of_parted_people_is_not_forgotten() -> None:
    """Those below 4 and everybody, less both sexes' tables: one X at 4 or above."""
    asked: list[AboutPeople] = [
        SizesQuestion(variable="v", where="v < 4"),
        SizesQuestion(variable="v"),
        TableQuestion(variable="v", by="sex"),
    ]
    rows = hospital(2, 49, 6)
    assert rows.filter((pl.col("sex") == "X") & (pl.col("v") >= 4)).height == 1
    assert fewest_after(rows, asked, 3) == 3


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(24, 60),
    st.integers(3, 9),
    st.lists(questions(), min_size=2, max_size=8),
)
def test_no_sequence_of_questions_singles_out_fewer_than_k_people(
    seed: int, size: int, levels: int, asked: list[AboutPeople]
) -> None:
    assert fewest_after(hospital(seed, size, levels), asked, 3) == 3


ATTACKS: dict[str, list[AboutPeople]] = {
    "overall, then by group": [
        TableQuestion(variable="v"),
        TableQuestion(variable="v", by="arm"),
    ],
    "by group, then overall": [
        TableQuestion(variable="v", by="arm"),
        TableQuestion(variable="v"),
    ],
    "by sex, then by arm": [
        TableQuestion(variable="v", by="sex", groups=("F", "M"), where="sex != 'X'"),
        TableQuestion(variable="v", by="arm", groups=("a", "b"), where="sex != 'X'"),
    ],
    "the chain after the parallel round": [
        LatticeQuestion(variable="v"),
        TableQuestion(variable="v"),
    ],
    "the parallel round after the chain": [
        TableQuestion(variable="v"),
        LatticeQuestion(variable="v"),
    ],
    "room for fewer bins": [
        TableQuestion(variable="v"),
        TableQuestion(variable="v", room=7),
    ],
    "other edges to join": [
        JoinQuestion(variable="v", edges=(1.5, 3.5)),
        JoinQuestion(variable="v", edges=(2.5, 5.5)),
    ],
    "a condition on the variable itself": [
        TableQuestion(variable="v"),
        MomentsQuestion(variable="v", where="v < 4"),
    ],
}
K = 3


@pytest.mark.parametrize("asked", ATTACKS.values(), ids=ATTACKS)
def test_two_tables_of_the_same_people(asked: list[AboutPeople]) -> None:
    """On whole numbers and on others; without memory, some of nine hospitals are exposed."""
    exposed = 0
    for seed in range(9):
        rows = hospital(seed, 48, 9)
        if seed % 3 == 0:
            noise = np.random.default_rng(seed).random(48)
            rows = rows.with_columns(v=pl.col("v") + pl.Series(noise))
        assert fewest_after(rows, asked, K) == K
        exposed += fewest_after(rows, asked, K, forgets=True) < K
    assert exposed >= 2
