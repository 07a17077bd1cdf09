"""The gate's rule for tables on a public lattice."""

from itertools import pairwise
from math import isfinite

import numpy as np

from unpooled.center.policy import (
    Policy,
    empty_status_told,
    k_in_force,
    moments_in_force,
    people_needed,
)
from unpooled.data.variables import Variable
from unpooled.errors import GateError
from unpooled.maths.lattice import Lattice, is_multiple, nice_number, usual_resolutions
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS
from unpooled.maths.telling import nowhere, rounding, telling_cells
from unpooled.questions import (
    CellMoments,
    CellTable,
    GroupStatuses,
    LatticeQuestion,
    LatticeTables,
    SurvivalQuestion,
    SurvivalTables,
)


def judge_lattice(
    said: LatticeTables,
    question: LatticeQuestion,
    policy: Policy,
    declared: Variable,
    told: frozenset[float],
) -> None:
    """Raise GateError unless every table may leave."""
    _judge_facts(said, declared)
    if (said.lower, said.upper) != (declared.lower, declared.upper):
        raise GateError("the limits of a lattice must be the declared ones")
    lattice = declared.lattice(said.scale, said.resolution)
    k, moments = k_in_force(question, policy), moments_in_force(question, policy)
    for group in said.groups:
        if not group.tables:
            raise GateError("a group must have a table")
        for table in group.tables:
            _judge_table(table, lattice, moments, k, people_needed(question, k), told)


def judge_survival(
    said: SurvivalTables, question: SurvivalQuestion, policy: Policy, declared: Variable
) -> None:
    """Raise GateError unless both statuses of every group, or neither, may leave."""
    if not 0 < question.horizon < float("inf"):
        raise GateError("the horizon must be positive and finite")
    _judge_facts(said, declared, question.horizon)
    lattice = declared.follow_up_lattice(said.scale, question.horizon, said.resolution)
    k = k_in_force(question, policy)
    zeros = empty_status_told(question, policy)
    for group in said.groups:
        people = [_judge_status(tables, lattice, policy, k) for tables in _statuses(group, k)]
        if sum(people) < k or (group.below is None and 0 in people and not zeros):
            raise GateError(
                f"a status must speak for {'0 or ' if zeros else ''}at least {k} people"
            )
        if group.below == "both" and sum(people) > 2 * (k - 1):
            raise GateError(f"both statuses cannot have fewer than {k} of so many people")


def _statuses(group: GroupStatuses, k: int) -> list[tuple[CellTable, ...]]:
    """The tables by status, or those of either: all or nothing."""
    by_status = [tables for tables in (group.events, group.censored) if tables is not None]
    if group.below is None:
        if len(by_status) != 2 or group.either is not None:
            raise GateError("both statuses must be told, or neither")
        return by_status
    if by_status or group.either is None:
        raise GateError(f"where a status has fewer than {k} people, neither is told")
    return [group.either]


def _judge_status(tables: tuple[CellTable, ...], lattice: Lattice, policy: Policy, k: int) -> int:
    """Judge the tables of a status; how many people they speak for."""
    for table in tables:
        _judge_table(table, lattice, policy.moments, k, k)
    return sum(sum(table.counts) for table in tables)


def _judge_table(
    table: CellTable,
    lattice: Lattice,
    moments: CellMoments,
    k: int,
    needed: int,
    told: frozenset[float] = frozenset(),
) -> None:
    _judge_people(table, k, needed)
    _judge_points(table.edges, lattice, told)
    _judge_moments(table, lattice, moments)
    _judge_rounding(table, lattice)


def _judge_facts(
    said: LatticeTables | SurvivalTables, declared: Variable, horizon: float | None = None
) -> None:
    """Scale and resolution are the declared ones, or such as everybody might have named."""
    if declared.scale is not None:
        if said.scale != declared.scale:
            raise GateError("the lattice must be that of the declared scale")
    elif not 0 < said.scale < float("inf") or said.scale != nice_number(said.scale):
        raise GateError("the scale of a lattice must be 1, 2 or 5 times a power of ten")
    if declared.resolution is not None:
        if said.resolution != declared.resolution:
            raise GateError("the lattice must be that of the declared resolution")
    elif said.resolution is not None and (
        said.resolution not in usual_resolutions(said.scale)
        or not declared.may_have(said.resolution, horizon)
    ):
        raise GateError("a resolution must be a usual one that fits what is declared")


