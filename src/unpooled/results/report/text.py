"""Numbers and tables as text."""

import re
from collections.abc import Sequence
from io import StringIO
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from unpooled.maths.ranks.effect import Interval

_NUMBER = re.compile(r"[≥<−–-]?\s*[\d.e+-]*$")
_NO_LIMIT = 10**9  # characters in a line: a narrower table would drop columns and cut words


def number(value: float | None, digits: int = 4) -> str:
    """A number as people write it, with this many significant digits.

    Examples
    --------
    >>> number(1234.5678), number(0.00012345), number(12.0), number(None)
    ('1235', '0.0001234', '12', '–')
    """
    if value is None:
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if abs(value) >= 10 ** (digits - 1) and abs(value) < 1e15:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def count(n: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "bin"), count(12, "bin")
    ('1 bin', '12 bins')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def people_text(people: float) -> str:
    """A number of people; estimates of it need not be whole.

    Examples
    --------
    >>> people_text(1485), people_text(992.93), people_text(1)
    ('1,485 people', 'about 993 people', '1 person')
    """
    whole = round(people)
    about = "" if abs(people - whole) < 1e-6 else "about "
    return f"{about}{whole:,} {'person' if whole == 1 else 'people'}"


def people_number(people: float) -> str:
    """A number of people in a table, whole also where they are shared out or estimated.

    Examples
    --------
    >>> people_number(354.0), people_number(12.6487), people_number(0.3), people_number(0.0)
    ('354', '13', '<1', '0')
    """
    return "<1" if 1e-6 < people < 0.5 else str(round(people))


def people_range(low: float, high: float) -> str:
    """Two limits of a number of people, as the whole numbers around them.

    Examples
    --------
    >>> people_range(3.0, 14.5), people_range(0.3, 0.4)
    ('3 to 15', '0 to 1')
    """
    return f"{floor(low + 1e-6)} to {ceil(high - 1e-6)}"


def p_text(log10_p: float) -> str:
    """A p-value with its sign of relation, also when it is too small for a float.

    Examples
    --------
    >>> p_text(-1.5), p_text(-4.2), p_text(-350.3)
    ('= 0.032', '= 6.3e-05', '= 5.0e-351')
    >>> p_text(-6.00001)
    '= 1.0e-06'
    """
    if log10_p > -4:
        return f"= {10**log10_p:.2g}"
    exponent = int((log10_p + 0.005) // 1)  # 9.95 and more is 10
    mantissa = 10 ** (log10_p - exponent)
    return f"= {mantissa:.1f}e{exponent:03d}"


def alignment(column: int, rows: Sequence[Sequence[str]]) -> Literal["left", "right"]:
    """Numbers stand to the right, words to the left; the first column holds names."""
    numeric = column > 0 and all(_NUMBER.match(row[column]) for row in rows)
    return "right" if numeric else "left"


def columns_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as text, as wide as its cells need: numbers to the right, words to the left."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(Text(name), justify=alignment(i, rows), no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(file=StringIO(), width=_NO_LIMIT, color_system=None, highlight=False)
    console.print(table)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())


def interval_dict(interval: "Interval") -> dict[str, float | None]:
    """An interval as plain values; None is a limit that is infinite."""
    ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: value if isfinite(value) else None for name, value in ends.items()}


def interval_text(interval: "Interval") -> str:
    """An estimate and its interval in words."""
    estimate, limits = interval_cells(interval)
    return f"{estimate} (95 % interval {limits})"


def interval_cells(interval: "Interval") -> tuple[str, str]:
    """An estimate and its interval as two cells of a table."""
    low, high = number(interval.low, 3), number(interval.high, 3)
    return number(interval.estimate, 3), f"{low} to {high}"
