"""People with the same history, counted: the table that every judgement is made on.

Two people are *twins* before a set if no cell and no earlier set tells them apart. A column of the
table stands for all people of one cell with the same membership in every crossing set; columns are
ordered by cell and then by the sets, first set first, so that those who agree on the first sets are
neighbours.
"""

from dataclasses import dataclass

import numpy as np

from unpooled.center.memory.units import Places
from unpooled.maths import large
from unpooled.maths.arrays import BoolArray, IntArray

NOWHERE = 0  # the cell of people that no block holds
_OTHER_CELL = -1


@dataclass(frozen=True, slots=True)
class Atoms:
    """`of[i]` is the column of person i; the other arrays have an entry per column.

    `agrees` says in how many of the first sets a column is like the one before it, -1 where that
    lies in another cell.
    """

    of: Places
    cell: IntArray
    sets: BoolArray  # a row per crossing set
    count: IntArray
    agrees: IntArray

    @classmethod
    def by_cell(cls, cell: Places) -> "Atoms":
        """Before any crossing set: a column per cell.

        Examples
        --------
        >>> Atoms.by_cell(np.array([1, 0, 1])).count
        array([1, 2])
        """
        count = large.frequencies(cell)
        held = np.flatnonzero(count)
        place = np.zeros(len(count), dtype=np.int32)
        place[held] = np.arange(len(held), dtype=np.int32)
        nothing = np.zeros((0, len(held)), dtype=bool)
        of = large.mapped(np.int32, lambda cell: place[cell], cell)
        return cls(of, held, nothing, count[held], np.full(len(held), _OTHER_CELL))

    def inside(self, people: BoolArray) -> IntArray:
        """How many people of each column belong to a set."""
        return large.frequencies(self.of, len(self.count), people)

    def with_set(self, people: BoolArray, inside: IntArray, place: int) -> "Atoms":
        """The table with one more set, as the row `place`."""
        halves = np.stack((self.count - inside, inside), axis=1).ravel()
        held = np.flatnonzero(halves)
        column, side = held >> 1, (held & 1).astype(bool)
        run = np.cumsum(self.agrees < place)[column]
        order = np.lexsort((side, run))  # stable: what agrees otherwise keeps its order
        column, side, run = column[order], side[order], run[order]
        agrees = np.full(len(order), place)  # the two sides of a run agree up to here
        agrees[0] = _OTHER_CELL
        later = np.flatnonzero((run[1:] != run[:-1]) | (side[1:] == side[:-1])) + 1
        agrees[later] = self._agreement(column[later - 1], column[later])
        agrees[later] += run[later] == run[later - 1]  # in the new set as well
        position = np.zeros(len(halves), dtype=np.int32)
        position[held[order]] = np.arange(len(held), dtype=np.int32)
        sets = np.insert(self.sets[:, column], place, side, axis=0)
        of = large.mapped(np.int32, lambda of, inside: position[of * 2 + inside], self.of, people)
        return Atoms(of, self.cell[column], sets, halves[held[order]], agrees)

    def _agreement(self, earlier: IntArray, later: IntArray) -> IntArray:
        """In how many of the first sets two columns are alike."""
        ranges = np.stack((earlier + 1, later + 1), axis=1).ravel()
        padded = np.append(self.agrees, 0)
        return np.asarray(np.minimum.reduceat(padded, ranges)[::2]) if len(ranges) else ranges

    def starts(self, sets: int) -> IntArray:
        """The first of each run of columns that share cell and membership in the first sets."""
        return np.flatnonzero(self.agrees < sets)

    def twins(self, inside: IntArray, sets: int) -> tuple[IntArray, IntArray]:
        """Pairs of twins before the set `sets` of which one belongs to it, and their cells."""
        if not len(self.cell):
            return self.cell, self.count
        starts = self.starts(sets)
        within = np.add.reduceat(inside, starts)
        total = np.add.reduceat(self.count, starts)
        return self.cell[starts], np.minimum(within, total - within)
