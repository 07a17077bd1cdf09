"""Which cells were taken as missing, and which words were not, for the data's own steward."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from unpooled.center.data.missing_words import MISSING_WORDS, words_sql
from unpooled.center.data.sources import Source
from unpooled.center.data.sql import quote


def missing_cells(source: Source, columns: Iterable[str]) -> dict[str, int]:
    """How many cells of each column are missing; columns without such are left out.

    Examples
    --------
    >>> from unpooled.center.data.sources import open_source
    >>> import polars
    >>> rows = open_source(polars.DataFrame({"crp": [4.0, None, float("nan")], "age": [1, 2, 3]}))
    >>> missing_cells(rows, rows.kinds)
    {'crp': 2}
    """
    found = {}
    for column in columns:
        numbers = source.kinds[column] in ("integer", "float")
        cells = source.filled(column) if numbers else _count(source, column)
        if cells < source.size:
            found[column] = source.size - cells
    return found


def _count(source: Source, column: str) -> int:
    return int(source.rows(f"SELECT count({quote(column)}) FROM {source.relation}")[0][0])


@dataclass(frozen=True, slots=True)
class KeptWord:
    """A word in a column of text that elsewhere means that there is no value. It quotes data."""

    column: str
    word: str
    cells: int

    def __str__(self) -> str:
        cells = "1 cell" if self.cells == 1 else f"{self.cells} cells"
        return (
            f"{self.column} is text, so {self.word!r} in {cells} is taken for a group's name. "
            f'Hint: if it means missing, say missing = ["{self.word}"] in [variables.{self.column}]'
        )


def kept_words(source: Source, columns: Iterable[str]) -> Iterator[KeptWord]:
    """The words of text columns that may have been meant for missing ones.

    Examples
    --------
    >>> from unpooled.center.data.sources import open_source
    >>> import polars
    >>> rows = open_source(polars.DataFrame({"sex": ["F", "NA", "M", "NA"]}))
    >>> [(kept.word, kept.cells) for kept in kept_words(rows, rows.kinds)]
    [('NA', 2)]
    """
    for column in columns:
        if source.kinds[column] == "text":
            word = f"trim(CAST({quote(column)} AS VARCHAR))"
            found = source.rows(
                f"SELECT {word} AS w, count(*) AS n FROM {source.relation} "
                f"WHERE {word} IN {words_sql(MISSING_WORDS)} GROUP BY w ORDER BY n DESC, w"
            )
            yield from (KeptWord(column, word, cells) for word, cells in found)
