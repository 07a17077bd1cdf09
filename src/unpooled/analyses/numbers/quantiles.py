"""Quantiles over all centers, from one parallel round or by the paper's estimators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.numbers.parallel import Tables, ask_tables, combine_distribution
from unpooled.analyses.numbers.table import run_table
from unpooled.analyses.request import Request, ask_groups, explain, refuse
from unpooled.analyses.specification import select_methods
from unpooled.center.data.variables import Variable
from unpooled.center.questions import EVERYBODY, Limits, Powers, PowersQuestion, Refusal
from unpooled.center.questions.powers import GRID
from unpooled.errors import InputError, RefusedError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.quantiles.cell_fit import Search
from unpooled.maths.quantiles.quantile import check_probabilities
from unpooled.maths.quantiles.yeo_johnson import DEFAULT_GRID, PowerMoments, fit_grid, pool
from unpooled.results.numbers.quantiles import (
    AT_BOUND,
    Quantile,
    QuantilesResult,
    QuantileSummary,
    cell_fit_estimates,
    estimates,
    interpolation_estimates,
    smooth_quantiles,
    without_estimate,
    yj_table_estimates,
)
from unpooled.results.numbers.table import TableResult
from unpooled.results.provenance.refusals import NOBODY, CenterRefusal, center_refusals, why_nothing

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
        return combine_quantiles(self._request, self._tables, self._p, method)


def combine_quantiles(
    request: Request, tables: Tables, p: FloatArray, method: str
) -> QuantilesResult:
    """Every group's quantiles by one of `CELL_METHODS`."""
    search = CELL_METHODS[method]
    return _smooth(request, tables, p) if search is None else _fitted(request, tables, p, method)


def _smooth(request: Request, tables: Tables, p: FloatArray) -> QuantilesResult:
    smooth = combine_distribution(request, tables)
    smoothed = smooth_quantiles(smooth, p)
    quantiles: list[Quantile] = []
    for group in tables.groups:
        of_group = [quantile for quantile in smoothed.quantiles if quantile.group == group]
        quantiles += of_group or _nothing(tables, group, p)
    return replace(smoothed, quantiles=tuple(quantiles), distribution=smooth)


def _fitted(request: Request, tables: Tables, p: FloatArray, method: str) -> QuantilesResult:
    if not any(tables.groups.values()):
        refuse(tables.refusals)
    quantiles: list[Quantile] = []
    search = CELL_METHODS[method]
    assert search is not None
    for group in tables.groups:
        group_tables = tables.of(group)
        quantiles += (
            cell_fit_estimates(group, group_tables, tables.lattice, p, search)
            if group_tables
            else _nothing(tables, group, p)
        )
    return QuantilesResult(
        variable=request.variable,
        by=request.by,
        where=request.where,
        method=method,
        quantiles=tuple(quantiles),
        refusals=center_refusals(tables.refusals),
        rounds=tables.rounds,
        people=tables.people(),
    )


def _nothing(tables: Tables, group: str, p: FloatArray) -> list[Quantile]:
    refusals = center_refusals(tables.refusals)
    refused = [refusal for refusal in refusals if refusal.group in (group, None)]
    return without_estimate(group, p, why_nothing(refused))


ONLY_BY_NAME = ("paper-grid",)
METHODS = ("parallel", "yj-table", "yj-likelihood", "yj-grid", "interpolation", *ONLY_BY_NAME)


def run_quantiles(
    conversation: Conversation,
    request: Request,
    p: Sequence[float] | float,
    method: str | Sequence[str],
    limits: Limits,
    declared: Variable,
) -> QuantileSummary:
    """Estimate by each method in turn; methods that need the same table share it."""
    try:
        wanted = check_probabilities(p)
    except ValueError as error:
        raise InputError(str(error)) from error
    methods = select_methods(method, METHODS, ONLY_BY_NAME)
    if set(methods) <= CELL_METHODS.keys():
        shared = ParallelRound(conversation, request, wanted, declared)
        return QuantileSummary(tuple(map(shared.estimate, methods)))
    request, rounds = ask_groups(conversation, request)
    groups = request.groups if request.groups is not None else (EVERYBODY,)
    estimator = _Estimator(conversation, request, wanted, (limits, declared))
    results = tuple(estimator.estimate(name, groups, rounds) for name in methods)
    if estimator.refused and all(q.estimate is None for r in results for q in r.quantiles):
        raise estimator.refused[0]
    return QuantileSummary(results)


