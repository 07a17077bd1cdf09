"""Rows of a result as a data frame, by the library that the analyst has."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unpooled.errors import InputError


def data_frame(records: Sequence[dict[str, Any]]) -> Any:
    """Rows as a frame of polars or, where that is not installed, of pandas."""
    try:
        import polars
    except ImportError:
        try:
            import pandas
        except ImportError:
            raise InputError(
                "to_frame() needs polars or pandas, and neither is installed. "
                "Hint: pip install polars, or use to_dict()"
            ) from None
        return pandas.DataFrame(records)
    return polars.DataFrame(records, infer_schema_length=None)


def write_csv(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Rows as a CSV file; what is missing is an empty cell."""
    names = list(dict.fromkeys(name for record in records for name in record))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(records)
