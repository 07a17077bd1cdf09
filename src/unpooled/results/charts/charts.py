"""Charts by Altair, from plain numbers. They work in notebooks, in the report and as files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.effect import Interval
from unpooled.results.report.page import check_chart_file

if TYPE_CHECKING:
    import altair

import math
from typing import TYPE_CHECKING

from unpooled.maths.density.bands import Drawing

if TYPE_CHECKING:
    import altair

WIDTH, HEIGHT = 560, 260
MOST_BARS = 120  # of a histogram; narrower ones cannot be seen
COLOURS = ["#3b6ea8", "#d1702f", "#4f9a5b", "#8a5aa8", "#a83b5f", "#6b6b6b"]


def inline(rows: list[dict[str, Any]]) -> "altair.InlineData":
    """Rows of data inside the chart itself; a tuple, since Altair copies lists again and again."""
    import altair as alt

    values: Any = tuple(rows)
    return alt.InlineData(values=values)


def histogram(
    edges: FloatArray,
    counts: FloatArray,
    groups: Sequence[str],
    value: str,
    by: str | None,
) -> "altair.TopLevelMixin":
    """Share of each group per unit of the variable, with the true widths of the bins.

    An open outer bin has no width; it is drawn pale, as wide as its people would need at half the
    height of their neighbours, so that its area still speaks for them. Bins that are too narrow to
    be seen are drawn together: two edges of two centers can lie a step apart.
    """
    import altair as alt

    drawn, drawn_counts, is_open = drawn_bins(edges, counts, MOST_BARS)
    rows = []
    for group, people in zip(groups, drawn_counts, strict=True):
        total = people.sum() or 1.0
        for b in range(len(people)):
            width = drawn[b + 1] - drawn[b]
            rows.append(
                {
                    "group": group,
                    "from": float(drawn[b]),
                    "to": float(drawn[b + 1]),
                    "density": float(people[b] / total / width),
                    "people": round(float(people[b])),
                    "open": bool(is_open[b]),
                }
            )
    bars = (
        alt.Chart(inline(rows))
        .mark_rect(stroke="white", strokeWidth=0.3)
        .encode(
            x=alt.X("from:Q", title=value, scale=alt.Scale(zero=False, nice=False)),
            x2="to:Q",
            y=alt.Y("density:Q", title="share of the group per unit"),
            y2=alt.datum(0),
            color=group_colour(groups, by),
            opacity=alt.condition("datum.open", alt.value(0.22), alt.value(0.5)),
            tooltip=["group:N", "from:Q", "to:Q", "people:Q", "open:N"],
        )
    )
    return alt.layer(bars).properties(width=WIDTH, height=HEIGHT)


def drawn_bins(
    edges: FloatArray, counts: FloatArray, bars: int
) -> tuple[FloatArray, FloatArray, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Bins to draw: their edges, their counts by group, and which are open in truth.

    Neighbors are put together until each has 1/`bars` of the width; open ones stay alone.

    Examples
    --------
    >>> edges = np.array([-np.inf, 0, 5, 5.01, 10, np.inf])
    >>> drawn_bins(edges, np.array([[3, 20, 9, 11, 4]]), 100)[0:2]
    (array([-1.5,  0. ,  5. , 10. , 12. ]), array([[ 3, 20, 20,  4]]))
    """
    drawn, is_open = closed_edges(edges, counts), ~np.isfinite(np.diff(edges))
    least = (drawn[-1] - drawn[0]) / bars
    starts = [0]
    for b in range(1, len(is_open) + 1):
        at_end = b == len(is_open)
        narrow = drawn[b] - drawn[starts[-1]] < least
        if narrow and not is_open[starts[-1]] and not (at_end or is_open[b]):
            continue
        if narrow and len(starts) > 1 and not (is_open[starts[-1]] or is_open[starts[-2]]):
            starts.pop()
        if not at_end:
            starts.append(b)
    return drawn[[*starts, -1]], np.add.reduceat(counts, starts, axis=1), is_open[starts]


