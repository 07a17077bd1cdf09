"""The parallel round: every center's own tables on a public lattice, all at the same time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf, nan
from typing import NamedTuple

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.request import Request, explain, in_order
from unpooled.center.data.variables import Variable
from unpooled.center.questions import (
    EVERYBODY,
    CellMoments,
    CellTable,
    LatticeQuestion,
    LatticeTables,
    Reason,
    Refusal,
    SurvivalTables,
)
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.distribution import Distribution, smooth
from unpooled.maths.density.placing import place
from unpooled.maths.lattice.cutting import Draws
from unpooled.maths.lattice.lattice import (
    Lattice,
    LatticeTable,
    is_multiple,
    public_lattice,
    usual_resolutions,
)


class LatticeFacts(NamedTuple):
    """A variable's scale, and the number of which its values are multiples, if there is one."""

    scale: float
    resolution: float | None


def common_facts(said: Sequence[LatticeTables | SurvivalTables]) -> LatticeFacts:
    """The finest scale of all, and the coarsest number of which everybody's values are multiples.

    What an analyst alone declares, and no center checked, is not believed.
    """
    scale = min(tables.scale for tables in said)
    numbers = [tables.resolution for tables in said if tables.resolution is not None]
    if len(numbers) < len(said):
        return LatticeFacts(scale, None)
    finest = min(numbers)
    for number in (finest, *usual_resolutions(finest)):
        if all(is_multiple(own, number) for own in numbers):
            return LatticeFacts(scale, number)
    return LatticeFacts(scale, None)


Cut = Callable[[FloatArray, Lattice, int, Draws, CellMoments], LatticeTable]
"""Cuts ascending values into a table with cells of K people."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What the centers told: group → center → its tables, and the lattice they lie on."""

    lattice: Lattice
    groups: Mapping[str, Mapping[str, Sequence[LatticeTable]]]
    few: Mapping[str, tuple[bool, bool]]  # whether most of the lowest, and of the highest, people
    # lie in cells of so few values that their means were withheld
    hidden: Mapping[str, Mapping[str, int]]  # group → center → how many are told of by a table that
    # does not say where they are
    unplaced: Mapping[str, Mapping[str, int]]  # the same, of outer cells: not where beyond an edge
    refusals: tuple[tuple[str, Refusal], ...]
    rounds: int

    def of(self, group: str) -> list[LatticeTable]:
        """Every table of a group."""
        return [table for tables in self.groups[group].values() for table in tables]

    def edges(self, group: str) -> FloatArray:
        """The boundaries of all its tables."""
        return np.unique(np.concatenate([table.edges for table in self.of(group)]))

    def smooth(self, group: str) -> Distribution | None:
        """The distribution of a group's people; None where nobody told of them."""
        tables = self.of(group)
        return smooth(tables, self.lattice) if tables else None

    def people(self) -> dict[str, dict[str, int]]:
        """Center → group → how many."""
        found: dict[str, dict[str, int]] = {}
        for group, centers in self.groups.items():
            for center, tables in centers.items():
                found.setdefault(center, {})[group] = sum(table.people for table in tables)
        return found


def ask_tables(conversation: Conversation, request: Request, declared: Variable) -> Tables:
    """One round: the tables of every group."""
    round_ = conversation.ask(LatticeQuestion(**request.fields), LatticeTables)
    refusals = list(round_.refusals)
    found: dict[str, dict[str, list[LatticeTable]]] = {}
    hidden: dict[str, dict[str, int]] = {}
    unplaced: dict[str, dict[str, int]] = {}
    readable = []
    for center, said in round_.aggregates.items():
        try:
            lattice = public_lattice(said.scale, said.resolution, said.lower, said.upper)
            tables = _read_groups(said, request, lattice)
        except ValueError:
            refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
            continue
        readable.append(said)
        for group, own in tables.items():
            placeable = [table for table in own if _can_place(table, lattice)]
            hidden.setdefault(group, {})[center] = _hidden(said, group, lattice)
            unplaced.setdefault(group, {})[center] = _unplaced(said, group)
            if len(placeable) < len(own):
                named = None if request.by is None else group
                refusals.append((center, Refusal(reason=Reason.FEW_CELLS, name=named)))
            if placeable:
                found.setdefault(group, {})[center] = placeable
    if not found:
        explain(conversation, request, refusals)
    wanted = request.groups if request.groups is not None else in_order(found)
    groups = {group: found.get(group, {}) for group in wanted}
    few = {group: _few_values(round_.aggregates.values(), group) for group in groups}
    everything = [table for own in found.values() for tables in own.values() for table in tables]
    lattice = _common_lattice(readable, declared, everything)
    return Tables(lattice, groups, few, hidden, unplaced, tuple(refusals), 1)


