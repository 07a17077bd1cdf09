"""An attacker who solves everything that was told as linear equations about single people."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray

Labels = npt.NDArray[np.int64]
People = npt.NDArray[np.bool_]

_ALL = 1 - 1e-9  # of a vector's length, but for rounding


def fewest_people(answer: Sequence[People], k: int) -> int:
    """Of how few people some number that follows from the told ones speaks; k if of k or more.

    A combination of told sets that is zero on everybody but a few people is a number about those
    few. Where there is one, the projection to what is told leaves a vector about them as it is.
    """
    return fewest_of_sums([people.astype(float) for people in answer], k)


def fewest_of_sums(answer: Sequence[FloatArray], k: int) -> int:
    """The same where people count with weights, such as their values or the squares of these."""
    some = [row for row in answer if row.any()]
    if not some:
        return k
    rows = np.unique(np.array(some), axis=0)
    rows = rows / np.linalg.norm(rows, axis=1)[:, None]
    columns, weights = np.unique(rows, axis=1, return_counts=True)
    _, lengths, basis = np.linalg.svd(columns, full_matrices=False)
    basis = basis[lengths > 1e-9 * lengths[0]]
    kept = basis.T @ basis
    small = np.flatnonzero(weights < k)
    for size in range(1, k):
        for few in combinations(small, size):
            if (
                weights[list(few)].sum() < k
                and np.linalg.eigvalsh(kept[np.ix_(few, few)])[-1] > _ALL
            ):
                return int(weights[list(few)].sum())
    return k


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer counts: each person's label, 0 for nobody spoken of.

    `variable` is the one whose values, or lack of them, choose the labels; None where words do.
    """

    labels: Labels
    variable: str | None = None

    def sets(self) -> list[People]:
        """The people of each label."""
        return [self.labels == label for label in range(1, int(self.labels.max(initial=0)) + 1)]


def claims(answer: Sequence[Told], k: int) -> dict[str | None, int]:
    """Beside which variables some number about fewer than k people follows, and about how many.

    Sets that words choose are combined over the whole center (None), and beside all that was told
    in cells of each variable by itself.
    """
    words = [people for one in answer if one.variable is None for people in one.sets()]
    result: dict[str | None, int] = {}
    for variable in (None, *sorted({one.variable for one in answer if one.variable is not None})):
        part = [people for one in answer if one.variable == variable for people in one.sets()]
        fewest = fewest_people(words if variable is None else [*words, *part], k)
        if fewest < k:
            result[variable] = fewest
    return result
