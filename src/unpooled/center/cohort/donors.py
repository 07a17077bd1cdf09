"""Whose value counts for somebody who has none, where fewer than K people have none.

It is that of somebody alike: people are parted by the column of groups in which those with a value
differ most, then by the next, as long as K people with a value are left. So a group's mean does not
move towards that of all others. Whose it is depends on the center's key and on no question: the
same in all answers, since the difference of two would tell that somebody has no value.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray

MOST_PEOPLE = 10_000  # of more, fewer than K hardly move a mean

Sorts = Mapping[str, IntArray]  # column → the number of each person's level


def find_donors(
    variable: str, values: FloatArray, lacking: IntArray, sorts: Sorts, k: int, secret: bytes
) -> IntArray:
    """For each of these people somebody alike who has a value; nobody where nobody has one."""
    key = hashlib.blake2b(variable.encode(), key=secret[:64], person=b"unpooled filled")
    pool = _Pool(values, np.flatnonzero(~np.isnan(values)), sorts, k)
    donors = np.zeros(len(lacking), dtype=np.int64)
    if not len(pool.people):
        return donors[:0]
    for place, person in enumerate(lacking.tolist()):
        keyed = key.copy()
        keyed.update(person.to_bytes(8, "little"))
        alike = pool.around(person)
        donors[place] = alike[int.from_bytes(keyed.digest()[:8], "little") % len(alike)]
    return donors


class _Pool:
    """People who have a value and are alike so far; `sorts` may part them further."""

    def __init__(self, values: FloatArray, people: IntArray, sorts: Sorts, k: int) -> None:
        self.people = people
        self._values = values
        self._sorts = sorts
        self._k = k
        self._parts: dict[int, _Pool] = {}

    def around(self, person: int) -> IntArray:
        """Those of them who are most alike to somebody."""
        if self._best is None:
            return self.people
        level = int(self._sorts[self._best][person])
        if level not in self._parts:
            rest = {name: of for name, of in self._sorts.items() if name != self._best}
            these = self.people[self._sorts[self._best][self.people] == level]
            self._parts[level] = _Pool(self._values, these, rest, self._k)
        part = self._parts[level]
        return part.around(person) if len(part.people) >= self._k else self.people

    @cached_property
    def _best(self) -> str | None:
        """The column by whose levels their values differ most."""
        return max(self._differences(), default=(0.0, None))[1]

    def _differences(self) -> Iterator[tuple[float, str]]:
        if len(self.people) < 2 * self._k:
            return
        ordered = np.sort(self._values[self.people])
        rank = (
            ordered.searchsorted(self._values[self.people], "left")
            + ordered.searchsorted(self._values[self.people], "right")
        ) - len(ordered)
        for name, of in self._sorts.items():
            _, level, people = np.unique(of[self.people], return_inverse=True, return_counts=True)
            if len(people) > 1:
                between = float((np.bincount(level, rank) ** 2 / people).sum())
                within = max(float(rank @ rank) - between, 1.0)
                yield between / (len(people) - 1) / within * (len(rank) - len(people)), name
