"""Whoever was told in cells before is told in cells that part people alike."""

from itertools import accumulate

import numpy as np
import pytest

from tests.network.networks import hospital
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.proposal.summarise import Summary
from unpooled.center.questions import (
    Answer,
    CenterTable,
    CohortQuestion,
    LatticeQuestion,
    LatticeTables,
    Reason,
    SurvivalQuestion,
    SurvivalTables,
    TableQuestion,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey


@pytest.fixture
def center() -> Center:
    key = CenterKey.from_seed(1, "Haifa")
    return Center("Haifa", open_source(hospital(1, 120, 100)), Policy(groupings={"arm": ()}), key)


def ask(center: Center, question: CohortQuestion) -> Answer:
    return decode_answer(center.answer(encode(question)).payload)


def below(counts: tuple[int, ...]) -> set[int]:
    """How many people are below each edge."""
    return set(accumulate(counts[:-1])) - {0, sum(counts)}


def test_after_a_table_of_the_chain_a_lattice_parts_people_as_that_did(center: Center) -> None:
    chain = ask(center, TableQuestion(variable="los", by="arm")).aggregate
    lattice = ask(center, LatticeQuestion(variable="los", by="arm")).aggregate
    assert isinstance(chain, CenterTable)
    assert isinstance(lattice, LatticeTables)
    for before, after in zip(chain.groups, lattice.groups, strict=True):
        assert below(after.table.counts)
        assert below(after.table.counts) <= below(before.counts)


def test_an_edge_that_is_no_point_of_the_public_lattice_does_not_leave(
    center: Center, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Summary, "_lattice_edges", lambda *_: [np.array([3.14159, 4.62618])])
    answer = ask(center, LatticeQuestion(variable="los", by="arm"))
    assert answer.aggregate is None
    assert [refusal.reason for refusal in answer.refusals] == [Reason.FAILED]


def test_a_survival_table_says_where_times_are_cut_and_not_events(center: Center) -> None:
    survival = SurvivalQuestion(variable="months", event="died", by="arm", horizon=1000)
    assert isinstance(ask(center, survival).aggregate, SurvivalTables)
    answer = ask(center, LatticeQuestion(variable="died", by="arm")).aggregate
    assert isinstance(answer, LatticeTables)
    assert [group.table.edges for group in answer.groups] == [(0.5,), (0.5,)]
