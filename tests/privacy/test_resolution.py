"""The resolution that a center finds: it must not depend on a few people, nor on the question."""

import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.keys import CenterKey
from unpooled.messages import LatticeQuestion, LatticeTables, decode_answer, encode
from unpooled.policy import PerPerson, Policy
from unpooled.sources import Source, open_source

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
