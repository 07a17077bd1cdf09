"""Means and SDs of people who are counted at points: exact sums of whole numbers, then rounded.

A point has a whole number, its weight. Of n people let S be the sum of their weights, Q that of the
squares; V = nQ − S² fixes the SD, S the mean. Both are told rounded as everywhere (`precision`).
They are told of people at eight points or more, none of whom carries more than half of the squares.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.moments import SD_NEEDS, MeanSD
from unpooled.maths.precision import round_mean_sd

_PARTS = 20  # of a step of the lattice: the unit of weights

Steps = Callable[[int], float]
"""A number that rises by steps with a whole number."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the points stand for: `first + unit · weight`."""

    first: float
    unit: float
    of: IntArray

    @classmethod
    def between(cls, edges: FloatArray, step: float, low: float, high: float) -> "Weights":
        """Points that stand for the middle between edges, outer ones between a limit and an edge.

        Examples
        --------
        >>> Weights.between(np.array([1.5, 2.5]), 1.0, 0.5, 3.5).values
        array([1., 2., 3.])
        """
        limits = np.concatenate(([low], edges, [high]))
        middles = (limits[:-1] + limits[1:]) / 2
        unit = step / _PARTS
        weights = np.round((middles - middles[0]) / unit).astype(np.int64)
        return cls(float(middles[0]), unit, weights)

    @property
    def values(self) -> FloatArray:
        """The value of each point."""
        return np.asarray(self.first + self.unit * self.of)

    @property
    def most(self) -> int:
        """The largest weight."""
        return int(self.of[-1])

    def sd(self, n: int) -> Steps:
        """The rounded SD of n people, for V."""
        share = self.unit / math.sqrt(n * (n - 1))
        return lambda v: round_mean_sd(MeanSD(n, 0.0, share * math.sqrt(v))).sd

    def mean(self, n: int, sd: float) -> Steps:
        """The rounded mean of n people with this rounded SD, for S."""
        return lambda s: round_mean_sd(MeanSD(n, self.first + self.unit * s / n, sd)).mean

    def moments(self, counts: IntArray) -> MeanSD | None:
        """What is told of people at these points; None where nothing is.

        This is the rule on pooled rows; `federation.joint.program` follows it on shares.

        Examples
        --------
        >>> Weights.between(np.arange(0.5, 11), 1.0, -0.5, 11.5).moments(np.full(12, 3))
        MeanSD(n=36, mean=5.5, sd=3.5)
        """
        n, weights = int(counts.sum()), self.of.astype(object)
        some = np.flatnonzero(counts)
        if len(some) < SD_NEEDS:
            return None
        total = int((weights * counts).sum())
        spread = n * int((weights * weights * counts).sum()) - total * total
        ends = weights[some[[0, -1]]]
        if any(2 * (n * int(end) - total) ** 2 > n * spread for end in ends):
            return None
        sd = self.sd(n)(spread)
        return MeanSD(n, self.mean(n, sd)(total), sd)


def next_step(steps: Steps, low: int, high: int) -> int:
    """A number in (low, high] at which a rising number rises, near the middle; steps differ there.

    Examples
    --------
    >>> next_step(lambda s: s // 10, 3, 58)
    40
    """
    middle = (low + high) // 2
    here = steps(middle)
    if steps(high) > here:
        return _first(lambda s: steps(s) > here, middle, high)
    return _first(lambda s: steps(s) >= here, low, middle)


def _first(reached: Callable[[int], bool], low: int, high: int) -> int:
    """The first number in (low, high] that reaches something; `high` does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
