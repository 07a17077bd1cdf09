"""What cells say about a curve, against people drawn from curves and numerical derivatives."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.cell_scores import SeenCells
from unpooled.maths.density.slope_basis import GRID, SlopeCurve, Unit, basis
from unpooled.maths.density.smoothing import WorkingScale
from unpooled.maths.lattice.cells import Cells
from unpooled.maths.lattice.lattice import OpenScale

SCALE = WorkingScale(location=0.0, unit=1.0, lam=1.0, mean=0.0, sd=1.0)  # z is x
UNIT = Unit(0.0, 1.0, (-100.0, 100.0))
PEOPLE = 10_000_000
U = (np.arange(400_000) + 0.5) / 400_000
EDGES = (np.array([-1.1, 0.1, 1.0]), np.array([-0.4, 0.7]))  # of two centers


def curve_of(theta: FloatArray) -> SlopeCurve:
    return SlopeCurve.of(theta, SCALE, UNIT)


def random_theta(seed: int, size: float) -> FloatArray:
    """A level and coefficients that bend a curve a little."""
    random = np.random.default_rng(seed)
    theta = size * random.normal(size=1 + basis().shape[1])
    theta[3:5] *= 0.1  # c is multiplied by t²
    return np.asarray(theta)


def cells_of(curve: SlopeCurve, *, moments: bool) -> Cells:
    """The cells of very many people with this curve."""
    x = np.interp(ndtri(U), GRID, curve.x)
    parts = []
    for center, edges in enumerate(EDGES):
        limits = np.concatenate(([-np.inf], edges, [np.inf]))
        scales = OpenScale.of(limits, 0.1)
        for i, (low, high) in enumerate(pairwise(limits.tolist())):
            scale = scales.at(i)
            one = scale.forth(x[(x > low) & (x <= high)])
            answer = (one.mean(), one.std()) if moments else (np.nan, np.nan)
            levels = ndtr(np.interp([low, high], curve.x, GRID))
            share = (levels[1] if high < np.inf else 1.0) - (levels[0] if low > -np.inf else 0.0)
            count = round(PEOPLE * share)
            parts.append((low, high, count, *answer, scale.limit, scale.unit, center))
    low_, high_, counts, mean, sd, *scaled, of = (
        np.array(part) for part in zip(*parts, strict=True)
    )
    points = np.ones(len(parts), dtype=np.int64)
    first, scale = np.cumsum(points) - points, OpenScale(scaled[0], scaled[1])
    return Cells(low_, high_, counts, mean, sd, scale, of, points, first)


@given(seed=st.integers(0, 1000))
def test_the_score_points_to_the_curve_that_cells_come_from(seed: int) -> None:
    """Near a curve, the score is the information times the step that leads there.

    Moments on a grid are off by some 1/2000 SD, so that their step must be a larger one.
    """
    theta = random_theta(seed, 0.1)
    for moments, size, close in ((False, 0.001, 0.02), (True, 0.02, 0.3)):
        step = random_theta(seed + 1, size)
        seen = SeenCells.of(cells_of(curve_of(theta + step), moments=moments), UNIT)
        information, score = seen.information(curve_of(theta))
        expected = information @ step
        assert np.linalg.norm(score - expected) < close * np.linalg.norm(expected)


def test_the_score_of_counts_is_the_slope_of_their_log_likelihood() -> None:
    theta = random_theta(5, 0.2)
    cells = cells_of(curve_of(theta + random_theta(6, 0.05)), moments=False)
    seen = SeenCells.of(cells, UNIT)

    def log_likelihood(at: FloatArray) -> float:
        curve = curve_of(at)
        low, high = (ndtr(np.interp(limit, curve.x, GRID)) for limit in (cells.low, cells.high))
        low, high = np.where(np.isinf(cells.low), 0, low), np.where(np.isinf(cells.high), 1, high)
        return float(cells.count @ np.log(high - low))

    score = seen.information(curve_of(theta))[1]
    for i in range(8):
        move = 1e-4 * np.eye(len(theta))[i]
        slope = (log_likelihood(theta + move) - log_likelihood(theta - move)) / 2e-4
        assert score[i] == pytest.approx(slope, rel=0.02, abs=1e-4 * np.abs(score).max())


def test_moments_add_information() -> None:
    theta = random_theta(7, 0.1)
    curve = curve_of(theta)
    bare, answer = (
        SeenCells.of(cells_of(curve, moments=moments), UNIT).information(curve)[0]
        for moments in (False, True)
    )
    gained = np.linalg.eigvalsh(answer - bare)
    assert gained.min() > -1e-6 * gained.max()
    assert np.trace(answer) > 1.2 * np.trace(bare)


def test_a_curve_that_does_not_reach_a_cell_is_still_told_so() -> None:
    """A cell of many people beyond the end of a curve: the score is finite and leads outwards."""
    narrow = np.zeros(1 + basis().shape[1])
    narrow[1] = -3.0
    curve = curve_of(narrow)
    assert curve.x[-1] < EDGES[0][-1]
    information, score = SeenCells.of(
        cells_of(curve_of(np.zeros(len(narrow))), moments=True), UNIT
    ).information(curve)
    assert np.isfinite(information).all()
    assert np.isfinite(score).all()
    assert score[1] > 0  # steeper
