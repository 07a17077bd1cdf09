"""Tables on a public lattice: what edges and moments give away, with and without each rule."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.draws import evenly
from tests.privacy.taken_out import anything_goes
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.data.variables import Variable
from unpooled.center.policy import Policy
from unpooled.center.proposal import summarise
from unpooled.center.proposal.summarise import LatticeFacts
from unpooled.center.questions import (
    EVERYBODY,
    Answer,
    CellTable,
    LatticeQuestion,
    LatticeTables,
    Reason,
    decode_answer,
    encode,
)
from unpooled.center.questions import lattice as lattice_answers
from unpooled.center.records.keys import CenterKey
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice import cells, cutting
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import (
    Lattice,
    LatticeTable,
    OpenScale,
    is_multiple,
    nice_number,
    public_lattice,
)


def ask(
    rows: pl.DataFrame, policy: Policy | None = None, where: str | None = None, **facts: Any
) -> Answer:
    key = CenterKey.from_seed(1, "Haifa")
    declared = {"v": Variable(**facts)}
    haifa = Center("Haifa", open_source(rows), policy or Policy(ad_hoc="free"), key, declared)
    return decode_answer(haifa.answer(encode(LatticeQuestion(variable="v", where=where))).payload)


def table(values: FloatArray, **facts: Any) -> CellTable:
    answer = ask(pl.DataFrame({"v": values}), **facts).aggregate
    assert isinstance(answer, LatticeTables)
    return answer.groups[0].table


def outer(table: LatticeTable, scale: float, *, last: bool = False) -> OpenScale:
    """The scale of its first or last cell, which everybody can work out."""
    lattice = public_lattice(scale)
    return OpenScale.of(lattice.limits(table.edges), lattice.step).at(-1 if last else 0)


def people(n: int, seed: int = 1) -> FloatArray:
    return np.sort(np.random.default_rng(seed).normal(50, 10, n))


def middles(values: FloatArray, edges: FloatArray) -> int:
    """The attack: how many edges are the very middle of the two people beside them."""
    passed = np.searchsorted(values, edges)
    return int(np.isclose((values[passed - 1] + values[passed]) / 2, edges, atol=1e-9).sum())


def test_an_edge_tells_a_lattice_point_and_not_the_two_people_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = people(307)
    edges = np.array(table(values).edges)
    assert np.all(edges == np.round(edges))  # the lattice of an SD of 10 has the step 1
    assert middles(values, edges) == 0
    monkeypatch.setattr(Lattice, "snap", lambda _, points: points)  # the rule taken out
    free = lattice_table(values, public_lattice(10.0), 10, evenly, "none").edges
    assert middles(values, free) == len(free) > 20


def test_no_choice_of_people_moves_the_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that leaves a narrow group would else bring a fine lattice of its choice."""
    rows = pl.DataFrame({"v": people(2000)})

    def scale() -> float:
        answer = ask(rows, where="v >= 49.8 and v < 50.2").aggregate
        assert isinstance(answer, LatticeTables)
        return answer.scale

    assert scale() == 10.0
    monkeypatch.setattr(
        summarise,
        "center_facts",
        lambda cohort, *_: LatticeFacts(nice_number(cohort.values(EVERYBODY).std()), None),
    )
    assert scale() == 0.1


def test_fewer_than_two_cells_of_people_are_refused() -> None:
    refused = ask(pl.DataFrame({"v": people(19)}))
    assert refused.aggregate is None
    assert [(r.reason, r.limit) for r in refused.refusals] == [(Reason.TOO_SMALL, 20)]
    assert ask(pl.DataFrame({"v": people(20)})).aggregate is not None


FEW = np.sort(np.concatenate((np.repeat([-99.0, 2.0], [4, 9]), people(187))))


