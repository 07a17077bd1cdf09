"""Small pieces of HTML, escaped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from unpooled.results.report.text import alignment


@dataclass(frozen=True, slots=True)
class Html:
    """HTML that grows piece by piece.

    Examples
    --------
    >>> str(Html().heading("a < b").paragraph("text"))
    '<h3>a &lt; b</h3><p>text</p>'
    """

    markup: str = ""

    def __str__(self) -> str:
        return self.markup

    def heading(self, text: str) -> "Html":
        """Add a heading."""
        return Html(f"{self.markup}<h3>{escape(text)}</h3>")

    def paragraph(self, text: str) -> "Html":
        """Add a paragraph."""
        return Html(f"{self.markup}<p>{escape(text)}</p>")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> "Html":
        """Add a table, numbers to the right."""
        sides = [f' style="text-align:{alignment(i, rows)}"' for i in range(len(header))]
        head = "".join(
            f"<th{side}>{escape(cell)}</th>" for side, cell in zip(sides, header, strict=True)
        )
        body = "".join(
            "<tr>"
            + "".join(f"<td{s}>{escape(cell)}</td>" for s, cell in zip(sides, row, strict=True))
            + "</tr>"
            for row in rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return Html(f'{self.markup}<div class="wide">{table}</div>')

    def items(self, title: str, items: Iterable[str]) -> "Html":
        """Add a titled list; nothing where it is empty."""
        lines = "".join(f"<li>{escape(item)}</li>" for item in items)
        if not lines:
            return self
        return Html(f"{self.markup}<p><strong>{escape(title)}</strong></p><ul>{lines}</ul>")

    def details(self, title: str, text: str) -> "Html":
        """Add text as it is, folded away below a title."""
        return Html(
            f"{self.markup}<details><summary>{escape(title)}</summary>"
            f"<pre>{escape(text)}</pre></details>"
        )