def _judge_people(table: CellTable, k: int, needed: int) -> None:
    cells = len(table.counts)
    columns = (table.means, table.sds, table.values, table.dominated)
    if len(table.edges) != cells - 1 or any(len(column) != cells for column in columns):
        raise GateError("a table must have one count and one entry of each kind per cell")
    if min(table.counts) < k:
        raise GateError(f"a cell must speak for at least {k} people")
    if sum(table.counts) < needed:
        raise GateError(f"a table must speak for at least {needed} people")


def _judge_points(edges: tuple[float, ...], lattice: Lattice, told: frozenset[float]) -> None:
    if not all(map(isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise GateError("edges must be finite and ascend")
    known = {*lattice.atom_sides.ravel().tolist(), *told}
    for edge, point in zip(edges, lattice.snap(np.array(edges)).tolist(), strict=True):
        if edge not in known and edge != point:
            raise GateError("edges must be points of the public lattice")
        if not lattice.lower <= edge < lattice.upper:
            raise GateError("edges must lie within the declared limits")


def _judge_moments(table: CellTable, lattice: Lattice, moments: CellMoments) -> None:
    telling = telling_cells(np.array(table.edges), lattice.step, moments).tolist()
    cells = zip(table.means, table.sds, table.values, table.dominated, telling, strict=True)
    for mean, sd, values, dominated, may in cells:
        if (mean, sd, values, dominated) == (None, None, None, None):
            continue
        if not may:
            raise GateError("the policy does not allow the moments of this cell")
        if values is None or dominated is None:
            raise GateError("moments must come with how many values they speak for")
        if not 0 <= values <= SD_NEEDS:
            raise GateError(f"different values are counted up to {SD_NEEDS}")
        few = values if values else SD_NEEDS
        if few < MEAN_NEEDS and mean is not None:
            raise GateError(f"a mean needs {MEAN_NEEDS} different values")
        if sd is not None and (mean is None or few < SD_NEEDS):
            raise GateError(f"a standard deviation needs {SD_NEEDS} different values")
        if dominated and few < SD_NEEDS:
            raise GateError("of few values it must not be told whether one person carries them")
        if sd is not None and dominated:
            raise GateError("a standard deviation must not be that of one person")


def _judge_rounding(table: CellTable, lattice: Lattice) -> None:
    """Moments are whole numbers of the cell's unit; one shared value (SD 0) is told as it is."""
    edges = np.array(table.edges)
    start, unit = rounding(edges, lattice)
    low, high = lattice.mean_limits(edges)
    limits = lattice.limits(edges)
    for cell, (mean, sd) in enumerate(zip(table.means, table.sds, strict=True)):
        if not all(isfinite(x) for x in (mean, sd) if x is not None) or (sd or 0.0) < 0:
            raise GateError("moments must be finite")
        if sd == 0:
            if table.values[cell] != 0:
                raise GateError("a value may be told only where enough people share it")
            if mean is None or not limits[cell] <= mean <= limits[cell + 1]:
                raise GateError("a shared value must lie in its cell")
            continue
        if mean is not None and nowhere(edges, lattice):
            raise GateError("a cell without limits must not tell moments")
        if mean is not None and not low[cell] <= mean <= high[cell]:
            raise GateError("a mean must lie in its cell, on a scale that ends where that is open")
        if sd is not None and sd > high[cell] - low[cell]:
            raise GateError("a standard deviation must be that of a cell, on a scale that ends")
        halves = 2 if sd == unit[cell] / 2 else 1  # what an SD below half a unit is told as
        for value, origin, parts in ((mean, start[cell], 1), (sd, 0.0, halves)):
            if value is not None and not is_multiple(value, unit[cell] / parts, origin):
                raise GateError("moments must be rounded to a part of the cell's width")
