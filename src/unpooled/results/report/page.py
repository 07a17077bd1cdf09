"""A report: one HTML file that needs no network, with charts as inline SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpooled.errors import InputError
from unpooled.results.report.parts import Answer, Part, parts_html

if TYPE_CHECKING:
    import altair

STYLE = """
:root { color-scheme: light; --ink: #1c2530; --soft: #5b6775; --line: #d9dee5; --tint: #f5f7f9; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; margin: 0;
  color: var(--ink); background: white; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.5rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .8rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
h1, h2, h3 { font-family: Charter, "Iowan Old Style", Georgia, serif; }
h3 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0; }
.answer { font: 1.18rem/1.5 Charter, "Iowan Old Style", Georgia, serif; margin: .6rem 0 1rem; }
.under { color: var(--soft); margin-bottom: 1.5rem; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums;
  font-size: .92rem; }
th, td { padding: .28rem .8rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td[style*="right"] { white-space: nowrap; }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; }
tbody tr:nth-child(even) { background: var(--tint); }
ul { margin: .3rem 0; padding-left: 1.3rem; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; break-inside: avoid; }
figure svg { max-width: 100%; height: auto; }
@media (max-width: 40rem) { main { padding: 1.2rem 1rem 3rem; } th, td { padding: .28rem .5rem; }
  figure svg { max-width: 34rem; } }  /* smaller, nobody could read it */
figcaption { color: var(--soft); font-size: .88rem; }
details { margin: .4rem 0; }
summary { cursor: pointer; }
pre { background: var(--tint); padding: .6rem .8rem; overflow-x: auto; font-size: .8rem;
  white-space: pre-wrap; word-break: break-all; }
@media print { main { max-width: none; padding: 0; } h2 { break-after: avoid; }
  tr, figure { break-inside: avoid; } .wide { overflow: visible; } pre { font-size: .65rem; } }
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart and what it shows."""

    chart: "altair.TopLevelMixin"
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report: a heading, the answer, its figures, and its other parts below them."""

    heading: str
    parts: Sequence[Part]
    figures: Sequence[Figure] = ()
    below: bool = False  # it belongs to the section before it

    @property
    def first(self) -> list[Part]:
        """The parts above the figures."""
        return [part for part in self.parts if isinstance(part, Answer)]

    @property
    def others(self) -> list[Part]:
        """The parts below the figures."""
        return [part for part in self.parts if not isinstance(part, Answer)]


def page(title: str, under: str, sections: Sequence[Section]) -> str:
    """The whole page."""
    parts = "".join(_section(section) for section in sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="under">{escape(under)}</p>{parts}'
        "</main></body></html>\n"
    )


def _section(section: Section) -> str:
    figures = "".join(
        f'<figure><div class="wide">{svg(figure.chart)}</div>'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
        for figure in section.figures
    )
    tag = "h3" if section.below else "h2"
    heading = f"<{tag}>{escape(section.heading)}</{tag}>" if section.heading else ""
    first, others = parts_html(section.first), parts_html(section.others)
    return f"<section>{heading}{first}{figures}{others}</section>"


def svg(chart: "altair.TopLevelMixin") -> str:
    """A chart as SVG markup."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(chart.to_json()))


def check_page_file(path: str | Path) -> Path:
    """The file of a report; its name must say what it is."""
    file = Path(path)
    if file.suffix.lower() not in (".html", ".htm", ".docx"):
        raise InputError(f"a report's file must end in .html or .docx, got {str(path)!r}")
    return file


def check_chart_file(path: str | Path) -> Path:
    """The file of a chart; its name must say what it is."""
    file = Path(path)
    if file.suffix.lower() not in (".svg", ".png"):
        raise InputError(f"a chart's file must end in .svg or .png, got {str(path)!r}")
    return file


def check_csv_file(path: str | Path) -> Path:
    """The file of a table; its name must say what it is."""
    file = Path(path)
    if file.suffix.lower() != ".csv":
        raise InputError(f"a table's file must end in .csv, got {str(path)!r}")
    return file


def write(path: str | Path, markup: str) -> Path:
    """Write a page to a file."""
    return _write_bytes(check_page_file(path), markup.encode())


def write_sections(path: str | Path, title: str, under: str, sections: Sequence[Section]) -> Path:
    """Write a report to a file: a page, or a Word document."""
    if check_page_file(path).suffix.lower() != ".docx":
        return write(path, page(title, under, sections))
    from unpooled.results.report.word import document

    return _write_bytes(Path(path), document(title, under, sections))


def _write_bytes(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def stacked(sections: Sequence[Section]) -> "altair.TopLevelMixin":
    """The charts of a report, one below the other, each with its own colours.

    With shared ones centers would be taken for groups, and those are not drawn.
    """
    import altair

    charts: Any = [figure.chart for section in sections for figure in section.figures]
    chart: altair.TopLevelMixin = charts[0]
    if len(charts) > 1:
        chart = altair.vconcat(*charts).resolve_scale(color="independent")
    return chart
