"""A center's rows from PostgreSQL, by a query of the center's own.

The query runs once, in a read-only transaction and through a server-side cursor, when the center
starts; what it gives is the center's data until it starts again.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from unpooled.center.data.scratch import Scratch
from unpooled.center.data.sources import Column, Source, connect
from unpooled.center.data.sql import quote
from unpooled.errors import InputError, SourceError

if TYPE_CHECKING:
    import psycopg

_BATCH = 100_000  # rows
_TYPES = {  # PostgreSQL's type → DuckDB's
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "DOUBLE",
    "float8": "DOUBLE",
    "numeric": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP",
}


class Postgres(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a center's database is, and which rows of it are the center's data.

    A password belongs in `PGPASSWORD` or the file `~/.pgpass`, not here.
    """

    connection: str  # as libpq takes it: "host=localhost dbname=hospital user=reader"
    query: str

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise InputError("query must be an SQL SELECT, got nothing")


def open_postgres(where: Postgres, scratch: Scratch | None = None) -> Source:
    """Read the rows of the query into this process; `scratch` bounds the memory they take."""
    try:
        import psycopg
    except ImportError:
        raise SourceError(
            "PostgreSQL needs psycopg. Hint: pip install 'unpooled[federation]'"
        ) from None
    try:
        with psycopg.connect(where.connection, connect_timeout=10) as database:
            database.read_only = True
            database.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with database.cursor(name="unpooled", binary=True) as cursor:  # named: at the database
                cursor.itersize = _BATCH
                cursor.execute(where.query.encode())  # bytes: it is the center's own
                return _load(cursor, scratch)
    except psycopg.Error as error:
        raise SourceError(f"PostgreSQL: {_plain(str(error))}") from error


def _load(cursor: "psycopg.ServerCursor[Any]", scratch: Scratch | None) -> Source:
    description = cursor.description
    if description is None:
        raise SourceError("PostgreSQL: the query gives no rows; it must be a SELECT")
    names = [column.name for column in description]
    if len(set(names)) != len(names):
        raise SourceError("PostgreSQL: two columns of the query have the same name")
    types = [_TYPES.get(_type_name(column.type_code), "VARCHAR") for column in description]
    connection = connect(scratch)
    columns = ", ".join(f"{quote(n)} {t}" for n, t in zip(names, types, strict=True))
    connection.execute(f"CREATE TEMP TABLE data ({columns})")
    with _no_collection():
        for batch in _batches(cursor):
            arrays = (_column(v, t) for v, t in zip(zip(*batch, strict=True), types, strict=True))
            connection.register("batch", dict(zip(names, arrays, strict=True)))
            connection.execute("INSERT INTO data SELECT * FROM batch")
            connection.unregister("batch")
    return Source(connection, scratch=scratch)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python would look through all rows for cycles, again and again; there are none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _batches(cursor: "psycopg.ServerCursor[Any]") -> Iterator[list[tuple[Any, ...]]]:
    while batch := cursor.fetchmany(_BATCH):
        yield batch


def _type_name(code: int) -> str:
    from psycopg.postgres import types

    name = types.get(code)
    return "" if name is None else name.name


def _column(values: Sequence[Any], sql_type: str) -> Column:
    """A column of a batch as DuckDB reads it, missing values masked."""
    make = _MAKERS.get(sql_type, _texts)
    if None not in values:
        return make(values)
    missing = np.array([value is None for value in values], dtype=bool)
    fill = _FILL.get(sql_type, "")
    filled = make([fill if value is None else value for value in values])
    masked: Column = np.ma.masked_array(filled, mask=missing)
    return masked


def _texts(values: Sequence[Any]) -> Column:
    if set(map(type, values)) != {str}:
        values = [str(value) for value in values]
    return np.array(values, dtype=object)


def _days(values: Sequence[Any]) -> Column:
    return np.array(values, dtype="datetime64[us]")


def _moments(values: Sequence[Any]) -> Column:
    return np.array([value.replace(tzinfo=None) for value in values], dtype="datetime64[us]")


_EPOCH = np.datetime64(0, "us").astype(object)
_FILL: dict[str, Any] = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT", "DOUBLE"), 0),
    "BOOLEAN": False,
    "DATE": _EPOCH.date(),
    "TIMESTAMP": _EPOCH,
}
_MAKERS: dict[str, Callable[[Sequence[Any]], Column]] = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT"), lambda v: np.array(v, dtype=np.int64)),
    "DOUBLE": lambda v: np.array(v, dtype=np.float64),
    "BOOLEAN": lambda v: np.array(v, dtype=bool),
    "DATE": _days,
    "TIMESTAMP": _moments,
}


def _plain(message: str) -> str:
    """The first line of the database's words; the others quote data."""
    return message.strip().splitlines()[0] if message.strip() else "it cannot be read"
