"""People of cells that tell counts alone leave as the hazards of their arm say."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.draws import evenly
from unpooled.center.data.variables import Variable
from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.cells import Moments
from unpooled.maths.lattice.cutting import status_table
from unpooled.maths.survival import pseudo_times
from unpooled.maths.survival.cell_hazards import CENSORED, EVENTS, fit_hazards, spread_by_hazards
from unpooled.maths.survival.follow_up import FollowUp
from unpooled.maths.survival.log_rank import log_rank
from unpooled.maths.survival.pseudo_times import ArmTables, Block, reconstruct

HORIZON, K = 48.0, 10


def arms(seed: int, n: int, ratio: float) -> list[tuple[FloatArray, FloatArray]]:
    random = np.random.default_rng(seed)
    drawn = []
    for hazard in (1.0, ratio):
        times = random.exponential(24 / hazard, n)
        ends = np.minimum(random.uniform(0, 60, n), HORIZON)
        drawn.append((np.minimum(times, ends), (times <= ends).astype(float)))
    return drawn


def as_told(people: list[tuple[FloatArray, FloatArray]], moments: Moments) -> list[FollowUp]:
    lattice = Variable().follow_up_lattice(12.0, HORIZON)
    draws = keyed_draws(b"secret", "t")
    cut = partial(status_table, lattice=lattice, k=K, draws=draws, moments=moments)
    blocks = []
    for arm, (times, had) in enumerate(people):
        events, censored = ((cut(np.sort(times[had == status])),) for status in (1, 0))
        blocks.append(Block(0, (str(arm),), ArmTables(K, events, censored)))
    return reconstruct(blocks, lattice)


def squares(moments: Moments) -> float:
    """How far z is from the pooled one, on average."""
    missed = []
    for seed in range(16):
        people = arms(seed, 120, 0.65)
        exact = log_rank([FollowUp.of(times, had) for times, had in people]).z
        missed.append(log_rank(as_told(people, moments)).z - exact)
    return float(np.sqrt(np.mean(np.square(missed))))


def test_counts_alone_tell_more_by_the_hazards_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    by_hazards = squares("none")
    assert squares("tails") < by_hazards < 0.45
    monkeypatch.setattr(pseudo_times, "spread_by_hazards", lambda values, *_: values)
    assert squares("none") > 1.2 * by_hazards


@pytest.mark.parametrize("horizon", [100.0, 500.0])
def test_hazards_are_those_of_the_people(horizon: float) -> None:
    """From cells that end far behind most people."""
    random = np.random.default_rng(3)
    lattice = Variable().follow_up_lattice(12.0, horizon)
    arms = []
    for hazard in (0.05, 0.03):
        times, ends = random.exponential(1 / hazard, 2000), random.exponential(1 / 0.02, 2000)
        seen = np.minimum(np.minimum(times, ends), horizon)
        cut = partial(status_table, lattice=lattice, k=K, draws=evenly, moments="none")
        tables = [cut(np.sort(seen[some])) for some in (times <= ends, times > ends)]
        arms.append((tables, [EVENTS, CENSORED]))
    (x, y) = fit_hazards(arms, lattice)
    assert (y.hazards[0] / x.hazards[0]).mean() == pytest.approx(0.6, rel=0.1)
    assert x.hazards.mean(axis=1) == pytest.approx([0.05, 0.02], rel=0.1)
    assert x.hazards[:, -1] == pytest.approx([0.05, 0.02], rel=0.35)  # of the last few


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(25, 200))
def test_everybody_stays_in_their_cell_and_order(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    lattice = Variable().follow_up_lattice(12.0, HORIZON)
    cut = partial(status_table, lattice=lattice, k=K, draws=keyed_draws(b"s", "t"))
    times = [np.sort(np.minimum(random.exponential(20, n), HORIZON)) for _ in range(3)]
    moments: tuple[Moments, ...] = ("none", "tails", "none")
    tables = [cut(t, moments=m) for t, m in zip(times, moments, strict=True)]
    limits = [lattice.limits(table.edges) for table in tables]
    low, high = (np.concatenate([x[s] for x in limits]) for s in (slice(-1), slice(1, None)))
    counts = np.concatenate([table.counts for table in tables])
    cell = np.repeat(np.arange(len(counts)), counts)
    level = np.concatenate([(np.arange(c) + 0.5) / c for c in counts])
    before = low[cell] + level * (high - low)[cell]
    hazards = fit_hazards([(tables, [EVENTS] * 3)], lattice) * 3
    after = spread_by_hazards(before, cell, tables, EVENTS, hazards, lattice)
    assert np.all((after >= low[cell]) & (after <= high[cell]))
    assert np.all(np.diff(after)[np.diff(cell) == 0] >= 0)
    has_mean = np.concatenate([~np.isnan(table.means) for table in tables])[cell]
    np.testing.assert_array_equal(after[has_mean], before[has_mean])
