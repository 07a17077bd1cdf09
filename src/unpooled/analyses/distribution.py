"""The distribution of a variable over all centers, from one parallel round."""

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.parallel import Tables, ask_tables
from unpooled.analyses.request import Request, refuse
from unpooled.center.data.variables import Variable
from unpooled.maths.density.bands import histogram_edges
from unpooled.maths.density.deviation import deviations
from unpooled.maths.density.distribution import Distribution
from unpooled.maths.tables.table import Table
from unpooled.results.distribution import CenterShares, DistributionResult, GroupDistribution
from unpooled.results.refusals import center_refusals


def run_distribution(
    conversation: Conversation, request: Request, declared: Variable, max_bins: int | None = None
) -> DistributionResult:
    """One round; the smooth distribution of every group that somebody told of."""
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
