"""Quantiles from one parallel round: smooth ones with intervals, and Yeo-Johnson fits to cells."""

from dataclasses import replace

from unpooled.analyses.asking import Request, refuse
from unpooled.analyses.distribution import combine_distribution
from unpooled.analyses.parallel import Tables, ask_tables
from unpooled.coordinator import Conversation
from unpooled.data.variables import Variable
from unpooled.maths.arrays import FloatArray
from unpooled.maths.cell_fit import Search
from unpooled.results.quantiles import (
    Quantile,
    QuantilesResult,
    cell_fit_estimates,
    smooth_quantiles,
    without_estimate,
)
from unpooled.results.refusals import center_refusals, why_nothing

CELL_METHODS: dict[str, Search | None] = {
    "parallel": None,
    "yj-likelihood": "likelihood",
    "yj-grid": "grid",
}
"""The methods that need the tables of the parallel round alone, and how each looks for λ."""


class ParallelRound:
    """One round for every group, asked when the first method needs it."""

    def __init__(
        self, conversation: Conversation, request: Request, p: FloatArray, declared: Variable
    ) -> None:
        self._conversation, self._request = conversation, request
        self._p, self._declared = p, declared
        self._tables: Tables | None = None

    def estimate(self, method: str) -> QuantilesResult:
        """One of `CELL_METHODS`; a `RefusedError` where nobody told of any group."""
        if self._tables is None:
            self._tables = ask_tables(self._conversation, self._request, self._declared)
        search = CELL_METHODS[method]
        if search is None:
            return self._smooth(self._tables)
        return self._fitted(self._tables, method, search)

    def _smooth(self, tables: Tables) -> QuantilesResult:
        smooth = combine_distribution(self._request, tables)
        found = smooth_quantiles(smooth, self._p)
        told: list[Quantile] = []
        for group in tables.groups:
            own = [quantile for quantile in found.quantiles if quantile.group == group]
            told += own or self._nothing(tables, group)
        return replace(found, quantiles=tuple(told), distribution=smooth)

    def _fitted(self, tables: Tables, method: str, search: Search) -> QuantilesResult:
        if not any(tables.groups.values()):
            refuse(tables.refusals)
        told: list[Quantile] = []
        for group in tables.groups:
            own = tables.of(group)
            told += (
                cell_fit_estimates(group, own, tables.lattice, self._p, search)
                if own
                else self._nothing(tables, group)
            )
        return QuantilesResult(
            value=self._request.variable,
            by=self._request.by,
            where=self._request.where,
            method=method,
            quantiles=tuple(told),
            refusals=center_refusals(tables.refusals),
            rounds=tables.rounds,
            people=tables.people(),
        )

    def _nothing(self, tables: Tables, group: str) -> list[Quantile]:
        refusals = center_refusals(tables.refusals)
        refused = [refusal for refusal in refusals if refusal.group in (group, None)]
        return without_estimate(group, self._p, why_nothing(refused))
