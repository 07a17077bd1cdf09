"""A resolution, found or declared: nothing may depend on a few people, nor on the question."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.keys import CenterKey
from unpooled.center.policy import PerPerson, Policy
from unpooled.data.sources import Source, open_source
from unpooled.data.variables import Variable
from unpooled.questions import (
    AboutPeople,
    LatticeQuestion,
    LatticeTables,
    MomentsQuestion,
    Reason,
    SizesQuestion,
    SurvivalQuestion,
    decode_answer,
    encode,
)

WEEKS = (np.arange(300) % 40).astype(float)


def found(
    values: list[float], where: str | None = None, per_person: PerPerson | None = None
) -> float | None:
    rows = pl.DataFrame({"v": values, "row": range(len(values)), "who": range(len(values))})
    person = None if per_person is None else "who"
    policy = Policy(person=person, per_person=per_person)
    haifa = Center("Haifa", open_source(rows), policy, CenterKey.from_seed(1, "Haifa"))
    asked = LatticeQuestion(variable="v", where=where)
    said = decode_answer(haifa.answer(encode(asked)).payload).aggregate
    assert isinstance(said, LatticeTables)
    return said.resolution


def test_the_value_of_one_person_does_not_move_the_resolution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack: is the age of the one person whom I do not know a whole number?"""

    def attack() -> bool:
        return found([*WEEKS, 7.0]) != found([*WEEKS, 7.5])

    assert not attack()
    rule = Source.resolution
    monkeypatch.setattr(  # the rule taken out
        Source, "resolution", lambda self, v, usual, _least, who: rule(self, v, usual, 1, who)
    )
    assert attack()


def test_no_choice_of_people_moves_the_resolution() -> None:
    values = [*WEEKS, *(np.arange(60) / 4)]
    assert found(values, where="row < 300") == found(values) == 0.05


def test_means_of_several_rows_have_no_resolution() -> None:
    assert found([*WEEKS], per_person="max") == 1.0
    assert found([*WEEKS], per_person="mean") is None


def test_few_people_who_are_even_by_chance_do_not_halve_the_grid() -> None:
    ages = np.random.default_rng(2).integers(20, 90, (40, 22)).astype(float)
    assert {found(list(own)) for own in ages} == {1.0}


def refused(
    values: list[float], resolution: float, question: AboutPeople | None = None
) -> tuple[Reason, ...]:
    rows = pl.DataFrame({"v": values, "row": range(len(values)), "dead": [0, 1] * 200})
    declared = {"v": Variable(resolution=resolution)}
    haifa = Center("Haifa", open_source(rows), Policy(), CenterKey.from_seed(1, "Haifa"), declared)
    answer = decode_answer(haifa.answer(encode(question or SizesQuestion(variable="v"))).payload)
    return tuple(refusal.reason for refusal in answer.refusals)


MANY = (0.05, 0.1, 0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 39.0, 100.0, 1e3, 1e7)
OTHERS = [*WEEKS, *WEEKS[:92]]  # with 8 others they are 400


@pytest.mark.parametrize("few", [1, 8])
def test_no_series_of_declared_resolutions_tells_on_few_people(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: have a center opened with one resolution after the other, and compare."""

    def attack() -> list[float]:
        """The resolutions that say whether a few people have halves, quarters or whole numbers."""
        known = [*OTHERS, *[3.0] * (8 - few)]
        told = {
            r: {refused([*known, *[odd] * few], r) for odd in (7.0, 7.5, 7.25, 7.123)} for r in MANY
        }
        assert (Reason.OFF_RESOLUTION,) in told[2.0]
        return [r for r, said in told.items() if len(said) > 1]

    assert attack() == []
    rule = Source.off_grid

    def anybody(self: Source, *asked: Any, means: bool) -> int:
        return 10 * rule(self, *asked, means=means)

    monkeypatch.setattr(Source, "off_grid", anybody)  # the rule taken out
    assert attack() == [0.05, 0.1, 0.25, 0.5, 1.0]


def test_a_false_resolution_is_told_of_the_whole_column_and_never_of_chosen_people() -> None:
    values = [*OTHERS[:388], *[7.5] * 12]
    for where in (None, "row < 300", "row >= 390", "row == 399", "v == 7.5"):
        for k in (None, 11, 12, 13, 50):
            asked = MomentsQuestion(variable="v", where=where, k=k)
            assert refused(values, 1.0, asked) == (Reason.OFF_RESOLUTION,)
    survival = SurvivalQuestion(variable="v", event="dead", horizon=30.0)
    assert refused(values, 1.0, survival) == (Reason.OFF_RESOLUTION,)
    assert refused([*OTHERS, *[7.5] * 8], 1.0, survival) == ()


def test_another_declared_resolution_moves_no_edge_that_was_told(tmp_path: Path) -> None:
    """A steward may correct it; the first table of the same people stays."""
    rows = pl.DataFrame({"v": [*WEEKS]})
    key = CenterKey.from_seed(1, "Haifa")
    told = []
    for resolution in (None, 0.5, 1.0, 0.1):
        facts = {"v": Variable(resolution=resolution)}
        ledger = tmp_path / "Haifa.ledger"
        haifa = Center("Haifa", open_source(rows), Policy(), key, facts, ledger)
        answer = decode_answer(haifa.answer(encode(LatticeQuestion(variable="v"))).payload)
        haifa.close()
        assert isinstance(answer.aggregate, LatticeTables)
        ((table,),) = (group.tables for group in answer.aggregate.groups)
        told.append((table.edges, table.counts))
    assert len(set(told)) == 1
