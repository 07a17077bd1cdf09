"""The parts that a result shows, and how they look: as text, and as HTML.

One list of parts serves `>>>`, `print`, the command line, notebooks and reports.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from unpooled.results.report.text import alignment, columns_text


@dataclass(frozen=True, slots=True)
class Grid:
    """A table."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences, one below the other."""

    sentences: Sequence[str]


@dataclass(frozen=True, slots=True)
class Remarks:
    """A list under a title; as text, each line begins with its word, as in "note: ..."."""

    title: str
    items: Sequence[tuple[str, str]]  # the word, and what follows it

    @classmethod
    def notes(cls, notes: Sequence[str]) -> "Remarks":
        """What is unusual."""
        return cls("Notes", [("note", note) for note in notes])

    @classmethod
    def listed(cls, title: str, items: Iterable[str]) -> "Remarks":
        """A list of a report."""
        return cls(title, [(title, item) for item in items])


@dataclass(frozen=True, slots=True)
class Folded:
    """Text as it is, folded away below a title in HTML."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in one sentence, set larger than all else."""

    text: str


Part = Grid | Sentences | Remarks | Folded | Answer


def parts_text(title: str, parts: Sequence[Part], most: int | None = None) -> str:
    """The parts as text, with at most this many rows and remarks of each.

    Examples
    --------
    >>> print(parts_text("a title", [Grid(["n"], [["1"], ["2"], ["3"]])], most=1))
    a title
    <BLANKLINE>
     n
     ─
     1
    <BLANKLINE>
    … 2 more rows: print() shows all
    """
    lines = [title]
    tables = 0
    for part in parts:
        match part:
            case Grid():
                lines.append(columns_text(part.header, part.rows[:most]))
                lines[-1] = lines[-1] if tables == 0 else f"\n{lines[-1]}"
                tables += 1
                lines += _rest(len(part.rows), most, "row")
            case Sentences():
                lines += part.sentences
            case Remarks():
                lines += [f"{word}: {sentence}" for word, sentence in part.items[:most]]
                lines += _rest(len(part.items), most, "line")
            case Folded():
                lines += [f"{part.title}:", part.text]
            case Answer():
                lines.append(part.text)
    return "\n".join(lines)


def _rest(n: int, most: int | None, noun: str) -> list[str]:
    if most is None or n <= most:
        return []
    left = n - most
    return [f"… {left} more {noun}{'' if left == 1 else 's'}: print() shows all"]


def parts_html(parts: Sequence[Part]) -> str:
    """The parts as HTML, escaped; a list without items is left out.

    Examples
    --------
    >>> parts_html([Sentences(["a < b"]), Remarks.notes([])])
    '<p>a &lt; b</p>'
    """
    return "".join(map(_part_html, parts))


def _part_html(part: Part) -> str:
    match part:
        case Grid():
            return _table_html(part.header, part.rows)
        case Sentences():
            return "".join(f"<p>{escape(sentence)}</p>" for sentence in part.sentences)
        case Remarks():
            lines = "".join(f"<li>{escape(sentence)}</li>" for _, sentence in part.items)
            title = f"<p><strong>{escape(part.title)}</strong></p>" if part.title else ""
            return f"{title}<ul>{lines}</ul>" if lines else ""
        case Folded():
            summary = f"<summary>{escape(part.title)}</summary>"
            return f"<details>{summary}<pre>{escape(part.text)}</pre></details>"
        case Answer():
            return f'<p class="answer">{escape(part.text)}</p>'


def _table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Numbers to the right."""
    sides = [f' style="text-align:{alignment(i, rows)}"' for i in range(len(header))]

    def row_html(tag: str, cells: Sequence[str]) -> str:
        sided = zip(sides, cells, strict=True)
        return "".join(f"<{tag}{side}>{escape(cell)}</{tag}>" for side, cell in sided)

    body = "".join(f"<tr>{row_html('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{row_html('th', header)}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'