def closed_edges(edges: FloatArray, counts: FloatArray) -> FloatArray:
    """The edges with a finite place for open outer limits, for drawing only."""
    drawn = np.array(edges)
    people = counts.sum(axis=0)
    inner = np.flatnonzero(np.isfinite(edges[:-1]) & np.isfinite(edges[1:]))
    if not len(inner):
        centre = drawn[np.isfinite(drawn)]
        middle = float(centre[0]) if len(centre) else 0.0
        return np.array([x if np.isfinite(x) else middle + np.sign(x) for x in drawn])
    widths = np.diff(edges[inner[0] : inner[-1] + 2])
    for outer, neighbour, sign in ((0, inner[:3], -1), (-1, inner[-3:], 1)):
        if np.isinf(edges[outer]):
            density = people[neighbour].sum() / widths[neighbour - inner[0]].sum()
            width = 2 * people[outer] / density if density and people[outer] else widths.mean()
            drawn[outer] = drawn[1 if outer == 0 else -2] + sign * width
    return drawn


def means(
    rows: Sequence[tuple[str, str, int, float | None, float | None]], value: str, by: str | None
) -> "altair.TopLevelMixin":
    """Mean ± SD of each group, a row per center."""
    import altair as alt

    centers = list(dict.fromkeys(center for center, *_ in rows))
    groups = list(dict.fromkeys(group for _, group, *_ in rows))
    data = inline(
        [
            {
                "center": center,
                "group": group,
                "n": n,
                "mean": mean,
                "low": None if sd is None else mean - sd,
                "high": None if sd is None else mean + sd,
            }
            for center, group, n, mean, sd in rows
            if mean is not None
        ]
    )
    base = alt.Chart(data).encode(
        y=alt.Y("center:N", sort=centers, title=None),
        yOffset=alt.YOffset("group:N", sort=groups),
        color=group_colour(groups, by),
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=f"{value}, mean ± SD", scale=alt.Scale(zero=False)), x2="high:Q"
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x="mean:Q", tooltip=["center:N", "group:N", "n:Q", "mean:Q"]
    )
    return alt.layer(bars, points).properties(width=WIDTH, height=28 * len(centers))


def forest(
    rows: Sequence[tuple[str, int, Interval]],
    title: str,
    overall: Mapping[str, Interval] | None = None,
    sides: tuple[str, str] | None = None,
    without: Sequence[tuple[str, str]] = (),
) -> "altair.TopLevelMixin":
    """A forest plot: per center n, estimate and interval, drawn and in print; overall ones below.

    Channels are objects: of a text Altair makes one by looking through its whole schema, each time.
    `sides` says in words what lies left and right of ½; `without` are rows that have no estimate,
    and why.
    """
    import altair as alt

    channel: Any = alt  # whose values have no types

    everybody = sum(people for _, people, _ in rows)
    shown = [(name, people, interval, False) for name, people, interval in rows]
    shown += [(name, everybody, interval, True) for name, interval in (overall or {}).items()]
    names = [*(name for name, *_ in rows), *(name for name, _ in without), *(overall or {})]
    data = inline(
        [
            {
                "center": name,
                "people": people,
                "estimate": interval.estimate,
                "low": interval.low,
                "high": interval.high,
                "overall": of_all,
                "n": f"{people:,}",
                "printed": f"{interval.estimate:.2f} ({interval.low:.2f} to {interval.high:.2f})",
            }
            for name, people, interval, of_all in shown
        ]
    )
    overalls: dict[str, Any] = {"test": "datum.overall", "value": COLOURS[1]}
    colour = channel.ColorValue(COLOURS[0], condition=overalls)
    shapes: dict[str, Any] = {"test": "datum.overall", "value": "diamond"}
    axis = alt.Axis(domain=False, ticks=False, labelPadding=8, labelLimit=220)
    place = alt.Y("center:N", sort=names, title=None, axis=axis, scale=alt.Scale(domain=names))
    base = alt.Chart(data).encode(y=place)
    ends = [0.48, 0.52, *(i.low for *_, i, _ in shown), *(i.high for *_, i, _ in shown)]
    domain = [max(0.0, min(ends) - 0.01), min(1.0, max(ends) + 0.01)]
    scale = alt.Scale(domain=domain, zero=False, nice=False)
    x = alt.X("low:Q", title=None, scale=scale, axis=alt.Axis(grid=False, tickCount=7))
    layers = [
        alt.Chart(inline([{"even": 0.5}]))
        .mark_rule(strokeDash=[4, 4], color="#888")
        .encode(x=alt.X("even:Q", scale=scale)),
        base.mark_rule(strokeWidth=2).encode(x=x, x2=alt.X2("high:Q"), color=colour),
        base.mark_point(filled=True, opacity=1).encode(
            x=alt.X("estimate:Q", scale=scale),
            size=alt.Size("people:Q", scale=alt.Scale(range=[30, 220]), legend=None),
            shape=channel.ShapeValue("square", condition=shapes),
            color=colour,
            tooltip=[alt.Tooltip(name) for name in _TIPS],
        ),
        base.mark_text(align="right", fontSize=11).encode(
            text=alt.Text("n:N"), x=channel.XValue(_AT_N)
        ),
        base.mark_text(align="right", fontSize=11).encode(
            text=alt.Text("printed:N"), x=channel.XValue(_AT_INTERVAL)
        ),
        *_forest_words(title, sides, scale),
    ]
    if without:
        reasons = [{"center": name, "why": why} for name, why in without]
        missing = alt.Chart(inline(reasons)).mark_text(align="right", fontSize=11, color="#59636c")
        layers.append(
            missing.encode(y=place, text=alt.Text("why:N"), x=channel.XValue(_AT_INTERVAL))
        )
    height = 22 * len(names) + 10
    return alt.layer(*layers).properties(width=_FOREST, height=height)


