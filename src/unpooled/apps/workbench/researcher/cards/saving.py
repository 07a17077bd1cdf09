"""Cards and reports as files."""

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from unpooled.results.charts.charts import save
from unpooled.results.data_frame import write_csv
from unpooled.results.report.reporting import write_report
from unpooled.results.result import Result

KINDS = {
    "html": "text/html",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "csv": "text/csv",
    "svg": "image/svg+xml",
    "png": "image/png",
}
OF_REPORTS = ("html", "docx")


def saved(results: Sequence[Result], title: str, kind: str) -> bytes:
    """A file of this kind: of a report several results, of all else one."""
    with TemporaryDirectory(prefix="unpooled-") as folder:
        path = Path(folder) / f"file.{kind}"
        if kind in OF_REPORTS:
            write_report(path, title, [result.chapter() for result in results])
        elif kind == "csv":
            write_csv(path, results[0].records())
        else:
            save(results[0].chart(), path)
        return path.read_bytes()


def file_name(title: str, kind: str) -> str:
    """A name that every system takes.

    Examples
    --------
    >>> file_name("crp by arm: does it <rise>?", "csv")
    'crp-by-arm-does-it-rise.csv'
    >>> file_name("גיל", "csv")
    'unpooled.csv'
    """
    words = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-").lower()
    return f"{words[:60] or 'unpooled'}.{kind}"