class _Estimator:
    """Asks what a method needs, group by group; a refused group does not stop the others."""

    def __init__(
        self,
        conversation: Conversation,
        request: Request,
        p: FloatArray,
        public: tuple[Limits, Variable],
    ) -> None:
        self.refused: list[RefusedError] = []
        self._limits, declared = public
        self._conversation = conversation
        self._request = request
        self._p = p
        self._parallel = ParallelRound(conversation, request, p, declared)
        self._tables: dict[str, TableResult] = {}
        self._refusals: list[tuple[str, Refusal]] = []
        self._rounds = 0
        self._people: dict[str, dict[str, int]] = {}  # center → group → how many

    def estimate(self, method: str, groups: Sequence[str], rounds: int) -> QuantilesResult:
        """One method's estimates for every group."""
        if method in CELL_METHODS:
            return self._from_cells(method, groups, rounds)
        self._refusals, self._rounds, self._people = [], rounds, {}
        by_method: dict[str, Callable[[str], list[Quantile]]] = {
            "yj-table": self._yj_table,
            "interpolation": self._interpolation,
            "paper-grid": self._paper_grid,
        }
        quantiles: list[Quantile] = []
        denied: list[CenterRefusal] = []
        for group in groups:
            try:
                quantiles += by_method[method](group)
            except RefusedError as refused:
                self.refused.append(refused)
                denied += refused.refusals
                quantiles += without_estimate(group, self._p, NOBODY)
        from_table = method in ("yj-table", "interpolation")
        tables = tuple(self._tables[g] for g in groups if g in self._tables) if from_table else ()
        refusals = (
            *center_refusals(self._refusals),
            *denied,
            *(r for t in tables for r in t.refusals),
        )
        return QuantilesResult(
            variable=self._request.variable,
            by=self._request.by,
            where=self._request.where,
            method=method,
            quantiles=tuple(quantiles),
            refusals=tuple(dict.fromkeys(refusals)),
            rounds=self._rounds,
            tables=tables,
            people=self._people,
        )

    def _from_cells(self, method: str, groups: Sequence[str], rounds: int) -> QuantilesResult:
        try:
            estimated = self._parallel.estimate(method)
            return replace(estimated, rounds=rounds + estimated.rounds)
        except RefusedError as refused:
            self.refused.append(refused)
            nothing = [q for g in groups for q in without_estimate(g, self._p, str(refused))]
            about = (self._request.variable, self._request.by, self._request.where)
            return QuantilesResult(*about, method, tuple(nothing), refused.refusals, rounds + 1)

    def _about(self, group: str) -> Request:
        """The request for one group alone."""
        groups = None if self._request.by is None else (group,)
        return replace(self._request, groups=groups)

    def _table(self, group: str) -> TableResult:
        if group not in self._tables:
            self._tables[group] = run_table(
                self._conversation, self._about(group), None, self._limits
            )
        self._rounds += self._tables[group].rounds
        self._count(group, {c: sum(n.values()) for c, n in self._tables[group].people.items()})
        return self._tables[group]

    def _count(self, group: str, people: Mapping[str, int]) -> None:
        for center, n in people.items():
            self._people.setdefault(center, {})[group] = n

    def _yj_table(self, group: str) -> list[Quantile]:
        return yj_table_estimates(self._table(group), 0, self._p)

    def _interpolation(self, group: str) -> list[Quantile]:
        return interpolation_estimates(self._table(group), 0, self._p)

    def _paper_grid(self, group: str) -> list[Quantile]:
        """One round: the moments at every point of the public grid."""
        question = PowersQuestion(**self._about(group).fields, lambdas=GRID)
        round_ = self._conversation.ask(question, Powers)
        self._refusals += round_.refusals
        self._rounds += 1
        if not round_.aggregates:
            explain(self._conversation, self._about(group), round_.refusals)
        powers_of = {center: powers.groups[0] for center, powers in round_.aggregates.items()}
        self._count(group, {center: group_powers.n for center, group_powers in powers_of.items()})
        moments = [
            PowerMoments(
                group_powers.n,
                group_powers.log_sum,
                DEFAULT_GRID,
                np.array(group_powers.means),
                np.array(group_powers.variances),
            )
            for group_powers in powers_of.values()
        ]
        try:
            fitted = fit_grid(pool(moments))
        except ValueError as error:
            return without_estimate(group, self._p, str(error))
        note = AT_BOUND if fitted.at_bound else None
        return estimates(group, self._p, fitted.quantile(self._p), [note] * len(self._p))
