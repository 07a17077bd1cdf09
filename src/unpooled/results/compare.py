"""A comparison of two groups, as the analyst holds it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpooled.maths.ranks.effect import Heterogeneity, Interval
from unpooled.maths.ranks.heterogeneity import RandomEffects
from unpooled.maths.ranks.mann_whitney import Alternative, RankStatistics, TestResult
from unpooled.results.interval import interval_cells, interval_dict, interval_text
from unpooled.results.paradox import Paradox
from unpooled.results.pooled import PooledComparison
from unpooled.results.quantiles import QuantileSummary, smooth_quantiles, table_quantiles
from unpooled.results.reach import Reach
from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal
from unpooled.results.report.page import Figure, Section, stacked
from unpooled.results.report.parts import Grid, Part, Sentences, parts_html
from unpooled.results.report.text import count, number, p_text
from unpooled.results.reporting import write_report
from unpooled.results.result import Result
from unpooled.results.selection_bias import why_biased
from unpooled.results.table import TableResult

if TYPE_CHECKING:
    import altair

RECOMMENDED = "weighted"
NO_TABLE = "There is no table, so no distributions and no quantiles; method='all' asks for one."
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


@dataclass(frozen=True, slots=True, repr=False)
class CompareResult(Result):
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
    paradox: Paradox | None = None  # where all people together contradict the effect within centers
    biased: tuple[str, ...] = ()  # methods: which centers they rest on depends on the outcome

    @property
    def recommended(self) -> str:
        """The method to rely on."""
        if self.centers and not self.biased:
            return RECOMMENDED
        sound = [test.method for test in self.methods if test.method not in self.biased]
        preferred = [method for method in sound if method in (RECOMMENDED, "table", "parallel")]
        return preferred[0] if preferred else "table"

    @property
    def why(self) -> str:
        """One sentence on the recommendation."""
        if self.biased:
            return why_biased(self.biased, self.recommended)
        if not self.centers:
            return "No center could compare the groups by itself; only their tables can."
        if len(self.centers) == 1:
            return "With one center, weighted, sum and Fisher are the same test of that center."
        if self.pooled is not None and [test.method for test in self.methods] == ["parallel"]:
            reach = self.pooled.distribution.reach
            return (
                f"Parallel is the test of {reach.people_text} at {reach.centers_text}, as if "
                "pooled: differences between centers count as well. Weighted treats each center "
                "as a block."
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

    @property
    def reach(self) -> Reach:
        """Whom the effect is of."""
        if not self.centers:
            basis = self.table if self.pooled is None else self.pooled.distribution
            return Reach.of((), 0, self.record, self.refusals) if basis is None else basis.reach
        people = sum(c.ranks.n_x + c.ranks.n_y for c in self.centers)
        return Reach.of((c.center for c in self.centers), people, self.record, self.refusals)

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
            "notes": self.record.notes,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
            "rounds": self.rounds,
        }

    def chart(self) -> "altair.TopLevelMixin":
        """The charts of the report, one below the other."""
        return stacked(self.sections())

    def forest(self) -> "altair.TopLevelMixin":
        """The forest plot: the effect at each center, overall, and where centers differ."""
        from unpooled.results.report.charts import forest

        rows = [(c.center, c.ranks.n_x + c.ranks.n_y, c.effect) for c in self.centers]
        name = "all centers" if self.reach.whole else self.reach.centers_text
        overall = {} if self.effect is None else {name: self.effect}
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
        body = parts_html(self.parts())
        if self.table is None and self.pooled is None:
            body = body.paragraph(NO_TABLE)
        whole = [Section("Comparison", body, figures)]
        if self.pooled is not None:
            smooth = self.pooled.distribution
            whole += [*smooth.sections(), QuantileSummary((smooth_quantiles(smooth),)).section()]
        if self.table is not None:
            whole += self.table.sections()
            if self.pooled is None:
                whole.append(table_quantiles(self.table).section())
        return whole

    @property
    def answer(self) -> str:
        """Which group is larger, how sure that is, and of how many people."""
        x, y = self.groups
        p = f"p {p_text(self.log10_p)}"
        effect = self.effect_of(self.test.method) or self.effect
        if effect is None:
            return f"{self.value} by {self.by}: {p} by the {self.test.method} test, {self.reach}."
        sure = effect.low > 0.5 or effect.high < 0.5
        side = "higher" if effect.estimate > 0.5 else "lower"
        says = f"is {side} in {y} than in {x}" if sure else f"does not clearly differ by {self.by}"
        whom = self.pooled.distribution.reach if self.test.method == "parallel" else self.reach  # type: ignore[union-attr]
        return f"{self.value} {says}: P({y} > {x}) = {interval_text(effect)}, {p}, {whom}."

    def picture(self) -> Figure | None:
        """The forest plot."""
        if not self.centers:
            return None if self.table is None else self.table.picture()
        return Figure(self.forest(), "The effect at each center; ½ (dashed) means no difference.")

    def report(self, path: str | Path) -> Path:
        """Write a report to one HTML file, on what was asked: `method="all"` has everything."""
        return write_report(path, self.title, self.sections(), self.record, self.refusals)

    @property
    def title(self) -> str:
        """What was compared."""
        where = f", where {self.where}" if self.where is not None else ""
        x, y = self.groups
        asked = {"two-sided": "differs from", "greater": "is above", "less": "is below"}
        return f"{self.value} by {self.by}{where}: {y} {asked[self.alternative]} {x}?"

    def parts(self) -> list[Part]:
        """The tests, the effect, and each center's own comparison."""
        whole: list[Part] = [Grid(*self.method_columns()), Sentences(self.sentences())]
        return [*whole, Grid(*self.center_columns())] if self.centers else whole

    def records(self) -> list[dict[str, Any]]:
        """A row per method, with the effect that goes with it where there is one."""
        x, y = self.groups
        nothing: dict[str, float | None] = dict.fromkeys(("estimate", "low", "high"))
        rows = []
        for test in self.methods:
            effect = self.effect_of(test.method)
            rows.append(
                {
                    "variable": self.value,
                    "x": x,
                    "y": y,
                    "method": test.method,
                    "statistic": test.statistic,
                    "p_value": test.p_value,
                    "log10_p": test.log10_p,
                    **(nothing if effect is None else interval_dict(effect)),
                    "note": test.note,
                }
            )
        return rows

    def effect_of(self, method: str) -> Interval | None:
        """P(Y > X) + ½P(Y = X) of the people whom a method compares; None by the table."""
        if method == "parallel":
            return None if self.pooled is None else self.pooled.effect
        return self.effect if method != "table" and self.centers else None

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
            told.append(f"P({y} > {x}) = {interval_text(self.effect)} {self.reach}.")
        if self.pooled is not None:
            told.append(
                f"As if pooled: P({y} > {x}) = {interval_text(self.pooled.effect)} "
                f"{self.pooled.distribution.reach}."
            )
        if self.paradox is not None:
            told.append(self.paradox.sentence(x, y))
        if self.table is not None and self.table.reach != self.reach:
            told.append(f"The table is {self.table.reach}.")
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
