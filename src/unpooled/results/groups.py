"""A comparison of several groups, as the analyst holds it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpooled.maths.ranks.effect import Heterogeneity, Interval, center_effect
from unpooled.maths.ranks.group_ranks import GroupRankStatistics, GroupTest
from unpooled.maths.ranks.mann_whitney import Alternative, RankStatistics, TestResult
from unpooled.results.compare import NO_TABLE, RECOMMENDED, heterogeneity_dict
from unpooled.results.interval import interval_cells, interval_dict
from unpooled.results.quantiles import table_quantiles
from unpooled.results.reach import Reach
from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal
from unpooled.results.report.page import Figure, Section, stacked
from unpooled.results.report.parts import Grid, Part, Sentences, parts_html
from unpooled.results.report.text import number, p_text
from unpooled.results.reporting import write_report
from unpooled.results.result import Result
from unpooled.results.selection_bias import why_biased
from unpooled.results.table import TableResult

if TYPE_CHECKING:
    import altair

LOG10 = math.log(10)


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Two of the groups: x is groups[0], y is groups[1]; None is what nobody can tell."""

    groups: tuple[str, str]
    ranks: tuple[RankStatistics, ...]  # of the centers that have both
    test: TestResult | None
    log_holm: float | None  # the logarithm of Holm's p-value over all pairs
    effect: Interval | None  # P(Y > X) + ½P(Y = X)
    heterogeneity: Heterogeneity | None

    @property
    def label(self) -> str:
        """What the effect is the probability of."""
        return f"P({self.groups[1]} > {self.groups[0]})"

    @property
    def people(self) -> int:
        """The people of both groups at the centers that have both."""
        return sum(own.n_x + own.n_y for own in self.ranks)

    def to_dict(self) -> dict[str, Any]:
        """The pair as plain values."""
        test, adjusted, differ = self.test, self.log_holm, self.heterogeneity
        return {
            "groups": list(self.groups),
            "method": None if test is None else test.method,
            "statistic": None if test is None else test.statistic,
            "p_value": None if test is None else test.p_value,
            "log10_p": None if test is None else test.log10_p,
            "p_holm": None if adjusted is None else math.exp(adjusted),
            "log10_p_holm": None if adjusted is None else adjusted / LOG10,
            "note": None if test is None else test.note,
            "effect": None if self.effect is None else interval_dict(self.effect),
            "heterogeneity": None if differ is None else heterogeneity_dict(differ),
            "centers": len(self.ranks),
        }

    def cells(self) -> list[str]:
        """The pair as a row of a table."""
        return [
            self.label,
            *(("–", "–") if self.effect is None else interval_cells(self.effect)),
            "–" if self.test is None else p_text(self.test.log10_p).removeprefix("= "),
            "–" if self.log_holm is None else p_text(self.log_holm / LOG10).removeprefix("= "),
            "–" if self.heterogeneity is None else f"{self.heterogeneity.i2:.0%}",
            str(len(self.ranks)) if self.ranks or self.test is None else "table",
        ]


@dataclass(frozen=True, slots=True)
class CenterGroups:
    """One center's own comparison of the groups that it has."""

    center: str
    groups: tuple[str, ...]
    ranks: GroupRankStatistics
    pairs: Mapping[tuple[str, str], RankStatistics]
    test: GroupTest

    def to_dict(self) -> dict[str, Any]:
        """The center's comparison as plain values; null is a group that it does not compare."""
        sized = zip(self.groups, self.ranks.sizes, self.ranks.mean_ranks, strict=True)
        return {
            "center": self.center,
            "groups": [
                {"group": group, "n": int(n), "mean_rank": float(rank)}
                for group, n, rank in sized
                if n > 0
            ],
            "statistic": self.test.statistic,
            "df": self.test.df,
            "p_value": self.test.p_value,
            "log10_p": self.test.log10_p,
            "pairs": [
                {"groups": list(pair), "u": own.u, "effect": interval_dict(center_effect(own))}
                for pair, own in self.pairs.items()
            ],
        }

    def cells(self) -> list[str]:
        """The center as a row of a table."""
        sizes = [str(int(n)) if n else "–" for n in self.ranks.sizes]
        p = p_text(self.test.log10_p).removeprefix("= ")
        return [self.center, *sizes, number(self.test.statistic), p]


