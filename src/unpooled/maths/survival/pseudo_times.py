"""Pseudo-times of an arm: the released tables of its events and censorings as single people.

Separate tables for events and for censorings keep both in their order; joint ones protect no
better. On gridded times people go back on their grid, since ties count.

References
----------
.. [1] Bhatia, Davis (2000), American Mathematical Monthly 107, 353-357.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.placing import place
from unpooled.maths.lattice.cells import units
from unpooled.maths.lattice.lattice import (
    WHOLE,
    Lattice,
    LatticeTable,
    nearest_multiples,
    one_value,
)
from unpooled.maths.survival.cell_shape import spread_by_shape
from unpooled.maths.survival.follow_up import FollowUp, stack
from unpooled.maths.survival.statuses import BlockPeople, Statuses, expected_statuses

Below = Literal["events", "censored", "both"]
"""Which status had fewer than K people, so that none was told."""

Tables = tuple[LatticeTable, ...]
Times = tuple[FloatArray, FloatArray]  # and how many people each stands for


@dataclass(frozen=True, slots=True)
class ArmTables:
    """What one center tells of one arm: both statuses, or one table of all and which was below K.

    The tables of a status speak for different people each; mostly there is one. A status below K
    has `least` people or more: 0 where it may not be told that nobody has it.
    """

    k: int
    events: Tables = ()
    censored: Tables = ()
    either: Tables = ()
    below: Below | None = None
    least: int = 1

    def __post_init__(self) -> None:
        if bool(self.either) == bool(self.events or self.censored):
            raise ValueError("an arm must have tables by status or of either, not both")
        if bool(self.either) != (self.below is not None):
            raise ValueError("below must be given with either, and only then")

    @property
    def tables(self) -> Tables:
        """All of them."""
        return (*self.events, *self.censored, *self.either)

    @property
    def people(self) -> int:
        """How many people they speak for."""
        return sum(table.people for table in self.tables)


def known_share(arm: Iterable[ArmTables]) -> float:
    """The share of an arm's people whose status was released."""
    parts = [(tables.people, tables.below is None) for tables in arm]
    return sum(people for people, exact in parts if exact) / sum(people for people, _ in parts)


def known_until(arm: Iterable[ArmTables], lattice: Lattice) -> float:
    """The last time of which the tables say that somebody was followed up so long.

    That is the last boundary, behind which K people are, or what the moments of a last cell need:
    people from `low` to t with mean m have a variance of at most (t − m)(m − low) [1]_. How far
    beyond they go, up to the horizon, nobody told.

    Examples
    --------
    >>> times = LatticeTable([20.0], [10, 10], [9.0, 24.0], [3.0, 2.0])
    >>> round(known_until([ArmTables(10, (times,))], Lattice(1.0, lower=0.0, upper=40.0)), 2)
    24.86
    """
    return max(_known_until(table, lattice) for block in arm for table in block.tables)


def _known_until(table: LatticeTable, lattice: Lattice) -> float:
    edge = float(table.edges[-1]) if len(table.edges) else lattice.lower
    if one_value(np.array([edge]), np.array([lattice.upper]))[0]:
        return lattice.upper
    last = max(edge, _told_until(table, edge, lattice))
    if lattice.resolution is not None:  # nobody leaves between two possible times
        beyond = math.ceil(last / lattice.resolution - WHOLE) * lattice.resolution
        last = float(nearest_multiples(np.array([beyond]), lattice.resolution)[0])
    return min(last, lattice.upper)


def _told_until(table: LatticeTable, low: float, lattice: Lattice) -> float:
    """The least t of all moments that are rounded to the told ones."""
    mean, sd = float(table.means[-1]), float(table.sds[-1])
    if math.isnan(mean) or sd == 0:
        return low if math.isnan(mean) else mean
    unit = units(table.edges, lattice, table.counts, table.sds)
    half = float(unit.mean[-1]) / 2
    if math.isnan(sd):
        return mean - half
    least = max(sd - float(unit.sd[-1]), 0.0)  # more than half of it, where the unit changes
    above = min(max(least, mean - half - low), mean + half - low)  # a + s²/a is least at a = s
    return low + above + least**2 / above if above > 0 else low


@dataclass(frozen=True, slots=True)
class Block:
    """The people of a center who are alike in all groupings, and what it tells of them."""

    center: int
    groups: tuple[str, ...]  # the arm first
    tables: ArmTables


def pseudo_times(arm: Mapping[int, ArmTables], lattice: Lattice) -> FollowUp:
    """The follow-up of one arm, from the tables of its centers by their numbers.

    Examples
    --------
    >>> early, late = (LatticeTable([], [10], [t], [0.8]) for t in (2.0, 5.0))
    >>> lattice = Lattice(1.0, lower=0.0, upper=9.0)
    >>> arm = pseudo_times({7: ArmTables(10, (early,), (late,))}, lattice)
    >>> arm.total, arm.event_total, arm.centers[0]
    (20.0, 10.0, np.int64(7))
    """
    blocks = [Block(center, ("",), tables) for center, tables in arm.items()]
    return stack(reconstruct(blocks, lattice))


