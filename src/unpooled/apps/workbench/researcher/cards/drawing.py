"""Pictures in a page: without a background, with one name for whoever does not see them."""

import json
import re
from functools import lru_cache
from html import escape

from markupsafe import Markup

from unpooled.results.report.page import Figure

_OF_MARKS = re.compile(r' (?:role="graphics-\w+"|aria-\w+="[^"]*")')  # Vega's, of each mark


def draw(figure: Figure) -> Markup:
    """A figure as SVG markup. Its marks have no names of their own: the figure has one."""
    plain = figure.chart.to_dict()
    config = plain.setdefault("config", {})
    config["aria"] = False
    config["background"] = None
    drawn = _OF_MARKS.sub("", _svg(json.dumps(plain)))
    named = f'<svg role="img" aria-label="{escape(figure.caption)}" '
    return Markup(drawn.replace("<svg ", named, 1))  # Vega escapes the texts in it


@lru_cache(maxsize=64)
def _svg(specification: str) -> str:
    import vl_convert

    return str(vl_convert.vegalite_to_svg(specification))


def warm_up() -> None:
    """Load what draws, so that the first card does not wait for it."""
    import altair

    rows = altair.InlineData(values=[{"x": 1}])
    chart = altair.Chart(rows).mark_point().encode(x="x:Q")
    draw(Figure(chart, ""))
