"""Quantile curves whose slope is exp η, on a grid of normal quantiles.

η is linear in its coefficients: level, skewness, a number for each tail, and what it climbs in
each of many pieces (`shape` says what they mean).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.smoothing import WorkingScale

END = 4.2  # normal quantiles: hardly any of 75,000 people lie beyond
GRID: FloatArray = np.linspace(-END, END, 421)
STEP = float(GRID[1] - GRID[0])
NORMAL: FloatArray = np.exp(-(GRID**2) / 2) / math.sqrt(2 * math.pi)
PIECES = 48  # of a seventh of an SD each, as a gap may span
_BENT = 3.36  # normal quantiles between which the pieces are; w is constant beyond
SHAPED = 5  # coefficients before them: where the curve is, level, skewness, both tails
_MIDDLE = len(GRID) // 2
_STEEP = (-8.0, 5.0)  # η stays between
_FAR = 1000.0  # SDs of the quantiles: beyond, there is no curve


@lru_cache(maxsize=1)
def basis() -> FloatArray:
    """η at the grid per coefficient: level, skewness, both tails, pieces (w of variance 1)."""
    knots, width = np.linspace(-_BENT, _BENT, PIECES, endpoint=False), 2 * _BENT / PIECES
    climbed = np.clip((GRID[:, None] - knots) / width, 0.0, 1.0)
    w = np.sqrt(width) * (climbed - climbed[_MIDDLE])
    tails = np.minimum(GRID, 0.0) ** 2, np.maximum(GRID, 0.0) ** 2
    return np.asfortranarray(np.column_stack((np.ones(len(GRID)), GRID, *tails, w)))


@dataclass(frozen=True, slots=True)
class Unit:
    """x = (value − location)/size, and how far out a curve may reach."""

    location: float
    size: float
    inside: tuple[float, float]

    @staticmethod
    def of(quantiles: FloatArray, values: FloatArray) -> "Unit":
        median, size = float(np.median(quantiles)), float(quantiles.std())
        low, high = np.clip(3 * (values[[0, -1]] - median) / size, -_FAR, _FAR).tolist()
        return Unit(median, size, (low, high))


@dataclass(frozen=True, slots=True)
class SlopeCurve:
    """A quantile curve on the grid: its slope in z, x, dx/dz, and dz per coefficient."""

    slope: FloatArray
    x: FloatArray
    rise: FloatArray
    effect: FloatArray

    @staticmethod
    def of(theta: FloatArray, scale: WorkingScale, unit: Unit) -> "SlopeCurve":
        slope = np.exp(np.clip(basis() @ theta[1:], *_STEEP))
        z, effect = integral(slope), integral(slope[:, None] * basis())
        x = (scale.back(theta[0] + z - z[_MIDDLE]) - unit.location) / unit.size
        low, high = unit.inside
        x = np.clip(np.where(np.isnan(x), np.where(GRID < 0, low, high), x), low, high)
        x = np.maximum.accumulate(x) + 1e-9 * (high - low) * np.arange(len(GRID))
        effect = np.asfortranarray(np.hstack((np.ones((len(GRID), 1)), effect - effect[_MIDDLE])))
        return SlopeCurve(slope, x, np.gradient(x, STEP) / slope, effect)


def integral(rows: FloatArray) -> FloatArray:
    """The integral from the left end to each grid point; quick where columns are contiguous."""
    summed = np.zeros_like(rows)
    summed[1:] = np.cumsum((rows[1:] + rows[:-1]) * (STEP / 2), axis=0)
    return summed


def between(places: FloatArray, rows: FloatArray) -> FloatArray:
    """Rows at places between grid points."""
    i = np.minimum(places.astype(int), len(GRID) - 2)
    beyond = places - i
    beyond = beyond if rows.ndim == 1 else beyond[:, None]
    return np.asarray(rows[i] * (1 - beyond) + rows[i + 1] * beyond)
