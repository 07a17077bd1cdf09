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
from functools import partial
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
from unpooled.maths.moments import MeanSD
from unpooled.maths.survival.cell_hazards import (
    CENSORED,
    EITHER,
    EVENTS,
    CellHazards,
    fit_hazards,
    spread_by_hazards,
)
from unpooled.maths.survival.follow_up import FollowUp, stack
from unpooled.maths.survival.statuses import BlockPeople, Statuses, expected_statuses

Below = Literal["events", "censored", "both"]
"""Which status had fewer than K people, so that none was told."""

_UNCUT = 2.5  # times K people, in a last cell: fewer than K of them are not at the horizon

Tables = tuple[LatticeTable, ...]
Times = tuple[FloatArray, FloatArray]  # and how many people each stands for


@dataclass(frozen=True, slots=True)
class ArmTables:
    """What one center tells of one arm: both statuses, or one table of all and which was below K.

    The tables of a status speak for different people each; mostly there is one. A status below K
    has `least` people or more: 0 where it may not be told that nobody has it. Beside a table of all
    there may be people who are `followed` to the horizon, and had no event.
    """

    k: int
    events: Tables = ()
    censored: Tables = ()
    either: Tables = ()
    below: Below | None = None
    least: int = 1
    followed: int = 0

    def __post_init__(self) -> None:
        if bool(self.either) == bool(self.events or self.censored):
            raise ValueError("an arm must have tables by status or of either, not both")
        if bool(self.either) != (self.below is not None):
            raise ValueError("below must be given with either, and only then")
        if self.followed and self.below is None:
            raise ValueError("followed must be given with either alone")

    @property
    def tables(self) -> Tables:
        """All of them."""
        return (*self.events, *self.censored, *self.either)

    @property
    def unclear(self) -> int:
        """How many people have no known status."""
        return sum(table.people for table in self.either)

    @property
    def people(self) -> int:
        """How many people they speak for."""
        return sum(table.people for table in self.tables) + self.followed


def known_share(arm: Iterable[ArmTables]) -> float:
    """The share of an arm's people whose status was released."""
    parts = [(tables.people, tables.unclear) for tables in arm]
    return 1 - sum(unclear for _, unclear in parts) / sum(people for people, _ in parts)


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
    blocks = list(arm)
    if any(block.followed for block in blocks):
        return lattice.upper
    return max(_known_until(table, lattice) for block in blocks for table in block.tables)


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
    read = _with_horizon(blocks, lattice)
    hazards = _hazards(blocks, read, lattice)
    placed = partial(_placed, lattice=lattice, hazards=hazards)
    events = placed([tables.events for tables in read], EVENTS)
    censored = placed([tables.censored for tables in read], CENSORED)
    either = placed([tables.either for tables in read], EITHER)
    people = [
        _people(block, *parts)
        for block, *parts in zip(blocks, events, censored, either, strict=True)
    ]
    statuses = expected_statuses(people, lattice.upper)
    return [
        _follow_up(of_block, statuses.get(i), lattice.upper * np.ones(block.tables.followed))
        for i, (block, of_block) in enumerate(zip(blocks, people, strict=True))
    ]


def _tell_all_they_may(blocks: Sequence[Block]) -> set[int]:
    """The centers that withhold nothing because of earlier answers, as far as can be seen.

    These tell moments; and where they tell the mean of a cell of events, then also its SD, which is
    what a center leaves out first. In a last cell it may be that one person dominates it.
    """
    telling, thinned = set[int](), set[int]()
    for block in blocks:
        for table in block.tables.tables:
            if not np.isnan(table.means).all():
                telling.add(block.center)
        for table in block.tables.events:
            if np.any((np.isnan(table.sds) & ~np.isnan(table.means))[:-1]):
                thinned.add(block.center)
    return telling - thinned


