"""Quantiles with intervals from one parallel round."""

from dataclasses import replace

from unpooled.analyses.asking import Request
from unpooled.analyses.distribution import combine_distribution
from unpooled.analyses.parallel import ask_tables
from unpooled.coordinator import Coordinator
from unpooled.maths.arrays import FloatArray
from unpooled.results.quantiles import (
    Quantile,
    QuantilesResult,
    smooth_quantiles,
    without_estimate,
)
from unpooled.variables import Variable


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
        told += own or without_estimate(group, p, "no center could answer")
    return replace(found, quantiles=tuple(told), distribution=smooth)
