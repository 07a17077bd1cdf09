"""The parallel round: every center's own tables on a public lattice, all at the same time, and the
distribution of a variable over all centers that follows from them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isinf, nan
from typing import NamedTuple

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.request import Request, explain, in_order, refuse
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
from unpooled.maths.density.bands import histogram_edges
from unpooled.maths.density.deviation import deviations
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
from unpooled.maths.tables.table import Table
from unpooled.results.numbers.distribution import (
    CenterShares,
    DistributionResult,
    GroupDistribution,
)
from unpooled.results.provenance.refusals import center_refusals


class LatticeFacts(NamedTuple):
    """A variable's scale, and the number of which its values are multiples, if there is one."""

    scale: float
    resolution: float | None


def common_facts(answers: Sequence[LatticeTables | SurvivalTables]) -> LatticeFacts:
    """The finest scale of all, and the coarsest number of which everybody's values are multiples.

    What an analyst alone declares, and no center checked, is not believed.
    """
    scale = min(tables.scale for tables in answers)
    numbers = [tables.resolution for tables in answers if tables.resolution is not None]
    if len(numbers) < len(answers):
        return LatticeFacts(scale, None)
    finest = min(numbers)
    for number in (finest, *usual_resolutions(finest)):
        if all(is_multiple(each, number) for each in numbers):
            return LatticeFacts(scale, number)
    return LatticeFacts(scale, None)


Cut = Callable[[FloatArray, Lattice, int, Draws, CellMoments], LatticeTable]
"""Cuts ascending values into a table with cells of K people."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What the centers released: group → center → its tables, and the lattice they lie on."""

    lattice: Lattice
    groups: Mapping[str, Mapping[str, Sequence[LatticeTable]]]
    few: Mapping[str, tuple[bool, bool]]  # whether most of the lowest, and of the highest, people
    # lie in cells of so few values that their means were withheld
    hidden: Mapping[
        str, Mapping[str, int]
    ]  # group → center → how many are described by a table that
    # does not say where they are
    unplaced: Mapping[str, Mapping[str, int]]  # the same, of outer cells: not where beyond an edge
    refusals: tuple[tuple[str, Refusal], ...]
    rounds: int
    strata: Mapping[str, Mapping[str, Sequence[str | None]]]  # group → center → each table's

    def of(self, group: str) -> list[LatticeTable]:
        """Every table of a group."""
        return [table for tables in self.groups[group].values() for table in tables]

    def edges(self, group: str) -> FloatArray:
        """The boundaries of all its tables."""
        return np.unique(np.concatenate([table.edges for table in self.of(group)]))

    def smooth(self, group: str) -> Distribution | None:
        """The distribution of a group's people; None where no center described them."""
        tables = self.of(group)
        return smooth(tables, self.lattice) if tables else None

    def people(self) -> dict[str, dict[str, int]]:
        """Center → group → how many."""
        people: dict[str, dict[str, int]] = {}
        for group, centers in self.groups.items():
            for center, tables in centers.items():
                people.setdefault(center, {})[group] = sum(table.people for table in tables)
        return people


Placing = Callable[[str], tuple[str, str | None] | None]
"""To which group and stratum of the analysis a center's own group belongs; None: to none.

ValueError where nobody asked for it.
"""


class _Table(NamedTuple):
    """One table of a center: of which people, as it was released, and read."""

    group: str
    stratum: str | None
    label: str  # what the center calls these people
    cells: CellTable
    read: LatticeTable
    hidden: int
    unplaced: int


def ask_tables(conversation: Conversation, request: Request, declared: Variable) -> Tables:
    """One round: the tables of every group."""
    round_ = conversation.ask(LatticeQuestion(**request.fields), LatticeTables)
    placing = partial(_asked_group, (EVERYBODY,) if request.by is None else request.groups)
    about = declared, placing, request.groups
    tables = combine_tables(round_.aggregates, round_.refusals, *about)
    if isinstance(tables, list):
        explain(conversation, request, tables)
    return tables


