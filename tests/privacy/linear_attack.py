"""An attacker who solves everything that was told as linear equations about single people."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt


def fewest_people(told: Sequence[npt.NDArray[np.bool_]], k: int) -> int:
    """Of how few people some number that follows from the told ones speaks; k if of k or more.

    A combination of told sets that is zero on everybody but a few people is a number about those
    few. There is one exactly if the sets, without these people, depend on each other more.
    """
    rows = np.unique(np.array([people for people in told if people.any()]), axis=0).astype(float)
    columns, weights = np.unique(rows, axis=1, return_counts=True)
    rank = np.linalg.matrix_rank(columns)
    small = np.flatnonzero(weights < k)
    for size in range(1, k):
        for few in combinations(small, size):
            if weights[list(few)].sum() < k:
                rest = np.delete(columns, few, axis=1)
                if not rest.size or np.linalg.matrix_rank(rest) < rank:
                    return int(weights[list(few)].sum())
    return k
