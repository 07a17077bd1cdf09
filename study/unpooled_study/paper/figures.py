"""The paper's figures, drawn from our simulations."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.results.charts.charts import COLOURS, HEIGHT, WIDTH
from unpooled_study.paper.tables import PAPER_NAMES, Results, errors, p_values
from unpooled_study.simulations.settings import (
    ALLOCATIONS,
    METHOD_EFFECTS,
    NULL_EFFECTS,
    PAPER_TESTS,
    POWER_EFFECTS,
    QUANTILES,
    SHAPES,
    AnySetting,
    Effect,
    paper_quantiles,
    paper_test,
)

if TYPE_CHECKING:
    import altair

Rows = list[dict[str, Any]]
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
BOX_TEXT = "Boxes hold the middle half of the simulations, lines nine tenths, ticks the median."
FIGURES = {
    "figS1": "P-values where the null hypothesis holds: share of simulations per tenth; 0.1 is "
    "uniform.",
    "fig1": f"P-values by setting (δ, σ_α, σ_β) and number of centers. {BOX_TEXT}",
    "fig2": f"log(p / p combined) on the same people, by setting. {BOX_TEXT}",
    "fig3": f"log(p / p combined) by effect δ, with σ_α = 0.1 and σ_β = 0.05. {BOX_TEXT}",
    "fig4": f"Errors of the .98 quantile over √r. {BOX_TEXT}",
    "fig5": f"Errors of the other quantiles over √r. {BOX_TEXT}",
}


def settings_of(name: str) -> list[AnySetting]:
    """The settings that a figure is made of."""
    if name in ("fig4", "fig5"):
        return [paper_quantiles(shape, centers) for shape in SHAPES for centers in ALLOCATIONS]
    return [paper_test(centers, effect) for effect in _effects(name) for centers in ALLOCATIONS]


def _effects(name: str) -> Sequence[Effect]:
    if name == "fig1":
        return [effect for effect in METHOD_EFFECTS if effect[0]]
    return {"figS1": NULL_EFFECTS, "fig2": METHOD_EFFECTS, "fig3": POWER_EFFECTS}[name]


def make_figure(name: str, results: Results) -> "altair.TopLevelMixin":
    """A figure of the paper from the simulations of `settings_of` it."""
    makers: dict[str, Callable[[Results], altair.TopLevelMixin]] = {
        "figS1": _null,
        "fig1": _p_values,
        "fig2": _ratios_by_setting,
        "fig3": _ratios_by_effect,
        "fig4": _tail_errors,
        "fig5": _other_errors,
    }
    return makers[name](results)


def _null(results: Results) -> "altair.TopLevelMixin":
    import altair as alt

    rows = []
    for setting, centers, effect in _tests("figS1"):
        for method in PAPER_TESTS:
            values = p_values(results, setting, method)
            shares = np.histogram(values, bins=10, range=(0, 1))[0] / len(values)
            rows += [
                {
                    "p-value": (b + 0.5) / 10,
                    "share": float(share),
                    "method": PAPER_NAMES[method],
                    "centers": _centers(centers),
                    "setting": _told(effect),
                }
                for b, share in enumerate(shares)
            ]
    line = (
        alt.Chart()
        .mark_line(point=alt.OverlayMarkDef(size=18), strokeWidth=1.5)
        .encode(
            x=alt.X("p-value:Q", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("share:Q", scale=alt.Scale(domainMin=0)),
            color=_colour(PAPER_TESTS),
        )
        .properties(width=190, height=150)
    )
    level = alt.Chart().mark_rule(strokeDash=[4, 3], color="#888").encode(y=alt.datum(0.1))
    return alt.layer(level, line, data=alt.InlineData(values=rows)).facet(
        row=alt.Row("setting:N", title=None, sort=_order(rows, "setting")),
        column=alt.Column("centers:N", title=None, sort=_order(rows, "centers")),
    )


def _p_values(results: Results) -> "altair.TopLevelMixin":
    rows = [
        {"centers": _centers(centers), "setting": _told(effect), **_box(values, method)}
        for setting, centers, effect in _tests("fig1")
        for method in PAPER_TESTS
        for values in [p_values(results, setting, method)]
    ]
    return _boxes(rows, PAPER_TESTS, "setting", "p-value", row="centers", size=(620, 150))


def _ratios(results: Results, name: str) -> Iterator[tuple[int, Effect, str, FloatArray]]:
    for setting, centers, effect in _tests(name):
        logs = results[setting]
        for column, method in enumerate(PAPER_TESTS[1:], 1):
            yield centers, effect, method, logs[:, column] - logs[:, 0]


def _ratios_by_setting(results: Results) -> "altair.TopLevelMixin":
    rows = [
        {"centers": _centers(centers), "setting": _told(effect), **_box(values, method)}
        for centers, effect, method, values in _ratios(results, "fig2")
    ]
    y = "log(p / p combined)"
    return _boxes(rows, PAPER_TESTS[1:], "centers", y, wrap="setting", size=(280, 140))


def _ratios_by_effect(results: Results) -> "altair.TopLevelMixin":
    rows = [
        {"centers": _centers(centers), "δ": f"{effect[0]:g}", **_box(values, method)}
        for centers, effect, method, values in _ratios(results, "fig3")
    ]
    return _boxes(rows, PAPER_TESTS[1:], "δ", "log(p / p combined)", row="centers", size=(620, 150))


def _error_rows(results: Results, probabilities: Sequence[float]) -> Rows:
    return [
        {
            "centers": _centers(centers),
            "shape": f"Gamma {shape}",
            "quantile": f"Q {p:g}",
            **_box(errors(results, shape, centers, method, p), method),
        }
        for shape in SHAPES
        for centers in ALLOCATIONS
        for method in QUANTILES
        for p in probabilities
    ]


def _tail_errors(results: Results) -> "altair.TopLevelMixin":
    rows = _error_rows(results, [0.98])
    return _boxes(rows, QUANTILES, "centers", "error / √r", column="shape", size=(300, 240))


def _other_errors(results: Results) -> "altair.TopLevelMixin":
    rows = _error_rows(results, [0.02, 0.25, 0.5, 0.75])
    return _boxes(
        rows, QUANTILES, "centers", "error / √r", row="quantile", column="shape", size=(300, 130)
    )


def _tests(name: str) -> Iterator[tuple[AnySetting, int, Effect]]:
    for effect in _effects(name):
        for centers in ALLOCATIONS:
            yield paper_test(centers, effect), centers, effect


def _centers(centers: int) -> str:
    return f"{centers} centers"


def _told(effect: Effect) -> str:
    return "({:g}, {:g}, {:g})".format(*effect)


def _box(values: FloatArray, method: str) -> dict[str, Any]:
    marks = np.quantile(values, LEVELS).tolist()
    named = zip(("low", "lower", "middle", "upper", "high"), marks, strict=True)
    return {"method": PAPER_NAMES[method], **dict(named)}


def _colour(methods: Sequence[str]) -> "altair.Color":
    import altair as alt

    all_colours = {
        name: COLOURS[i % len(COLOURS)] for i, name in enumerate((*PAPER_TESTS, *QUANTILES))
    }
    names = [PAPER_NAMES[method] for method in methods]
    colours = alt.Scale(domain=names, range=[all_colours[method] for method in methods])
    return alt.Color("method:N", title=None, sort=names, scale=colours)


def _boxes(
    rows: Rows,
    methods: Sequence[str],
    x: str,
    y: str,
    size: tuple[int, int],
    row: str | None = None,
    column: str | None = None,
    wrap: str | None = None,
) -> "altair.TopLevelMixin":
    """Five marks per method, side by side in each place on the x axis."""
    import altair as alt

    names = [PAPER_NAMES[method] for method in methods]
    base = alt.Chart().encode(
        x=alt.X(f"{x}:N", sort=None, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("method:N", sort=names),
        color=_colour(methods),
    )
    lines = base.mark_rule().encode(y=alt.Y("low:Q", title=y), y2="high:Q")
    bars = base.mark_bar(size=8, opacity=0.55).encode(y="lower:Q", y2="upper:Q")
    ticks = base.mark_tick(size=10, thickness=2).encode(y="middle:Q")
    chart = alt.layer(lines, bars, ticks, data=alt.InlineData(values=rows))
    chart = chart.properties(width=size[0], height=size[1])
    if wrap is not None:
        return chart.facet(alt.Facet(f"{wrap}:N", title=None, sort=_order(rows, wrap)), columns=2)
    facets: dict[str, Any] = {}
    if row is not None:
        facets["row"] = alt.Row(f"{row}:N", title=None, sort=_order(rows, row))
    if column is not None:
        facets["column"] = alt.Column(f"{column}:N", title=None, sort=_order(rows, column))
    faceted: altair.TopLevelMixin = chart.facet(**facets)
    return faceted


def _order(rows: Rows, field: str) -> list[str]:
    """The values of a field as they come; a facet would sort them by the alphabet."""
    return list(dict.fromkeys(row[field] for row in rows))


def power_chart(curve: Sequence[dict[str, Any]], target: float | None) -> "altair.TopLevelMixin":
    """Power by the number of people, a line per test."""
    import altair as alt

    names = list(dict.fromkeys(row["method"] for row in curve))
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    lines: altair.Chart = (
        alt.Chart(alt.InlineData(values=list(curve)))
        .mark_line(point=True)
        .encode(
            x=alt.X("people:Q", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("power:Q", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("method:N", title=None, sort=names, scale=colours),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    if target is None:
        return lines
    level = alt.Chart(alt.InlineData(values=[{"power": target}])).mark_rule(strokeDash=[4, 3])
    return alt.layer(lines, level.encode(y="power:Q"))
