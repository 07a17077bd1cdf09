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
    plain = figure.chart.to_dict(validate=False)  # the tests do that, with every chart
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
    """Load what computes and draws, so that the first card does not wait for it."""
    import scipy.optimize  # noqa: F401
    from altair.utils import schemapi

    from unpooled.maths.ranks.effect import Interval
    from unpooled.results.charts.charts import forest

    schemapi.disable_debug_mode()  # in this program; the tests hold every chart to its schema
    effect = Interval(0.5, 0.4, 0.6)
    draw(Figure(forest([("", 20, effect)], "", {"": effect}, ("", "")), ""))
