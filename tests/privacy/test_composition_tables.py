"""Several tables of the same people, with other groups, edges or K, subtracted from each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.linear_attack import fewest_people
from unpooled.center import Center
from unpooled.center.keys import CenterKey
from unpooled.center.memory.memory import Memory
from unpooled.center.memory.proposal import Proposal
from unpooled.center.memory.speaking import cells_told
from unpooled.center.policy import Policy
from unpooled.data.sources import open_source
from unpooled.maths.arrays import BoolArray, FloatArray
from unpooled.questions import (
    AboutPeople,
    Answer,
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


def open_center(rows: pl.DataFrame, k: int) -> Center:
    key = CenterKey.from_seed(1, "Porto")
    return Center("Porto", open_source(rows), Policy(k=k, moments="all"), key)


class Told:
    """All that a center told, as sets of people: groups, cells of tables, people without values."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        self.sets: list[BoolArray] = []

    def add(self, proposal: Proposal, question: AboutPeople, answer: Answer) -> None:
        assert answer.aggregate is not None
        self.sets += [*proposal.people.values(), *proposal.missing.values()]
        for group, told in cells_told(answer.aggregate, question).items():
            parts, tables = proposal.parts[group], [cells.edges for cells in told]
            if len(tables) == 1:
                cell = np.searchsorted(tables[0], self.values)
                everyone = proposal.people[group]
                self.sets += [everyone & (cell == c) for c in range(len(tables[0]) + 1)]
                continue
            for part, edges in zip(parts, tables, strict=True):
                cell = np.searchsorted(edges, self.values)
                self.sets += [part.people & (cell == c) for c in range(len(edges) + 1)]


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
        "k": draw(st.sampled_from([None, None, 4])),
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
    told = Told(rows["v"].fill_null(np.nan).to_numpy())
    proposals: list[Proposal] = []
    remember = Memory.remember
    with pytest.MonkeyPatch.context() as patch:

        def spy(memory: Memory, proposal: Proposal) -> None:
            proposals.append(proposal)
            if not forgets:
                remember(memory, proposal)

        patch.setattr(Memory, "remember", spy)
        for question in asked:
            answer = decode_answer(center.answer(encode(question)).payload)
            assert Reason.FAILED not in [refusal.reason for refusal in answer.refusals], question
            if answer.aggregate is not None:
                told.add(proposals[-1], question, answer)
    return fewest_people(told.sets, k) if told.sets else k


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
    "K raised by one": [
        TableQuestion(variable="v"),
        TableQuestion(variable="v", k=4),
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