@dataclass(frozen=True, slots=True)
class _AtHorizon:
    """How many of a block's people are still followed at the horizon, in the last cell of a table.

    Without `least` and `most` they are known: they have a cell of their own, or none can be there.
    """

    there: int
    least: int
    most: int


def _with_horizon(blocks: Sequence[Block], lattice: Lattice) -> list[ArmTables]:
    """The tables, with those who are still followed at the horizon in a cell of their own.

    K people and K others have one at their center. Fewer of either are in the last cell with the
    others. A center that tells means withholds one where all but 1 to K−1 of a cell's people share
    a value with K others (`cell_moments`), so a crowd shows; and where counts alone are told, as by
    a joint center, since a cell of so many would have been cut. How many are there is estimated as
    unknown statuses are, from all blocks; where no center has a crowd, nobody is.
    """
    frank = _tell_all_they_may(blocks)
    at_horizon = [_at_horizon(block, lattice, block.center in frank) for block in blocks]
    if not any(one is not None and max(one.there, one.least) for one in at_horizon):
        return [block.tables for block in blocks]
    places = [i for i, one in enumerate(at_horizon) if one is not None]
    people = [
        _staying(block, one)
        for block, one in zip(blocks, at_horizon, strict=True)
        if one is not None
    ]
    number = {
        places[i]: float(one.events.sum()) for i, one in expected_statuses(people, 1.0).items()
    }
    tables, carried = [block.tables for block in blocks], 0.0
    for i, expected in number.items():  # whole people, as many in all as are expected
        whole = round(expected + carried)
        carried += expected - whole
        tables[i] = _staying_apart(blocks[i].tables, whole, lattice)
    return tables


def _staying(block: Block, at_horizon: _AtHorizon) -> BlockPeople:
    """The block as people who stay or not: with the event or not, all at one time."""
    one, certain = np.array([float(block.tables.people)]), at_horizon.most == 0
    events = np.array([float(at_horizon.there)]) if certain else None
    return BlockPeople(
        block.center, block.groups, np.zeros(1), one, events, at_horizon.least, at_horizon.most
    )


def _at_horizon(block: Block, lattice: Lattice, frank: bool) -> _AtHorizon | None:
    tables, k = block.tables, block.tables.k
    last = tables.censored or tables.either
    if len(last) != 1 or lattice.upper not in lattice.atoms:
        return None
    (table,) = last
    people = int(table.counts[-1])
    if tables.followed or _ends_apart(table, lattice):
        return _AtHorizon(tables.followed or people, 0, 0)
    if frank and math.isnan(table.means[-1]):
        few = min(k - 1, people - k)
        if tables.either:  # of those who had the event, too: these are few where they are below K
            few = people if tables.below == "censored" else few
        return _AtHorizon(0, people - few if few > 0 else 0, people - 1)
    if not frank and people >= _UNCUT * k:
        return _AtHorizon(0, people - k + 1, people)
    most = min(people, k - 1) if frank else people
    while most and _others(table, most, lattice) is None:
        most -= 1
    return _AtHorizon(0, 0, most)


def _ends_apart(table: LatticeTable, lattice: Lattice) -> bool:
    """Whether the people of its last cell all stand at the horizon."""
    alone = bool(len(table.edges)) and table.edges[-1] >= lattice.atom_sides[-1, 0]
    return alone or bool(table.means[-1] == lattice.upper and table.sds[-1] == 0)


def _others(table: LatticeTable, there: int, lattice: Lattice) -> MeanSD | None:
    """The others of the last cell, where so many stand at the horizon; None: it cannot be."""
    people, mean, sd = int(table.counts[-1]), float(table.means[-1]), float(table.sds[-1])
    rest, end = people - there, lattice.upper
    low = float(table.edges[-1]) if len(table.edges) else lattice.lower
    if not rest:
        return None
    if math.isnan(mean):
        return MeanSD(rest, math.nan, math.nan)
    other = (people * mean - there * end) / rest
    if not low < other < end or math.isnan(sd):
        return MeanSD(rest, other, math.nan) if low < other < end else None
    spread = (people * (sd**2 + mean**2) - there * end**2) / rest - other**2
    if not 0 <= spread <= (other - low) * (end - other):
        return None
    return MeanSD(rest, other, math.sqrt(spread))


