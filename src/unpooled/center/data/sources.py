"""A center's rows: any frame that narwhals takes, CSV or Parquet, read through DuckDB.

Of Parquet and frames only the columns and rows that a question needs are read, so a Parquet file
may be larger than memory. A CSV is read once, as a whole. With a `Scratch` rows are read some at
a time, and what does not fit into the memory it allows lies on disk.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.center.data.scratch import Scratch
from unpooled.center.data.sql import literal, quote
from unpooled.center.data.where import Kind
from unpooled.errors import InputError, SourceError
from unpooled.maths.big_arrays import Allocate, Growing, pieces
from unpooled.maths.lattice.lattice import WHOLE

if TYPE_CHECKING:
    import duckdb

_BINS, _FINE_ENOUGH = 1024, 32  # bins to find quartiles in; bins that must lie between them
_SOME_ROWS = 1000  # that are looked at first
_SINGLE, _DOUBLE = 2.0**-23, 2.0**-52  # the last digit of 1, in the precision of a column
_ZERO = 1e-10  # this many units are 0 but for rounding; more are a value in another unit
_UNCLEAR = 0.05  # where digits tell less than this part of a unit, nothing is a multiple

Column = np.ndarray[tuple[int, ...], np.dtype[Any]]

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "float"),
    **dict.fromkeys(("VARCHAR", "ENUM", "UUID"), "text"),
    "BOOLEAN": "boolean",
    **dict.fromkeys(("DATE", "TIMESTAMP"), "date"),
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "date"),
}


ROW = '"unpooled: row"'  # a column that numbers the rows from 0, in the order of the data


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that is read again and again: which one it was, and how it stood, when opened."""

    path: Path
    mark: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> "OpenedFile":
        """A file as it stands now."""
        return cls(path.absolute(), _mark(path))

    def unchanged(self) -> bool:
        """Whether the same file is there still, of the same size, and not written since."""
        try:
            return _mark(self.path) == self.mark
        except OSError:
            return False


