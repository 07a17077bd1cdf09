"""A comparison of two groups, as the analyst holds it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpooled.maths.effect import Heterogeneity, Interval
from unpooled.maths.heterogeneity import RandomEffects
from unpooled.maths.mann_whitney import Alternative, RankStatistics, TestResult
from unpooled.report.html import Html
from unpooled.report.page import Figure, Section, stacked
from unpooled.report.text import columns_text, count, number, p_text
from unpooled.results.interval import interval_cells, interval_dict, interval_text
from unpooled.results.more import More
from unpooled.results.pooled import PooledComparison
from unpooled.results.quantiles import QuantileSummary, smooth_quantiles, table_quantiles
from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal, refusal_sentence, refusals_text
from unpooled.results.reporting import write_report
from unpooled.results.table import TableResult
from unpooled.results.unfair import why_unfair

if TYPE_CHECKING:
    import altair

RECOMMENDED = "weighted"
_DISAGREE = 0.05  # p of heterogeneity below which centers are said to disagree


@dataclass(frozen=True, slots=True)
class CenterComparison:
    """One center's own comparison."""

    center: str
    ranks: RankStatistics
    effect: Interval

    def to_dict(self) -> dict[str, Any]:
        """The center's comparison as plain values."""
        return {
            "center": self.center,
            "n_x": self.ranks.n_x,
            "n_y": self.ranks.n_y,
            "u": self.ranks.u,
            "effect": interval_dict(self.effect),
        }


