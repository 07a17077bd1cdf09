"""Sums by subtraction: what is left of told sets beside a new one must have enough values.

Few people with rare values are a count, whether they are asked for or follow from two answers
(rule 5 of docs/privacy.md). So before a sum is told, the values of every remainder that it leaves
are looked at as if they had been asked for. Means tell sums; so do the numbers of people whose
values can be guessed (`plain`), and ranks of few values.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from unpooled.center.memory.tables import Cells, Values
from unpooled.maths import large
from unpooled.maths.arrays import BoolArray, FloatArray
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS, telling_values

Bits = npt.NDArray[np.uint8]  # a set, eight people in a byte: fast to compare
Ks = tuple[int, int]  # the policy's K, and that in force


@dataclass(frozen=True, slots=True)
class Summed:
    """A set whose sum was told, or withheld; `values` as they were told (`telling_values`)."""

    people: BoolArray
    values: int

    def tells(self, needed: int) -> bool:
        """Whether a statistic that needs so many different values was told."""
        return self.values == 0 or self.values >= needed

    def grown(self, size: int) -> "Summed":
        """The same among more people."""
        more = size - len(self.people)
        return Summed(np.pad(self.people, (0, more)), self.values) if more else self


def fewest(*numbers: int) -> int:
    """The fewest of some numbers of values; 0 stands for no limit.

    Examples
    --------
    >>> fewest(0, 0), fewest(0, 1), fewest(8, 2)
    (0, 1, 2)
    """
    return min(filter(None, numbers), default=0)


def with_more(told: Sequence[Summed], new: Iterable[Summed]) -> tuple[Summed, ...]:
    """What was told, and more: each set once, with the most that was told of it."""
    found = list(told)
    for one in new:
        place = next(
            (at for at, known in enumerate(found) if same_people(known.people, one.people)), -1
        )
        if place < 0:
            found.append(one)
        elif not found[place].tells(SD_NEEDS) and (one.values or SD_NEEDS) > found[place].values:
            found[place] = one
    return tuple(found)


def values_left(told: Sequence[Summed], new: BoolArray, ks: Ks, values: Values) -> int:
    """The fewest values of a remainder, where they are too few for what was told; else 0.

    The same people again are told of as before.
    """
    for known in told:
        if known.tells(MEAN_NEEDS) and same_people(known.people, new):
            return 0 if known.tells(SD_NEEDS) else known.values
    means = [known.people for known in told if known.tells(MEAN_NEEDS)]
    spreads = [known.people for known in told if known.tells(SD_NEEDS)]
    left = _fewest_left(means, new, ks, values)
    if 0 < left < MEAN_NEEDS:
        return left
    if len(spreads) < len(means):
        left = _fewest_left(spreads, new, ks, values)
    return max(left, MEAN_NEEDS) if 0 < left < SD_NEEDS else 0


def same_people(some: BoolArray, others: BoolArray) -> bool:
    """Whether two sets are one."""
    return not large.count(np.not_equal, some, others)


def _fewest_left(told: Sequence[BoolArray], new: BoolArray, ks: Ks, values: Values) -> int:
    """The fewest values of all remainders; 0 where each belongs to many people."""
    found = 0
    for people in remainders(told, new):
        found = fewest(found, telling_values(sorted_values(values, people), *ks))
    return found


def plain(values: Values, people: BoolArray, cells: Cells, k: int) -> BoolArray | None:
    """Those with the commonest value of their cell, if all people of a set but fewer than K have.

    The counts of the cells then give their sum away. A cell that tells its mean is as good as one
    for each value that K people share. None: too few are alike.

    Examples
    --------
    >>> died, everybody = np.repeat([0.0, 1.0], [2, 3]), np.full(5, True)
    >>> plain(lambda: died, everybody, Cells(np.array([0.5])), 2)
    array([ True,  True,  True,  True,  True])
    >>> plain(lambda: died, everybody, Cells(), 2)
    """
    own = large.chosen(values(), people)
    most = len(cells.edges) + k  # that many different values, and too few are alike
    if not cells.means and len(np.unique(own[: 4 * most])) > most:
        return None  # as with most variables, which then need not be sorted
    large.sort(own)
    ends = np.append(np.searchsorted(own, cells.edges, "right"), len(own))
    starts = np.append(0, ends[:-1])
    common = own[(starts + ends)[ends > starts] // 2]  # what most have is in the middle
    for cell in cells.means:
        common = np.union1d(common, own[starts[cell] : ends[cell] : k])  # what K share is met
    shared = np.searchsorted(own, common, "right") - np.searchsorted(own, common)
    common, shared = common[shared >= k], shared[shared >= k]
    if len(own) - shared.sum() >= k:
        return None
    return large.mapped(bool, lambda own, value: own & np.isin(value, common), people, values())


def few_values(values: Values, people: BoolArray, ks: Ks) -> bool:
    """Whether ranks may be told of these people, and tell how many of them have which value."""
    own = large.chosen(values(), people)
    if len(np.unique(own[: SD_NEEDS**2])) >= SD_NEEDS:
        return False  # as with most variables, which then need not be sorted
    large.sort(own)
    different = 1 + large.count(np.not_equal, own[1:], own[:-1])
    return different < SD_NEEDS and telling_values(own, *ks) == 0


def sorted_values(values: Values, people: BoolArray) -> FloatArray:
    """The values of some people, in order."""
    own = large.chosen(values(), people)
    large.sort(own)
    return own


def remainders(told: Sequence[BoolArray], new: BoolArray) -> Iterator[BoolArray]:
    """Sets of people that follow from told sets together with a new one."""
    if not any(large.count(np.logical_and, people, new) for people in told):
        return
    largest_first = sorted(told, key=np.count_nonzero, reverse=True)
    known, seen = [np.packbits(people) for people in largest_first], set[bytes]()
    for bits in _differences(known, np.packbits(new)):
        if bits.any() and (mark := sha256(bits.tobytes()).digest()) not in seen:
            seen.add(mark)
            yield _unpacked(bits, len(new))


def _unpacked(bits: Bits, size: int) -> BoolArray:
    people = large.empty(size, bool)
    for piece in large.pieces(size):  # of whole bytes
        some = bits[piece.start // 8 : -(-piece.stop // 8)]
        people[piece] = np.unpackbits(some, count=piece.stop - piece.start)
    return people


def _differences(known: Sequence[Bits], own: Bits) -> Iterator[Bits]:
    """Wholes less disjoint parts, where the new set is the whole or among either.

    A whole is a set, or sets without common people; `known` has the largest first.
    """
    near = [some for some in known if (some & own).any()]
    for whole in (own, _joined(known, own)):
        for part in near:
            yield from _peeled(whole, part, known)
    for whole in (*near, _joined(near, own & ~own)):
        yield from _peeled(whole, own, known)


def _joined(sets: Sequence[Bits], start: Bits) -> Bits:
    """A set and others, in turn, that have nobody in common."""
    whole = start
    for some in sets:
        if not (some & whole).any():
            whole = whole | some
    return whole


def _peeled(whole: Bits, part: Bits, known: Sequence[Bits]) -> Iterator[Bits]:
    """What is left of a whole without a part, and then without others in it."""
    if (part & ~whole).any():
        return
    rest = whole & ~part
    yield rest
    for some in known:
        if not (some & ~rest).any():
            rest = rest & ~some
    yield rest
