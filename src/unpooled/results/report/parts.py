"""The parts that a result shows, and how they look: as text, and as HTML.

One list of parts serves `>>>`, `print`, the command line, notebooks and reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from unpooled.results.report.html import Html
from unpooled.results.report.text import columns_text


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


Part = Grid | Sentences | Remarks


def parts_text(title: str, parts: Sequence[Part], most: int | None = None) -> str:
    """The parts as text, with at most so many rows and remarks of each.

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
    return "\n".join(lines)


def _rest(n: int, most: int | None, noun: str) -> list[str]:
    if most is None or n <= most:
        return []
    left = n - most
    return [f"… {left} more {noun}{'' if left == 1 else 's'}: print() shows all"]


def parts_html(parts: Sequence[Part], page: Html | None = None) -> Html:
    """The parts as HTML, after what is on the page already."""
    found = Html() if page is None else page
    for part in parts:
        match part:
            case Grid():
                found = found.table(part.header, part.rows)
            case Sentences():
                for sentence in part.sentences:
                    found = found.paragraph(sentence)
            case Remarks():
                found = found.items(part.title, [sentence for _, sentence in part.items])
    return found
