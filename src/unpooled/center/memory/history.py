"""All that was told about one variable, and whether one more set of people may be.

What was told is the span of two kinds of sets: the *cells* of disjoint *blocks* of people, each of
at least K, and *crossing sets*, in an order. Each crossing set has K pairs of twins: two people,
one inside and one outside, in one cell and in the same of the crossing sets before it.

So any combination of told numbers that is not zero on everybody speaks for at least K people. Take
the last crossing set in it. On a pair of its twins everything before it is equal, so the
combination differs by the coefficient of that set and is not zero on both; K pairs make K people.
Without a crossing set, it holds a whole cell. (docs/memory.md)
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from unpooled.center.memory.atoms import NOWHERE, Atoms
from unpooled.center.memory.solving import SignArray, solve
from unpooled.center.memory.units import Places
from unpooled.maths import large
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray

_MOST_CROSSINGS = 100  # of one variable; bounds time and memory
_TRIES = 10  # places in the order that are tried for a set

Term = tuple[int, int | None]  # the place of a crossing set, and a block
Terms = tuple[Term, ...]
REST = -2


class WouldDiffer(Exception):  # noqa: N818 - not an error of the program but a judgement
    """What is asked for, beside what was told before, could single out fewer than K people."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A set that crosses cells, and into which runs of cells its people were told."""

    people: BoolArray
    run: IntArray | None = None  # cell → run; None: it was told as a whole


@dataclass(frozen=True, slots=True)
class Block:
    """People told together; `edges` part them into cells, None while no table was told."""

    first: int  # its cells are numbered from here
    edges: FloatArray | None = None
    parted: bool = True  # whether its people are in their cells yet
    assumed: bool = False  # what was left of other blocks: not told, but taken to be


