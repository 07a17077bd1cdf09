"""Two categories: people by group and level, and whether the two go together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.numbers.compare import Unit
from unpooled.analyses.request import Request, check_answered, group_label, in_order, refuse
from unpooled.center.questions import (
    OTHER,
    Categories,
    CategoryQuestion,
    GroupLevels,
    LevelCount,
    Refusal,
)
from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.categories.bounds import (
    Cell,
    CoarseTable,
    PartialTable,
    coarse_table,
    count_bounds,
    estimated_counts,
)
from unpooled.maths.categories.contingency import (
    ExactTest,
    chi2_test,
    cochran_armitage,
    cramers_v,
    exact_test,
    expected_counts,
    linear_by_linear,
)
from unpooled.maths.categories.mantel_haenszel import (
    breslow_day,
    general_association,
    odds_ratio,
    odds_ratio_heterogeneity,
    risk_difference,
    risk_ratio,
    stratified_trend,
)
from unpooled.maths.ranks.mann_whitney import TestResult
from unpooled.results.crosstab import SMALL_EXPECTED, CenterCounts, CrosstabResult, TwoByTwo
from unpooled.results.provenance.record import joint_members
from unpooled.results.provenance.refusals import center_refusals


@dataclass(frozen=True, slots=True)
class LevelCells:
    """Some people of a center who belong to one group, by their levels."""

    unit: Unit
    group: str
    cells: tuple[LevelCount, ...]
    missing: int | None


@dataclass(frozen=True, slots=True)
class LevelTables:
    """What centers released of a category: each part of their people a table of one group."""

    levels: tuple[str, ...]
    groups: tuple[str, ...]
    cells: tuple[LevelCells, ...]
    tables: tuple[PartialTable, ...] = field(init=False)

    def __post_init__(self) -> None:
        tables = tuple(_partial(self.levels, self.groups, part) for part in self.cells)
        object.__setattr__(self, "tables", tables)

    @classmethod
    def of(
        cls,
        cells: Iterable[LevelCells],
        groups: Sequence[str],
        declared: Sequence[str] | None,
    ) -> "LevelTables":
        """The levels are those declared, or all that somebody named; and others, if any."""
        parts = tuple(cells)
        named = {level for part in parts for cell in part.cells for level in cell.levels}
        levels = list(declared) if declared is not None else in_order(named - {OTHER})
        others = any(
            OTHER in cell.levels and (cell.count or declared is None)
            for part in parts
            for cell in part.cells
        )
        if others:
            levels.append(OTHER)
        return cls(tuple(levels), tuple(groups), parts)

    @property
    def units(self) -> tuple[Unit, ...]:
        """Within which groups are compared: centers, and strata there."""
        return tuple(dict.fromkeys(part.unit for part in self.cells))

    def by_unit(self, coarse: CoarseTable) -> FloatArray:
        """Counts of a coarse table: units × groups × levels."""
        place = {unit: number for number, unit in enumerate(self.units)}
        counts_of = np.zeros((len(place), *coarse.counts.shape[1:]))
        for part, counts in zip(self.cells, coarse.counts, strict=True):
            counts_of[place[part.unit]] += counts
        return counts_of

    def missing(self) -> tuple[tuple[str, int | None], ...]:
        """How many of each group have no level; None where fewer than K somewhere do not."""
        missing: dict[str, int | None] = {}
        for part in self.cells:
            before = missing.get(part.group, 0)
            counted = before is not None and part.missing is not None
            missing[part.group] = (before or 0) + (part.missing or 0) if counted else None
        return tuple((group, missing.get(group, 0)) for group in self.groups)


def _partial(levels: tuple[str, ...], groups: tuple[str, ...], part: LevelCells) -> PartialTable:
    """Levels that a center does not name are among its others; where it has none, nobody's."""
    named = {level for cell in part.cells for level in cell.levels}
    rest = [level for level in levels if level not in named or level == OTHER]
    cells = []
    for cell in part.cells:
        some = [level for level in cell.levels if level != OTHER]
        if OTHER in cell.levels:
            some, rest = [*some, *rest], []
        if some:
            cells.append(Cell(tuple(level for level in levels if level in some), cell.count))
    if len(levels) and rest:
        cells += [Cell((level,), 0) for level in rest]
    nobody = (Cell(levels, 0),)
    return PartialTable(levels, tuple(tuple(cells) if g == part.group else nobody for g in groups))


def run_crosstab(
    conversation: Conversation,
    request: Request,
    levels: Sequence[object] | None,
    ordered: bool,
) -> CrosstabResult:
    """One round; counts add up over centers."""
    declared = None if levels is None else tuple(map(group_label, levels))
    if declared is not None and len(set(declared)) < len(declared):
        raise InputError(f"levels must differ, got {', '.join(declared)}")
    question = CategoryQuestion(**request.fields, levels=declared, ordered=ordered)
    round_ = conversation.ask(question, Categories)
    cells = [
        level_cells(Unit(center), group.group, group)
        for center, aggregate in round_.aggregates.items()
        for group in aggregate.groups
    ]
    result = in_order({part.group for part in cells})
    check_answered(conversation, request, round_, result)
    groups = request.groups or tuple(result)
    tables = LevelTables.of(cells, groups, declared)
    return combine_crosstab(request, tables, round_.refusals, ordered, rounds=conversation.rounds)


def level_cells(unit: Unit, group: str, levels: GroupLevels) -> LevelCells:
    """What a center said of some people, as part of a group of the analysis."""
    return LevelCells(unit, group, levels.cells, levels.missing)


