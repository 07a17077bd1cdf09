"""The Kaplan-Meier chart as clinicians expect it: steps, bands, numbers at risk below."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.lattice import nice_number
from unpooled.maths.survival.follow_up import FollowUp
from unpooled.maths.survival.kaplan_meier import SurvivalCurve
from unpooled.results.report.charts import HEIGHT, WIDTH, group_colour, inline

if TYPE_CHECKING:
    import altair

_TICKS = 7  # about so many times at which people are counted


def kaplan_meier_chart(
    curves: Sequence[tuple[str, FollowUp, SurvivalCurve]], time: str, by: str | None
) -> "altair.TopLevelMixin":
    """The curves of some groups with their bands, and the people whom they are of."""
    import altair as alt

    groups = [group for group, *_ in curves]
    end = max(curve.end for *_, curve in curves)
    ticks = _ticks(end)
    scale = alt.Scale(domain=[0, max(end, float(ticks[-1]))], nice=False)
    axis = alt.Axis(values=ticks.tolist(), grid=False)
    steps = [step for group, _, curve in curves for step in _steps(group, curve)]
    base = alt.Chart(inline(steps)).encode(
        x=alt.X("time:Q", title=time, scale=scale, axis=axis), color=group_colour(groups, by)
    )
    share = alt.Scale(domain=[0, 1])
    band = base.mark_area(interpolate="step-after", fillOpacity=0.16, strokeWidth=0).encode(
        y=alt.Y("low:Q", scale=share, title="survival"), y2="high:Q"
    )
    line = base.mark_line(interpolate="step-after", strokeWidth=2).encode(
        y=alt.Y("survival:Q", scale=share, title="survival"),
        tooltip=["group:N", "time:Q", "survival:Q", "low:Q", "high:Q", "at_risk:Q"],
    )
    top = alt.layer(band, line).properties(width=WIDTH, height=HEIGHT)
    return alt.vconcat(top, _risk_table(curves, ticks, scale, by), spacing=6)


def _risk_table(
    curves: Sequence[tuple[str, FollowUp, SurvivalCurve]],
    ticks: FloatArray,
    scale: "altair.Scale",
    by: str | None,
) -> "altair.Chart":
    """The people left in each group at the ticks that its curve reaches, as text under them."""
    import altair as alt

    groups = [group for group, *_ in curves]
    beside = alt.Axis(domain=False, ticks=False, labelPadding=18)
    rows = [
        {"group": group, "time": float(tick), "people": str(round(left))}
        for group, people, curve in curves
        for tick, left in zip(ticks, people.at_risk(ticks), strict=True)
        if tick <= curve.end
    ]
    table: altair.Chart = (
        alt.Chart(
            inline(rows),
            title=alt.Title("at risk", anchor="start", fontSize=11),
            view=alt.ViewBackground(strokeOpacity=0),
        )
        .mark_text(fontSize=11)
        .encode(
            x=alt.X("time:Q", scale=scale, axis=None),
            y=alt.Y("group:N", sort=groups, title=None, axis=beside),
            text="people:N",
            color=group_colour(groups, by),
        )
        .properties(width=WIDTH, height=18 * len(groups))
    )
    return table


def _ticks(end: float) -> FloatArray:
    if end == 0:
        return np.zeros(1)
    step = nice_number(end / _TICKS)
    return np.asarray(step * np.arange(int(np.floor(end / step + 1e-9)) + 1))


def _steps(group: str, curve: SurvivalCurve) -> list[dict[str, Any]]:
    """The corners of a curve, from 1 at the start to its end."""
    columns = zip(
        [0.0, *curve.times.tolist(), curve.end],
        [1.0, *curve.survival.tolist(), float(curve.at(np.array([curve.end]))[0])],
        [1.0, *curve.low.tolist(), float(curve.band_at(np.array([curve.end]))[0][0])],
        [1.0, *curve.high.tolist(), float(curve.band_at(np.array([curve.end]))[1][0])],
        [None, *np.round(curve.at_risk).tolist(), None],
        strict=True,
    )
    names = ("time", "survival", "low", "high", "at_risk")
    return [{"group": group, **dict(zip(names, row, strict=True))} for row in columns]
