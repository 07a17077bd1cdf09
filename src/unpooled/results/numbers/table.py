"""A federated table, as the analyst holds it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.tables.chain import CenterPools
from unpooled.maths.tables.table import Table
from unpooled.maths.tables.test_counts import Alike, alike, bounds
from unpooled.results.provenance.record import Reach, Record
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Grid, Part
from unpooled.results.report.text import count, number, people_number, people_range
from unpooled.results.result import Result, subject

if TYPE_CHECKING:
    import altair


_FEW_BINS = 3  # a variable of two or three values, or a table of which little is known


@dataclass(frozen=True, slots=True, repr=False)
class TableResult(Result):
    """A federated table.

    `edges` has one more entry than there are bins, infinite where the outer limits are open;
    `counts` has one row per group; bin b is (edges[b], edges[b+1]].
    """

    variable: str
    by: str | None
    where: str | None
    table: Table
    people: Mapping[str, Mapping[str, int]]  # center → group → how many, in the order of the chain
    refusals: tuple[CenterRefusal, ...]
    rounds: int
    record: Record = field(default_factory=Record)
    pools: tuple[CenterPools, ...] = ()  # what each center released to the chain

    @property
    def edges(self) -> FloatArray:
        """The bins' limits."""
        return self.table.edges

    @property
    def counts(self) -> FloatArray:
        """People per group (row) and bin (column)."""
        return self.table.counts

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names, in the order of the rows of `counts`."""
        return self.table.groups

    @property
    def reach(self) -> Reach:
        """Whom it is of."""
        people_of = {center: sum(groups.values()) for center, groups in self.people.items()}
        people = sum(people_of.values())
        return Reach.of(people_of, people, self.record, self.refusals, people_of)

    def alike(self, groups: Sequence[str]) -> Alike:
        """The counts that a test of these groups uses: nobody's bin depends on their group."""
        return alike(self.pools, self.table, groups)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """At least and at most how many people there are, per group and bin.

        A center that may not tell two bins apart tells them together; its people are shared out
        like those of the others, but may all be in one of the two.
        """
        return bounds(self.pools, self.table) if self.pools else (self.counts, self.counts)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; null is an open outer limit."""
        low, high = self.bounds
        return {
            "value": self.variable,
            "by": self.by,
            "where": self.where,
            "edges": [edge if np.isfinite(edge) else None for edge in self.edges.tolist()],
            "groups": list(self.groups),
            "counts": self.counts.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "people": {center: dict(people) for center, people in self.people.items()},
            "rounds": self.rounds,
            "notes": self.record.notes,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def chart(self) -> "altair.TopLevelMixin":
        """The histogram, with the true widths of the bins and the groups overlaid."""
        from unpooled.results.charts.charts import histogram

        label = self.record.label(self.variable)
        return histogram(self.edges, self.counts, self.groups, label, self.by)

    def sections(self) -> list[Section]:
        """The table and its charts."""
        from unpooled.results.charts.charts import cdf

        label = self.record.label(self.variable)
        figures = [
            Figure(self.chart(), "The federated table; pale bins are open outwards."),
            Figure(
                cdf(self.edges, self.counts, self.groups, label, self.by),
                "The cumulative distribution at the inner limits of the table.",
            ),
        ]
        return [Section("Distribution", TableResult.parts(self), figures)]

    @property
    def answer(self) -> str:
        """What the table is of."""
        return f"The distribution of {self.record.label(self.variable)}, {self.reach}."

    def picture(self) -> Figure | None:
        """The histogram, or the smooth density."""
        return Figure(self.chart(), "The share of each group per unit of the variable.")

    @property
    def title(self) -> str:
        """What the table is of."""
        about = subject(self.variable, self.by, self.where)
        return f"{about}: {count(self.table.bins, 'bin')} {self.reach}"

    def parts(self) -> list[Part]:
        """The table."""
        return [self.grid()]

    def grid(self) -> Grid:
        """A row per bin."""
        edges = self.edges.tolist()
        rows = [
            [_bin(edges[b], edges[b + 1]), *(self._people(g, b) for g in range(len(self.groups)))]
            for b in range(self.table.bins)
        ]
        return Grid(["bin", *self.groups], rows)

    def records(self) -> list[dict[str, Any]]:
        """A row per group and bin; null is an open outer limit."""
        limits = [edge if np.isfinite(edge) else None for edge in self.edges.tolist()]
        return [
            {
                "variable": self.variable,
                "group": group,
                "lower": limits[b],
                "upper": limits[b + 1],
                "people": float(self.counts[row, b]),
            }
            for row, group in enumerate(self.groups)
            for b in range(self.table.bins)
        ]

    def _people(self, group: int, b: int) -> str:
        """A bin's people; of few bins with bounds, since there much may be unknown."""
        low, high = (float(bound[group, b]) for bound in self.bounds)
        counted = people_number(float(self.counts[group, b]))
        if self.table.bins > _FEW_BINS or low == high:
            return counted
        return f"{counted} ({people_range(low, high)})"


def _bin(lower: float, upper: float) -> str:
    if np.isinf(lower):
        return "everything" if np.isinf(upper) else f"up to {number(upper)}"
    return f"above {number(lower)}" if np.isinf(upper) else f"{number(lower)} to {number(upper)}"
