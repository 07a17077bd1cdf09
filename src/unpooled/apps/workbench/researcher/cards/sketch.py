"""A small histogram next to a variable, of a table that centers released before."""

from dataclasses import dataclass
from html import escape

import numpy as np
from markupsafe import Markup

from unpooled.results.charts.charts import drawn_bins
from unpooled.results.numbers.table import TableResult
from unpooled.results.report.text import people_number

WIDTH, HEIGHT, BARS = 120.0, 28.0, 24


@dataclass(frozen=True, slots=True)
class Sketch:
    """The picture, and where all of it is."""

    picture: Markup
    link: str


def sketch(table: TableResult) -> Markup | None:
    """All groups' people per unit, as SVG; None where no bin has two limits.

    An open bin is pale, and half as high as those next to it. Narrow bins are drawn as one.
    """
    if not np.isfinite(np.diff(table.edges)).any():
        return None
    edges, counts, is_open = drawn_bins(table.edges, table.counts, BARS)
    people = counts.sum(axis=0)
    heights = people / np.diff(edges)
    x = (edges - edges[0]) / (edges[-1] - edges[0]) * WIDTH
    y = heights / max(float(heights.max()), 1e-300) * HEIGHT
    marks = np.where(is_open, ' class="open"', "")
    bars = "".join(
        f'<rect x="{x[b]:.2f}" y="{HEIGHT - y[b]:.2f}" width="{x[b + 1] - x[b]:.2f}" '
        f'height="{y[b]:.2f}"{marks[b]}/>'
        for b in range(len(people))
    )
    everybody = people_number(float(people.sum()))
    label = escape(f"{table.variable}: histogram of {everybody} people")
    size = f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" width="{WIDTH:g}" height="{HEIGHT:g}"'
    return Markup(f'<svg class="sketch" role="img" aria-label="{label}" {size}>{bars}</svg>')