@dataclass(frozen=True, slots=True)
class History:
    """What was told about one variable so far."""

    k: int
    block: Places  # person → block, -1 in none
    cell: Places  # person → cell, NOWHERE in none
    blocks: tuple[Block, ...]
    crossings: tuple[Crossing, ...]
    following: tuple[Crossing, ...] = ()  # told, and follow from cells of which some are assumed
    counted: Atoms | None = None  # None: not yet

    @property
    def atoms(self) -> Atoms:
        """People with the same history; counted when first needed."""
        if self.counted is None:
            object.__setattr__(self, "counted", Atoms.by_cell(self.cell))
        assert self.counted is not None
        return self.counted

    @classmethod
    def empty(cls, people: int, k: int) -> "History":
        """Nothing was told yet."""
        cell = large.full(people, NOWHERE, np.int32)
        block = large.full(people, -1, np.int32)
        return cls(k, block, cell, (), ())

    def tell(self, people: BoolArray, k: int, *, open_base: bool, repeats: bool) -> "History":
        """What was told once a set of people has been spoken for.

        Parameters
        ----------
        people
            Who is spoken for.
        k
            The K in force.
        open_base
            Whether people of whom nothing was told may become a block of their own.
        repeats
            Whether a set that follows from earlier ones may be told: it adds nothing, but that it
            does is itself a word about the people in which the two differ, namely that there are
            none.
        """
        fresh = large.mapped(bool, lambda inside, block: inside & (block < 0), people, self.block)
        unknown = np.count_nonzero(fresh)
        extensible = open_base and unknown >= k
        if extensible and not self.crossings and unknown == np.count_nonzero(people):
            return self.with_block(fresh)  # nothing was told of anybody among them
        inside = self.atoms.inside(people)
        if self.combination(inside) is not None:
            if repeats:
                return self._noting(Crossing(people))
            raise WouldDiffer
        if extensible and self._whole_cells(large.mapped(bool, np.greater, people, fresh)):
            with suppress(WouldDiffer):
                return self.with_block(fresh)._noting(Crossing(people))
        try:
            return self._cross(people, inside, k)
        except WouldDiffer:
            if not extensible:
                raise
        return self.with_block(fresh).tell(people, k, open_base=False, repeats=repeats)

    def combination(self, inside: IntArray) -> Terms | None:
        """The crossing sets in a combination of told sets that gives this one; None: there is none.

        A set that was told by runs counts block by block, since its part in a block is a sum of
        runs, and REST is what it has in no run; the block is None for one told as a whole.
        """
        atoms = self.atoms
        if np.any((inside > 0) & (inside < atoms.count)):
            return None
        first = np.repeat(*_runs(atoms.starts(0), len(atoms.cell)))
        told = atoms.cell != NOWHERE  # nowhere, no cell can be added
        wanted = (inside > 0).astype(np.float64)
        wanted -= np.where(told, wanted[first], 0.0)
        terms, sets = self._terms()
        if not terms:
            return None if wanted.any() else ()
        sets -= np.where(told, sets[:, first], 0).astype(np.int8)
        found = solve(sets, wanted)
        return None if found is None else tuple(terms[i] for i in np.flatnonzero(found).tolist())

    def _terms(self) -> tuple[list[Term], SignArray]:
        """What can be added to cells, and who is in it."""
        terms: list[Term] = []
        rows = []
        owner = np.full(self.free_cell, -1)
        for b, block in enumerate(self.blocks):
            owner[block.first : block.first + len(_no_edges(block)) + 1] = b
        at = owner[self.atoms.cell]
        for place, (crossing, members) in enumerate(
            zip(self.crossings, self.atoms.sets, strict=True)
        ):
            inside = members.astype(np.int8)
            if crossing.run is None:
                terms.append((place, None))
                rows.append(inside)
                continue
            run = np.pad(crossing.run, (0, max(self.free_cell - len(crossing.run), 0)))
            part = np.where(run[self.atoms.cell] > 0, at, REST)
            for b in np.unique(part[members]).tolist():
                terms.append((place, b))
                rows.append(inside * (part == b))
        return terms, np.array(rows, dtype=np.int8)

    def with_block(self, people: BoolArray) -> "History":
        """The same with a new block of people of whom nothing was told before."""
        block, cell = large.copied(self.block), large.copied(self.cell)
        block[people], cell[people] = len(self.blocks), self.free_cell
        return self.rebased(block, cell, (*self.blocks, Block(self.free_cell)))

    def rebased(
        self,
        block: Places,
        cell: Places,
        blocks: tuple[Block, ...],
        first: Sequence[BoolArray] = (),
    ) -> "History":
        """The same told on other blocks, or with finer cells; raises where that tells too much."""
        base = History(self.k, block, cell, blocks, ())
        for people in first:
            base = base.tell(people, self.k, open_base=False, repeats=True)
        for crossing in (*self.crossings, *self.following):
            base = base._tell_again(crossing)
        return base

    def _noting(self, told: Crossing) -> "History":
        """The same, aware of a set that follows from others: assumed ones may be given up later."""
        if not any(block.assumed for block in self.blocks):
            return self
        for known in self.following:
            if known.run is told.run and not large.count(np.not_equal, known.people, told.people):
                return self
        if len(self.crossings) + len(self.following) >= _MOST_CROSSINGS:
            raise WouldDiffer
        return replace(self, following=(*self.following, told))

    def grown(self, people: int) -> "History":
        """The same with more people, of whom nothing was told."""
        more = people - len(self.block)
        if not more:
            return self
        block = np.pad(self.block, (0, more), constant_values=-1)
        cell = np.pad(self.cell, (0, more), constant_values=NOWHERE)
        nobody = np.zeros(more, dtype=bool)
        crossings, following = (
            tuple(replace(c, people=np.concatenate((c.people, nobody))) for c in sets)
            for sets in (self.crossings, self.following)
        )
        larger = replace(self, crossings=crossings, following=following)
        return larger.rebased(block, cell, self.blocks)

    def with_runs(self, place: int, run: IntArray) -> "History":
        """The same once a crossing set was told by runs of cells."""
        crossings = list(self.crossings)
        crossings[place] = replace(crossings[place], run=run)
        told = replace(self, crossings=tuple(crossings))
        told._check_twins(place, self.k)
        return told

    @property
    def free_cell(self) -> int:
        """The first number that no cell has."""
        if not self.blocks:
            return NOWHERE + 1
        return max(b.first + (0 if b.edges is None else len(b.edges)) for b in self.blocks) + 1

    def as_block(self, people: BoolArray) -> int | None:
        """The block that these people are, if they are one."""
        b = int(self.block[people.argmax()])
        if b < 0 or large.count(lambda block, inside: (block == b) != inside, self.block, people):
            return None
        return b

    def is_whole(self, place: int, cells: IntArray) -> bool:
        """Whether a crossing set has all or none of the people in each of these cells."""
        atoms = self.atoms
        here = np.isin(atoms.cell, cells)
        own = np.bincount(atoms.cell[here], (atoms.count * atoms.sets[place])[here])
        held = np.bincount(atoms.cell[here], atoms.count[here])
        return bool(np.all((own == 0) | (own == held)))

    def _whole_cells(self, people: BoolArray) -> bool:
        found = large.frequencies(self.cell, self.free_cell, people)
        held = large.frequencies(self.cell, self.free_cell)
        return bool(np.all((found == 0) | (found == held)))

    def _tell_again(self, crossing: Crossing) -> "History":
        inside = self.atoms.inside(crossing.people)
        found = self.combination(inside)
        if found is None:
            return self._cross(crossing.people, inside, self.k, crossing.run)
        if found and crossing.run is not None:
            raise WouldDiffer  # its runs need not follow from the runs of others
        return self._noting(crossing)

    def _cross(
        self, people: BoolArray, inside: IntArray, k: int, run: IntArray | None = None
    ) -> "History":
        """Add a crossing set, as late in the order as its twins and those of the others allow."""
        crossing, tries = Crossing(people, run), _TRIES
        for place in range(len(self.crossings), -1, -1):
            if self.atoms.twins(inside, place)[1].sum() < k:
                continue
            if len(self.crossings) + len(self.following) >= _MOST_CROSSINGS or not tries:
                break
            tries -= 1
            crossings = (*self.crossings[:place], crossing, *self.crossings[place:])
            atoms = self.atoms.with_set(people, inside, place)
            told = replace(self, crossings=crossings, counted=atoms)
            try:
                for later in range(place, len(crossings)):
                    told._check_twins(later, k if later == place else self.k)
            except WouldDiffer:
                continue
            return told
        raise WouldDiffer

    def _check_twins(self, place: int, k: int) -> None:
        """Raise unless each run that was told of a crossing set has enough pairs of twins."""
        atoms, run = self.atoms, self.crossings[place].run
        cells, pairs = atoms.twins(atoms.count * atoms.sets[place], place)
        if run is None:
            if pairs.sum() < k:
                raise WouldDiffer
            return
        run = np.pad(run, (0, max(self.free_cell - len(run), 0)))  # cells that are newer
        runs = np.bincount(run[cells], pairs, run.max(initial=0) + 1)
        told = np.bincount(run) > 0
        told[0] = runs[0] > 0  # cells in no run: everything there follows from the cells
        if np.any(told & (runs < k)):
            raise WouldDiffer


def _no_edges(block: Block) -> FloatArray:
    return np.zeros(0) if block.edges is None else block.edges


def _runs(starts: IntArray, end: int) -> tuple[IntArray, IntArray]:
    return starts, np.diff(starts, append=end)
