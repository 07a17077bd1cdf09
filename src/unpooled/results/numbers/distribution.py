"""A smooth federated distribution, as the analyst holds it."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.bands import Drawing, draw, histogram_errors
from unpooled.maths.density.deviation import Deviation
from unpooled.maths.density.distribution import Distribution
from unpooled.results.numbers.table import TableResult
from unpooled.results.provenance.refusals import LEFT_OUT, refused_for_values
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Grid, Part, Remarks
from unpooled.results.report.text import number, people_range
from unpooled.results.result import subject

if TYPE_CHECKING:
    import altair


MOST_SHOWN = 24  # lines of centers in one chart
LEVEL = 0.05
_MASS = 0.03  # of a group's people at one value: it is drawn as a bar of its own
_MOSTLY = 0.5  # of a group's people at shared values: there is no density to draw
_HIGHEST = 1.5  # times the highest bar: a curve is drawn up to there
NORMAL = 1.96  # standard errors on either side of 95 %


@dataclass(frozen=True, slots=True)
class GroupDistribution:
    """One group and its distribution.

    `edges` are the boundaries of all its tables; `few` says whether the lowest and the highest
    people take few values, so that nothing is known of them but that they lie beyond all edges.
    """

    group: str
    distribution: Distribution
    edges: FloatArray
    few: tuple[bool, bool]

    def shared_values(self) -> dict[float, float]:
        """The declared or found common values that many people share, and the share of people."""
        smooth, lattice = self.distribution, self.distribution.lattice
        half = 0.51 * (lattice.resolution or 1e-6 * lattice.step)
        shares = {}
        for value in lattice.atoms:
            at = np.array([value - 3 * half, value - half, value + half, value + 3 * half])
            below, inside, above = np.diff(smooth.cdf(at)).tolist()
            if inside >= _MASS and inside > 2 * max(below, above):
                shares[value] = inside
        return shares

    def drawing(self) -> Drawing:
        """The distribution function and the density with their bands."""
        return draw(self.distribution)

    def to_dict(self) -> dict[str, Any]:
        """The drawing as plain values."""
        drawn = self.drawing()
        columns = {name: getattr(drawn, name).tolist() for name in Drawing.__slots__}
        return {"group": self.group, "people": self.distribution.people, **columns}


@dataclass(frozen=True, slots=True)
class CenterShares:
    """What one center released of a group: the share of its people at or below each boundary.

    `deviation` says where it differs most from all other centers; None where nobody can tell.
    """

    center: str
    group: str
    people: int
    edges: FloatArray
    shares: FloatArray
    deviation: Deviation | None

    def to_dict(self) -> dict[str, Any]:
        """Where the center differs, as plain values."""
        differs = None if self.deviation is None else asdict(self.deviation)
        return {
            "center": self.center,
            "group": self.group,
            "people": self.people,
            "deviation": differs,
        }


@dataclass(frozen=True, slots=True, repr=False)
class DistributionResult(TableResult):
    """A smooth federated distribution: a histogram, and per group cdf and density with bands.

    `edges`, `counts` and `groups` are those of the histogram; its counts are estimates.
    """

    distributions: tuple[GroupDistribution, ...] = ()
    centers: tuple[CenterShares, ...] = ()

    def count_bands(self) -> tuple[FloatArray, FloatArray]:
        """95 % bands of `counts`, bin by bin."""
        errors = [histogram_errors(one.distribution, self.edges) for one in self.distributions]
        reach = NORMAL * np.array(errors)
        return np.maximum(self.counts - reach, 0.0), self.counts + reach

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; null is an open outer limit."""
        low, high = (band.tolist() for band in self.count_bands())
        curves = [one.to_dict() for one in self.distributions]
        centers = [one.to_dict() for one in self.centers]
        smooth = {"method": "parallel", "counts_low": low, "counts_high": high}
        smooth |= {
            "curves": curves,
            "centers": centers,
            "notes": [*self.notes(), *self.record.notes],
        }
        return {**TableResult.to_dict(self), **smooth}

    def chart(self) -> "altair.TopLevelMixin":
        """Each group's density with its band; a histogram where most people share a few values."""
        import altair

        from unpooled.results.charts.charts import density, masses

        shared = {one.group: one.shared_values() for one in self.distributions}
        if any(sum(shares.values()) > _MOSTLY for shares in shared.values()):
            return TableResult.chart(self)
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1e-300)
        most = _HIGHEST * float((shares / np.diff(self.edges)).max())  # 0 where a bin is open
        label = self.record.label(self.variable)
        drawings = [(group, drawn.without(shared[group])) for group, drawn in self._drawings()]
        curves: Any = density(drawings, label, self.by, most or math.inf)
        rows = [(group, v, share) for group, some in shared.items() for v, share in some.items()]
        return altair.layer(curves, *masses(rows, self.groups, self.by)) if rows else curves

    def cdf_chart(self) -> "altair.TopLevelMixin":
        """Each group's distribution function with its band."""
        from unpooled.results.charts.charts import smooth_cdf

        return smooth_cdf(self._drawings(), self.record.label(self.variable), self.by)

    def centers_chart(self) -> "altair.TopLevelMixin":
        """The centers' distributions against that of all; those that differ most, where many."""
        from unpooled.results.charts.charts import centers

        shown = sorted(
            self.centers, key=lambda c: 2.0 if c.deviation is None else c.deviation.p_value
        )
        lines = [(c.group, c.center, c.edges, c.shares) for c in shown[:MOST_SHOWN]]
        return centers(self._drawings(), lines, self.record.label(self.variable), self.by)

    def _center_grid(self) -> Grid:
        """A row per center and group: where it differs most from the others."""
        rows = [
            [
                c.center,
                c.group,
                str(c.people),
                number(c.deviation.at),
                f"{c.deviation.difference:+.3f}",
                f"{c.deviation.z:+.2f}",
                f"{c.deviation.adjusted:.2g}",
            ]
            for c in self.centers
            if c.deviation is not None
        ]
        header = ["center", "group", "people", "at", "share minus the others'", "z", "adjusted p"]
        return Grid(header, rows)

    def rests_on(self) -> str | None:
        """How many of the centers it rests on; None where it is all of them."""
        return None if self.reach.whole else f"rests on {self.reach.centers_text}"

    def notes(self) -> list[str]:
        """What to know about it: a biased sample of centers, and which centers differ."""
        return [*self._biased(), *self.differing()]

    def _biased(self) -> list[str]:
        return [LEFT_OUT] if refused_for_values(self.refusals) else []

    def differing(self) -> list[str]:
        """The centers that differ from all others, in words."""
        return [
            f"{c.center} differs from the other centers in {c.group}: at {number(c.deviation.at)} "
            f"its share of people at or below is {abs(c.deviation.difference):.2f} "
            f"{'larger' if c.deviation.difference > 0 else 'smaller'} "
            f"(z = {c.deviation.z:.1f}, adjusted p = {c.deviation.adjusted:.2g})."
            for c in self.centers
            if c.deviation is not None and c.deviation.adjusted < LEVEL
        ]

    def parts(self) -> list[Part]:
        """The histogram, and what to know about it."""
        return [self.grid(), Remarks.notes(self.notes())]

    def records(self) -> list[dict[str, Any]]:
        """A row per group and bin, with the 95 % band of its people."""
        bands = [band.ravel().tolist() for band in self.count_bands()]
        rows = zip(TableResult.records(self), *bands, strict=True)
        return [{**row, "low": low, "high": high} for row, low, high in rows]

    def grid(self) -> Grid:
        """A row per bin: estimates with their 95 % bands."""
        grid = TableResult.grid(self)
        bands = (band.T.tolist() for band in self.count_bands())
        rows = [
            [name, *map(_with_band, counts, low, high)]
            for (name, *counts), low, high in zip(grid.rows, *bands, strict=True)
        ]
        return Grid(grid.header, rows)

    def _drawings(self) -> list[tuple[str, Drawing]]:
        return [(one.group, one.drawing()) for one in self.distributions]

    def sections(self) -> list[Section]:
        """The distribution and, where they can be distinguished, each center's own."""
        figures = [
            Figure(
                self.chart(),
                "The smooth density with its 95 % band; a bar is a value that many people share.",
            ),
            Figure(self.cdf_chart(), "The share of people at or below a value, with 95 % bands."),
        ]
        parts: list[Part] = [self.grid(), Remarks.notes(self._biased())]
        whole = [Section("Smooth distribution", parts, figures)]
        grid = self._center_grid()
        if grid.rows:
            differing = self.differing() or [
                "No center differs from the others at the level of 5 %."
            ]
            caption = "Each center's own shares (thin) against all centers together (thick)."
            figure = Figure(self.centers_chart(), caption)
            parts = [grid, Remarks.listed("Which center differs", differing)]
            whole.append(Section("Centers against all", parts, [figure]))
        return whole

    @property
    def title(self) -> str:
        """What the distribution is of."""
        return f"{subject(self.variable, self.by, self.where)}: smooth distribution {self.reach}"


def _with_band(people: str, low: float, high: float) -> str:
    return f"{people} ({people_range(low, high)})"
