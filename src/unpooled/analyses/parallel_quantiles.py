"""Quantiles with intervals from one parallel round."""

from unpooled.analyses.asking import Request
from unpooled.analyses.distribution import combine_distribution
from unpooled.analyses.parallel import ask_tables
from unpooled.coordinator import Coordinator
from unpooled.maths.arrays import FloatArray
from unpooled.results.quantiles import (
    Quantile,
    QuantilesResult,
    parallel_estimates,
    without_estimate,
)
from unpooled.variables import Variable


def run_parallel(
    coordinator: Coordinator, request: Request, p: FloatArray, declared: Variable
) -> QuantilesResult:
    """One round for every group."""
    tables = ask_tables(coordinator, request, declared)
    smooth = combine_distribution(request, tables)
    found = {one.group: one for one in smooth.distributions}
    told: list[Quantile] = []
    for group in tables.groups:
        if group in found:
            told += parallel_estimates(found[group], p)
        else:
            told += without_estimate(group, p, "no center could answer")
    return QuantilesResult(
        value=request.variable,
        by=request.by,
        where=request.where,
        method="parallel",
        quantiles=tuple(told),
        refusals=smooth.refusals,
        rounds=tables.rounds,
        distribution=smooth,
    )
