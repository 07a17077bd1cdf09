"""A small histogram beside a variable, of a table that centers told before."""

from dataclasses import dataclass
from html import escape

import numpy as np
from markupsafe import Markup

from unpooled.results.report.text import people_number
from unpooled.results.table import TableResult

WIDTH, HEIGHT = 120.0, 28.0


@dataclass(frozen=True, slots=True)
class Sketch:
    """The picture, and where all of it is."""

    picture: Markup
    link: str


def sketch(table: TableResult) -> Markup | None:
    """All groups' people per unit, as SVG; None where no bin has two limits.

    An open bin is pale, and as wide as the one beside it.
    """
    people = table.counts.sum(axis=0)
    edges = np.array(table.edges)
    is_open = ~np.isfinite(np.diff(edges))
    if is_open.all():
        return None
    if is_open[0]:
        edges[0] = 2 * edges[1] - edges[2]
    if is_open[-1]:
        edges[-1] = 2 * edges[-2] - edges[-3]
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