def _asked_group(asked: Sequence[str] | None, label: str) -> tuple[str, None]:
    if asked is not None and label not in asked:
        raise ValueError("the center answered for a group that was not asked for")
    return label, None


def combine_tables(
    answers: Mapping[str, LatticeTables],
    refused: Iterable[tuple[str, Refusal]],
    declared: Variable,
    placing: Placing,
    wanted: Sequence[str] | None,
) -> Tables | list[tuple[str, Refusal]]:
    """The tables of the wanted groups (all), as far as they say where people are.

    Where there are none, all that was refused.
    """
    refusals = list(refused)
    readable_tables: dict[str, dict[str, list[LatticeTable]]] = {}
    strata: dict[str, dict[str, list[str | None]]] = {}
    hidden: dict[str, dict[str, int]] = {}
    unplaced: dict[str, dict[str, int]] = {}
    readable: dict[str, list[_Table]] = {}
    for center, answer in answers.items():
        try:
            lattice = public_lattice(answer.scale, answer.resolution, answer.lower, answer.upper)
            readable[center] = list(_read(answer, placing, lattice))
        except ValueError:
            refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
            continue
        for table in readable[center]:
            for people, n in ((hidden, table.hidden), (unplaced, table.unplaced)):
                so_far = people.setdefault(table.group, {})
                so_far[center] = so_far.get(center, 0) + n
            if can_place(table.read, lattice):
                readable_tables.setdefault(table.group, {}).setdefault(center, []).append(
                    table.read
                )
                strata.setdefault(table.group, {}).setdefault(center, []).append(table.stratum)
            else:
                named = None if table.label == EVERYBODY else table.label
                refusals.append((center, Refusal(reason=Reason.FEW_CELLS, name=named)))
    if not readable_tables:
        return refusals
    names = wanted if wanted is not None else in_order(readable_tables)
    said_by = {center: answers[center] for center in readable}
    few = {group: _few_values(said_by, readable, group) for group in names}
    groups = {group: readable_tables.get(group, {}) for group in names}
    everything = [
        table
        for by_center in readable_tables.values()
        for tables in by_center.values()
        for table in tables
    ]
    lattice = common_lattice(list(said_by.values()), declared, everything)
    return Tables(lattice, groups, few, hidden, unplaced, tuple(refusals), 1, strata)


def _read(answer: LatticeTables, placing: Placing, lattice: Lattice) -> Iterator[_Table]:
    """A center's tables that belong to some group; ValueError where one cannot be."""
    for group in answer.groups:
        place = placing(group.group)
        if place is not None:
            table = read_table(group.table, lattice)
            if answer.resolution is not None:
                table = LatticeTable.between_values(table, answer.resolution)
            figures = _hidden(answer, group.table, lattice), _unplaced(answer, group.table)
            yield _Table(*place, group.group, group.table, table, *figures)


def common_lattice(
    answers: Sequence[LatticeTables], declared: Variable, tables: Sequence[LatticeTable]
) -> Lattice:
    """One for all centers: with the loosest limits, and a resolution unless values are exact."""
    facts = common_facts(answers)
    exact = all((table.sds == 0).all() for table in tables)
    lowers = [one.lower for one in answers if one.lower is not None]
    uppers = [one.upper for one in answers if one.upper is not None]
    return public_lattice(
        facts.scale,
        None if exact else facts.resolution,
        min(lowers) if len(lowers) == len(answers) else None,
        max(uppers) if len(uppers) == len(answers) else None,
        declared.atoms,
    )


def _hidden(answer: LatticeTables, table: CellTable, lattice: Lattice) -> int:
    """How many of a table may be anywhere, as few values withhold the moments of their cell.

    That is one cell between limits, or two without any.
    """
    most = 2 if isinf(lattice.lower) and isinf(lattice.upper) else 1
    blind = len(table.counts) <= most and not any(mean is not None for mean in table.means)
    return sum(table.counts) if blind and answer.moments != "none" else 0


def _unplaced(answer: LatticeTables, table: CellTable) -> int:
    """How many of a table are in outer cells of so few values that their means were withheld."""
    if answer.moments == "none":
        return 0
    outer = {0, len(table.counts) - 1}
    return sum(table.counts[cell] for cell in outer if table.means[cell] is None)