_TIPS = ("center:N", "people:Q", "estimate:Q", "low:Q", "high:Q")
_FOREST, _AT_N, _AT_INTERVAL = 380, 430, 580  # the intervals' width; where the columns end


def _forest_words(
    title: str,
    sides: tuple[str, str] | None,
    scale: "altair.Scale",
) -> "list[altair.Chart]":
    """What stands above the columns, and below the axis."""
    import altair as alt

    channel: Any = alt  # whose values have no types

    words: list[tuple[str, Any, float]] = [
        (title, "left", 0),
        ("n", "right", _AT_N),
        ("estimate (95 %)", "right", _AT_INTERVAL),
    ]
    marks = [
        alt.Chart(inline([{"text": text}]))
        .mark_text(align=align, baseline="bottom", fontSize=11, fontWeight="bold", dy=-6)
        .encode(text=alt.Text("text:N"), x=channel.XValue(at), y=channel.YValue(0))
        for text, align, at in words
    ]
    if sides is not None:
        below: list[tuple[str, Any, int]] = [
            (f"← {sides[0]}", "right", -6),
            (f"{sides[1]} →", "left", 6),
        ]
        for text, align, dx in below:
            mark = alt.Chart(inline([{"text": text, "even": 0.5}])).mark_text(
                align=align, baseline="top", fontSize=11, dx=dx, dy=24
            )
            marks.append(
                mark.encode(
                    text=alt.Text("text:N"),
                    x=alt.X("even:Q", scale=scale),
                    y=channel.YValue("height"),
                )
            )
    return marks


