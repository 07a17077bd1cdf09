"""A CSV file as a table of DuckDB, and which of its lines does not fit."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from unpooled.errors import SourceError

if TYPE_CHECKING:
    import duckdb


def load_csv(connection: "duckdb.DuckDBPyConnection", path: Path, name: str) -> None:
    """Read the file into the table `data`; `name` is its path as SQL."""
    import duckdb

    with path.open(encoding="utf-8-sig") as lines:
        header = lines.readline()
    if not header.strip():
        raise SourceError(f"{str(path)!r} has no header line")
    delimiter = max(",;\t|", key=header.count)
    try:
        connection.execute(
            f"CREATE TEMP TABLE data AS SELECT * FROM read_csv({name}, header=true, skip=0, "
            f"comment='', sample_size=-1, delim='{delimiter}', quote='\"', escape='\"', "
            "nullstr=['', 'NA', 'NaN', 'NULL'])"
        )
    except duckdb.Error:
        _locate_ragged_line(path, delimiter)
        raise


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