def reconstruct(blocks: Sequence[Block], lattice: Lattice) -> list[FollowUp]:
    """The follow-up of each block, with expected statuses where a block tells none.

    What is expected depends on all blocks of all arms, and so do the draws: blocks that are
    compared belong into one call.
    """
    frank = _tell_all_they_may(blocks)
    read = [
        _with_crowd(block.tables, lattice) if block.center in frank else block.tables
        for block in blocks
    ]
    events = _placed([tables.events for tables in read], lattice)
    censored = _placed([tables.censored for tables in read], lattice)
    either = _placed([tables.either for tables in read], lattice)
    people = [
        _people(block, *parts)
        for block, *parts in zip(blocks, events, censored, either, strict=True)
    ]
    statuses = expected_statuses(people, lattice.upper)
    return [_follow_up(arm_people, statuses.get(i)) for i, arm_people in enumerate(people)]


def _tell_all_they_may(blocks: Sequence[Block]) -> set[int]:
    """The centers that withhold nothing because of earlier answers, as far as can be seen.

    These tell moments; and where they tell the mean of a cell of events, then also its SD, which is
    what a center leaves out first.
    """
    telling, thinned = set[int](), set[int]()
    for block in blocks:
        for table in block.tables.tables:
            if not np.isnan(table.means).all():
                telling.add(block.center)
        for table in block.tables.events:
            if np.any(np.isnan(table.sds) & ~np.isnan(table.means)):
                thinned.add(block.center)
    return telling - thinned


def _with_crowd(tables: ArmTables, lattice: Lattice) -> ArmTables:
    """The tables, with a crowd at the horizon where a center's last cell of censorings has no mean.

    A center that tells means withholds one where all but 1 to K−1 of a cell's people share a value
    with K others (`cell_moments`). People who are followed up to the end of a study do. The few
    others are taken to be half as many as they can be.
    """
    censored = tuple(_crowd(table, tables.k, lattice) for table in tables.censored)
    either = tables.either
    if tables.below != "censored":  # else most of them have the event
        either = tuple(_crowd(table, tables.k, lattice) for table in either)
    return replace(tables, censored=censored, either=either)


def _crowd(table: LatticeTable, k: int, lattice: Lattice) -> LatticeTable:
    if lattice.upper not in lattice.atoms:
        return table
    people = int(table.counts[-1])
    few = (1 + min(k - 1, people - k)) // 2  # of 1 to as many
    side = float(lattice.atom_sides[-1, 0])
    edge = float(table.edges[-1]) if len(table.edges) else lattice.lower
    if not math.isnan(table.means[-1]) or edge >= side or few < 1:
        return table
    return replace(
        table,
        edges=np.append(table.edges, side),
        counts=np.append(table.counts[:-1], (few, people - few)),
        means=np.append(table.means, lattice.upper),
        sds=np.append(table.sds, 0.0),
        scale=None,  # between two limits no cell has one
    )


def _people(block: Block, events: Times, censored: Times, either: Times) -> BlockPeople:
    tables = block.tables
    if tables.below is not None:
        least, most = event_range(tables)
        return BlockPeople(block.center, block.groups, *either, None, least, most)
    times, people = (np.concatenate(part) for part in zip(events, censored, strict=True))
    had = np.concatenate((events[1], np.zeros(len(censored[1]))))
    return BlockPeople(block.center, block.groups, times, people, had)


def event_range(tables: ArmTables) -> tuple[int, int]:
    """The fewest and the most events that people of unknown status can have.

    Examples
    --------
    >>> some = ArmTables(10, either=(LatticeTable([], [30], [5.0], [2.0]),), below="censored")
    >>> event_range(some)
    (21, 29)
    """
    n, few, least = tables.people, tables.k - 1, tables.least
    most = {"events": min(few, n - tables.k), "both": min(few, n - least)}.get(
        tables.below or "", n - least
    )
    fewest = {"censored": max(n - few, tables.k), "both": max(least, n - few)}.get(
        tables.below or "", least
    )
    return fewest, most


def _follow_up(block: BlockPeople, statuses: Statuses | None) -> FollowUp:
    centers = np.full(len(block.times), block.center)
    if statuses is None:
        assert block.events is not None  # only who has no status is estimated
        return FollowUp.of(block.times, block.events, block.people, centers)
    return FollowUp.of(block.times, statuses.events, block.people, centers, statuses.drawn)


def _placed(tables: Sequence[Tables], lattice: Lattice) -> list[Times]:
    """The times of each block's people, and how many each stands for."""
    code = np.array(
        [i for i, block_tables in enumerate(tables) for _ in block_tables], dtype=np.int64
    )
    flat = [table for block_tables in tables for table in block_tables]
    if not flat:
        return [(np.empty(0), np.empty(0)) for _ in tables]
    placed = place(flat, lattice, refilled=False)
    spread = spread_by_shape(placed.values, placed.cells, flat, lattice)
    if lattice.resolution is not None:
        spread = nearest_multiples(spread, lattice.resolution)
    block = code[placed.centers]
    order = np.argsort(block, kind="stable")
    ends = np.searchsorted(block[order], np.arange(1, len(tables)))
    times, weights = (np.split(part[order], ends) for part in (spread, placed.weights))
    return list(zip(times, weights, strict=True))