def cdf(
    edges: FloatArray, counts: FloatArray, groups: Sequence[str], value: str, by: str | None
) -> "altair.TopLevelMixin":
    """The cumulative distribution of each group at the table's inner limits."""
    import altair as alt

    rows = []
    for group, people in zip(groups, counts, strict=True):
        reached = np.cumsum(people) / (people.sum() or 1.0)
        rows += [
            {"group": group, "at": float(edge), "share": float(share)}
            for edge, share in zip(edges[1:], reached, strict=True)
            if np.isfinite(edge)
        ]
    drawn: altair.Chart = (
        alt.Chart(inline(rows))
        .mark_line(point=alt.OverlayMarkDef(size=14))
        .encode(
            x=alt.X("at:Q", title=value, scale=alt.Scale(zero=False)),
            y=alt.Y("share:Q", title="share at or below", scale=alt.Scale(domain=[0, 1])),
            color=group_colour(groups, by),
            tooltip=["group:N", "at:Q", "share:Q"],
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return drawn


def boxes(
    quantiles: Sequence[tuple[str, float, float | None]],
    value: str,
    by: str | None,
    medians: Mapping[str, tuple[float, float]] | None = None,
) -> "altair.TopLevelMixin":
    """Box plots from quantiles: box from .25 to .75 where they are there, whiskers to the ends.

    `medians` are the medians' intervals, drawn as a dark line within the box.
    """
    import altair as alt

    groups = list(dict.fromkeys(group for group, *_ in quantiles))
    rows = []
    for group in groups:
        quantile_at = {p: q for g, p, q in quantiles if g == group and q is not None}
        if not quantile_at:
            continue
        low, high = min(quantile_at), max(quantile_at)
        rows.append(
            {
                "group": group,
                "low": quantile_at[low],
                "high": quantile_at[high],
                "lower": quantile_at.get(0.25, quantile_at[low]),
                "upper": quantile_at.get(0.75, quantile_at[high]),
                "median": quantile_at.get(0.5),
                "whiskers": f"{low:g} to {high:g}",
                "surely": (medians or {}).get(group, (None, None))[0],
                "surely_to": (medians or {}).get(group, (None, None))[1],
            }
        )
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y("group:N", sort=groups, title=by),
        tooltip=["group:N", "low:Q", "lower:Q", "median:Q", "upper:Q", "high:Q", "whiskers:N"],
    )
    whiskers = base.mark_rule(color="#555").encode(
        x=alt.X("low:Q", title=value, scale=alt.Scale(zero=False)), x2="high:Q"
    )
    box = base.mark_bar(size=22, opacity=0.75).encode(
        x="lower:Q", x2="upper:Q", color=group_colour(groups, None)
    )
    middle = base.mark_tick(size=22, thickness=2, color="white").encode(x="median:Q")
    sure = base.mark_rule(color="black", strokeWidth=4).encode(x="surely:Q", x2="surely_to:Q")
    layers = alt.layer(whiskers, box, sure, middle)
    return layers.properties(width=WIDTH, height=44 * len(rows) + 10)


def level_shares(
    rows: Sequence[dict[str, Any]],
    value: str,
    by: str | None,
    levels: Sequence[str],
    groups: Sequence[str],
) -> "altair.TopLevelMixin":
    """Percent of each group at each level; pale is what may be there or at a merged level."""
    import altair as alt

    base = alt.Chart(inline(list(rows))).encode(
        y=alt.Y("level:N", sort=list(levels), title=value),
        yOffset=alt.YOffset("group:N", sort=list(groups)),
        color=group_colour(groups, by),
        tooltip=["group:N", "level:N", "low:Q", "high:Q"],
    )
    sure = base.mark_bar(opacity=0.85).encode(
        x=alt.X("percent_low:Q", title="percent of the group", scale=alt.Scale(domainMin=0))
    )
    most = base.mark_bar(opacity=0.3).encode(x="percent_low:Q", x2="percent_high:Q")
    height = max(14 * len(levels) * len(groups) + 10, 60)
    return alt.layer(sure, most).properties(width=WIDTH, height=height)


def love(rows: Sequence[tuple[str, float]]) -> "altair.TopLevelMixin":
    """A love plot: a variable's standardised difference a row, the size alone."""
    import altair as alt

    data = inline([{"variable": name, "difference": abs(smd)} for name, smd in rows])
    most = max([0.25, *(abs(smd) for _, smd in rows)])
    names = [name for name, _ in rows]
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=70, color=COLOURS[0], opacity=1)
        .encode(
            x=alt.X(
                "difference:Q",
                title="standardised mean difference",
                scale=alt.Scale(domain=[0, 1.05 * most]),
            ),
            y=alt.Y("variable:N", sort=names, title=None),
            tooltip=["variable:N", "difference:Q"],
        )
    )
    limit = alt.Chart(inline([{"limit": 0.1}])).mark_rule(strokeDash=[4, 4], color="#555")
    drawn = alt.layer(limit.encode(x="limit:Q"), points)
    return drawn.properties(width=WIDTH, height=24 * len(rows) + 10)


def group_colour(groups: Sequence[str], by: str | None) -> "altair.Color":
    """The groups' colours, with a legend where there is a name for them."""
    import altair as alt

    return alt.Color(
        "group:N",
        title=by,
        sort=list(groups),
        scale=alt.Scale(domain=list(groups), range=COLOURS),
        legend=alt.Legend() if by is not None else None,
    )


def save(chart: "altair.TopLevelMixin", path: str | Path) -> None:
    """Write a chart as SVG or PNG, by the file's name."""
    chart.save(str(check_chart_file(path)), scale_factor=2.0)