@dataclass(frozen=True, slots=True, repr=False)
class GroupsResult(Result):
    """Several groups compared: by Kruskal and Wallis or, if ordered, by Jonckheere and Terpstra."""

    value: str
    by: str
    where: str | None
    groups: tuple[str, ...]
    ordered: bool
    alternative: Alternative
    methods: tuple[GroupTest, ...]
    pairs: tuple[PairComparison, ...]
    centers: tuple[CenterGroups, ...]
    linked: tuple[tuple[str, ...], ...]  # groups that centers compare with each other
    refusals: tuple[CenterRefusal, ...]
    table: TableResult | None
    rounds: int
    record: Record = field(default_factory=Record)
    biased: tuple[str, ...] = ()  # methods: which centers they rest on depends on the outcome

    @property
    def recommended(self) -> str:
        """The method to rely on."""
        if self.centers and len(self.linked) == 1 and not self.biased:
            return RECOMMENDED
        return "table"

    @property
    def why(self) -> str:
        """One sentence on the recommendation."""
        if not self.centers:
            return "No center could compare the groups by itself; only the table can."
        if len(self.linked) > 1:
            apart = " | ".join(", ".join(block) for block in self.linked)
            return (
                f"No center compares groups across these bars: {apart}. The center methods say "
                "nothing about such differences; only the table does."
            )
        if self.biased:
            return why_biased(self.biased, self.recommended)
        if len(self.centers) == 1:
            return "With one center, weighted and sum are the same test of that center."
        return (
            "Weighted has the most power where the effects are alike at all centers, and treats "
            "each center as a block; Fisher does not keep its level where effects differ."
        )

    @property
    def test(self) -> GroupTest:
        """The test that was asked for; of several, the recommended one if it is among them."""
        found = {test.method: test for test in self.methods}
        return found.get(self.recommended, self.methods[0])

    @property
    def test_name(self) -> str:
        """Whose test it is."""
        return "jonckheere-terpstra" if self.ordered else "kruskal-wallis"

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
        """Whom the tests are of."""
        if not self.centers and self.table is not None:
            return self.table.reach
        people = sum(center.ranks.people for center in self.centers)
        return Reach.of((c.center for c in self.centers), people, self.record, self.refusals)

    def sentences(self) -> list[str]:
        """What the result says, in words."""
        reach = str(self.reach)
        told = [self.why, f"{reach[0].upper()}{reach[1:]}."]
        if self.table is not None and self.table.reach != self.reach:
            told.append(f"The table is {self.table.reach}.")
        return told

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "value": self.value,
            "by": self.by,
            "where": self.where,
            "groups": list(self.groups),
            "ordered": self.ordered,
            "test": self.test_name,
            "alternative": self.alternative,
            "recommended": self.recommended,
            "why": self.why,
            "methods": [
                {
                    "method": test.method,
                    "statistic": test.statistic,
                    "df": test.df,
                    "p_value": test.p_value,
                    "log10_p": test.log10_p,
                    "note": test.note,
                }
                for test in self.methods
            ],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "centers": [center.to_dict() for center in self.centers],
            "linked": [list(block) for block in self.linked],
            "notes": self.record.notes,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
            "rounds": self.rounds,
        }

    def chart(self) -> "altair.TopLevelMixin":
        """The charts of the report, one below the other."""
        return stacked(self.sections())

    def forest(self) -> "altair.TopLevelMixin":
        """The forest plot: the effect of each pair over all centers."""
        from unpooled.results.report.charts import forest

        rows = [(p.label, p.people, p.effect) for p in self.pairs if p.effect is not None]
        return forest(rows, f"probability, {self.record.label(self.value)}")

    def sections(self) -> list[Section]:
        """The parts of a report: the comparison and, where there is a table, what it shows."""
        figures = []
        if self.centers:
            caption = "The effect of each pair of groups; ½ (dashed) means no difference."
            figures.append(Figure(self.forest(), caption))
        body = parts_html(self.parts())
        if self.table is None:
            body = body.paragraph(NO_TABLE)
        whole = [Section("Comparison", body, figures)]
        if self.table is not None:
            whole += self.table.sections()
            whole.append(table_quantiles(self.table).section())
        return whole

    @property
    def answer(self) -> str:
        """Whether the groups differ, how sure that is, and of how many people."""
        p = f"p {p_text(self.log10_p)}"
        sure = self.log10_p < math.log10(0.05)
        if self.ordered:
            says = "goes with the order of" if sure else "does not clearly go with the order of"
        else:
            says = "differs between" if sure else "does not clearly differ between"
        groups = ", ".join(self.groups)
        return f"{self.value} {says} {groups} ({self.test_name}, {p}), {self.reach}."

    def picture(self) -> Figure | None:
        """The forest plot of all pairs."""
        if not self.centers:
            return None if self.table is None else self.table.picture()
        return Figure(self.forest(), "The effect of each pair; ½ (dashed) means no difference.")

    def report(self, path: str | Path) -> Path:
        """Write a report to one HTML file, on what was asked: `method="all"` has everything."""
        return write_report(path, self.title, self.sections(), self.record, self.refusals)

    @property
    def title(self) -> str:
        """What was compared."""
        where = f", where {self.where}" if self.where is not None else ""
        asked = "do they differ"
        if self.ordered:
            words = {"two-sided": "rise or fall", "greater": "rise", "less": "fall"}
            asked = f"does it {words[self.alternative]} in this order"
        return f"{self.value} by {self.by}{where}: {', '.join(self.groups)}: {asked}?"

    def parts(self) -> list[Part]:
        """The tests, every pair, and each center's own comparison."""
        whole: list[Part] = [Grid(*self.method_columns()), Sentences(self.sentences())]
        whole += [Grid(*self.pair_columns()), Sentences([self.pair_sentence()])]
        return [*whole, Grid(*self.center_columns())] if self.centers else whole

    def records(self) -> list[dict[str, Any]]:
        """A row per pair of groups; the test of all groups is in `methods`."""
        rows = []
        for pair in self.pairs:
            told = pair.to_dict()
            effect = told["effect"] or dict.fromkeys(("estimate", "low", "high"))
            row = {"variable": self.value, "x": pair.groups[0], "y": pair.groups[1]}
            row |= {name: told[name] for name in ("method", "statistic", "p_value", "p_holm")}
            rows.append({**row, **effect, "centers": told["centers"]})
        return rows

    def method_columns(self) -> tuple[list[str], list[list[str]]]:
        """A row per method."""
        rows = [
            [
                test.method + (" (recommended)" if test.method == self.recommended else ""),
                number(test.statistic),
                "–" if test.df is None else str(test.df),
                p_text(test.log10_p).removeprefix("= "),
                test.note or "",
            ]
            for test in self.methods
        ]
        return [self.test_name, "statistic", "df", "p", "note"], rows

    def pair_columns(self) -> tuple[list[str], list[list[str]]]:
        """A row per pair of groups."""
        header = ["pair", "effect", "95 % interval", "p", "Holm", "I²", "centers"]
        return header, [pair.cells() for pair in self.pairs]

    def pair_sentence(self) -> str:
        """Which test the pairs have."""
        return (
            f"Pairs by the Mann-Whitney test, {self.test.method}; Holm's p-values hold for all "
            f"{len(self.pairs)} together."
        )

    def center_columns(self) -> tuple[list[str], list[list[str]]]:
        """A row per center."""
        return ["center", *self.groups, "statistic", "p"], [c.cells() for c in self.centers]
