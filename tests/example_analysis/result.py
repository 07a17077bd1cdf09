"""An example of a result: it becomes results/chi_square.py."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unpooled.results.provenance.record import Record
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.page import Figure
from unpooled.results.report.parts import Grid, Part, Sentences
from unpooled.results.report.text import number, p_text
from unpooled.results.result import Result, subject

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, slots=True, repr=False)
class ChiSquareResult(Result):
    """Whether two categories go together: people by group and level, and Pearson's chi-square."""

    variable: str
    by: str
    where: str | None
    groups: tuple[str, ...]
    levels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]  # a row per group, a column per level
    statistic: float
    df: int
    log10_p: float
    refusals: tuple[CenterRefusal, ...]
    record: Record = field(default_factory=Record)

    @property
    def title(self) -> str:
        """What was asked."""
        return f"{subject(self.variable, self.by, self.where)}: do they go together?"

    def parts(self) -> list[Part]:
        """People by group and level, and the test."""
        rows = [
            [group, *map(str, row)] for group, row in zip(self.groups, self.counts, strict=True)
        ]
        words = f"χ² {number(self.statistic)}, df {self.df}, p {p_text(self.log10_p)}"
        return [Grid([self.by, *self.levels], rows), Sentences([words])]

    def picture(self) -> Figure:
        """People by group and level."""
        return Figure(self.chart(), "People by group and level.")

    def records(self) -> list[dict[str, Any]]:
        """A row per group and level."""
        return [
            {"variable": self.variable, "group": group, "level": level, "people": people}
            for group, row in zip(self.groups, self.counts, strict=True)
            for level, people in zip(self.levels, row, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "variable": self.variable,
            "by": self.by,
            "levels": list(self.levels),
            "groups": list(self.groups),
            "counts": [list(row) for row in self.counts],
            "chi2": {"statistic": self.statistic, "df": self.df, "log10_p": self.log10_p},
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def chart(self) -> "altair.TopLevelMixin":
        """A bar per group, its levels side by side."""
        import altair as alt

        from unpooled.results.charts.charts import inline

        bars = alt.Chart(inline(self.records())).mark_bar()
        drawn: altair.Chart = bars.encode(x="people:Q", y="group:N", color="level:N")
        return drawn
