"""After how many people boundaries on a lattice were aimed: what knowing it would give away."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from tests.draws import evenly
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.data.variables import Variable
from unpooled.center.policy import Policy
from unpooled.center.proposal import summarise
from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.center.questions import (
    CellTable,
    LatticeQuestion,
    LatticeTables,
    SurvivalQuestion,
    SurvivalTables,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice import cutting

N, K, STEP = 56, 10, 0.1


def haifa(rows: pl.DataFrame, seed: int = 1) -> Center:
    key = CenterKey.from_seed(seed, "Haifa")
    declared = {"v": Variable(scale=1.0), "t": Variable(scale=1.0, lower=0.0)}
    return Center("Haifa", open_source(rows), Policy(ad_hoc="free"), key, declared)


def cells_of(values: FloatArray) -> CellTable:
    asked = encode(LatticeQuestion(variable="v"))
    answer = decode_answer(haifa(pl.DataFrame({"v": values})).answer(asked).payload).aggregate
    assert isinstance(answer, LatticeTables)
    return answer.groups[0].table


def claims(values: FloatArray, table: CellTable) -> list[bool]:
    """The attack: of b people below an edge aimed behind the r-th, |b − r| lie within half a step.

    Where it aims at edges is known from n and K, if nothing hides it. Whether each claim is right.
    """
    cells = len(table.counts)
    aimed = np.arange(1, cells) * K + np.arange(1, cells) * (N - cells * K + 1) // cells
    result = []
    for edge, below, rank in zip(table.edges, np.cumsum(table.counts), aimed, strict=False):
        side = (edge - STEP / 2, edge) if below > rank else (edge, edge + STEP / 2)
        within = np.count_nonzero((values >= side[0] - 1e-9) & (values <= side[1] + 1e-9))
        if abs(below - rank) > 1:  # of one person it is right by chance, too
            result.append(bool(within >= abs(below - rank)))
    return result


def attack() -> list[bool]:
    """Every claim about 80 tables."""
    right = []
    for seed in range(80):
        values = np.sort(np.random.default_rng(seed).normal(size=N))
        right += claims(values, cells_of(values))
    return right


def test_nobody_is_placed_beside_an_edge_by_the_ranks_it_was_aimed_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = attack()
    assert len(right) > 60
    assert np.mean(right) < 0.3
    monkeypatch.setattr(summarise, "keyed_draws", lambda *_: evenly)  # the rule taken out
    right = attack()
    assert len(right) > 10
    assert all(right)


def test_any_counts_may_have_been_aimed_at() -> None:
    """No claim about ranks is certain: each way to deal people into cells of K can be drawn."""
    n, k, values = 28, 5, np.arange(28.0)
    for first in range(k, n - 2 * k + 1):
        for second in range(k, n - k - first + 1):
            aimed = np.array([first, first + second])
            shares = (aimed - [k, 2 * k] + 0.5) / (n - 3 * k + 1)
            drawn = np.append(np.repeat(shares, 3), [0.99, 0.99])
            ranks = cutting._ranks(values, k, 1, lambda _, number, part=drawn: part[:number])  # type: ignore[misc]
            assert ranks.tolist() == aimed.tolist()


@pytest.mark.parametrize("fewer", [0, 1])
@pytest.mark.parametrize("n", [*range(20, 80), 98, 118, 698])
def test_any_number_below_an_edge_may_have_been_aimed_at(n: int, fewer: int) -> None:
    """Cells are joined too. Where ranges left gaps, a number in one of them told who moved."""
    least, most = (
        cutting._ranks(np.arange(float(n)), K, fewer, lambda _, number, at=at: np.full(number, at))  # type: ignore[misc]
        for at in (0.0, 1 - 1e-9)
    )
    aimed = {rank for low, high in zip(least, most, strict=True) for rank in range(low, high + 1)}
    assert aimed == set(range(K, n - K + 1))


def test_ranks_leave_k_people_in_each_cell_and_are_the_same_for_the_same_people() -> None:
    for n in (20, 21, 56, 307, 5000):
        values = np.random.default_rng(n).normal(size=n)
        ranks = cutting._ranks(values, K, 1, keyed_draws(b"secret", "v"))
        assert all(b - a >= K for a, b in pairwise([0, *ranks.tolist(), n]))
        again = cutting._ranks(values, K, 1, keyed_draws(b"secret", "v"))
        assert np.array_equal(ranks, again)


def test_draws_depend_on_secret_variable_and_values() -> None:
    values = np.array([1.0, 2.0])
    draws = keyed_draws(b"secret", "v")(values, 3)
    others = [
        keyed_draws(b"another", "v")(values, 3),
        keyed_draws(b"secret", "w")(values, 3),
        keyed_draws(b"secret", "v")(np.array([1.0, 2.0 + 1e-9]), 3),
    ]
    assert all(not np.isin(draws, other).any() for other in others)
    assert np.array_equal(draws, keyed_draws(b"secret", "v")(values, 3))
    plus, minus = (keyed_draws(b"secret", "v")(np.array([zero]), 3) for zero in (0.0, -0.0))
    assert np.array_equal(plus, minus)
    many = keyed_draws(b"secret", "v")(values, 20_000)
    assert 0 <= many.min() < 0.001
    assert 0.999 < many.max() < 1
    assert abs(many.mean() - 0.5) < 0.01


def test_times_of_survival_are_cut_behind_secret_ranks_too() -> None:
    random = np.random.default_rng(1)
    rows = pl.DataFrame({"t": random.exponential(size=400), "died": random.integers(0, 2, 400)})
    asked = encode(SurvivalQuestion(variable="t", event="died", event_is="1", horizon=3.0))
    tables = set()
    for seed in range(5):
        answer = decode_answer(haifa(rows, seed).answer(asked).payload).aggregate
        assert isinstance(answer, SurvivalTables)
        table = answer.groups[0].events
        assert table is not None
        tables.add(table.edges)
    assert len(tables) > 1
