"""People get their times back from the tables, and a likely status where none was told."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.draws import evenly
from unpooled.center.data.variables import Variable
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.cells import Moments
from unpooled.maths.lattice.cutting import status_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, nearest_multiples, public_lattice
from unpooled.maths.moments import MeanSD
from unpooled.maths.survival.follow_up import FollowUp, agreed_horizon, stack
from unpooled.maths.survival.kaplan_meier import kaplan_meier
from unpooled.maths.survival.pseudo_times import (
    ArmTables,
    Below,
    Block,
    known_share,
    known_until,
    pseudo_times,
    reconstruct,
)

LATTICE = Lattice(0.5, lower=0.0, upper=50.0)


def table(seed: int, n: int, lattice: Lattice = LATTICE) -> LatticeTable:
    times = np.sort(np.random.default_rng(seed).exponential(8, n).clip(0, 50))
    if lattice.resolution is not None:
        times = np.sort(np.ceil(times))
    return status_table(times, lattice, 10, evenly)


@given(st.integers(10, 60), st.integers(10, 60), st.integers(0, 500))
def test_everybody_has_a_time_and_the_told_status(events: int, censored: int, seed: int) -> None:
    arm = {3: ArmTables(10, (table(seed, events),), (table(seed + 1, censored),))}
    result = pseudo_times(arm, LATTICE)
    assert result.total == pytest.approx(events + censored)
    assert result.event_total == pytest.approx(events)
    assert set(result.centers) == {3}
    assert result.times[0] >= 0
    assert result.times[-1] <= 50


def test_gridded_people_stand_on_their_grid() -> None:
    lattice = public_lattice(8.0, 1.0, 0.0, 50.0)
    arm = {0: ArmTables(10, (table(1, 80, lattice),), (table(2, 40, lattice),))}
    times = pseudo_times(arm, lattice).times
    np.testing.assert_array_equal(times, np.round(times))


@given(
    st.lists(st.floats(0, 60), min_size=10, max_size=80),
    st.sampled_from([None, 0.1, 1.0]),
    st.sampled_from([60.0, 61.0, 200.0]),
    st.sampled_from(["all", "tails", "none"]),
)
def test_nobody_is_believed_to_be_followed_up_longer_than_he_was(
    times: list[float], resolution: float | None, horizon: float, moments: Moments
) -> None:
    truth = np.sort(times)
    if resolution is not None:
        truth = np.sort(nearest_multiples(truth, resolution))
    lattice = Variable().follow_up_lattice(20.0, horizon, resolution)
    answer = status_table(truth, lattice, 10, evenly, moments)
    assert known_until([ArmTables(10, (answer,))], lattice) <= truth[-1] + 1e-9


@pytest.mark.parametrize("resolution", [None, 0.1])
@pytest.mark.parametrize("moments", ["tails", "none"])
def test_people_are_known_up_to_a_horizon_that_many_reach(
    resolution: float | None, moments: Moments
) -> None:
    times = np.sort(np.concatenate((np.arange(1.0, 41.0), np.full(15, 60.0))))
    for horizon, each in ((60.0, (60, 60)), (200.0, (25, 60))):
        lattice = Variable().follow_up_lattice(20.0, horizon, resolution)
        answer = status_table(times, lattice, 10, evenly, moments)
        assert each[0] <= known_until([ArmTables(10, (answer,))], lattice) <= each[1]


@pytest.mark.parametrize("below", ["events", "censored", "both"])
def test_an_unknown_status_adds_up_to_what_was_below_k(below: Below) -> None:
    truth = {0: ArmTables(10, (table(1, 100),), (table(2, 100),))}
    n = 15 if below == "both" else 60
    unknown = {1: ArmTables(10, either=(table(3, n),), below=below)}
    result = pseudo_times(truth | unknown, LATTICE)
    events = result.events[result.centers == 1].sum()
    if below != "censored":
        assert 1 <= events < 10
    if below != "events":
        assert 1 <= n - events < 10
    assert known_share((truth | unknown).values()) == pytest.approx(200 / (200 + n))


def test_a_status_has_a_table_or_is_below_k_never_both() -> None:
    one = table(1, 20)
    for wrong in ({"events": (one,), "either": (one,)}, {"either": (one,)}, {}):
        with pytest.raises(ValueError, match=r"either|below"):
            ArmTables(10, **wrong)  # type: ignore[arg-type]


def test_a_status_table_needs_k_people_and_limits() -> None:
    with pytest.raises(ValueError, match="at least k = 10 people, got 9"):
        table(1, 9)
    with pytest.raises(ValueError, match="lower and an upper limit"):
        status_table(np.arange(20.0), Lattice(1.0, lower=0.0), 10, evenly)


@given(st.floats(0.1, 1e4), st.floats(0.01, 1e4))
def test_the_horizon_is_a_round_number_beyond_the_bulk(mean: float, sd: float) -> None:
    horizon = agreed_horizon([MeanSD(100, mean, sd)])
    assert mean + 4 * sd <= horizon <= 2.5 * (mean + 4 * sd) * (1 + 1e-9)
    assert float(f"{horizon:.0e}") == pytest.approx(horizon)


def test_nobody_followed_up_has_no_horizon() -> None:
    with pytest.raises(ValueError, match="longer than 0"):
        agreed_horizon([MeanSD(10, 0.0, 0.0)])


def trial(seed: int, people: int) -> tuple[list[Block], FloatArray]:
    """Sixty months of follow-up: what twelve centers tell, and S in the middle and at the end."""
    random = np.random.default_rng(seed)
    lattice = Variable().follow_up_lattice(20.0, 60.0)
    blocks, exact = [], []
    for center in range(12):
        times = random.exponential(50, people)
        ends = np.minimum(random.exponential(1000, people), 60.0)
        had, seen = times <= ends, np.sort(np.minimum(times, ends))
        had = had[np.argsort(np.minimum(times, ends))]
        exact.append(FollowUp.of(seen, had.astype(float)))
        cut = partial(status_table, lattice=lattice, k=10, draws=evenly, moments="tails")
        stay, few = int((seen == 60).sum()), [0 < n < 10 for n in (had.sum(), (~had).sum())]
        if not any(few):
            arm = ArmTables(10, (cut(seen[had]),), (cut(seen[~had]),))
        elif min(stay, people - stay) >= 10:
            below: Below = "both" if people - stay - had.sum() < 10 else "events"
            arm = ArmTables(10, either=(cut(seen[seen < 60]),), below=below, followed=stay)
        else:
            arm = ArmTables(10, either=(cut(seen),), below="events" if few[0] else "censored")
        blocks.append(Block(center, ("a",), arm))
    return blocks, kaplan_meier(stack(exact)).at(np.array([30.0, 59.9]))


@pytest.mark.parametrize("people", [28, 60])
def test_who_stays_to_the_horizon_does_not_leave_before(people: int) -> None:
    """Of some centers K stay, of others fewer; the curve is near that of the people."""
    lattice = Variable().follow_up_lattice(20.0, 60.0)
    missed = []
    for seed in range(8):
        blocks, exact = trial(seed, people)
        result = kaplan_meier(stack(reconstruct(blocks, lattice)))
        missed.append(result.at(np.array([30.0, 59.9])) - exact)
    assert np.abs(np.mean(missed, axis=0)).max() < 0.05
