"""Statuses that a center may not tell are estimated without bias, and say how sure they are."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpooled.maths.arrays import FloatArray
from unpooled.maths.survival.cox import hazard_ratio
from unpooled.maths.survival.follow_up import FollowUp, stack
from unpooled.maths.survival.kaplan_meier import kaplan_meier
from unpooled.maths.survival.log_rank import log_rank
from unpooled.maths.survival.statuses import BlockPeople, Statuses, expected_statuses

K = 10


def block(
    center: int, arm: str, times: FloatArray, events: FloatArray, *, answer: bool | None = None
) -> BlockPeople:
    """What a center tells: statuses, or that 1 to K−1 people had the event, or lacked it."""
    n, d = len(times), int(events.sum())
    few, most = 0 < d < K, 0 < n - d < K
    if answer or (answer is None and not few and not most):
        return BlockPeople(center, (arm,), times, np.ones(n), events)
    least = max(1, n - K + 1) if most else 1
    highest = min(K - 1, n - 1) if few else n - 1
    return BlockPeople(center, (arm,), times, np.ones(n), None, least, highest)


def drawn(random: np.random.Generator, n: int, logit: float) -> tuple[FloatArray, FloatArray]:
    times = np.sort(random.exponential(size=n))
    chance = 1 / (1 + np.exp(-logit - 0.3 * np.log(times)))
    return times, (random.random(n) < chance).astype(float)


def federation(random: np.random.Generator, centers: int) -> list[tuple[BlockPeople, float]]:
    """Blocks, and how many events each has."""
    blocks = []
    for center in range(centers):
        effect = 0.5 * random.normal()
        for arm, level in (("x", -1.0), ("y", -1.8)):
            times, events = drawn(random, int(random.integers(15, 80)), level + effect)
            blocks.append((block(center, arm, times, events), float(events.sum())))
    return blocks


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_expected_events_are_possible_ones(seed: int, centers: int) -> None:
    blocks = [part for part, _ in federation(np.random.default_rng(seed), centers)]
    result = expected_statuses(blocks, 100.0)
    assert set(result) == {i for i, part in enumerate(blocks) if part.events is None}
    for i, status in result.items():
        assert blocks[i].least <= status.events.sum() <= blocks[i].most
        assert np.all((status.events >= 0) & (status.events <= 1))
        assert np.isfinite(status.drawn).all()
    again = expected_statuses(blocks, 100.0)
    assert all(np.array_equal(again[i].drawn, result[i].drawn) for i in result)


def test_events_of_centers_that_may_not_tell_are_estimated_without_bias() -> None:
    """Centers tell statuses *because* they have many events: shares of theirs are too high."""
    random = np.random.default_rng(7)
    misses, naive, claimed = [], [], []
    for _ in range(60):
        blocks = federation(random, 12)
        result = expected_statuses([part for part, _ in blocks], 100.0)
        exact = sum(blocks[i][1] for i in result)
        misses.append(sum(status.events.sum() for status in result.values()) - exact)
        claimed.append(np.std(np.sum([s.drawn.sum(axis=0) for s in result.values()], axis=0)))
        for_arm = {a: shares([b for b, _ in blocks if b.groups == (a,)]) for a in ("x", "y")}
        likely = [len(blocks[i][0].times) * for_arm[blocks[i][0].groups[0]] for i in result]
        naive.append(sum(likely) - exact)
    error = np.std(misses) / np.sqrt(len(misses))
    assert abs(np.mean(misses)) < 3 * error
    assert np.mean(naive) > 10 * error  # the rule of an earlier version: shares of who told
    assert np.std(np.array(misses) / claimed) == pytest.approx(1, abs=0.25)


def shares(blocks: list[BlockPeople]) -> float:
    truth = [part for part in blocks if part.events is not None]
    events = sum(float(part.events.sum()) for part in truth if part.events is not None)
    return events / max(sum(len(part.times) for part in truth), 1)


def test_the_expected_number_is_that_of_enumeration() -> None:
    """Many others with the same share: then it is a binomial number within its range."""
    ones = np.ones(1000)
    many = [
        BlockPeople(i, ("a",), np.full(1000, 5.0), ones, np.arange(1000) % 5 == 0.0)
        for i in range(30)
    ]
    few = BlockPeople(30, ("a",), np.full(40, 5.0), np.ones(40), None, 1, 9)
    (result,) = expected_statuses([*many, few], 60.0).values()
    chances = np.array([comb(40, d) * 0.2**d * 0.8 ** (40 - d) for d in range(1, 10)])
    exact = chances @ np.arange(1, 10) / chances.sum()
    assert result.events.sum() == pytest.approx(exact, abs=0.1)
    spread = np.sqrt(chances @ (np.arange(1, 10) - exact) ** 2 / chances.sum())
    assert result.drawn.sum(axis=0).std() == pytest.approx(spread, rel=0.2)


def test_draws_have_the_covariance_of_a_conditional_sample() -> None:
    """Given their number, who had the event is a sample without replacement of that many."""
    from unpooled.maths.survival.statuses import _draws

    people = BlockPeople(0, ("a",), np.arange(20.0), np.ones(20), None, 5, 5)
    many = _draws(people, np.zeros((20, 20_000)), np.random.default_rng(1))
    result = np.cov(many)
    exact = 0.25 * 0.75 * (np.eye(20) * 20 / 19 - 1 / 19)
    assert result == pytest.approx(exact * 19 / 20, abs=0.01)


def followed(part: BlockPeople, status: Statuses | None) -> FollowUp:
    centers = np.full(len(part.times), part.center)
    if status is None:
        assert part.events is not None
        return FollowUp.of(part.times, part.events, part.people, centers)
    return FollowUp.of(part.times, status.events, part.people, centers, status.drawn)


def test_unknown_statuses_widen_every_interval_and_no_estimate_ignores_them() -> None:
    random = np.random.default_rng(3)
    blocks = [part for part, _ in federation(random, 12)]
    result = expected_statuses(blocks, 100.0)
    parts = [followed(part, result.get(i)) for i, part in enumerate(blocks)]
    arms = [
        stack([p for p, part in zip(parts, blocks, strict=True) if part.groups == (arm,)])
        for arm in ("x", "y")
    ]
    sure = [FollowUp(a.times, a.people, a.events, a.centers) for a in arms]
    for stratified in (False, True):
        assert log_rank(arms, stratified).statistic < log_rank(sure, stratified).statistic
        with_them, without = (hazard_ratio(a[0], a[1], stratified) for a in (arms, sure))
        assert with_them is not None
        assert without is not None
        assert with_them.log == pytest.approx(without.log)
        assert with_them.error > without.error
    curve, narrow = kaplan_meier(arms[0]), kaplan_meier(sure[0])
    np.testing.assert_allclose(curve.survival, narrow.survival)
    assert np.all(curve.low <= narrow.low + 1e-12)
    assert np.all(curve.high >= narrow.high - 1e-12)
    assert curve.restricted_mean(2.0)[1] > narrow.restricted_mean(2.0)[1]
    other = kaplan_meier(arms[1])
    apart = curve.restricted_mean_minus(other, 2.0)
    assert apart[0] == pytest.approx(curve.restricted_mean(2.0)[0] - other.restricted_mean(2.0)[0])


def test_a_center_alone_with_everything_unknown_has_an_answer_that_says_nothing() -> None:
    times = np.sort(np.random.default_rng(1).exponential(size=30))
    blocks = [BlockPeople(0, (a,), times, np.ones(30), None, 1, 9) for a in ("x", "y")]
    result = expected_statuses(blocks, 100.0)
    parts = [followed(part, result[i]) for i, part in enumerate(blocks)]
    ratio = hazard_ratio(parts[0], parts[1])
    assert ratio is not None
    assert ratio.interval().high / ratio.interval().low > 10