def combine_crosstab(
    request: Request,
    tables: LevelTables,
    refusals: Iterable[tuple[str, Refusal]],
    ordered: bool = False,
    strata: tuple[str, ...] = (),
    rounds: int = 0,
) -> CrosstabResult:
    """Counts with bounds, and every test of what is known exactly."""
    if not tables.cells:
        refuse(refusals)
    counted, left_out = _counted(tables)
    coarse = coarse_table(counted.tables)
    total, units = coarse.total, counted.by_unit(coarse)
    several = min(np.count_nonzero(total.sum(axis=1)), np.count_nonzero(total.sum(axis=0))) > 1
    expected = (
        float(expected_counts(total)[np.ix_(total.any(1), total.any(0))].min()) if several else None
    )
    return CrosstabResult(
        variable=request.variable,
        by=request.by or "",
        where=request.where,
        ordered=ordered,
        groups=tables.groups,
        bounds=count_bounds(tables.tables),
        joined=coarse.joined,
        chi2=chi2_test(total) if several else None,
        exact=_exact(total, expected),
        cmh=general_association(units) if several and len(units) > 1 else None,
        trend=_trend(total, units, coarse.scores) if several and ordered else None,
        cramers_v=cramers_v(total),
        two_by_two=_two_by_two(counted, coarse, units),
        expected=expected,
        missing=tables.missing(),
        centers=_centers(tables),
        refusals=center_refusals(refusals),
        rounds=rounds,
        strata=strata,
        left_out=left_out,
        estimated=estimated_counts(tables.tables).counts,
    )


def _counted(level_tables: LevelTables) -> tuple[LevelTables, tuple[tuple[str, int], ...]]:
    """Whom tests are of, and who is left out since their levels are merged.

    Units join in the order of how many levels they tell apart. The more there are the more people,
    but the fewer levels: taken is what keeps most of both.
    """
    tables: dict[Unit, list[PartialTable]] = {}
    people: dict[Unit, int] = {}
    for part, table in zip(level_tables.cells, level_tables.tables, strict=True):
        tables.setdefault(part.unit, []).append(table)
        here = sum(cell.count for cells in table.groups for cell in cells)
        people[part.unit] = people.get(part.unit, 0) + here
    apart = {unit: len(coarse_table(here).parts) for unit, here in tables.items()}
    order = sorted(tables, key=lambda unit: -apart[unit])
    best, most, taken = 0.0, len(order), list[PartialTable]()
    everybody = sum(people.values())
    for number, unit in enumerate(order, 1):
        taken += tables[unit]
        last = number == len(order) or apart[order[number]] < apart[unit]
        if last and everybody:
            so_far = sum(people[one] for one in order[:number])
            score = so_far / everybody * (len(coarse_table(taken).parts) - 1)
            if score >= best:
                best, most = score, number
    if most == len(order):
        return level_tables, ()
    out = set(order[most:])
    kept = tuple(part for part in level_tables.cells if part.unit not in out)
    by_center: dict[str, int] = {}
    for unit in tables:
        if unit in out:
            by_center[unit.center] = by_center.get(unit.center, 0) + people[unit]
    others = any(cell.count for part in kept for cell in part.cells if OTHER in cell.levels)
    levels = tuple(level for level in level_tables.levels if level != OTHER or others)
    return LevelTables(levels, level_tables.groups, kept), tuple(by_center.items())


def _exact(total: FloatArray, expected: float | None) -> ExactTest | None:
    """Of 2×2 tables always; of larger ones where chi-square is rough."""
    if expected is None or (total.size > 4 and expected >= SMALL_EXPECTED):
        return None
    return exact_test(total)


def _trend(total: FloatArray, units: FloatArray, scores: Sequence[float]) -> TestResult:
    """Cochran and Armitage's of one stratum of two groups, Mantel's within several."""
    if len(units) > 1:
        return stratified_trend(units, scores)
    return cochran_armitage(total, scores) if len(total) == 2 else linear_by_linear(total, scores)


def _two_by_two(tables: LevelTables, coarse: CoarseTable, units: FloatArray) -> TwoByTwo | None:
    """The second level's chance in the second group against the first."""
    if len(tables.groups) != 2 or len(tables.levels) != 2 or not coarse.plain:
        return None
    turned = units[:, ::-1, ::-1]
    alone = turned[[not joint_members(unit.center) for unit in tables.units]]
    return TwoByTwo(
        tables.levels[1],
        (tables.groups[0], tables.groups[1]),
        odds_ratio(turned),
        risk_ratio(turned),
        risk_difference(turned),
        breslow_day(alone),
        odds_ratio_heterogeneity(alone),
    )


def _centers(tables: LevelTables) -> tuple[CenterCounts, ...]:
    """Each center's counts, its parts of one group added up where they have the same cells."""
    by_unit: dict[Unit, dict[str, dict[tuple[str, ...], int]]] = {}
    for part, table in zip(tables.cells, tables.tables, strict=True):
        cells = by_unit.setdefault(part.unit, {}).setdefault(part.group, {})
        for cell in table.groups[tables.groups.index(part.group)]:
            cells[cell.levels] = cells.get(cell.levels, 0) + cell.count
    return tuple(
        CenterCounts(
            unit.center,
            unit.stratum,
            tuple((g, _shown(groups[g])) for g in tables.groups if g in groups),
        )
        for unit, groups in by_unit.items()
    )


def _shown(cells: Mapping[tuple[str, ...], int]) -> tuple[tuple[tuple[str, ...], int], ...]:
    return tuple((levels, n) for levels, n in cells.items())