def _staying_apart(tables: ArmTables, there: int, lattice: Lattice) -> ArmTables:
    """The tables where so many of the last cell stand at the horizon, or as many as can."""
    (table,) = tables.censored or tables.either
    there = min(there, int(table.counts[-1]) - 1)
    while there and (others := _others(table, there, lattice)) is None:
        there -= 1
    if there < 1 or others is None:
        return tables
    apart = replace(
        table,
        edges=np.append(table.edges, float(lattice.atom_sides[-1, 0])),
        counts=np.append(table.counts[:-1], (others.n, there)),
        means=np.append(table.means[:-1], (others.mean, lattice.upper)),
        sds=np.append(table.sds[:-1], (others.sd, 0.0)),
        scale=None,  # between two limits no cell has one
    )
    if tables.censored:
        return replace(tables, censored=(apart,))
    return replace(tables, either=(apart,))


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
    n, few, least = tables.unclear, tables.k - 1, tables.least
    most = {"events": min(few, n - tables.k), "both": min(few, n - least)}.get(
        tables.below or "", n - least
    )
    fewest = {"censored": max(n - few, tables.k), "both": max(least, n - few)}.get(
        tables.below or "", least
    )
    return fewest, most


def _follow_up(block: BlockPeople, statuses: Statuses | None, followed: FloatArray) -> FollowUp:
    """The people of a block; those who are followed to the horizon had no event."""
    centers = np.full(len(block.times), block.center)
    if statuses is None:
        assert block.events is not None  # only who has no status is estimated
        return FollowUp.of(block.times, block.events, block.people, centers)
    people = FollowUp.of(block.times, statuses.events, block.people, centers, statuses.drawn)
    if not len(followed):
        return people
    there = np.full(len(followed), block.center)
    return stack([people, FollowUp.of(followed, np.zeros(len(followed)), None, there)])


def _hazards(
    blocks: Sequence[Block], read: Sequence[ArmTables], lattice: Lattice
) -> list[CellHazards]:
    """Those of each block's arm."""
    of_arm = dict[str, tuple[list[LatticeTable], list[int]]]()
    for block, each in zip(blocks, read, strict=True):
        tables, kinds = of_arm.setdefault(block.groups[0], ([], []))
        for kind, some in ((EITHER, each.either), (EVENTS, each.events), (CENSORED, each.censored)):
            tables += some
            kinds += [kind] * len(some)
    hazards = dict(zip(of_arm, fit_hazards(list(of_arm.values()), lattice), strict=True))
    return [hazards[block.groups[0]] for block in blocks]


def _placed(
    tables: Sequence[Tables], kind: int, lattice: Lattice, hazards: Sequence[CellHazards]
) -> list[Times]:
    """The times of each block's people, and how many each stands for."""
    code = np.array(
        [i for i, block_tables in enumerate(tables) for _ in block_tables], dtype=np.int64
    )
    flat = [table for block_tables in tables for table in block_tables]
    if not flat:
        return [(np.empty(0), np.empty(0)) for _ in tables]
    placed = place(flat, lattice, refilled=False)
    of_arm = [hazards[i] for i in code]
    spread = spread_by_hazards(placed.values, placed.cells, flat, kind, of_arm, lattice)
    if lattice.resolution is not None:
        spread = nearest_multiples(spread, lattice.resolution)
    block = code[placed.centers]
    order = np.argsort(block, kind="stable")
    ends = np.searchsorted(block[order], np.arange(1, len(tables)))
    times, weights = (np.split(part[order], ends) for part in (spread, placed.weights))
    return list(zip(times, weights, strict=True))