def test_the_mean_of_an_outer_cell_with_two_values_is_a_count_and_is_withheld(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = table(FEW, scale=20.0)
    assert answer.counts[0] == 13
    assert (answer.means[0], answer.sds[0]) == (None, None)
    monkeypatch.setattr(cells, "telling_values", lambda *_: 8)  # the rule taken out
    free = lattice_table(FEW, public_lattice(20.0), 10, evenly, "tails")
    two, ninety_nine = outer(free, 20.0).forth(np.array([2.0, -99.0]))
    assert round(13 * (free.means[0] - two) / (ninety_nine - two)) == 4  # so many have the smaller


def test_a_mean_never_speaks_for_two_people_among_many_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Forty people have a 0 and two a value below: 42 times the mean is the sum of the two."""
    values = np.sort(np.concatenate(([-70.0, -50.0], np.zeros(40), people(40))))
    answer = table(values, scale=20.0)
    assert (answer.counts[0], answer.means[0], answer.sds[0]) == (42, None, None)
    monkeypatch.setattr(cells, "telling_values", lambda *_: 8)
    free = lattice_table(values, public_lattice(20.0), 10, evenly, "tails")
    two = outer(free, 20.0).forth(np.array([-70.0, -50.0, 0.0]))
    lattice = public_lattice(20.0)
    half_a_unit = cells.units(free.edges, lattice, free.counts, free.sds).mean[0] / 2
    result = 42 * free.means[0] - 40 * two[2]
    assert result == pytest.approx(two[0] + two[1], abs=42 * half_a_unit)


@pytest.mark.parametrize("values", [FEW, np.sort([-70.0, -50.0, *[0.0] * 40, *people(40)])])
def test_the_gate_withholds_a_mean_that_a_careless_summary_tells(
    values: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or ten others join the cell, and the mean speaks of them, too."""
    careful = table(values, scale=20.0)
    monkeypatch.setattr(cells, "telling_values", lambda *_: 8)
    answer = table(values, scale=20.0)
    joined = answer.counts[0] >= careful.counts[0] + 10
    assert joined or (answer.means[0], answer.sds[0]) == (None, None)
    anything_goes(monkeypatch)
    free = table(values, scale=20.0)
    assert (free.counts[0], free.means[0] is None) == (careful.counts[0], False)


def test_the_sd_of_an_outer_cell_never_gives_the_extreme_person_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One person far outside carries the SD: n people alike and one give the maximum."""
    values = np.concatenate((people(100).clip(max=65), np.linspace(66, 66.1, 12), [100.0]))
    answer = table(values)
    assert answer.means[-1] is not None
    assert answer.sds[-1] is None
    monkeypatch.setattr(cells, "dominated", lambda _: False)  # the rule taken out
    free = lattice_table(values, public_lattice(10.0), 10, evenly, "tails")
    n, mean, sd = (float(x[-1]) for x in (free.counts, free.means, free.sds))
    result = outer(free, 10.0, last=True).back(np.array(mean + sd * np.sqrt(n - 1)))  # the attack
    assert result == pytest.approx(100, rel=0.03)


def test_nobody_far_outside_is_located_by_the_moments_of_an_open_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three people far outside; none of them dominates. The attack: all others are alike."""
    values = np.sort(np.append(people(100), [390.0, 400.0, 410.0]))

    def attack() -> float:
        answer = lattice_table(values, public_lattice(10.0), 10, evenly, "tails")
        n, mean, sd = (float(x[-1]) for x in (answer.counts, answer.means, answer.sds))
        assert not np.isnan(sd)
        scale = outer(answer, 10.0, last=True)
        return float(scale.back(np.array(mean + sd * np.sqrt((n - 3) / 3))))

    assert not 200 < attack() < 800
    monkeypatch.setattr(  # the rule taken out
        OpenScale, "of", lambda limits, _: OpenScale(*np.full((2, len(limits) - 1), np.nan))
    )
    assert attack() == pytest.approx(400, rel=0.02)


def test_a_cell_without_limits_tells_no_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow band and three people far outside: no edge parts them, and no scale ends."""
    rows = pl.DataFrame({"v": np.append(people(2000), [390.0, 400.0, 410.0])})

    def attack() -> float | None:
        aggregate = ask(rows, where="v >= 50.2 and v < 50.6 or v > 300").aggregate
        assert isinstance(aggregate, LatticeTables)
        answer = aggregate.groups[0].table
        (n,), (mean,), (sd,) = answer.counts, answer.means, answer.sds
        return None if mean is None or sd is None else mean + sd * float(np.sqrt((n - 3) / 3))

    assert attack() is None
    monkeypatch.setattr(cutting, "nowhere", lambda *_: False)  # the rule taken out
    with pytest.raises(AssertionError):  # the gate has it, too
        attack()
    monkeypatch.setattr(lattice_answers, "nowhere", lambda *_: False)
    assert attack() == pytest.approx(400, rel=0.01)


def test_many_people_at_a_limit_beside_an_open_cell_are_answered_for() -> None:
    random = np.random.default_rng(4)
    values = np.sort(np.append(random.normal(90, 1, 14), np.full(15, 100.0)))
    answer = table(values, upper=100.0, scale=2.0)
    assert answer.counts == (14, 15)
    assert answer.means[1] == 100.0
    assert answer.sds[0] is not None


def test_inner_moments_stay_unless_the_policy_tells_them() -> None:
    rows = pl.DataFrame({"v": people(300)})
    shares = []
    for policy in (
        Policy(ad_hoc="free", moments="none"),
        Policy(ad_hoc="free"),
        Policy(ad_hoc="free", moments="all"),
    ):
        aggregate = ask(rows, policy).aggregate
        assert isinstance(aggregate, LatticeTables)
        table = aggregate.groups[0].table
        answer = [mean is not None for mean in table.means]
        step = Variable().lattice(aggregate.scale).step
        may = cells.telling_cells(np.array(table.edges), step, policy.moments)
        assert answer == may.tolist()
        shares.append(sum(answer) / len(answer))
    assert shares[0] == 0 < shares[1] < 0.3 < shares[2] == 1


@pytest.mark.parametrize("away", [0.0, 1e6, 1e9, -1e9])
def test_unrounded_moments_are_seen_far_from_zero_too(away: float) -> None:
    """Of units of 1/1024 a third is told from a whole one, as far as numbers there have digits."""
    unit = 2.0**-10
    assert is_multiple(away + 7 * unit, unit, away)
    assert not is_multiple(away + 7 * unit + unit / 3, unit, away)
