"""A resolution, found or declared: nothing may depend on a few people, nor on the question."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.linear_attack import fewest_people
from tests.privacy.taken_out import anything_goes
from unpooled.center import Center
from unpooled.center.data.sources import Source, open_source
from unpooled.center.data.variables import Variable
from unpooled.center.policy import PerPerson, Policy
from unpooled.center.questions import (
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
from unpooled.center.records.keys import CenterKey
from unpooled.center.rule.memory import Draft

WEEKS = (np.arange(300) % 40).astype(float)


def resolution_of(
    values: list[float], where: str | None = None, per_person: PerPerson | None = None
) -> float | None:
    rows = pl.DataFrame({"v": values, "row": range(len(values)), "who": range(len(values))})
    person = None if per_person is None else "who"
    policy = Policy(ad_hoc="free", person=person, per_person=per_person)
    haifa = Center("Haifa", open_source(rows), policy, CenterKey.from_seed(1, "Haifa"))
    asked = LatticeQuestion(variable="v", where=where)
    answer = decode_answer(haifa.answer(encode(asked)).payload).aggregate
    assert isinstance(answer, LatticeTables)
    return answer.resolution


def test_the_value_of_one_person_does_not_move_the_resolution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack: is the age of the one person whom I do not know a whole number?"""

    def attack() -> bool:
        return resolution_of([*WEEKS, 7.0]) != resolution_of([*WEEKS, 7.5])

    assert not attack()
    rule = Source.resolution
    monkeypatch.setattr(  # the rule taken out
        Source, "resolution", lambda self, v, usual, _least, who: rule(self, v, usual, 1, who)
    )
    assert attack()


def test_no_choice_of_people_moves_the_resolution() -> None:
    values = [*WEEKS, *(np.arange(60) / 4)]
    assert resolution_of(values, where="row < 300") == resolution_of(values) == 0.05


def test_means_of_several_rows_have_no_resolution() -> None:
    assert resolution_of([*WEEKS], per_person="max") == 1.0
    assert resolution_of([*WEEKS], per_person="mean") is None


def test_few_people_who_are_even_by_chance_do_not_halve_the_grid() -> None:
    ages = np.random.default_rng(2).integers(20, 90, (40, 22)).astype(float)
    assert {resolution_of(list(part)) for part in ages} == {1.0}


def refused(
    values: list[float], resolution: float, question: AboutPeople | None = None
) -> tuple[Reason, ...]:
    rows = pl.DataFrame({"v": values, "row": range(len(values)), "dead": [0, 1] * 200})
    declared = {"v": Variable(resolution=resolution)}
    haifa = Center(
        "Haifa", open_source(rows), Policy(ad_hoc="free"), CenterKey.from_seed(1, "Haifa"), declared
    )
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
        truth = [*OTHERS, *[3.0] * (8 - few)]
        answer = {
            r: {refused([*truth, *[odd] * few], r) for odd in (7.0, 7.5, 7.25, 7.123)} for r in MANY
        }
        assert (Reason.OFF_RESOLUTION,) in answer[2.0]
        return [r for r, each in answer.items() if len(each) > 1]

    assert attack() == []
    rule = Source.off_grid

    def anybody(self: Source, *asked: Any, means: bool) -> int:
        return 10 * rule(self, *asked, means=means)

    monkeypatch.setattr(Source, "off_grid", anybody)  # the rule taken out
    assert attack() == [0.05, 0.1, 0.25, 0.5, 1.0]


def test_a_false_resolution_is_told_of_the_whole_column_and_never_of_chosen_people() -> None:
    values = [*OTHERS[:388], *[7.5] * 12]
    reasons = {
        where: refused(values, 1.0, MomentsQuestion(variable="v", where=where))
        for where in (None, "row < 300", "row >= 390", "row < 388", "v == 7.5")
    }
    assert set(reasons.values()) == {(Reason.OFF_RESOLUTION,)}
    for where in ("row == 399", "row == 3"):  # words alone decide
        asked = MomentsQuestion(variable="v", where=where)
        assert refused(values, 1.0, asked) == (Reason.TOO_SMALL,)
    survival = SurvivalQuestion(variable="v", event="dead", horizon=30.0)
    assert refused(values, 1.0, survival) == (Reason.OFF_RESOLUTION,)
    assert refused([*OTHERS, *[7.5] * 8], 1.0, survival) == ()


def test_tables_of_several_declared_resolutions_leave_no_few_people_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A steward may correct it; edges of the same people move from one grid to the next."""
    values = np.sort(np.random.default_rng(4).normal(50, 10, 400).round(2))

    def attack(ledger: Path) -> int:
        """Of how few people a number follows from the counts of four tables."""
        cells = []
        for resolution in (0.01, 0.5, 0.1, 0.05):
            declared = {"v": Variable(resolution=resolution, scale=10.0)}
            with monkeypatch.context() as patched:
                patched.setattr(Source, "off_grid", lambda *_, **__: 0)  # or it is refused
                key, rows = CenterKey.from_seed(1, "Haifa"), pl.DataFrame({"v": values})
                policy = Policy(moments="none")
                haifa = Center("Haifa", open_source(rows), policy, key, declared, ledger)
                payload = haifa.answer(encode(LatticeQuestion(variable="v"))).payload
                haifa.close()
            answer = decode_answer(payload).aggregate
            if isinstance(answer, LatticeTables):
                (table,) = (group.table for group in answer.groups)
                place = np.searchsorted(np.array(table.edges), values)
                cells += [place == cell for cell in range(len(table.counts))]
        return fewest_people(cells, 10)

    assert attack(tmp_path / "Haifa.ledger") == 10
    monkeypatch.setattr(Draft, "edges", lambda *_: [])  # each table with edges of its own
    assert attack(tmp_path / "Porto.ledger") == 10
    anything_goes(monkeypatch)
    assert attack(tmp_path / "Bern.ledger") < 10
