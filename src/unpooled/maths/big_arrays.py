"""Arrays with an entry per person, of whom there may be more than fit in memory.

They are made where the center says, and worked on piece by piece: what is needed in between does
not grow with the people.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import BoolArray, FloatArray, IntArray, Places

Array = npt.NDArray[Any]
Allocate = Callable[[int, "np.dtype[Any]"], Array]

_PIECE = 1 << 19  # people at a time: their numbers stay in the processor's cache
_BUCKETS, _STEPS = 4, 8  # buckets per edge; edges in one bucket, of more values are searched for
_allocate: ContextVar[Allocate] = ContextVar("allocate", default=np.empty)


@contextmanager
def allocating(allocate: Allocate) -> Iterator[None]:
    """Make the large arrays with this function."""
    before = _allocate.set(allocate)
    try:
        yield
    finally:
        _allocate.reset(before)


def empty(size: int, dtype: npt.DTypeLike) -> Array:
    """A large array with anything in it."""
    return _allocate.get()(size, np.dtype(dtype))


def full(size: int, value: object, dtype: npt.DTypeLike) -> Array:
    """A large array with the same entry everywhere."""
    made = empty(size, dtype)
    made[:] = value
    return made


def copied(array: Array) -> Array:
    """Another array with the same entries."""
    made = empty(len(array), array.dtype)
    made[:] = array
    return made


def sort(array: Array) -> None:
    """Sort numbers in place; many of them in two halves at once, the lower and the upper one.

    Examples
    --------
    >>> some = np.array([3.0, 1.0, 2.0])
    >>> sort(some)
    >>> some
    array([1., 2., 3.])
    """
    middle = len(array) // 2
    if middle < _PIECE:
        array.sort()
        return
    array.partition(middle)
    upper = Thread(target=array[middle:].sort)
    upper.start()
    array[:middle].sort()
    upper.join()


def pieces(size: int) -> Iterator[slice]:
    """Places, some at a time.

    Examples
    --------
    >>> list(pieces(3))
    [slice(0, 3, None)]
    """
    for start in range(0, size, _PIECE):
        yield slice(start, min(start + _PIECE, size))


def mapped(dtype: npt.DTypeLike, function: Callable[..., Array], *arrays: Array) -> Array:
    """What a function of single entries gives.

    Examples
    --------
    >>> mapped(bool, np.less, np.array([1, 5]), np.array([2, 4]))
    array([ True, False])
    """
    made = empty(len(arrays[0]), dtype)
    for piece in pieces(len(made)):
        made[piece] = function(*(array[piece] for array in arrays))
    return made


def count(function: Callable[..., BoolArray], *arrays: Array) -> int:
    """Of how many entries something holds."""
    return sum(
        int(np.count_nonzero(function(*(array[piece] for array in arrays))))
        for piece in pieces(len(arrays[0]))
    )


def chosen(array: Array, among: BoolArray) -> Array:
    """The entries of some people.

    Examples
    --------
    >>> chosen(np.array([3, 1, 2]), np.array([True, False, True]))
    array([3, 2])
    """
    made, end = empty(int(np.count_nonzero(among)), array.dtype), 0
    for piece in pieces(len(array)):
        some = array[piece][among[piece]]
        made[end : end + len(some)] = some
        end += len(some)
    return made


def placed(values: FloatArray, edges: FloatArray) -> Places:
    """In which cell (edges[b−1], edges[b]], from 0, each value lies.

    Values are sorted into buckets of one width, in which they pass at most a few edges.

    Examples
    --------
    >>> placed(np.array([0.5, 1.0, 1.5, 9.0]), np.array([1.0, 2.0]))
    array([0, 0, 1, 2], dtype=int32)
    """
    buckets = _BUCKETS * len(edges)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        width = np.float64(buckets) / (edges[-1] - edges[0]) if len(edges) > 1 else np.nan

    def bucket(some: FloatArray) -> Places:
        apart = (np.where(np.isnan(some), edges[0], some) - edges[0]) * width
        return np.asarray(np.clip(apart, 0, buckets - 1).astype(np.int32))

    steps = len(edges)
    if np.isfinite(width):
        of_edges = bucket(edges)
        steps = int(np.bincount(of_edges).max())
    if steps > _STEPS or not np.isfinite(width):
        return mapped(np.int32, edges.searchsorted, values)
    first = np.searchsorted(of_edges, np.arange(buckets)).astype(np.int32)
    upper = np.append(edges, np.inf)

    def cell(some: FloatArray) -> Places:
        place: Places = first[bucket(some)]
        for _ in range(steps):
            place += upper[place] < some
        return place

    return mapped(np.int32, cell, values)


def frequencies(places: Array, size: int = 0, among: BoolArray | None = None) -> IntArray:
    """How often each number occurs, of all people or of some.

    Examples
    --------
    >>> frequencies(np.array([0, 2, 2]), among=np.array([True, True, False]))
    array([1, 0, 1])
    """
    counts = np.zeros(size, dtype=np.int64)
    for piece in pieces(len(places)):
        some = places[piece] if among is None else places[piece][among[piece]]
        more = np.bincount(some, minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
    return counts


def distinct(array: Array, among: BoolArray) -> Array:
    """The different entries of some people, ascending.

    Examples
    --------
    >>> distinct(np.array([4, -1, 4]), np.array([True, True, True]))
    array([-1,  4])
    """
    values = array[:0]
    for piece in pieces(len(array)):
        values = np.union1d(values, array[piece][among[piece]])
    return values


class Growing:
    """A large array that is read bit by bit; `room` is how long it may become, as far as known."""

    def __init__(self, dtype: npt.DTypeLike, room: int = 0) -> None:
        self._held, self._size = empty(room, dtype), 0

    def append(self, more: Array) -> None:
        """Put these behind the others."""
        end = self._size + len(more)
        if end > len(self._held):
            larger = empty(max(end, 2 * self._size), self._held.dtype)
            larger[: self._size] = self.array
            self._held = larger
        self._held[self._size : end] = more
        self._size = end

    @property
    def array(self) -> Array:
        """What was read so far."""
        return self._held[: self._size]
