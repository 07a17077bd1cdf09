"""Quantiles with intervals from one parallel round."""

from dataclasses import replace

from unpooled.analyses.asking import Request
from unpooled.analyses.distribution import combine_distribution
from unpooled.analyses.parallel import ask_tables
from unpooled.coordinator import Coordinator
from unpooled.data.variables import Variable
from unpooled.maths.arrays import FloatArray
from unpooled.results.quantiles import (
    Quantile,
    QuantilesResult,
    smooth_quantiles,
    without_estimate,
)
from unpooled.results.refusals import why_nothing


def run_parallel(
    coordinator: Coordinator, request: Request, p: FloatArray, declared: Variable
) -> QuantilesResult:
    """One round for every group."""
    tables = ask_tables(coordinator, request, declared)
    smooth = combine_distribution(request, tables)
    found = smooth_quantiles(smooth, p)
    told: list[Quantile] = []
    for group in tables.groups:
        own = [quantile for quantile in found.quantiles if quantile.group == group]
        refused = [refusal for refusal in smooth.refusals if refusal.group in (group, None)]
        told += own or without_estimate(group, p, why_nothing(refused))
    return replace(found, quantiles=tuple(told), distribution=smooth)