Drawings = Sequence[tuple[str, Drawing]]


def density(
    drawings: Drawings, value: str, by: str | None, most: float = math.inf
) -> "altair.TopLevelMixin":
    """The share of each group per unit of the variable, up to `most`: many may be alike."""
    return _curves(drawings, "density", "share of the group per unit", value, by, most)


def masses(
    rows: Sequence[tuple[str, float, float]], groups: Sequence[str], by: str | None
) -> "list[altair.Chart]":
    """Values that many people share, each a bar from the bottom with its share in print."""
    import altair as alt

    data = [
        {
            "group": group,
            "at": value,
            "text": f"{value:g}: {share:.0%}",
            "top": HEIGHT * (1 - share),
            "above": HEIGHT * (1 - share) - 5 - 13 * list(groups).index(group),
        }
        for group, value, share in rows
    ]
    base = alt.Chart(inline(data)).encode(x="at:Q", color=group_colour(groups, by))
    bars = base.mark_rule(strokeWidth=4, opacity=0.8).encode(
        y=alt.Y("top:Q", scale=None, axis=None), y2=alt.value(HEIGHT)
    )
    words = base.mark_text(align="left", dx=5, fontSize=11).encode(
        y=alt.Y("above:Q", scale=None, axis=None), text="text:N"
    )
    return [bars, words]


def smooth_cdf(drawings: Drawings, value: str, by: str | None) -> "altair.TopLevelMixin":
    """The share of each group at or below a value."""
    return _curves(drawings, "cdf", "share at or below", value, by)


def centers(
    drawings: Drawings,
    lines: Sequence[tuple[str, str, FloatArray, FloatArray]],
    value: str,
    by: str | None,
) -> "altair.TopLevelMixin":
    """Each center's shares at or below its own boundaries, against all centers' curve.

    A panel per group; a line is (group, center, boundaries, shares).
    """
    import altair as alt

    panels: list[Any] = []
    for group, drawn in drawings:
        differing = [
            {"center": center, "at": x, "share": share}
            for name, center, edges, shares in lines
            if name == group
            for x, share in zip(edges.tolist(), shares.tolist(), strict=True)
        ]
        curve = zip(drawn.x.tolist(), drawn.cdf.tolist(), strict=True)
        x = alt.X("at:Q", title=value, scale=alt.Scale(zero=False, nice=False))
        y = alt.Y("share:Q", title="share at or below", scale=alt.Scale(domain=[0, 1]))
        thin = alt.Chart(inline(differing)).mark_line(
            strokeWidth=1,
            opacity=0.8,
            point=alt.OverlayMarkDef(size=16),  # one point is no line
        )
        thick = alt.Chart(inline([{"at": a, "share": s} for a, s in curve]))
        panel = alt.layer(
            thick.mark_line(strokeWidth=4, color="#999", opacity=0.7).encode(x=x, y=y),
            thin.encode(x=x, y=y, color="center:N", tooltip=["center:N", "at:Q", "share:Q"]),
        )
        panels.append(panel.properties(width=WIDTH, height=HEIGHT, title=group if by else ""))
    return alt.vconcat(*panels)


def _curves(
    drawings: Drawings,
    name: str,
    title: str,
    value: str,
    by: str | None,
    most: float = math.inf,
) -> "altair.TopLevelMixin":
    import altair as alt

    groups = [group for group, _ in drawings]
    rows: list[dict[str, Any]] = [
        {
            "group": group,
            "at": x,
            "share": min(middle, most),
            "low": min(low, most),
            "high": min(high, most),
        }
        for group, drawn in drawings
        for x, middle, low, high in zip(
            drawn.x.tolist(),
            getattr(drawn, name).tolist(),
            getattr(drawn, f"{name}_low").tolist(),
            getattr(drawn, f"{name}_high").tolist(),
            strict=True,
        )
    ]
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("at:Q", title=value, scale=alt.Scale(zero=False, nice=False)),
        color=group_colour(groups, by),
    )
    band = base.mark_area(opacity=0.25).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    line = base.mark_line().encode(
        y=alt.Y("share:Q", title=title), tooltip=["group:N", "at:Q", "share:Q", "low:Q", "high:Q"]
    )
    return alt.layer(band, line).properties(width=WIDTH, height=HEIGHT)
