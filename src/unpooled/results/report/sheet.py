"""A table as it goes into a paper: text, Markdown, HTML, CSV, LaTeX, Word."""

import csv
from collections.abc import Callable
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpooled.errors import InputError
from unpooled.results.report.page import STYLE
from unpooled.results.report.parts import Grid, Sentences, parts_text
from unpooled.results.report.text import alignment

if TYPE_CHECKING:
    from unpooled.results.table1 import Sheet

_INDENT = "\N{NO-BREAK SPACE}" * 3


def write_sheet(path: str | Path, sheet: "Sheet") -> Path:
    """Write a table by the ending of the file."""
    file = Path(path)
    form = _FORMS.get(file.suffix.lower())
    if form is None:
        endings = ", ".join(_FORMS)
        raise InputError(f"a table's file must end in {endings}, got {str(path)!r}")
    written = form(sheet)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(written if isinstance(written, bytes) else written.encode("utf-8"))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror}") from error
    return file


def _indented(sheet: "Sheet", indent: str = _INDENT) -> list[tuple[str, ...]]:
    return [
        (f"{indent if below else ''}{first}", *rest)
        for (first, *rest), below in zip(sheet.rows, sheet.indented, strict=True)
    ]


def _text(sheet: "Sheet") -> str:
    notes = Sentences([f"{mark or 'note:'} {text}" for mark, text in sheet.footnotes])
    return parts_text(sheet.title, [Grid(sheet.header, _indented(sheet)), notes]) + "\n"


def _markdown(sheet: "Sheet") -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "|".join(["---", *["---:"] * (len(sheet.header) - 1)]) + "|"
    rows = [line(row) for row in _indented(sheet, "&nbsp;" * 3)]
    notes = [f"<sup>{mark}</sup> {text}  " for mark, text in sheet.footnotes]
    return "\n".join([f"**{sheet.title}**", "", line(sheet.header), rule, *rows, "", *notes]) + "\n"


def _html(sheet: "Sheet") -> str:
    def row_html(tag: str, cells: tuple[str, ...], below: bool = False) -> str:
        first, *rest = cells
        style = ' style="padding-left:2em"' if below else ""
        others = "".join(f'<{tag} style="text-align:right">{escape(cell)}</{tag}>' for cell in rest)
        return f"<tr><{tag}{style}>{escape(first)}</{tag}>{others}</tr>"

    body = "".join(
        row_html("td", row, below) for row, below in zip(sheet.rows, sheet.indented, strict=True)
    )
    notes = "".join(
        f"<p class=under><sup>{mark}</sup> {escape(text)}</p>" for mark, text in sheet.footnotes
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(sheet.title)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{escape(sheet.title)}</h1><div class=wide><table>"
        f"<thead>{row_html('th', sheet.header)}</thead><tbody>{body}</tbody></table></div>"
        f"{notes}</main></body></html>\n"
    )


def _csv(sheet: "Sheet") -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(sheet.header)
    writer.writerows(_indented(sheet, "  "))
    writer.writerows([f"{mark} {text}".strip()] for mark, text in sheet.footnotes)
    return out.getvalue()


_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "≥": r"$\geq$",
    "χ": r"$\chi$",
    "²": r"\textsuperscript{2}",
    "–": "--",
}


def _tex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _latex(sheet: "Sheet") -> str:
    def line(cells: tuple[str, ...], below: bool = False) -> str:
        first, *rest = map(_tex, cells)
        return " & ".join([f"{chr(92)}quad {first}" if below else first, *rest]) + r" \\"

    rows = [line(row, below) for row, below in zip(sheet.rows, sheet.indented, strict=True)]
    notes = [rf"\textsuperscript{{{mark}}} {_tex(text)}\par" for mark, text in sheet.footnotes]
    columns = "l" + "r" * (len(sheet.header) - 1)
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            rf"\caption{{{_tex(sheet.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            line(sheet.header),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            "",
            r"\footnotesize",
            *notes,
            r"\end{table}",
            "",
        ]
    )


def _word(sheet: "Sheet") -> bytes:
    try:
        import docx
    except ImportError as error:
        raise InputError(
            "a Word document needs python-docx. Hint: pip install 'unpooled[workbench]'"
        ) from error
    from docx.enum.section import WD_ORIENT
    from docx.shared import Pt

    whole = docx.Document()
    page = whole.sections[0]
    if len(sheet.header) > 4 and page.page_width is not None and page.page_height is not None:
        page.orientation = WD_ORIENT.LANDSCAPE
        page.page_width, page.page_height = page.page_height, page.page_width
    whole.core_properties.title = sheet.title[:255]
    caption = whole.add_paragraph().add_run(sheet.title)
    caption.bold, caption.font.size = True, Pt(11)
    _word_table(whole, sheet)
    for mark, text in sheet.footnotes:
        note = whole.add_paragraph()
        note.paragraph_format.space_after = Pt(0)
        sign = note.add_run(f"{mark} " if mark else "")
        sign.font.superscript, sign.font.size = True, Pt(9)
        note.add_run(text).font.size = Pt(9)
    written = BytesIO()
    whole.save(written)
    return written.getvalue()


def _word_table(whole: Any, sheet: "Sheet") -> None:
    """Lines above and below the header and at the end, as journals have them."""
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn
    from docx.shared import Cm, Pt

    def ruled(cell: Any, *sides: str) -> None:
        borders = OxmlElement("w:tcBorders")
        for side in sides:
            line = OxmlElement(f"w:{side}")
            line.set(qn("w:val"), "single")
            line.set(qn("w:sz"), "8")
            borders.append(line)
        cell._tc.get_or_add_tcPr().append(borders)

    lines = [(sheet.header, False), *zip(sheet.rows, sheet.indented, strict=True)]
    table = whole.add_table(rows=len(lines), cols=len(sheet.header))
    page = whole.sections[-1]
    room = page.page_width - page.left_margin - page.right_margin
    widest = [max(len(cells[i]) for cells, _ in lines) + 4 for i in range(len(sheet.header))]
    table.autofit = False
    for column, letters in zip(table.columns, widest, strict=True):
        column.width = int(room * letters / sum(widest))
    right = [alignment(i, sheet.rows) == "right" or i > 0 for i in range(len(sheet.header))]
    for i, (cells, below) in enumerate(lines):
        for cell, text, to_right in zip(table.rows[i].cells, cells, right, strict=True):
            paragraph = cell.paragraphs[0]
            paragraph.paragraph_format.space_after = Pt(0)
            if to_right:
                paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
            elif below:
                paragraph.paragraph_format.left_indent = Cm(0.5)
            run = paragraph.add_run(text)
            run.font.size = Pt(9)
            run.bold = i == 0 or (not below and not to_right)
            if i == 0:
                ruled(cell, "top", "bottom")
            elif i == len(lines) - 1:
                ruled(cell, "bottom")


_FORMS: dict[str, Callable[["Sheet"], str | bytes]] = {
    ".txt": _text,
    ".md": _markdown,
    ".html": _html,
    ".csv": _csv,
    ".tex": _latex,
    ".docx": _word,
}