def _mark(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class Source:
    """Rows behind a DuckDB connection; `relation` names them in SQL.

    Without a `scratch` nothing bounds the memory that they take.
    """

    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
        relation: str = "data",
        scratch: Scratch | None = None,
        file: "OpenedFile | None" = None,
    ) -> None:
        self._connection = connection
        self.relation = relation
        self._scratch = scratch
        self._file = file
        self._extremes: dict[str, tuple[Any, ...]] = {}
        self._spreads: dict[tuple[str, int], float] = {}
        self._resolutions: dict[tuple[object, ...], float | None] = {}
        self._off_grid: dict[tuple[object, ...], int] = {}
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        self._filled: dict[str, int] = {}
        self._varying: dict[tuple[str, str], bool] = {}
        self._repeats: dict[tuple[str, str | None], bool] = {}
        self._single = {row[0] for row in described if row[1] == "FLOAT"}
        self.kinds: Mapping[str, Kind] = {row[0]: _kind(row[1]) for row in described}

    def fetch(self, sql: str, parameters: Sequence[object] = ()) -> dict[str, Column]:
        """Run a query and give its columns as arrays."""
        result = self._connection.execute(sql, list(parameters))
        return {name: np.asarray(column) for name, column in result.fetchnumpy().items()}

    def batches(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[dict[str, Column]]:
        """Run a query and give its columns, numbers without gaps, some rows at a time."""
        if self._scratch is not None:
            from unpooled.center.data.arrow_stream import read_stream

            relation = self._connection.sql(sql, params=list(parameters))
            yield from read_stream(relation.__arrow_c_stream__())
            return
        whole = self.fetch(sql, parameters)
        for piece in pieces(len(next(iter(whole.values())))):
            yield {name: column[piece] for name, column in whole.items()}

    @property
    def is_bounded(self) -> bool:
        """Whether the memory that rows take is bounded."""
        return self._scratch is not None

    @property
    def allocate(self) -> Allocate:
        """Makes arrays with an entry per row."""
        return np.empty if self._scratch is None else self._scratch.empty

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a query and give its rows."""
        return self._connection.execute(sql, list(parameters)).fetchall()

    @property
    def numbered(self) -> str:
        """The rows with their numbers, in SQL."""
        number = f"CAST(row_number() OVER () - 1 AS INTEGER) AS {ROW}"
        return f"(SELECT *, {number} FROM {self.relation})"

    @cached_property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.rows(f"SELECT count(*) FROM {self.relation}")[0][0])

    def values(self, variable: str) -> Column:
        """The numbers of a column in the order of the rows, NaN where there is none."""
        number = f"coalesce(CAST({quote(variable)} AS DOUBLE), 'NaN'::DOUBLE)"
        numbers = Growing(np.float64, self.size)
        for batch in self.batches(f"SELECT {number} AS v FROM {self.relation}"):
            numbers.append(batch["v"])
        return numbers.array

    def unchanged(self) -> bool:
        """Whether the rows are still those that were opened.

        Only a Parquet file is read again for each question; all else was read as a whole. The file
        is looked at, not read: ask before an answer is calculated, and again before it leaves.
        """
        return self._file is None or self._file.unchanged()

    def fingerprint(self, *columns: str) -> str:
        """Changes when a value of these columns does, or the order of the rows."""
        digests = b"".join(self._digest(column) for column in columns)
        return f"{self.size} rows, {sha256(digests).hexdigest()}"

    def fingerprints(self, columns: Iterable[str]) -> dict[str, str]:
        """The fingerprint of each column by itself."""
        return {column: sha256(self._digest(column)).hexdigest()[:32] for column in columns}

    def _digest(self, column: str) -> bytes:
        marks = self._marks(column)
        selected = ", ".join(f"{mark} AS m{place}" for place, mark in enumerate(marks))
        parts = [sha256() for _ in marks]
        for batch in self.batches(f"SELECT {selected} FROM {self.relation}"):
            for part, values in zip(parts, batch.values(), strict=True):
                part.update(values.tobytes())
        return b"".join(part.digest() for part in parts)

    def _marks(self, column: str) -> list[str]:
        """SQL for numbers that change with a column's value; text must be hashed, which is slow."""
        name = quote(column)
        match self.kinds[column]:
            case "float" | "boolean":
                exact = [name]
            case "integer":
                exact = [name, f"{name} % 4294967296"]  # beyond the digits of a DOUBLE
            case _:
                text = f"md5_number_lower(CAST({name} AS VARCHAR))"
                return [f"coalesce(CAST({text} AS UBIGINT), 0::UBIGINT)"]
        return [f"coalesce(CAST({number} AS DOUBLE), 'NaN'::DOUBLE)" for number in exact]

    def varies(self, column: str, person: str) -> bool:
        """Whether a column differs between rows of one person, whoever that is."""
        if (column, person) not in self._varying:
            name = quote(column)
            differ = f"min({name}) <> max({name}) OR count({name}) NOT IN (0, count(*))"
            of_persons = f"FROM {self.relation} WHERE {quote(person)} IS NOT NULL"
            persons = f"SELECT ({differ}) AS differ {of_persons} GROUP BY {quote(person)}"
            ((differs,),) = self.rows(f"SELECT bool_or(differ) FROM ({persons})")
            self._varying[column, person] = bool(differs)
        return self._varying[column, person]

    def extremes(self, variable: str) -> tuple[float | None, float | None]:
        """The least and the most of a column; None where there is no value."""
        if variable not in self._extremes:
            value = f"nullif(CAST({quote(variable)} AS DOUBLE), 'NaN'::DOUBLE)"
            least_and_most = self.rows(f"SELECT min({value}), max({value}) FROM {self.relation}")
            self._extremes[variable] = least_and_most[0]
        least, most = self._extremes[variable]
        return least, most

    def spread(self, variable: str, least: int) -> float:
        """How far the middle half of a column reaches; 0.0 where it shares one value.

        Where that is so, it is the middle half of all others if there are at least this many.
        """
        if (variable, least) not in self._spreads:
            value = f"nullif(CAST({quote(variable)} AS DOUBLE), 'NaN'::DOUBLE)"
            column = f"SELECT {value} AS v FROM {self.relation}"
            low, high = self._quartiles(column)
            others = f"SELECT v FROM ({column}) WHERE v <> {low!r}::DOUBLE"
            if low == high and self.rows(f"SELECT count(v) FROM ({others})")[0][0] >= least:
                low, high = self._quartiles(others)
            self._spreads[variable, least] = high - low
        return self._spreads[variable, least]

    def repeats(self, person: str, label: str | None = None) -> bool:
        """Whether some row has no person of its own.

        Where `label` is SQL for a row's label: whether somebody's rows have several.
        """
        if (person, label) not in self._repeats:
            rows = f"SELECT {quote(person)} AS p FROM {self.relation}"
            if label is not None:
                labels = f"SELECT DISTINCT {quote(person)} AS p, {label} AS g FROM {self.relation}"
                rows = f"SELECT p FROM ({labels}) WHERE p IS NOT NULL AND g IS NOT NULL"
            filled, persons = self.rows(f"SELECT count(*), count(DISTINCT p) FROM ({rows})")[0]
            self._repeats[person, label] = filled > persons
        return self._repeats[person, label]

    def filled(self, variable: str) -> int:
        """How many rows have a value."""
        if variable not in self._filled:
            value = f"nullif(CAST({quote(variable)} AS DOUBLE), 'NaN'::DOUBLE)"
            self._filled[variable] = self.rows(f"SELECT count({value}) FROM {self.relation}")[0][0]
        return self._filled[variable]

    def resolution(
        self, variable: str, usual: Sequence[float], least: int, person: str | None = None
    ) -> float | None:
        """The first of these numbers of which the values are multiples; None where there is none.

        Fewer than `least` people may have other values, so that none of them decides.
        """
        key = (variable, tuple(usual), least, person)
        if key not in self._resolutions:
            rows, people = self._owned(variable, person)
            some = f"SELECT * FROM ({rows}) WHERE v IS NOT NULL LIMIT {_SOME_ROWS}"
            digit = _SINGLE if variable in self._single else _DOUBLE
            off = [(r, f"count({people}) FILTER ({_no_multiple(r, digit)})") for r in usual]
            for looked_at in (some, rows):  # after some rows of most columns none is left
                if off:
                    counted = self.rows(f"SELECT {', '.join(n for _, n in off)} FROM ({looked_at})")
                    off = [
                        candidate for candidate, n in zip(off, counted[0], strict=True) if n < least
                    ]
            self._resolutions[key] = off[0][0] if off else None
        return self._resolutions[key]

    def off_grid(
        self, variable: str, resolution: float, person: str | None = None, *, means: bool = False
    ) -> int:
        """How many people have a value that is surely no multiple, or with `means` their mean."""
        key = (variable, resolution, person, means)
        if key not in self._off_grid:
            rows, people = self._owned(variable, person)
            if means:
                rows += f" UNION ALL SELECT avg(v), who FROM ({rows}) GROUP BY who"
            off = f"SELECT count({people}) FROM ({rows}) WHERE {_surely_off(resolution)}"
            self._off_grid[key] = self.rows(off)[0][0]
        return self._off_grid[key]

    def _owned(self, variable: str, person: str | None) -> tuple[str, str]:
        """SQL for values v and whose they are, and for what to count there: people."""
        value = f"nullif(CAST({quote(variable)} AS DOUBLE), 'NaN'::DOUBLE)"
        who = "1" if person is None else quote(person)
        people = "*" if person is None else "DISTINCT who"
        return f"SELECT {value} AS v, {who} AS who FROM {self.relation}", people

    def _quartiles(self, column: str) -> tuple[float, float]:
        """The quartiles of the values v of a query, to a part of their distance.

        Counted in bins, again and again in those that hold the quartiles: unlike sorting, this
        takes no memory that grows with the rows.
        """
        low, high, rows = self.rows(f"SELECT min(v), max(v), count(v) FROM ({column})")[0]
        below, between = 0, 0.0
        while rows and low < high and between < _FINE_ENOUGH:
            width = max(high / _BINS - low / _BINS, 5e-324)
            bins = self.fetch(
                f"SELECT least(floor((v - ?) / ?), {_BINS - 1}) AS bin, count(*) AS n, "
                f"min(v) AS low, max(v) AS high "
                f"FROM ({column}) WHERE v BETWEEN ? AND ? GROUP BY bin ORDER BY bin",
                (low, width, low, high),
            )
            reached = below + np.cumsum(bins["n"])
            first, last = np.searchsorted(reached, (0.25 * rows, 0.75 * rows))
            between = float(bins["bin"][last] - bins["bin"][first])
            below += int(bins["n"][:first].sum())
            low, high = float(bins["low"][first]), float(bins["high"][last])
        return (low, high) if rows else (0.0, 0.0)

    def derived(self, relation: str) -> "Source":
        """The same rows through another relation, such as a SELECT over this one."""
        return Source(self._connection, relation, self._scratch, self._file)

    def write_parquet(self, columns: Sequence[str], path: Path) -> None:
        """Copy these columns to a new Parquet file, the rows in their order."""
        import duckdb

        selected = f"SELECT {', '.join(map(quote, columns))} FROM {self.relation}"
        try:
            self.rows(
                f"COPY ({selected}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)"
            )
        except duckdb.Error as error:
            raise SourceError(f"the rows cannot be copied: {_plain(str(error))}") from error

    def split(self, column: str) -> dict[str, "Source"]:
        """One source for each value of a column."""
        if column not in self.kinds:
            raise InputError(
                f"center must name a column, got {column!r}. There are: {', '.join(self.kinds)}"
            )
        label = f"CAST({quote(column)} AS VARCHAR)"
        names = self.rows(f"SELECT DISTINCT {label} AS c FROM {self.relation} ORDER BY c")
        if (None,) in names:
            raise InputError(f"center={column!r} must be given in every row; in some it is missing")
        parts = {}
        for (name,) in names:
            part = f"(SELECT * FROM {self.relation} WHERE {label} = {literal(name)})"
            parts[name] = self.derived(part)
        return parts


def _no_multiple(resolution: float, digit: float) -> str:
    """SQL for whether v is no multiple, or its digits do not tell."""
    near, unclear = _near(resolution, digit)
    return f"NOT ({near} AND {unclear} < {_UNCLEAR!r})"


def _surely_off(resolution: float) -> str:
    """SQL for whether v is no multiple, also if it was once stored in single precision."""
    near, unclear = _near(resolution, _SINGLE)
    small = f"abs(v / {resolution!r}) BETWEEN {_ZERO!r} AND {WHOLE!r}"
    return f"({small}) OR (NOT {near} AND {unclear} < 0.5)"


def _near(resolution: float, digit: float) -> tuple[str, str]:
    """SQL for whether v is as near to a multiple as its digits tell, and for what they leave."""
    ratio, unclear = f"(v / {resolution!r})", f"{digit!r} * abs(v / {resolution!r})"
    return f"(abs({ratio} - round({ratio})) < greatest({WHOLE!r}, {unclear}))", unclear


def _kind(sql_type: str) -> Kind:
    return _KINDS.get(re.split(r"[( ]", sql_type)[0], "other")


def open_source(data: object, scratch: Scratch | None = None) -> Source:
    """Open a frame or a file.

    `scratch` bounds the memory that answers about these rows take.

    Examples
    --------
    >>> import polars
    >>> open_source(polars.DataFrame({"los": [1.5], "sex": ["F"]})).kinds
    {'los': 'float', 'sex': 'text'}
    """
    if isinstance(data, str | Path):
        return _open_file(Path(data), scratch)
    return _open_frame(data, scratch)


def connect(scratch: Scratch | None) -> "duckdb.DuckDBPyConnection":
    """A connection of its own to the one database of this process: a new one costs 13 ms.

    Frames and temporary tables belong to a connection; no center sees another's. A bound on memory
    is one of a database, so it takes a new one.
    """
    import duckdb

    if scratch is None:
        return duckdb.connect(":memory:unpooled")
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{scratch.database_mb}MB",
        "temp_directory": str(scratch.folder),
    }
    return duckdb.connect(config=limits)


