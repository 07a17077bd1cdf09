"""Tables in a history: blocks get edges once, for good; sets that cross them are told by runs.

The first table of people of whom no table was told makes them a block of its own, with edges of its
own. A set that crosses a block with edges is told by *runs* of its cells, chosen once, each with K
pairs of twins. A block, a union of blocks, and what follows from sets with runs are told at all
edges that they have in common: that is a sum of told numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from unpooled.center.memory.history import REST, Block, History, WouldDiffer
from unpooled.maths import large
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray
from unpooled.maths.binning import Rule, cut

Values = Callable[[], FloatArray]  # the value of each person, NaN where there is none


@dataclass(frozen=True, slots=True)
class Cells:
    """How a set was told: by cells between edges, of which some told their mean."""

    edges: FloatArray = field(default_factory=lambda: np.zeros(0))
    means: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """People of a set in one block, and the edges they may be told at; None: none is fixed yet."""

    block: int
    people: BoolArray
    edges: FloatArray | None


def parted(history: History, values: Values) -> History:
    """The same with every person of a block in a cell of it; until asked for, that waits."""
    waiting = [b for b, block in enumerate(history.blocks) if not block.parted]
    if not waiting:
        return history
    value, cell, blocks = values(), large.copied(history.cell), list(history.blocks)
    for b in waiting:
        block = blocks[b]
        assert block.edges is not None
        for piece in large.pieces(len(cell)):
            people = np.flatnonzero(history.block[piece] == b)
            cell[piece][people] = block.first + np.searchsorted(block.edges, value[piece][people])
        blocks[b] = replace(block, parted=True)
    return history.rebased(history.block, cell, tuple(blocks))


def with_edges(history: History, b: int, edges: FloatArray, values: Values) -> History:
    """The same once a table of a block was told; raises where that tells too much of others."""
    blocks = list(history.blocks)
    blocks[b] = Block(history.free_cell, edges, parted=False)
    told = replace(history, blocks=tuple(blocks))
    return parted(told, values) if history.crossings else told


def opened(history: History, people: BoolArray, k: int) -> History:
    """The same, ready to tell a table of a set that was told as a whole."""
    if history.as_block(people) is not None:
        return history
    history = _gathered(history, people, k)
    found = history.combination(history.atoms.inside(people))
    if found is None:
        raise WouldDiffer
    for place, block in found:
        if block is None:
            history = history.with_runs(place, _runs(history, place))
    return history


def none_within(history: History, people: BoolArray) -> bool:
    """Whether everything told speaks for all of these people or for none of them."""
    size = np.count_nonzero(people)
    inside = (
        large.count(np.logical_and, crossing.people, people) for crossing in history.crossings
    )
    return len(large.distinct(history.block, people)) == 1 and all(n in (0, size) for n in inside)


def parts(history: History, people: BoolArray) -> list[Part]:
    """The set block by block, with the edges at which it may be told."""
    if (own := history.as_block(people)) is not None:
        return [Part(own, people, history.blocks[own].edges)]
    found = history.combination(history.atoms.inside(people))
    if found is None:
        raise WouldDiffer
    told = []
    for b in large.distinct(history.block, people).tolist():
        block = history.blocks[b]
        edges = block.edges
        if edges is not None:
            cells = np.arange(block.first, block.first + len(edges) + 1)
            ends = np.ones(len(edges), dtype=bool)
            for place in [place for place, own in found if own == REST]:
                if not history.is_whole(place, cells):
                    raise WouldDiffer
            for place in [place for place, own in found if own == b]:
                run = history.crossings[place].run
                assert run is not None
                ends &= np.diff(run[cells]) != 0
            edges = edges[ends]
        told.append(Part(b, _in_block(history, b, people), edges))
    return told


def _in_block(history: History, b: int, people: BoolArray) -> BoolArray:
    return large.mapped(bool, lambda own, block: own & (block == b), people, history.block)


def _gathered(history: History, people: BoolArray, k: int) -> History:
    """People of whom no table was told become one block: their old blocks, sets that cross it."""
    bare = np.array([block.edges is None for block in history.blocks] + [True])  # [-1]: in none
    free = large.mapped(bool, lambda own, block: own & bare[block], people, history.block)
    touched = large.distinct(history.block, free).tolist()
    if not touched or history.as_block(free) is not None:
        return history
    if np.count_nonzero(free) < k:
        raise WouldDiffer
    block, cell = large.copied(history.block), large.copied(history.cell)
    blocks, before = list(history.blocks), []
    for b in [b for b in touched if b >= 0]:
        old = large.mapped(bool, lambda block, number=b: block == number, history.block)
        rest = large.mapped(bool, np.greater, old, free)  # old and not free
        if np.count_nonzero(rest) < history.k:
            block[rest], cell[rest] = -1, 0
        if not blocks[b].assumed:
            before.append(old)
        blocks[b] = replace(blocks[b], assumed=blocks[b].assumed or len(touched) > 1)
    block[free], cell[free] = len(blocks), history.free_cell
    return history.rebased(block, cell, (*blocks, Block(history.free_cell)), before)


def _runs(history: History, place: int) -> IntArray:
    """Runs of cells for a crossing set, each with enough pairs of twins; cell → run, 0: no run."""
    atoms = history.atoms
    inside = atoms.count * atoms.sets[place]
    cells, pairs = atoms.twins(inside, place)
    size = history.free_cell
    twins = np.bincount(cells, pairs, size).astype(np.int64)
    run = np.zeros(size, dtype=np.int64)
    for block in history.blocks:
        if block.edges is None:
            continue
        here = slice(block.first, block.first + len(block.edges) + 1)
        if history.is_whole(place, np.arange(here.start, here.stop)):
            continue
        if twins[here].sum() < history.k:
            raise WouldDiffer
        enough = np.minimum(twins[here], 2 * history.k)  # more does not move an end
        at = np.repeat(np.arange(len(block.edges) + 1, dtype=np.float64), enough)
        ends = cut([at], Rule(history.k)).below
        run[here] = run.max() + 1 + np.searchsorted(ends, np.arange(len(block.edges) + 1))
    return run
