"""An attacker who solves for whole numbers: how many people have each value, from a few sums.

The counts are a point of a lattice; rounding all but exact sums to it is a closest vector problem,
solved by a reduced basis and Babai's nearest plane. Digits are taken up a few at a time, so that
double precision is enough for the reduction; what is reduced is exact.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray

Whole = npt.NDArray[np.object_]  # Python's whole numbers, of any size
Reduce = Callable[[Whole], Whole]

_DIGITS = 12  # binary digits of the sums that are taken up at a time
_FINE = 64  # how finely the counts' own coordinates are kept
_LOVASZ = 0.98


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over people: `weights[i, v]` is what a person with the v-th value adds to `told[i]`."""

    weights: FloatArray
    values: FloatArray
    errors: FloatArray  # how far each may be off


def whole_counts(sums: Sums, guess: FloatArray, reduce: Reduce) -> npt.NDArray[np.int64] | None:
    """The counts nearest to a guess that give the sums, none negative; None where none do."""
    weights, goal = (
        _whole((sums.weights / sums.errors[:, None]).T),
        _whole(sums.values / sums.errors),
    )
    middle, spread = _whole(guess), _whole(_FINE / np.sqrt(np.maximum(guess, 1)))
    start, size = middle, len(guess)
    steps = _whole(np.eye(size))
    largest = max(abs(int(w)) for w in weights.ravel()).bit_length()
    for digits in range(_DIGITS, largest + 2 * _DIGITS, _DIGITS):
        shift = max(largest - digits, 0)
        coarse = weights // 2**shift
        basis = np.concatenate((steps * spread, steps @ (coarse * _FINE)), axis=1)
        steps = reduce(np.concatenate((basis, steps), axis=1))[:, -size:]
        if shift == 0:
            break
    basis = np.concatenate((steps * spread, steps @ (weights * _FINE)), axis=1)
    for _ in range(3):  # each time what is left is smaller, and so exact
        left = np.concatenate(((middle - start) * spread, (goal - start @ weights) * _FINE))
        start = start + _nearest_plane(basis, left) @ steps
    result = start.astype(np.int64)
    off = np.abs(sums.weights @ result - sums.values)
    return result if (result >= 0).all() and (off <= 8 * sums.errors).all() else None


def reduced(basis: Whole) -> Whole:
    """A basis of the same lattice with short rows (Lenstra, Lenstra, Lovász), all pairs at once.

    The last columns, as many as there are rows, are carried along and have no length.
    """
    rows, size = basis.copy(), len(basis)
    for turn in range(20_000):
        upper = np.linalg.qr(rows[:, :-size].astype(np.float64).T, mode="r")
        upper = upper * np.sign(np.diag(upper))[:, None]
        for i in range(1, size):
            for j in range(i - 1, -1, -1):
                times = round(upper[j, i] / upper[j, j])
                if times:
                    rows[i] = rows[i] - times * rows[j]
                    upper[:, i] -= times * upper[:, j]
        heads = np.diag(upper)
        swapped = heads[1:] ** 2 + np.diag(upper, 1) ** 2 < _LOVASZ * heads[:-1] ** 2
        if not swapped.any():
            break
        places = np.flatnonzero(swapped).tolist()
        for i in (place for place in places if place % 2 == turn % 2):
            rows[[i, i + 1]] = rows[[i + 1, i]]
    return rows


def _whole(numbers: FloatArray) -> Whole:
    return np.array([round(number) for number in numbers.ravel().tolist()], object).reshape(
        numbers.shape
    )


def _nearest_plane(basis: Whole, goal: Whole) -> Whole:
    """Whole multiples of the rows whose sum is near the goal (Babai)."""
    rows = basis.astype(np.float64)
    orthogonal, upper = np.linalg.qr(rows.T)
    left = orthogonal.T @ goal.astype(np.float64)
    times = np.zeros(len(rows), dtype=object)
    for i in range(len(rows) - 1, -1, -1):
        times[i] = round(left[i] / upper[i, i])
        left = left - float(times[i]) * upper[:, i]
    return times
