"""Charts of smooth curves with their bands."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.bands import Drawing
from unpooled.results.report.charts import HEIGHT, WIDTH, group_colour, inline

if TYPE_CHECKING:
    import altair

Drawings = Sequence[tuple[str, Drawing]]


def density(
    drawings: Drawings, value: str, by: str | None, most: float = math.inf
) -> "altair.TopLevelMixin":
    """The share of each group per unit of the variable, up to `most`: many may be alike."""
    return _curves(drawings, "density", "share of the group per unit", value, by, most)


def cdf(drawings: Drawings, value: str, by: str | None) -> "altair.TopLevelMixin":
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