def _open_frame(frame: Any, scratch: Scratch | None) -> Source:
    import duckdb
    import narwhals as nw

    try:
        rows = nw.from_native(frame)
        native = rows.collect() if isinstance(rows, nw.LazyFrame) else rows
    except nw.exceptions.NarwhalsError as error:
        raise SourceError(f"a center's frame cannot be read: {error}") from error
    except TypeError:
        raise SourceError(
            f"a center's data must be a frame or a path, got {type(frame).__name__}"
        ) from None
    if len(native.columns) == 0:
        raise SourceError("a center's data must have columns, got none")
    connection = connect(scratch)
    try:
        connection.register("data", native.to_native())
        return Source(connection, scratch=scratch)
    except duckdb.Error:
        connection.register("data", native.to_arrow())
        return Source(connection, scratch=scratch)


def _open_file(path: Path, scratch: Scratch | None) -> Source:
    import duckdb

    if not path.is_file():
        hint = f"is a folder. Hint: name its files, as {path / '*.csv'!s}"
        problem = hint if path.is_dir() else "does not exist"
        raise SourceError(f"{str(path)!r} {problem}")
    connection = connect(scratch)
    opened = None
    exactly = re.sub(r"([*?\[])", r"[\1]", str(path))  # not a pattern for other files
    name = literal(exactly)
    try:
        match path.suffix.lower():
            case ".csv" | ".tsv" | ".txt":
                from unpooled.center.data.csv_file import load_csv

                load_csv(connection, path, name)
            case ".parquet" | ".pq":
                opened = OpenedFile.of(path)
                connection.execute(f"CREATE TEMP VIEW data AS SELECT * FROM read_parquet({name})")
            case suffix:
                raise SourceError(
                    f"{str(path)!r} ends in {suffix!r}; a center's file must be .csv or .parquet"
                )
        return Source(connection, scratch=scratch, file=opened)
    except duckdb.Error as error:
        raise SourceError(f"{str(path)!r} cannot be read: {_plain(str(error))}") from error


def _plain(message: str) -> str:
    """The first line of DuckDB's words; the others quote data."""
    return message.splitlines()[0].removeprefix("Invalid Input Error: ")
