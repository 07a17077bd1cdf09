"""A federated table, as the analyst holds it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.alike import Alike, CenterPools, alike
from unpooled.maths.arrays import FloatArray
from unpooled.maths.table import Table
from unpooled.report.html import Html
from unpooled.report.page import Figure, Section
from unpooled.report.text import columns_text, count, number
from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal, refusal_sentence, refusals_text
from unpooled.results.reporting import write_report

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, slots=True)
class TableResult:
    """A federated table.

    `edges` has one more entry than there are bins, infinite where the outer limits are open;
    `counts` has one row per group; bin b is (edges[b], edges[b+1]].
    """

    value: str
    by: str | None
    where: str | None
    table: Table
    people: Mapping[str, Mapping[str, int]]  # center → group → how many, in the order of the chain
    refusals: tuple[CenterRefusal, ...]
    rounds: int
    record: Record = field(default_factory=Record)
    pools: tuple[CenterPools, ...] = ()  # what each center told to the chain

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

    def alike(self, groups: Sequence[str]) -> Alike:
        """The counts that a test of these groups uses: nobody's bin depends on his group."""
        return alike(self.pools, self.table, groups)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; null is an open outer limit."""
        return {
            "value": self.value,
            "by": self.by,
            "where": self.where,
            "edges": [edge if np.isfinite(edge) else None for edge in self.edges.tolist()],
            "groups": list(self.groups),
            "counts": self.counts.tolist(),
            "people": {center: dict(people) for center, people in self.people.items()},
            "rounds": self.rounds,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def chart(self) -> "altair.TopLevelMixin":
        """The histogram, with the true widths of the bins and the groups overlaid."""
        from unpooled.report.charts import histogram

        label = self.record.label(self.value)
        return histogram(self.edges, self.counts, self.groups, label, self.by)

    def sections(self) -> list[Section]:
        """The parts of a report."""
        from unpooled.report.charts import cdf

        label = self.record.label(self.value)
        figures = [
            Figure(self.chart(), "The federated table; pale bins are open outwards."),
            Figure(
                cdf(self.edges, self.counts, self.groups, label, self.by),
                "The cumulative distribution at the inner limits of the table.",
            ),
        ]
        return [Section("Distribution", Html().table(*self.columns()), figures)]

    def report(self, path: str | Path) -> Path:
        """Write a report to one HTML file."""
        return write_report(path, self.title, self.sections(), self.record, self.refusals)

    def __str__(self) -> str:
        return f"{self.title}\n{columns_text(*self.columns())}{refusals_text(self.refusals)}"

    def _repr_html_(self) -> str:
        page = Html().heading(self.title).table(*self.columns())
        return str(page.items("Refused", map(refusal_sentence, self.refusals)))

    @property
    def title(self) -> str:
        """What the table is of."""
        by = f" by {self.by}" if self.by is not None else ""
        where = f", where {self.where}" if self.where is not None else ""
        return (
            f"{self.value}{by}{where}: {count(self.table.bins, 'bin')}, "
            f"{number(float(self.counts.sum()))} people, {count(len(self.people), 'center')}"
        )

    def columns(self) -> tuple[list[str], list[list[str]]]:
        """A row per bin."""
        edges = self.edges.tolist()
        rows = [
            [_bin(edges[b], edges[b + 1]), *(number(float(c)) for c in self.counts[:, b])]
            for b in range(self.table.bins)
        ]
        return ["bin", *self.groups], rows


def _bin(lower: float, upper: float) -> str:
    if np.isinf(lower):
        return "everything" if np.isinf(upper) else f"up to {number(upper)}"
    return f"above {number(lower)}" if np.isinf(upper) else f"{number(lower)} to {number(upper)}"
