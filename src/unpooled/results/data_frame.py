"""Rows of a result as a data frame, by the library that the analyst has."""

from collections.abc import Sequence
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
