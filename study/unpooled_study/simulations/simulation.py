"""Simulations, each with a seed of its own: a row of numbers for each."""

from collections.abc import Callable, Iterator
from itertools import islice
from zlib import crc32

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import Alternative
from unpooled_study.parallel.settings import ParallelQuantiles, ParallelTests
from unpooled_study.simulations.families import Random
from unpooled_study.simulations.methods import (
    QUANTILE_METHODS,
    TEST_METHODS,
    Estimator,
    Federated,
    NoAnswer,
    Test,
    take_statistics,
)
from unpooled_study.simulations.outcomes import ProportionSetting, SurvivalSetting
from unpooled_study.simulations.settings import Outcomes, QuantileSetting, Simulated, TestSetting

_BATCH = 100  # federations whose ranks are taken at once


def generators(name: str, seed: int, start: int, stop: int) -> Iterator[Random]:
    """The random numbers of each simulation, whoever runs it and with whatever others.

    Examples
    --------
    >>> [random.random() for random in generators("a", 1, 7, 9)]
    [0.480..., 0.564...]
    >>> [random.random() for random in generators("a", 1, 8, 9)]
    [0.564...]
    """
    setting = crc32(name.encode())
    for simulation in range(start, stop):
        sequence = np.random.SeedSequence(seed, spawn_key=(setting, simulation))
        yield np.random.Generator(np.random.PCG64(sequence))


def simulate(setting: Simulated, seed: int, start: int, stop: int) -> FloatArray:
    """Simulations start..stop−1 of a setting, a row each.

    A testing setting gives log p-values, one per method; an estimation setting gives errors,
    estimate minus truth, method by method and for each of them p by p (NaN: no estimate). Settings
    of outcomes and of the parallel method say themselves what they give.
    """
    if isinstance(setting, TestSetting):
        return _simulate_tests(setting, seed, start, stop)
    if isinstance(setting, QuantileSetting):
        return _simulate_quantiles(setting, seed, start, stop)
    if isinstance(setting, SurvivalSetting | ProportionSetting):
        return _simulate_outcomes(setting, seed, start, stop)
    return _simulate_parallel(setting, seed, start, stop)


def _simulate_outcomes(setting: Outcomes, seed: int, start: int, stop: int) -> FloatArray:
    from unpooled_study.simulations.outcomes import simulate_proportion, simulate_survival

    randoms = generators(setting.name, seed, start, stop)
    if isinstance(setting, SurvivalSetting):
        return np.array([simulate_survival(setting, random) for random in randoms])
    return np.array([simulate_proportion(setting, random) for random in randoms])


def _simulate_parallel(
    setting: ParallelQuantiles | ParallelTests, seed: int, start: int, stop: int
) -> FloatArray:
    from unpooled_study.parallel.simulation import simulate_quantiles, simulate_test

    randoms = generators(setting.name, seed, start, stop)
    if isinstance(setting, ParallelTests):
        return np.array([simulate_test(setting, random) for random in randoms])
    return np.array([simulate_quantiles(setting, random) for random in randoms])


def _simulate_tests(setting: TestSetting, seed: int, start: int, stop: int) -> FloatArray:
    methods = [TEST_METHODS[name] for name in setting.methods]
    rows = []
    randoms = generators(setting.name, seed, start, stop)
    while batch := [
        Federated(setting.draw(random), setting.k, random) for random in islice(randoms, _BATCH)
    ]:
        take_statistics(batch)
        rows += [
            [_log_p(method, people, setting.alternative) for method in methods] for people in batch
        ]
    return np.array(rows)


def _log_p(method: Test, people: Federated, alternative: Alternative) -> float:
    """Where centers refuse, a federation rejects nothing: p = 1."""
    try:
        return method(people, alternative)
    except NoAnswer:
        return 0.0


def _simulate_quantiles(setting: QuantileSetting, seed: int, start: int, stop: int) -> FloatArray:
    methods = [QUANTILE_METHODS[name] for name in setting.methods]
    p = np.array(setting.p)
    estimates, scales, shifts = [], [], []
    for random in generators(setting.name, seed, start, stop):
        centers, scale, shift = setting.draw(random)
        people = Federated(centers, setting.k, random)
        estimates.append([_estimate(method, people, p) for method in methods])
        scales.append(scale)
        shifts.append(shift)
    truth = true_quantiles(setting, np.array(scales), np.array(shifts))
    errors = np.array(estimates) - truth[:, None, :]
    return errors.reshape(stop - start, setting.columns)


def _estimate(method: Estimator, people: Federated, p: FloatArray) -> FloatArray:
    """A method that cannot answer (a table with too few limits, say) has no estimate."""
    try:
        return method(people, p)
    except ValueError:
        return np.full(len(p), np.nan)


def true_quantiles(setting: QuantileSetting, scale: FloatArray, shift: FloatArray) -> FloatArray:
    """Q_p of the mixture over centers (equation standard_gamma), a row per simulation.

    The smallest x with F(x) ≥ p, by steps that alternate between halving and false position.
    """
    p = np.array(setting.p)
    share = np.array(setting.sizes) / sum(setting.sizes)

    def excess(x: FloatArray) -> FloatArray:
        standard = (x[:, :, None] - shift[:, None, :]) / scale[:, None, :]
        return np.asarray(setting.family.cdf(standard) @ share - p)

    low, high = _bracket(excess, (len(scale), len(p)))
    at_low, at_high = excess(low), excess(high)
    for step in range(200):
        width = high - low
        if np.all(width <= 1e-12 * (np.abs(low) + np.abs(high)) + 1e-300):
            break
        share_low = np.clip(at_low / (at_low - at_high), 0.01, 0.99) if step % 2 else 0.5
        middle = low + share_low * width
        value = excess(middle)
        reached = value >= 0
        high, at_high = np.where(reached, middle, high), np.where(reached, value, at_high)
        low, at_low = np.where(reached, low, middle), np.where(reached, at_low, value)
    return high


def _bracket(
    excess: Callable[[FloatArray], FloatArray], shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Values with F(low) < p ≤ F(high) everywhere."""
    low, high = np.full(shape, -1.0), np.full(shape, 1.0)
    while (outside := excess(low) >= 0).any():
        low = np.where(outside, 4 * low, low)
    while (outside := excess(high) < 0).any():
        high = np.where(outside, 4 * high, high)
    return low, high
