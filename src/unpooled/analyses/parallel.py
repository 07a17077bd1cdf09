"""The parallel round: every center's own tables on a public lattice, all at the same time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf, isnan, nan

import numpy as np

from unpooled.analyses.asking import Request, explain, in_order
from unpooled.analyses.lattice_facts import center_facts, common_facts
from unpooled.analyses.parts import ONE_CELL, Parts, TablePart
from unpooled.center.cohort import Selection
from unpooled.center.policy import Policy, moments_in_force
from unpooled.coordinator import Coordinator
from unpooled.data.variables import Variable
from unpooled.maths.arrays import FloatArray
from unpooled.maths.cutting import Draws, lattice_table, table_at
from unpooled.maths.distribution import Distribution, smooth
from unpooled.maths.lattice import Lattice, LatticeTable, public_lattice
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS, telling_values
from unpooled.maths.placing import place
from unpooled.maths.telling import dominated, telling_cells
from unpooled.questions import (
    EVERYBODY,
    CellMoments,
    CellTable,
    GroupTables,
    LatticeQuestion,
    LatticeTables,
    Reason,
    Refusal,
)

Cut = Callable[[FloatArray, Lattice, int, Draws, CellMoments], LatticeTable]
"""Cuts ascending values into a table with cells of K people."""

# --- at a center -------------------------------------------------------------------------------


def summarise_lattice(
    question: LatticeQuestion,
    selection: Selection,
    policy: Policy,
    draws: Draws,
    parts: Parts,
    coarser: int,
) -> LatticeTables:
    """Each group's own table, or a table for each part of it that was told by itself before."""
    facts = center_facts(selection, question.variable, policy)
    lattice = selection.cohort.declared.lattice(*facts)
    told = moments_in_force(question, policy)
    return LatticeTables(
        scale=facts.scale,
        groups=tuple(
            GroupTables(
                group=group,
                tables=tuple(
                    cell_table(part, lattice, selection.ks, draws, told, coarser)
                    for part in parts[group]
                ),
            )
            for group in selection.groups
        ),
        resolution=facts.resolution,
        lower=selection.cohort.declared.lower,
        upper=selection.cohort.declared.upper,
    )


def cell_table(
    part: TablePart,
    lattice: Lattice,
    ks: tuple[int, int],
    draws: Draws,
    moments: CellMoments,
    coarser: int = 1,
    cut: Cut = lattice_table,
) -> CellTable:
    """The table of a part, with what the gate needs to judge it."""
    values, k = part.values, max(ks)
    if coarser == ONE_CELL:  # the mean may be what must not be told
        part, moments = replace(part, edges=np.zeros(0)), "none"
    if part.edges is not None:
        table = table_at(part.edges, values, lattice, k, moments)
    elif coarser == 1:
        table = cut(values, lattice, k, draws, moments)
    else:
        wide = cut(values, lattice, min(k * coarser, len(values) // 2), draws, "none")
        table = table_at(wide.edges, values, lattice, k, moments)
    judged = telling_cells(table.edges, lattice.step, moments).tolist()
    people = np.split(values, np.cumsum(table.counts)[:-1])
    telling = tuple(
        telling_values(p, *ks) if j else None for p, j in zip(people, judged, strict=True)
    )
    scale = lattice.open_scale(table.edges)
    scaled = (scale.at(i).forth(p) for i, p in enumerate(people))
    return CellTable(
        edges=tuple(table.edges.tolist()),
        counts=tuple(table.counts.tolist()),
        means=_told(table.means, telling, MEAN_NEEDS),
        sds=_told(table.sds, telling, SD_NEEDS),
        values=telling,
        dominated=tuple(map(_one_carries_it, scaled, telling)),
    )


def _one_carries_it(people: FloatArray, telling: int | None) -> bool | None:
    """Told only where it decides on the SD: of few values it would say how many people have one."""
    if telling is None:
        return None
    return not 0 < telling < SD_NEEDS and dominated(people)


def _told(
    moments: FloatArray, telling: Iterable[int | None], needed: int
) -> tuple[float | None, ...]:
    """The moments of cells with enough values, whichever K is asked."""
    return tuple(
        None if isnan(moment) or 0 < (values or 0) < needed else moment
        for moment, values in zip(moments.tolist(), telling, strict=True)
    )


# --- at the coordinator ------------------------------------------------------------------------


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


def ask_tables(coordinator: Coordinator, request: Request, declared: Variable) -> Tables:
    """One round: the tables of every group."""
    round_ = coordinator.ask(LatticeQuestion(**request.fields), LatticeTables)
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
        explain(coordinator, request, refusals)
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
    tables = [table for told in said.groups if told.group == group for table in told.tables]
    return sum(
        sum(table.counts)
        for table in tables
        if len(table.counts) <= most
        and not any(mean is not None for mean in table.means)
        and any(values in range(1, MEAN_NEEDS) for values in table.values)
    )


def _unplaced(said: LatticeTables, group: str) -> int:
    """How many of a group are in outer cells of so few values that their means were withheld."""
    tables = [table for told in said.groups if told.group == group for table in told.tables]
    outer = [(table, cell) for table in tables for cell in {0, len(table.counts) - 1}]
    return sum(t.counts[c] for t, c in outer if t.values[c] in range(1, MEAN_NEEDS))


def _few_values(said: Iterable[LatticeTables], group: str) -> tuple[bool, bool]:
    tables = [table for s in said for g in s.groups if g.group == group for table in g.tables]

    def most(outer: int) -> bool:
        few = sum(t.counts[outer] for t in tables if t.values[outer] in range(1, MEAN_NEEDS))
        return 2 * few > sum(t.counts[outer] for t in tables)

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
    found = {group.group: [read_table(t, lattice) for t in group.tables] for group in said.groups}
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