def _common_lattice(
    said: Sequence[LatticeTables], declared: Variable, tables: Sequence[LatticeTable]
) -> Lattice:
    """One for all centers: with the loosest limits, and a resolution unless values are exact."""
    facts = common_facts(said)
    exact = all((table.sds == 0).all() for table in tables)
    lowers = [one.lower for one in said if one.lower is not None]
    uppers = [one.upper for one in said if one.upper is not None]
    return public_lattice(
        facts.scale,
        None if exact else facts.resolution,
        min(lowers) if len(lowers) == len(said) else None,
        max(uppers) if len(uppers) == len(said) else None,
        declared.atoms,
    )


def _hidden(said: LatticeTables, group: str, lattice: Lattice) -> int:
    """How many of a group may be anywhere, as few values withhold the moments of their cell.

    That is one cell between limits, or two without any.
    """
    most = 2 if isinf(lattice.lower) and isinf(lattice.upper) else 1
    tables = [told.table for told in said.groups if told.group == group]
    return sum(
        sum(table.counts)
        for table in tables
        if len(table.counts) <= most
        and not any(mean is not None for mean in table.means)
        and said.moments != "none"
    )


def _unplaced(said: LatticeTables, group: str) -> int:
    """How many of a group are in outer cells of so few values that their means were withheld."""
    tables = [told.table for told in said.groups if told.group == group]
    outer = [(table, cell) for table in tables for cell in {0, len(table.counts) - 1}]
    return sum(t.counts[c] for t, c in outer if t.means[c] is None and said.moments != "none")


def _few_values(said: Iterable[LatticeTables], group: str) -> tuple[bool, bool]:
    tables = [(g.table, s.moments != "none") for s in said for g in s.groups if g.group == group]

    def most(outer: int) -> bool:
        few = sum(t.counts[outer] for t, may in tables if may and t.means[outer] is None)
        return 2 * few > sum(t.counts[outer] for t, _ in tables)

    return most(0), most(-1)


def _can_place(table: LatticeTable, lattice: Lattice) -> bool:
    """One or two open cells without means do not say where their people are."""
    if len(table.counts) > 2:
        return True
    try:
        place([table], lattice)
    except ValueError:
        return False
    return True


def _read_groups(
    said: LatticeTables, request: Request, lattice: Lattice
) -> dict[str, list[LatticeTable]]:
    asked = (EVERYBODY,) if request.by is None else request.groups
    if asked is not None and not {group.group for group in said.groups} <= set(asked):
        raise ValueError("the center answered for groups that were not asked for")
    found = {group.group: [read_table(group.table, lattice)] for group in said.groups}
    if said.resolution is None:
        return found
    between = LatticeTable.between_values
    return {group: [between(t, said.resolution) for t in own] for group, own in found.items()}


def read_table(said: CellTable, lattice: Lattice) -> LatticeTable:
    """A center's table; ValueError where it cannot be one of this variable."""
    table = LatticeTable(
        np.array(said.edges),
        np.array(said.counts),
        np.array([nan if mean is None else mean for mean in said.means]),
        np.array([nan if sd is None else sd for sd in said.sds]),
        limits=(lattice.lower, lattice.upper),
    )
    table = replace(table, scale=lattice.open_scale(table.edges))
    limits = lattice.limits(table.edges)
    if np.any(np.diff(limits) < 0):
        raise ValueError("cells must lie within the declared limits")
    low, high = lattice.mean_limits(table.edges)
    shared = table.sds == 0  # one value, told as it is
    low, high = np.where(shared, limits[:-1], low), np.where(shared, limits[1:], high)
    if np.any((table.means < low) | (table.means > high)):
        raise ValueError("means must lie in their cells")
    return table
