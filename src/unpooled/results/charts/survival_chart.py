"""The Kaplan-Meier chart as clinicians expect it: steps, bands, numbers at risk below."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.lattice import nice_number
from unpooled.maths.survival.follow_up import FollowUp
from unpooled.maths.survival.kaplan_meier import SurvivalCurve
from unpooled.results.charts.charts import HEIGHT, WIDTH, group_colour, inline

if TYPE_CHECKING:
    import altair

_TICKS = 7  # about this many times at which people are counted
_WORDS, _ROOM = 0.6, 0.3  # words reach so far to the right, and so high
_LINE, _MARGIN = 15, 8  # of words, in pixels


def kaplan_meier_chart(
    curves: Sequence[tuple[str, FollowUp, SurvivalCurve]],
    time: str,
    by: str | None,
    k: int,
    headline: Sequence[str] = (),
) -> "altair.TopLevelMixin":
    """The curves of some groups with their bands, what they say, and the people left below."""
    import altair as alt

    groups = [group for group, *_ in curves]
    end = max(curve.end for *_, curve in curves)
    ticks = round_times(end)
    scale = alt.Scale(domain=[0, max(end, float(ticks[-1]))], nice=False)
    axis = alt.Axis(values=ticks.tolist(), grid=False)
    steps = [step for group, _, curve in curves for step in _steps(group, curve)]
    base = alt.Chart(inline(steps)).encode(
        x=alt.X("time:Q", title=time, scale=scale, axis=axis), color=group_colour(groups, by)
    )
    share, percent = alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5)
    band = base.mark_area(interpolate="step-after", fillOpacity=0.16, strokeWidth=0).encode(
        y=alt.Y("low:Q", scale=share, axis=percent, title="survival"), y2="high:Q"
    )
    line = base.mark_line(interpolate="step-after", strokeWidth=2).encode(
        y=alt.Y("survival:Q", scale=share, axis=percent, title="survival"),
        tooltip=["group:N", "time:Q", "survival:Q", "low:Q", "high:Q", "at_risk:Q"],
    )
    top = alt.layer(band, line, *_words(headline, curves)).properties(width=WIDTH, height=HEIGHT)
    return alt.vconcat(top, _risk_table(curves, ticks, scale, by, k), spacing=6)


def _words(
    headline: Sequence[str], curves: Sequence[tuple[str, FollowUp, SurvivalCurve]]
) -> "list[altair.Chart]":
    """Sentences in the corner that the curves leave free: below left, or above right."""
    import altair as alt

    if not headline:
        return []
    halfway = [curve.at(np.array([curve.end * _WORDS]))[0] for *_, curve in curves]
    below = min(halfway) > _ROOM
    first = HEIGHT - _MARGIN - _LINE * len(headline)  # y is that of the first line
    mark: altair.Chart = (
        alt.Chart(inline([{"text": list(headline)}]))
        .mark_text(
            align="left" if below else "right",
            baseline="top",
            lineHeight=_LINE,
            fontSize=12,
        )
        .encode(
            text="text:N",
            x=alt.value(_MARGIN if below else WIDTH - _MARGIN),
            y=alt.value(first if below else _MARGIN),
        )
    )
    return [mark]


def _risk_table(
    curves: Sequence[tuple[str, FollowUp, SurvivalCurve]],
    ticks: FloatArray,
    scale: "altair.Scale",
    by: str | None,
    k: int,
) -> "altair.Chart":
    """The people left in each group at the ticks that its curve reaches, as text under them."""
    import altair as alt

    groups = [group for group, *_ in curves]
    beside = alt.Axis(domain=False, ticks=False, labelPadding=18)
    rows = [
        {"group": group, "time": float(tick), "people": _people(left, k)}
        for group, people, curve in curves
        for tick, left in zip(ticks, people.at_risk(ticks), strict=True)
        if tick <= curve.end
    ]
    few = any(row["people"].startswith("~") for row in rows)  # type: ignore[attr-defined]
    title = f"at risk (~ fewer than {k}: reconstructed)" if few else "at risk"
    table: altair.Chart = (
        alt.Chart(
            inline(rows),
            title=alt.Title(title, anchor="start", fontSize=11),
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


def _people(left: float, k: int) -> str:
    return f"~{round(left)}" if 0 < left < k else str(round(left))


def round_times(end: float) -> FloatArray:
    """About seven round times from 0 to the end, at which people are counted.

    Examples
    --------
    >>> round_times(60.0)
    array([ 0., 10., 20., 30., 40., 50., 60.])
    """
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
