"""What counts as one person in a history: a row, or some rows of a person put together.

Where a policy makes one value of several rows, another choice of a person's rows gives another
value. Each choice is then a unit of its own, and `share` says how many units one person has at
most: so many times more of them must be spoken for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths import large
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray

Keys = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int32]  # per person: a block, a cell, a row of a table


@dataclass(frozen=True, slots=True)
class Members:
    """Some people: their rows, or the keys of their units and whose these are."""

    keys: IntArray | Keys
    owners: Keys | None = None
    values: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Units:
    """So many units; `keys` and `owners` name them where they are not simply rows."""

    size: int
    share: int = 1
    keys: Keys | None = None
    owners: Keys | None = None
    values: FloatArray | None = None

    @classmethod
    def of_persons(cls) -> "Units":
        """Nobody yet; units come with the questions."""
        nobody = np.zeros(0, dtype=np.uint64)
        return cls(0, 1, nobody, nobody, np.zeros(0))

    def including(self, people: Sequence[Members]) -> "Units":
        """The same with those that were not known before, behind the others."""
        if self.keys is None or self.owners is None or self.values is None:
            return self
        keys = np.concatenate([some.keys for some in people])
        owners = np.concatenate([some.owners for some in people if some.owners is not None])
        values = np.concatenate([some.values for some in people if some.values is not None])
        new, first = np.unique(keys, return_index=True)
        unknown = first[~np.isin(new, self.keys)]
        return self.with_more(keys[unknown].astype(np.uint64), owners[unknown], values[unknown])

    def with_more(self, keys: Keys, owners: Keys, values: FloatArray) -> "Units":
        """The same with these behind the others."""
        if self.keys is None or self.owners is None or self.values is None:
            return self
        owned = np.concatenate((self.owners, owners))
        share = int(np.unique(owned, return_counts=True)[1].max(initial=1))
        known = np.concatenate((self.keys, keys))
        return Units(len(known), share, known, owned, np.concatenate((self.values, values)))

    def mask(self, members: Members) -> BoolArray:
        """Which units these are.

        Examples
        --------
        >>> Units(4).mask(Members(np.array([1, 3])))
        array([False,  True, False,  True])
        """
        if self.keys is not None:
            return np.isin(self.keys, members.keys)
        people = large.full(self.size, False, bool)
        for piece in large.pieces(len(members)):
            people[members.keys[piece]] = True
        return people
