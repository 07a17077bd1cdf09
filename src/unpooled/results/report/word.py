"""A report as a Word document: the same sections, with real tables and pictures."""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from unpooled.errors import InputError
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Answer, Folded, Grid, Part, Remarks, Sentences
from unpooled.results.report.text import alignment

if TYPE_CHECKING:
    import altair

_INCHES = 6.2  # between the margins
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def document(title: str, under: str, sections: Sequence[Section]) -> bytes:
    """The whole document; what a page folds away is only named here."""
    try:
        import docx
    except ImportError as error:
        raise InputError(
            "a Word document needs python-docx. Hint: pip install 'unpooled[workbench]'"
        ) from error
    whole = docx.Document()
    whole.core_properties.title = _text(title)[:255]
    whole.add_heading(_text(title), level=0)
    whole.add_paragraph(_text(under))
    for section in sections:
        if section.heading:
            whole.add_heading(_text(section.heading), level=2 if section.below else 1)
        for part in section.first:
            _add(whole, part)
        for figure in section.figures:
            _add_figure(whole, figure)
        for part in section.others:
            _add(whole, part)
    written = BytesIO()
    whole.save(written)
    return written.getvalue()


def _add(whole: Any, part: Part) -> None:
    match part:
        case Answer():
            whole.add_paragraph().add_run(_text(part.text)).bold = True
        case Grid():
            _add_table(whole, part)
        case Sentences():
            for sentence in part.sentences:
                whole.add_paragraph(_text(sentence))
        case Remarks():
            if part.items:
                whole.add_paragraph().add_run(_text(part.title)).bold = True
            for _, sentence in part.items:
                whole.add_paragraph(_text(sentence), style="List Bullet")
        case Folded():
            whole.add_paragraph(_text(f"{part.title}: {len(part.text):,} characters, on the page"))


def _add_table(whole: Any, grid: Grid) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt

    table = whole.add_table(rows=1, cols=len(grid.header), style="Light List")
    sides = [alignment(column, grid.rows) for column in range(len(grid.header))]
    for number, row in enumerate([grid.header, *grid.rows]):
        cells = table.rows[0].cells if number == 0 else table.add_row().cells
        for cell, text, side in zip(cells, row, sides, strict=True):
            paragraph = cell.paragraphs[0]
            paragraph.add_run(_text(text)).font.size = Pt(9)
            paragraph.paragraph_format.space_after = Pt(0)
            if side == "right":
                paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    whole.add_paragraph()


def _add_figure(whole: Any, figure: Figure) -> None:
    from docx.shared import Inches

    whole.add_picture(BytesIO(png(figure.chart)), width=Inches(_INCHES))
    whole.add_paragraph(_text(figure.caption), style="Caption")


def _text(text: str) -> str:
    """Without characters that XML cannot hold."""
    return _UNPRINTABLE.sub("\ufffd", text)


def png(chart: "altair.TopLevelMixin") -> bytes:
    """A chart as a picture of points."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(chart.to_json(), scale=2.0))