@dataclass(frozen=True, slots=True)
class CompareResult:
    """Two groups compared: x is groups[0], y is groups[1], and U > 0 means that y is larger."""

    value: str
    by: str
    where: str | None
    groups: tuple[str, str]
    alternative: Alternative
    methods: tuple[TestResult, ...]
    effect: Interval | None  # P(Y > X) + ½P(Y = X); None where no center could compare
    shift: Interval | None  # needs tables, of the chain or on a lattice
    heterogeneity: Heterogeneity | None
    centers: tuple[CenterComparison, ...]
    refusals: tuple[CenterRefusal, ...]
    table: TableResult | None
    rounds: int
    random: RandomEffects | None = None  # of several centers
    pooled: PooledComparison | None = None  # of method "parallel"
    record: Record = field(default_factory=Record)
    unanswered: Mapping[str, str] = field(default_factory=dict)  # methods without a test, and why
    unfair: tuple[str, ...] = ()  # methods: which centers they rest on depends on the outcome
    more: More = field(default_factory=More, repr=False, compare=False)

    @property
    def recommended(self) -> str:
        """The method to rely on."""
        if self.centers and not self.unfair:
            return RECOMMENDED
        fair = [test.method for test in self.methods if test.method not in self.unfair]
        beside = [method for method in fair if method in (RECOMMENDED, "table", "parallel")]
        return beside[0] if beside else "table"

    @property
    def why(self) -> str:
        """One sentence on the recommendation."""
        if self.unfair:
            return why_unfair(self.unfair, self.recommended)
        if not self.centers:
            return "No center could compare the groups by itself; only their tables can."
        if len(self.centers) == 1:
            return "With one center, weighted, sum and Fisher are the same test of that center."
        if self.pooled is not None and [test.method for test in self.methods] == ["parallel"]:
            return (
                f"Parallel is the test of {self.pooled.distribution.whom()}, as if pooled: "
                "differences between centers count as well. Weighted treats each center as a block."
            )
        return (
            "Weighted, van Elteren's stratified test, has the most power where the effect is alike "
            "at all centers, and treats each center as a block; Fisher does not keep its level "
            "where effects differ."
        )

    @property
    def test(self) -> TestResult:
        """The test that was asked for; of several, the recommended one if it is among them."""
        found = {test.method: test for test in self.methods}
        return found.get(self.recommended, self.methods[0])

    @property
    def p_value(self) -> float:
        """The p-value of `test`."""
        return self.test.p_value

    @property
    def log10_p(self) -> float:
        """The decimal logarithm of `p_value`, which does not underflow."""
        return self.test.log10_p

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        differ = self.heterogeneity
        return {
            "value": self.value,
            "by": self.by,
            "where": self.where,
            "groups": list(self.groups),
            "alternative": self.alternative,
            "recommended": self.recommended,
            "why": self.why,
            "methods": [
                {
                    "method": test.method,
                    "statistic": test.statistic,
                    "p_value": test.p_value,
                    "log10_p": test.log10_p,
                    "note": test.note,
                }
                for test in self.methods
            ]
            + [
                {"method": name, "statistic": None, "p_value": None, "log10_p": None, "note": why}
                for name, why in self.unanswered.items()
            ],
            "effect": None if self.effect is None else interval_dict(self.effect),
            "shift": None if self.shift is None else interval_dict(self.shift),
            "random_effects": None
            if self.random is None
            else {**interval_dict(self.random.mean), "tau": self.random.tau},
            "parallel": None if self.pooled is None else self.pooled.to_dict(),
            "heterogeneity": None if differ is None else heterogeneity_dict(differ),
            "centers": [center.to_dict() for center in self.centers],
            "refusals": [refusal.to_dict() for refusal in self.refusals],
            "rounds": self.rounds,
        }

    def chart(self) -> "altair.TopLevelMixin":
        """The charts of the report, one below the other; asks on as `report` does."""
        return stacked(self.whole().sections())

    def forest(self) -> "altair.TopLevelMixin":
        """The forest plot: the effect at each center, overall, and where centers differ."""
        from unpooled.report.charts import forest

        rows = [(c.center, c.ranks.n_x + c.ranks.n_y, c.effect) for c in self.centers]
        overall = {} if self.effect is None else {"all centers": self.effect}
        if self.random is not None:
            overall["random effects"] = self.random.mean
        title = f"P({self.groups[1]} > {self.groups[0]}), {self.record.label(self.value)}"
        return forest(rows, title, overall)

    def sections(self) -> list[Section]:
        """The parts of a report: the comparison and, where there is a table, what it shows."""
        figures = []
        if self.centers:
            caption = "The effect at each center; ½ (dashed) means no difference."
            figures.append(Figure(self.forest(), caption))
        body = self._body()
        if self.table is None and self.pooled is None:
            body = body.paragraph("There is no table, so no distributions and no quantiles.")
        whole = [Section("Comparison", body, figures)]
        if self.pooled is not None:
            smooth = replace(self.pooled.distribution, record=self.record)
            whole += [*smooth.sections(), QuantileSummary((smooth_quantiles(smooth),)).section()]
        if self.table is not None:
            whole += self.table.sections()
            if self.pooled is None:
                whole.append(table_quantiles(self.table).section())
        return whole

    def whole(self) -> "CompareResult":
        """With every method and the table: what was not asked for yet is asked for now."""
        more: CompareResult | None = self.more()
        return more or self

    def report(self, path: str | Path) -> Path:
        """Write a report on the whole comparison to one HTML file."""
        whole = self.whole()
        return write_report(path, self.title, whole.sections(), whole.record, whole.refusals)

    def _body(self) -> Html:
        body = Html().table(*self.method_columns())
        for sentence in self.sentences():
            body = body.paragraph(sentence)
        return body.table(*self.center_columns()) if self.centers else body

    def __str__(self) -> str:
        lines = [self.title, columns_text(*self.method_columns()), *self.sentences()]
        if self.centers:
            lines.append(f"\n{columns_text(*self.center_columns())}")
        return "\n".join(lines) + refusals_text(self.refusals)

    def _repr_html_(self) -> str:
        page = Html(f"{Html().heading(self.title)}{self._body()}")
        return str(page.items("Refused", map(refusal_sentence, self.refusals)))

    @property
    def title(self) -> str:
        """What was compared."""
        where = f", where {self.where}" if self.where is not None else ""
        x, y = self.groups
        asked = {"two-sided": "differs from", "greater": "is above", "less": "is below"}
        return f"{self.value} by {self.by}{where}: {y} {asked[self.alternative]} {x}?"

    def method_columns(self) -> tuple[list[str], list[list[str]]]:
        """A row per method."""
        rows = [
            [
                test.method + (" (recommended)" if test.method == self.recommended else ""),
                number(test.statistic),
                p_text(test.log10_p).removeprefix("= "),
                test.note or "",
            ]
            for test in self.methods
        ]
        rows += [[name, "-", "-", why] for name, why in self.unanswered.items()]
        return ["method", "statistic", "p", "note"], rows

    def center_columns(self) -> tuple[list[str], list[list[str]]]:
        """A row per center."""
        x, y = self.groups
        rows = [
            [c.center, str(c.ranks.n_x), str(c.ranks.n_y), *interval_cells(c.effect)]
            for c in self.centers
        ]
        return ["center", x, y, f"P({y} > {x})", "95 % interval"], rows

    def sentences(self) -> list[str]:
        """What the result says, in words."""
        x, y = self.groups
        told = [self.why]
        pooled = None if self.pooled is None else self.pooled.effect
        if self.effect is not None and self.effect != pooled:
            told.append(f"P({y} > {x}) = {interval_text(self.effect)} over all centers.")
        if self.pooled is not None:
            told.append(
                f"Over {self.pooled.distribution.whom()}, as if pooled: "
                f"P({y} > {x}) = {interval_text(self.pooled.effect)}."
            )
        if self.shift is not None:
            told.append(f"{y} is shifted by {interval_text(self.shift)} against {x}.")
        differ = self.heterogeneity
        if differ is not None and differ.df > 0:
            told.append(
                f"Between centers: Q = {number(differ.q, 3)} on {count(differ.df, 'degree')} of "
                f"freedom, p = {differ.p_value:.2g}, I² = {differ.i2:.0%}."
            )
        if self.random is not None:
            told.append(
                f"Random effects: P({y} > {x}) = {interval_text(self.random.mean)} by Hartung and "
                f"Knapp, with SD {number(self.random.tau, 2)} between centers."
            )
            if differ is not None and differ.p_value < _DISAGREE:
                told.append(
                    "The centers disagree: no single effect speaks for all of them. Look at each, "
                    "and at the interval of random effects."
                )
        if self.pooled is not None:
            told += self.pooled.distribution.differing()
        return told


def heterogeneity_dict(differ: Heterogeneity) -> dict[str, float]:
    """The heterogeneity as plain values."""
    return {"q": differ.q, "df": differ.df, "p_value": differ.p_value, "i2": differ.i2}
