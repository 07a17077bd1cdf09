"""Columns of text that are mostly numbers: which cell is none, for the data's own steward."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from unpooled.center.data.missing_words import MISSING_WORDS, words_sql
from unpooled.center.data.sources import ROW, Source
from unpooled.center.data.sql import quote

_LONGEST = 40  # characters of a cell that are shown


@dataclass(frozen=True, slots=True)
class AlmostNumbers:
    """A column of text, and the first of its cells that is no number. It quotes data."""

    column: str
    cell: str
    row: int  # from 1, without the header
    decimal_comma: bool  # whether the cell is a number once its comma is a point

    def __str__(self) -> str:
        shown = self.cell if len(self.cell) <= _LONGEST else f"{self.cell[:_LONGEST]}..."
        if self.decimal_comma:
            hint = f"decimals have a point: {self.cell.replace(',', '.')}"
        else:
            declared = f"missing = [...] in [variables.{self.column}]"
            hint = f"a cell holds a number, or nothing; {declared} names other words for nothing"
        return f"{self.column} is read as text, for row {self.row} has {shown!r}. Hint: {hint}"


def almost_numbers(source: Source, columns: Iterable[str]) -> Iterator[AlmostNumbers]:
    """The columns of text of which more than half are numbers, with points or commas.

    Examples
    --------
    >>> from unpooled.center.data.sources import open_source
    >>> import polars
    >>> rows = open_source(polars.DataFrame({"crp": ["4", "12,5", "3"], "sex": ["F", "M", "F"]}))
    >>> print(*almost_numbers(rows, rows.kinds))
    crp is read as text, for row 2 has '12,5'. Hint: decimals have a point: 12.5
    """
    for column in columns:
        if source.kinds[column] == "text":
            yield from _look_at(source, column)


def _look_at(source: Source, column: str) -> Iterator[AlmostNumbers]:
    cells = f"SELECT nullif(trim(CAST({quote(column)} AS VARCHAR)), '') AS v, {ROW} AS r"
    numbered = f"({cells} FROM {source.numbered})"
    pointed = "TRY_CAST(replace(v, ',', '.') AS DOUBLE)"
    ((filled, most),) = source.rows(f"SELECT count(v), count({pointed}) FROM {numbered}")
    if 2 * most <= filled:
        return
    strays = source.rows(  # words for nothing last: they are not why a CSV column is text
        f"SELECT v, r, {pointed} IS NOT NULL FROM {numbered} WHERE v IS NOT NULL "
        f"AND TRY_CAST(v AS DOUBLE) IS NULL ORDER BY v IN {words_sql(MISSING_WORDS)}, r LIMIT 1"
    )
    for cell, row, comma in strays:
        yield AlmostNumbers(column, cell, row + 1, comma)
