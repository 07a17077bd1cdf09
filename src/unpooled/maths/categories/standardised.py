"""Standardised differences between groups, for tables of baseline characteristics.

The unit of a difference is the root of the mean of both groups' variances, whatever their sizes:
that of Yang and Dalton [1]_, which the packages tableone (Python and R) and gtsummary use too.
A difference in a unit of 0 has no value: None.

With more groups than two each pair has its own difference, as in tableone, and `largest` is that
of the pair that differs most: what a table with one column of differences should show, since a mean
over pairs would hide a group that differs from all others.

References
----------
.. [1] Yang, Dalton (2012), SAS Global Forum, paper 335-2012.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.categories.contingency import check_table
from unpooled.maths.categories.mahalanobis import squared_distance


@dataclass(frozen=True, slots=True)
class PairwiseDifferences:
    """The standardised difference of every pair of groups, in the order 0-1, 0-2, …, 1-2, …"""

    pairs: tuple[tuple[int, int], ...]
    values: tuple[float | None, ...]

    @property
    def largest(self) -> float | None:
        """The largest absolute difference; None if a pair has none, or there is no pair."""
        sizes = [abs(value) for value in self.values if value is not None]
        return max(sizes) if sizes and len(sizes) == len(self.values) else None


def mean_difference(mean_x: float, sd_x: float, mean_y: float, sd_y: float) -> float | None:
    """The standardised difference of two means; positive where Y's is larger.

    Examples
    --------
    >>> mean_difference(10.0, 2.0, 11.0, 2.0)
    0.5
    """
    if not (0 <= sd_x < math.inf and 0 <= sd_y < math.inf):
        raise ValueError(f"sd_x and sd_y must be finite and not negative, got {sd_x} and {sd_y}")
    return _in_units(mean_y - mean_x, math.hypot(sd_x, sd_y) / math.sqrt(2))


def share_difference(share_x: float, share_y: float) -> float | None:
    """The standardised difference of two shares in [0, 1]; positive where Y's is larger.

    Examples
    --------
    >>> share_difference(0.5, 0.75)
    0.534...
    """
    if not (0 <= share_x <= 1 and 0 <= share_y <= 1):
        raise ValueError(
            f"share_x and share_y must lie in [0, 1], got {share_x} and {share_y}. "
            "Hint: for 25 % use 0.25."
        )
    variance = (share_x * (1 - share_x) + share_y * (1 - share_y)) / 2
    return _in_units(share_y - share_x, math.sqrt(variance))


def category_difference(counts_x: npt.ArrayLike, counts_y: npt.ArrayLike) -> float | None:
    """Yang and Dalton's difference of two groups over several levels; never negative.

    It is the Mahalanobis distance of the shares of all levels but one, whichever is left out.
    With two levels it is the size of `share_difference`. None where a group has no people, or
    where some level sets the groups wholly apart.

    Examples
    --------
    >>> category_difference([10, 10, 20], [20, 10, 10])
    0.603...
    """
    rows = np.asarray(counts_x, dtype=np.float64), np.asarray(counts_y, dtype=np.float64)
    if rows[0].shape != rows[1].shape:
        raise ValueError(
            f"counts_x and counts_y must have the same levels, got {rows[0].shape} and "
            f"{rows[1].shape}"
        )
    table = check_table(np.array(rows))
    people = table.sum(axis=1, keepdims=True)
    if not people.all():
        return None
    x, y = table / people
    covariance = (np.diag(x) - np.outer(x, x) + np.diag(y) - np.outer(y, y)) / 2
    if np.count_nonzero(x) == np.count_nonzero(y) == 1:
        covariance[:] = 0.0  # exactly
    distance, _, inside = squared_distance(y - x, covariance)
    return math.sqrt(distance) if inside else None


def mean_differences(means: Sequence[float], sds: Sequence[float]) -> PairwiseDifferences:
    """`mean_difference` of every pair of groups.

    Examples
    --------
    >>> mean_differences([10.0, 11.0, 14.0], [2.0, 2.0, 2.0])
    PairwiseDifferences(pairs=((0, 1), (0, 2), (1, 2)), values=(0.5, 2.0, 1.5))
    """
    if len(means) != len(sds):
        raise ValueError(f"every mean needs an SD, got {len(means)} and {len(sds)}")
    return _pairwise(len(means), lambda x, y: mean_difference(means[x], sds[x], means[y], sds[y]))


def category_differences(counts: npt.ArrayLike) -> PairwiseDifferences:
    """`category_difference` of every pair of groups; counts are groups × levels.

    Examples
    --------
    >>> category_differences([[10, 10], [10, 10], [5, 15]]).largest
    0.534...
    """
    table: FloatArray = check_table(counts)
    return _pairwise(len(table), lambda x, y: category_difference(table[x], table[y]))


def _pairwise(groups: int, difference: Callable[[int, int], float | None]) -> PairwiseDifferences:
    pairs = tuple(combinations(range(groups), 2))
    return PairwiseDifferences(pairs, tuple(difference(x, y) for x, y in pairs))


def _in_units(difference: float, unit: float) -> float | None:
    if not math.isfinite(difference):
        raise ValueError(f"means must be finite, got a difference of {difference}")
    if not difference:
        return 0.0
    return difference / unit if unit else None
