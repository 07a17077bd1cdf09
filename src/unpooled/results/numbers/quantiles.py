"""Quantiles, as the analyst holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.lattice import Lattice, LatticeTable
from unpooled.maths.quantiles.cell_fit import Search, fit_cells
from unpooled.maths.quantiles.quantile import interpolation_quantiles, yj_table_quantiles
from unpooled.results.numbers.distribution import DistributionResult, GroupDistribution
from unpooled.results.numbers.table import TableResult
from unpooled.results.provenance.record import Reach, Record
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences
from unpooled.results.report.text import count, number
from unpooled.results.result import Result, subject

if TYPE_CHECKING:
    import altair

BEYOND = "outside all boundaries: it rests on the shape of the tail"
FAR = "fewer than one person is expected beyond it"
FEW = "people beyond all boundaries take few values; declare the variable's limits"
SHAPE = "the extreme cells do not tell their means: it rests on the shape of the tail"
AT_BOUND = "the best λ lies at the bound of [−1, 2]"
LITTLE = "its cells tell less than their people would"
WIDE = 0.2  # a share of people without a boundary between them says little about where they are
DEFAULT_P = (0.02, 0.25, 0.5, 0.75, 0.98)


@dataclass(frozen=True, slots=True)
class Quantile:
    """One estimate; None with a note where there is none, or no interval."""

    group: str
    p: float
    estimate: float | None
    low: float | None = None
    high: float | None = None
    note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class QuantilesResult(Result):
    """Quantiles of each group by one method."""

    variable: str
    by: str | None
    where: str | None
    method: str
    quantiles: tuple[Quantile, ...]
    refusals: tuple[CenterRefusal, ...]
    rounds: int
    tables: tuple[TableResult, ...] = ()  # of each group, where the method has one
    distribution: DistributionResult | None = None  # where the method has a smooth one
    record: Record = field(default_factory=Record)
    people: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # center → group

    @property
    def reach(self) -> Reach:
        """Whom the estimates are of."""
        people_of = {center: sum(groups.values()) for center, groups in self.people.items()}
        people = sum(people_of.values())
        return Reach.of(people_of, people, self.record, self.refusals, people_of)

    def recorded(self, record: Record) -> "QuantilesResult":
        """The same, with how it came about."""
        smooth = self.distribution
        smooth = None if smooth is None else replace(smooth, record=record)
        return replace(self, record=record, distribution=smooth)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; null where a method has no estimate or interval."""
        smooth = self.distribution
        return {
            "value": self.variable,
            "by": self.by,
            "where": self.where,
            "method": self.method,
            "rounds": self.rounds,
            "quantiles": [quantile.to_dict() for quantile in self.quantiles],
            "centers": [] if smooth is None else [center.to_dict() for center in smooth.centers],
            "notes": [*([] if smooth is None else smooth.notes()), *self.record.notes],
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    @property
    def title(self) -> str:
        """What was estimated."""
        return QuantileSummary((self,)).title

    def parts(self) -> list[Part]:
        """The estimates."""
        return QuantileSummary((self,)).parts()

    def records(self) -> list[dict[str, Any]]:
        """A row per group and quantile."""
        about = {"variable": self.variable, "method": self.method}
        return [{**about, **quantile.to_dict()} for quantile in self.quantiles]

    def chart(self) -> "altair.TopLevelMixin":
        """A box plot from the quantiles: box .25 to .75, whiskers to the outermost."""
        from unpooled.results.charts.charts import boxes

        label = self.record.label(self.variable)
        medians = {
            q.group: (q.low, q.high)
            for q in self.quantiles
            if q.p == 0.5 and q.low is not None and q.high is not None
        }
        boxed = [(q.group, q.p, q.estimate) for q in self.quantiles]
        return boxes(boxed, label, self.by, medians)

    @property
    def answer(self) -> str:
        """The medians, or the first quantile that was asked for, with their intervals."""
        levels = {quantile.p for quantile in self.quantiles}
        p = 0.5 if 0.5 in levels else min(levels)
        name = "median" if p == 0.5 else f"{100 * p:g} % quantile"
        texts = [
            f"{estimate_text(q)}{'' if self.by is None else f' in {q.group}'}"
            for q in self.quantiles
            if q.p == p
        ]
        label = self.record.label(self.variable)
        return f"The {name} of {label} is {', '.join(texts)}, {self.reach}."

    def picture(self) -> Figure | None:
        """The box plot."""
        levels = sorted({quantile.p for quantile in self.quantiles})
        caption = (
            f"Whiskers from the {100 * levels[0]:g} % to the {100 * levels[-1]:g} % quantile; "
            "the thick line in a box: the median's 95 % interval."
        )
        return Figure(self.chart(), caption)

    def sections(self) -> list[Section]:
        """The estimates, and the distribution that they come from."""
        return QuantileSummary((self,)).sections()


@dataclass(frozen=True, slots=True, repr=False)
class QuantileSummary(Result):
    """The paper's summary table from quantile estimates: several methods side by side."""

    results: tuple[QuantilesResult, ...]

    @property
    def variable(self) -> str:
        """The variable whose quantiles they are."""
        return self.results[0].variable

    def to_dict(self) -> dict[str, Any]:
        """Each method's result."""
        return {"methods": [result.to_dict() for result in self.results]}

    def chart(self) -> "altair.TopLevelMixin":
        """The first method's box plot."""
        return self.results[0].chart()

    @property
    def answer(self) -> str:
        """That of the first method."""
        return self.results[0].answer

    def picture(self) -> Figure | None:
        """The first method's box plot."""
        return self.results[0].picture()

    @property
    def record(self) -> Record:
        """How the results came about, all in one conversation."""
        return self.results[0].record

    @property
    def refusals(self) -> tuple[CenterRefusal, ...]:
        """What was refused, each once."""
        return tuple(dict.fromkeys(r for result in self.results for r in result.refusals))

    @property
    def title(self) -> str:
        """What was estimated."""
        first = self.results[0]
        rounds = ", ".join(
            f"{r.method} in {count(r.rounds, 'round')}" if r.rounds else r.method  # none: of a book
            for r in self.results
        )
        return f"{subject(first.variable, first.by, first.where)}: quantiles by {rounds}"

    def recorded(self, record: Record) -> "QuantileSummary":
        """The same, with how it came about."""
        return QuantileSummary(tuple(result.recorded(record) for result in self.results))

    def reaches(self) -> list[str]:
        """Whom the estimates are of, in words; method by method where they differ."""
        texts = {result.method: str(result.reach) for result in self.results}
        if len(set(texts.values())) == 1:
            text = next(iter(texts.values()))
            return [f"{text[0].upper()}{text[1:]}."]
        return [f"{method} is {text}." for method, text in texts.items()]

    def _grid(self) -> Grid:
        """A row per group and p, a column per method."""
        first = self.results[0]
        rows = [
            [q.group, f"{q.p:g}", *(estimate_text(r.quantiles[i]) for r in self.results)]
            for i, q in enumerate(first.quantiles)
        ]
        return Grid(["group", "p", *(r.method for r in self.results)], rows)

    def notes(self) -> list[str]:
        """What is unusual about single estimates, who is left out, and which centers differ."""
        notes = [
            f"{r.method}, {q.group}, p = {q.p:g}: {q.note}"
            for r in self.results
            for q in r.quantiles
            if q.note is not None
        ]
        smooth = [r.distribution for r in self.results if r.distribution is not None]
        return [*notes, *(sentence for distribution in smooth for sentence in distribution.notes())]

    def parts(self) -> list[Part]:
        """The estimates by each method."""
        whom, notes = Sentences(self.reaches()), Remarks.notes(self.notes())
        return [self._grid(), whom, notes]

    def records(self) -> list[dict[str, Any]]:
        """A row per method, group and quantile."""
        return [row for result in self.results for row in result.records()]

    def section(self) -> Section:
        """The quantiles as a part of a report."""
        p = sorted({q.p for q in self.results[0].quantiles})
        caption = f"From the {self.results[0].method} quantiles {p[0]:g} to {p[-1]:g}."
        return Section("Quantiles", self.parts(), [Figure(self.chart(), caption)])

    def sections(self) -> list[Section]:
        """The estimates, and the distribution that they come from."""
        from unpooled.results.charts.charts import cdf

        smooth = next((r.distribution for r in self.results if r.distribution), None)
        if smooth is not None:
            return [self.section(), *smooth.sections()]
        figures = [
            Figure(
                cdf(t.edges, t.counts, t.groups, t.record.label(t.variable), t.by),
                "The cumulative distribution at the inner limits of the table.",
            )
            for t in next((r.tables for r in self.results if r.tables), ())
        ]
        return [self.section(), *([Section("Distribution", [], figures)] if figures else [])]


def estimate_text(quantile: Quantile) -> str:
    """An estimate, with its interval where it has one."""
    estimate = number(quantile.estimate)
    if quantile.low is None or quantile.high is None:
        return estimate
    return f"{estimate} ({number(quantile.low)} to {number(quantile.high)})"


def _smooth_estimates(one: GroupDistribution, p: FloatArray) -> list[Quantile]:
    """One group's quantiles with 95 % intervals, and a note where cells do not tell enough."""
    group, distribution, edges = one.group, one.distribution, one.edges
    values, outside = distribution.quantile(p), distribution.beyond(p)
    low, high = distribution.interval(p)
    blurred, far = distribution.blur(p) > 0, distribution.too_far(p)
    placed = distribution.placed
    everybody = np.concatenate(([0.0], np.cumsum(placed.weights))) / distribution.people
    below = everybody[np.searchsorted(placed.values, edges, "right")]
    around = np.diff(below, prepend=0.0, append=1.0)[np.searchsorted(edges, values)]
    quantiles = []
    for i, share in enumerate(around):
        level = float(p[i])
        if far[i]:
            quantiles.append(Quantile(group, level, None, note=FAR))
            continue
        if outside[i] and len(edges) and one.few[int(values[i] > edges[-1])]:
            quantiles.append(Quantile(group, level, None, note=FEW))
            continue
        wide = f"no boundary parts the {share:.0%} of people around it" if share > WIDE else None
        is_point = low[i] == high[i]  # as one value that many people share, or can have
        note = None if is_point else BEYOND if outside[i] else LITTLE if blurred[i] else wide
        quantiles.append(
            Quantile(group, level, float(values[i]), float(low[i]), float(high[i]), note)
        )
    return quantiles


def yj_table_estimates(table: TableResult, row: int, p: FloatArray) -> list[Quantile]:
    """One group's quantiles by the YJ table method, with a note where they need one."""
    group = table.groups[row]
    try:
        fit = yj_table_quantiles(table.edges, table.counts[row], p)
    except ValueError as error:
        return without_estimate(group, p, str(error))
    marks = zip(fit.unsupported, fit.clamped, fit.extrapolated, strict=True)
    return estimates(group, p, fit.estimate, [_note(*mark) for mark in marks])


def _note(unsupported: bool, clamped: bool, extrapolated: bool) -> str | None:
    if unsupported:
        return "the table does not reach so far out"
    if clamped:
        return "moved to the declared limit"
    return "beyond the table's inner limits" if extrapolated else None


def interpolation_estimates(table: TableResult, row: int, p: FloatArray) -> list[Quantile]:
    """One group's quantiles by interpolation, with a note where they need one."""
    group = table.groups[row]
    try:
        values = interpolation_quantiles(table.edges, table.counts[row], p)
    except ValueError as error:
        return without_estimate(group, p, str(error))
    notes = ["in an open outer bin" if beyond else None for beyond in values.extrapolated]
    return estimates(group, p, values.estimate, notes)


def cell_fit_estimates(
    group: str, tables: Sequence[LatticeTable], lattice: Lattice, p: FloatArray, search: Search
) -> list[Quantile]:
    """One group's quantiles by the fit to its cells, with a note where they need one."""
    try:
        fitted = fit_cells(tables, lattice, search)
    except ValueError as error:
        return without_estimate(group, p, str(error))
    bound = AT_BOUND if fitted.fit.at_bound else None
    notes = [SHAPE if shape else bound for shape in fitted.rests_on_shape(p)]
    return estimates(group, p, fitted.fit.quantile(p), notes)


def estimates(
    group: str, p: FloatArray, values: FloatArray, notes: Sequence[str | None]
) -> list[Quantile]:
    """Estimates with their notes; NaN becomes None, with a reason."""
    return [
        Quantile(group, q, None, note=note or "the fitted distribution has no such quantile")
        if np.isnan(estimate)
        else Quantile(group, q, float(estimate), note=note)
        for q, estimate, note in zip(p.tolist(), values, notes, strict=True)
    ]


def without_estimate(group: str, p: FloatArray, why: str) -> list[Quantile]:
    """No estimates, and why."""
    return [Quantile(group, q, None, note=why) for q in p.tolist()]


def smooth_quantiles(smooth: DistributionResult, p: FloatArray | None = None) -> QuantilesResult:
    """The quantiles of smooth distributions, group by group: nothing more is asked."""
    wanted = np.array(DEFAULT_P) if p is None else p
    return QuantilesResult(
        variable=smooth.variable,
        by=smooth.by,
        where=smooth.where,
        method="parallel",
        quantiles=tuple(q for one in smooth.distributions for q in _smooth_estimates(one, wanted)),
        refusals=smooth.refusals,
        rounds=smooth.rounds,
        record=smooth.record,
        people=smooth.people,
    )


def table_quantiles(table: TableResult, p: Sequence[float] = DEFAULT_P) -> QuantileSummary:
    """The quantiles of a table's groups, from the table alone: nothing more is asked."""
    wanted = np.array(p)
    by_method = {"yj-table": yj_table_estimates, "interpolation": interpolation_estimates}
    return QuantileSummary(
        tuple(
            QuantilesResult(
                variable=table.variable,
                by=table.by,
                where=table.where,
                method=method,
                quantiles=tuple(
                    q for row in range(len(table.groups)) for q in of(table, row, wanted)
                ),
                refusals=table.refusals,
                rounds=table.rounds,
                tables=(table,),
                record=table.record,
                people=table.people,
            )
            for method, of in by_method.items()
        )
    )
