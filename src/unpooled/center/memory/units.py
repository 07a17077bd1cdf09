"""What counts as one person in a history: a row or, where several rows are of one person, whose.

A person has one value of a variable: which rows make it up is fixed by the first answer about the
variable (`definition.rows_chosen`).
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
    """Some people: their rows, or keys that name them and their values."""

    keys: IntArray | Keys
    values: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Units:
    """So many people; `keys` name them where they are not simply rows."""

    size: int
    keys: Keys | None = None
    values: FloatArray | None = None

    @classmethod
    def of_persons(cls) -> "Units":
        """Nobody yet; people come with the questions."""
        return cls(0, np.zeros(0, dtype=np.uint64), np.zeros(0))

    def including(self, people: Sequence[Members]) -> "Units":
        """The same with those that were not known before, behind the others."""
        if self.keys is None or self.values is None:
            return self
        keys = np.concatenate([some.keys for some in people])
        values = np.concatenate([some.values for some in people if some.values is not None])
        new, first = np.unique(keys, return_index=True)
        unknown = first[~np.isin(new, self.keys)]
        return self.with_more(keys[unknown].astype(np.uint64), values[unknown])

    def with_more(self, keys: Keys, values: FloatArray) -> "Units":
        """The same with these behind the others."""
        if self.keys is None or self.values is None:
            return self
        known = np.concatenate((self.keys, keys))
        return Units(len(known), known, np.concatenate((self.values, values)))

    def mask(self, members: Members) -> BoolArray:
        """Which people these are.

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
