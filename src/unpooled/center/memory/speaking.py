"""For how many people of which group an aggregate speaks."""

from typing import assert_never

import numpy as np

from unpooled.center.memory.tables import Cells
from unpooled.questions import (
    Aggregate,
    Catalogue,
    CellTable,
    CenterJoin,
    CenterTable,
    CohortQuestion,
    GroupMoments,
    GroupRanks,
    JoinQuestion,
    LatticeTables,
    Losses,
    Moments,
    Powers,
    Question,
    Ranks,
    Sizes,
    SurvivalTables,
)


def people_told(aggregate: Aggregate, question: Question) -> dict[str, int]:
    """Group → how many people the aggregate speaks for.

    Examples
    --------
    >>> from unpooled.questions import Size, SizesQuestion
    >>> people_told(Sizes(sizes=(Size(group="all", n=12),)), SizesQuestion(variable="crp"))
    {'all': 12}
    """
    match aggregate:
        case Catalogue():
            return {}
        case Sizes():
            return {size.group: size.n for size in aggregate.sizes}
        case Moments():
            return {group.group: group.n for group in aggregate.moments}
        case CenterTable() | CenterJoin():
            return {group.group: sum(group.counts) for group in aggregate.groups}
        case LatticeTables():
            return {
                group.group: sum(sum(table.counts) for table in group.tables)
                for group in aggregate.groups
            }
        case SurvivalTables():
            return {
                group.group: sum(
                    sum(table.counts)
                    for tables in (group.events, group.censored, group.either)
                    for table in tables or ()
                )
                for group in aggregate.groups
            }
        case Ranks():
            assert isinstance(question, CohortQuestion)  # judged before
            x, y = question.groups or ()
            return {x: aggregate.n_x, y: aggregate.n_y}
        case GroupRanks() | Powers() | Losses():
            return {group.group: group.n for group in aggregate.groups}
        case _:
            assert_never(aggregate)


def cells_told(aggregate: Aggregate, question: Question) -> dict[str, list[Cells]]:
    """Group → the cells of its tables; nothing where there are none."""
    match aggregate:
        case CenterTable():
            return {group.group: [Cells(np.array(aggregate.edges))] for group in aggregate.groups}
        case CenterJoin():
            assert isinstance(question, JoinQuestion)  # judged before
            edges = np.union1d(question.edges, aggregate.splits)
            spans = {group.group: np.cumsum(group.spans[:-1]) for group in aggregate.groups}
            return {name: [Cells(edges[ends.astype(np.int64) - 1])] for name, ends in spans.items()}
        case LatticeTables():
            return {
                group.group: [_lattice_cells(table) for table in group.tables]
                for group in aggregate.groups
            }
        case _:
            return {}


def _lattice_cells(table: CellTable) -> Cells:
    means = tuple(cell for cell, mean in enumerate(table.means) if mean is not None)
    return Cells(np.array(table.edges), means)


def moments_told(aggregate: Aggregate) -> dict[str, GroupMoments]:
    """Group → what it says of mean and SD."""
    if not isinstance(aggregate, Moments):
        return {}
    return {group.group: group for group in aggregate.moments}


def missing_told(aggregate: Aggregate) -> dict[str, int]:
    """Group → how many people without a value it speaks for, where it says so."""
    if not isinstance(aggregate, Moments):
        return {}
    return {group.group: group.missing for group in aggregate.moments if group.missing}