def _few_values(
    answers: Mapping[str, LatticeTables], read: Mapping[str, Sequence[_Table]], group: str
) -> tuple[bool, bool]:
    tables = [
        (table.cells, answers[center].moments != "none")
        for center, tables_here in read.items()
        for table in tables_here
        if table.group == group
    ]

    def most(outer: int) -> bool:
        few = sum(t.counts[outer] for t, may in tables if may and t.means[outer] is None)
        return 2 * few > sum(t.counts[outer] for t, _ in tables)

    return most(0), most(-1)


def can_place(table: LatticeTable, lattice: Lattice) -> bool:
    """Too few cells to place people."""
    if len(table.counts) > 2:
        return True
    try:
        place([table], lattice, refilled=False)
    except ValueError:
        return False
    return True


def read_table(cells: CellTable, lattice: Lattice) -> LatticeTable:
    """A center's table; ValueError where it cannot be one of this variable."""
    table = LatticeTable(
        np.array(cells.edges),
        np.array(cells.counts),
        np.array([nan if mean is None else mean for mean in cells.means]),
        np.array([nan if sd is None else sd for sd in cells.sds]),
        limits=(lattice.lower, lattice.upper),
    )
    table = replace(table, scale=lattice.open_scale(table.edges))
    limits = lattice.limits(table.edges)
    if np.any(np.diff(limits) < 0):
        raise ValueError("cells must lie within the declared limits")
    low, high = lattice.mean_limits(table.edges)
    shared = table.sds == 0  # one value, released as it is
    low, high = np.where(shared, limits[:-1], low), np.where(shared, limits[1:], high)
    if np.any((table.means < low) | (table.means > high)):
        raise ValueError("means must lie in their cells")
    return table


def run_distribution(
    conversation: Conversation, request: Request, declared: Variable, max_bins: int | None = None
) -> DistributionResult:
    """One round; the smooth distribution of every group that some center described."""
    return combine_distribution(
        request, ask_tables(conversation, request, declared), max_bins=max_bins
    )


def combine_distribution(
    request: Request, tables: Tables, max_bins: int | None = None
) -> DistributionResult:
    """The smooth distribution of every group, as curves and as a histogram."""
    smoothed = {group: tables.smooth(group) for group in tables.groups}
    smooth = {group: fitted for group, fitted in smoothed.items() if fitted is not None}
    if not smooth:
        refuse(tables.refusals)
    edges = histogram_edges(list(smooth.values()), tables.lattice, max_bins)
    shares = [np.diff(np.concatenate(([0.0], d.cdf(edges[1:-1]), [1.0]))) for d in smooth.values()]
    people = [d.people for d in smooth.values()]
    counts = np.array([n * np.maximum(s, 0.0) for n, s in zip(people, shares, strict=True)])
    return DistributionResult(
        variable=request.variable,
        by=request.by,
        where=request.where,
        table=Table(edges, counts, tuple(smooth)),
        distributions=tuple(
            GroupDistribution(group, d, tables.edges(group), tables.few[group])
            for group, d in smooth.items()
        ),
        people=tables.people(),
        centers=tuple(c for group, d in smooth.items() for c in _centers(tables, group, d)),
        refusals=center_refusals(tables.refusals),
        rounds=tables.rounds,
    )


def _centers(tables: Tables, group: str, pooled: Distribution) -> list[CenterShares]:
    """Each center's own shares, and where they differ from those of all others."""
    tables_of = tables.groups[group]
    deviating = deviations(list(tables_of.values()), pooled.placed)
    shares = []
    for (center, center_tables), deviation in zip(tables_of.items(), deviating, strict=True):
        people = sum(table.people for table in center_tables)
        first = center_tables[
            0
        ]  # of several tables each tells of other people; one is enough to draw
        reached = np.cumsum(first.counts)[:-1] / first.people
        shares.append(CenterShares(center, group, people, first.edges, reached, deviation))
    return shares
