"""People with the same history, counted: the table that every judgement is made on.

Two people are *twins* before a set if no cell and no earlier set tells them apart. A row of the
table stands for all people of one cell with the same membership in every crossing set; rows are
ordered by cell and then by the sets, first set first, so that those who agree on the first sets are
neighbours.
"""

from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import BoolArray, IntArray
from unpooled.memory.units import Places

NOWHERE = 0  # the cell of people that no block holds


@dataclass(frozen=True, slots=True)
class Atoms:
    """`of[i]` is the row of person i; the other arrays have an entry per row."""

    of: Places
    cell: IntArray
    sets: BoolArray  # a column per crossing set
    count: IntArray

    @classmethod
    def by_cell(cls, cell: Places) -> "Atoms":
        """Before any crossing set: a row per cell.

        Examples
        --------
        >>> Atoms.by_cell(np.array([1, 0, 1])).count
        array([1, 2])
        """
        count = np.bincount(cell)
        rows = np.flatnonzero(count)
        place = np.zeros(len(count), dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        return cls(place[cell], rows, np.zeros((len(rows), 0), dtype=bool), count[rows])

    def inside(self, people: BoolArray) -> IntArray:
        """How many people of each row belong to a set."""
        return np.bincount(self.of[people], minlength=len(self.count))

    def with_set(self, people: BoolArray, inside: IntArray, place: int) -> "Atoms":
        """The table with one more set, as the column `place`."""
        halves = np.stack((self.count - inside, inside), axis=1).ravel()
        held = np.flatnonzero(halves)
        row, side = held >> 1, (held & 1).astype(bool)
        sets = np.insert(self.sets[row], place, side, axis=1)
        cell, count = self.cell[row], halves[held]
        order = np.arange(len(held))
        if place < self.sets.shape[1]:
            order = np.lexsort((*sets.T[::-1], cell))
        position = np.zeros(len(halves), dtype=np.int32)
        position[held[order]] = np.arange(len(held), dtype=np.int32)
        of = position[self.of * 2 + people]
        return Atoms(of, cell[order], sets[order], count[order])

    def starts(self, sets: int) -> IntArray:
        """The first row of each run of people who share cell and membership in the first sets."""
        new = np.ones(len(self.cell), dtype=bool)
        new[1:] = self.cell[1:] != self.cell[:-1]
        if sets:
            new[1:] |= (self.sets[1:, :sets] != self.sets[:-1, :sets]).any(axis=1)
        return np.flatnonzero(new)

    def twins(self, inside: IntArray, sets: int) -> tuple[IntArray, IntArray]:
        """Pairs of twins before the set `sets` of which one belongs to it, and their cells."""
        if not len(self.cell):
            return self.cell, self.count
        starts = self.starts(sets)
        within = np.add.reduceat(inside, starts)
        total = np.add.reduceat(self.count, starts)
        return self.cell[starts], np.minimum(within, total - within)
