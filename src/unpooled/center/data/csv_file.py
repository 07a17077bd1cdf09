"""A CSV file as a table of DuckDB, and what in it does not fit.

A column is of numbers, days or truth values if all its cells are, but those that are empty or have
a word for nothing, such as NA. In a column of text only empty cells are missing, and what R and
databases write for them, NA and NULL: every other word may be the name of a group.
"""

import csv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from unpooled.center.data.sql import MISSING_WORDS, literal, quote, words_sql
from unpooled.errors import SourceError

if TYPE_CHECKING:
    import duckdb

_NOT_UTF8 = "is not UTF-8 text. Hint: save the file as UTF-8; spreadsheets call it CSV UTF-8."
_NOTHING = ("", " ", "  ", "   ", *MISSING_WORDS)  # of more spaces see _padded_numbers
_NO_WORD = ("NA", "NULL")  # among words


def load_csv(connection: "duckdb.DuckDBPyConnection", path: Path, name: str) -> None:
    """Read the file into the table `data`; `name` is its path as SQL."""
    try:
        _load(connection, path, name)
    except UnicodeDecodeError as error:
        line = _first_line_not_utf8(path)
        raise SourceError(f"{str(path)!r} cannot be read: line {line} {_NOT_UTF8}") from error


def _load(connection: "duckdb.DuckDBPyConnection", path: Path, name: str) -> None:
    import duckdb

    delimiter = _read_header(path)
    dialect = (
        f"{name}, header=true, skip=0, comment='', delim='{delimiter}', quote='\"', escape='\"'"
    )
    try:
        rows = f"read_csv({dialect}, all_varchar=true, nullstr='')"
        columns = ", ".join(_columns(connection, dialect, rows))
        connection.execute("PRAGMA disable_optimizer")  # over a minute for 300 columns
        connection.execute(f"CREATE TEMP TABLE data AS SELECT {columns} FROM {rows}")
        connection.execute("PRAGMA enable_optimizer")
    except duckdb.Error:
        with suppress(csv.Error):  # as of a quote that is not closed
            _locate_ragged_line(path, delimiter)
        raise


def _columns(connection: "duckdb.DuckDBPyConnection", dialect: str, rows: str) -> Iterator[str]:
    """SQL for each column's values, of the type that all its cells have but the missing ones."""
    nothing = ", ".join(map(literal, _NOTHING))
    sniffed = f"sniff_csv({dialect}, sample_size=-1, nullstr=[{nothing}])"
    sniffed_columns = connection.execute(
        f"SELECT Columns, DateFormat, TimestampFormat FROM {sniffed}"
    )
    columns, *formats = sniffed_columns.fetchall()[0]
    for column in columns:
        name, sql_type = quote(column["name"]), column["type"]
        if sql_type == "BOOLEAN" and not _true_or_false(connection, name, rows):
            sql_type = "VARCHAR"
        elif sql_type == "VARCHAR" and _padded_numbers(connection, name, rows):
            sql_type = "DOUBLE"
        yield f"{_value(name, sql_type, *formats)} AS {name}"


def _true_or_false(connection: "duckdb.DuckDBPyConnection", name: str, rows: str) -> bool:
    """Whether a column has these words alone: F may be a woman, and yes is what people write."""
    words = words_sql((*_NOTHING, "true", "false"))
    others = f"SELECT 1 FROM {rows} WHERE {name} NOT IN {words} AND lower({name}) NOT IN {words}"
    return not connection.execute(f"{others} LIMIT 1").fetchall()


def _padded_numbers(connection: "duckdb.DuckDBPyConnection", name: str, rows: str) -> bool:
    """Whether only spaces around words for nothing kept a column from being one of numbers."""
    filled = f"FROM {rows} WHERE trim({name}) NOT IN {words_sql(_NOTHING)}"
    words = f"SELECT 1 {filled} AND TRY_CAST({name} AS DOUBLE) IS NULL LIMIT 1"
    if connection.execute(words).fetchall():
        return False
    return bool(connection.execute(f"SELECT 1 {filled} LIMIT 1").fetchall())


def _value(name: str, sql_type: str, day: str | None, moment: str | None) -> str:
    if sql_type == "VARCHAR":
        return f"(CASE WHEN trim({name}) NOT IN {words_sql(('', *_NO_WORD))} THEN {name} END)"
    trimmed = f"(CASE WHEN trim({name}) NOT IN {words_sql(_NOTHING)} THEN {name} END)"
    written = {"DATE": day, "TIMESTAMP": moment}.get(sql_type)
    if written is not None:
        trimmed = f"strptime({trimmed}, {literal(written)})"
    return f"CAST({trimmed} AS {sql_type})"


def _read_header(path: Path) -> str:
    """What stands between the columns; raises where two of them share a name."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        first = lines.readline()
        if not first.strip():
            raise SourceError(f"{str(path)!r} has no header line")
        if "\0" in first:
            raise SourceError(f"{str(path)!r} cannot be read: line 1 {_NOT_UTF8}")
        delimiter = max(",;\t|", key=first.count)
        lines.seek(0)
        _check_names(path, csv.reader(lines, delimiter=delimiter))
    return delimiter


def _check_names(path: Path, rows: Iterator[list[str]]) -> None:
    seen: dict[str, str] = {}
    try:
        names = [column.strip() for column in next(rows)]
    except csv.Error:  # DuckDB says why
        return
    for column in filter(None, names):
        other = seen.get(column.lower())  # DuckDB takes Age and age for one
        if other == column:
            raise SourceError(f"{str(path)!r} has two columns named {column!r}")
        if other is not None:
            alike = f"{other!r} and {column!r}, which differ in capitals alone"
            raise SourceError(f"{str(path)!r} has the columns {alike}")
        seen[column.lower()] = column


def _first_line_not_utf8(path: Path) -> int:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def _locate_ragged_line(path: Path, delimiter: str) -> None:
    """Raise with the place of the first line that does not fit the header, if there is one."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines, delimiter=delimiter)
        width = len(next(reader))
        for fields in reader:
            if fields and len(fields) != width:
                raise SourceError(
                    f"{str(path)!r} cannot be read: line {reader.line_num} has {len(fields)} "
                    f"fields where the header has {width}"
                )
