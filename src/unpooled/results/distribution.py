"""A smooth federated distribution, as the analyst holds it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unpooled.maths.bands import Drawing, draw
from unpooled.maths.distribution import Distribution
from unpooled.report.html import Html
from unpooled.report.page import Figure, Section
from unpooled.report.text import count, number
from unpooled.results.table import TableResult

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, slots=True)
class GroupDistribution:
    """One group and its distribution."""

    group: str
    distribution: Distribution

    def drawing(self) -> Drawing:
        """The distribution function and the density with their bands."""
        return draw(self.distribution)

    def to_dict(self) -> dict[str, Any]:
        """The drawing as plain values."""
        drawn = self.drawing()
        columns = {name: getattr(drawn, name).tolist() for name in Drawing.__slots__}
        return {"group": self.group, "people": self.distribution.people, **columns}


@dataclass(frozen=True, slots=True)
class DistributionResult(TableResult):
    """A smooth federated distribution: a histogram, and per group cdf and density with bands.

    `edges`, `counts` and `groups` are those of the histogram; its counts are estimates.
    """

    distributions: tuple[GroupDistribution, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; null is an open outer limit."""
        curves = [one.to_dict() for one in self.distributions]
        return {**TableResult.to_dict(self), "method": "parallel", "curves": curves}

    def chart(self) -> "altair.TopLevelMixin":
        """The histogram and, over it, each group's density with its band."""
        import altair

        from unpooled.report.curves import density

        bars: Any = TableResult.chart(self)
        curves: Any = density(self._drawings(), self.record.label(self.value), self.by)
        return altair.layer(bars, curves)

    def cdf_chart(self) -> "altair.TopLevelMixin":
        """Each group's distribution function with its band."""
        from unpooled.report.curves import cdf

        return cdf(self._drawings(), self.record.label(self.value), self.by)

    def _drawings(self) -> list[tuple[str, Drawing]]:
        return [(one.group, one.drawing()) for one in self.distributions]

    def sections(self) -> list[Section]:
        """The parts of a report."""
        figures = [
            Figure(self.chart(), "The smooth density with its 95 % band, and the histogram."),
            Figure(self.cdf_chart(), "The share of people at or below a value, with 95 % bands."),
        ]
        return [Section("Distribution", Html().table(*self.columns()), figures)]

    @property
    def title(self) -> str:
        """What the distribution is of."""
        by = f" by {self.by}" if self.by is not None else ""
        where = f", where {self.where}" if self.where is not None else ""
        return (
            f"{self.value}{by}{where}: smooth distribution, "
            f"{number(float(self.counts.sum()))} people, {count(len(self.people), 'center')}"
        )
