"""A small histogram beside a variable, of a table that centers told before."""

from dataclasses import dataclass
from html import escape

import numpy as np
from markupsafe import Markup

from unpooled.maths.arrays import FloatArray
from unpooled.results.charts.charts import closed_edges
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

    An open bin is pale, and half as high as those beside it. Narrow bins are drawn as one.
    """
    people = table.counts.sum(axis=0)
    is_open = ~np.isfinite(np.diff(table.edges))
    if is_open.all():
        return None
    edges, people, is_open = _thinned(closed_edges(table.edges, table.counts), people, is_open)
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


def _thinned(
    edges: FloatArray, people: FloatArray, is_open: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[FloatArray, FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The bins, neighbors together until each is wide enough to be seen."""
    least = (edges[-1] - edges[0]) / BARS
    starts = [0]
    for b in range(1, len(people)):
        if is_open[b] or is_open[starts[-1]] or edges[b] - edges[starts[-1]] >= least:
            starts.append(b)
    return edges[[*starts, -1]], np.add.reduceat(people, starts), is_open[starts]
