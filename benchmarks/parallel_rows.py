"""One large center's answer to the parallel round: python -m benchmarks.parallel_rows [ROWS].

Its rows lie in a Parquet file. Printed: the time that DuckDB takes to sort the column, the time of
the center's answer, their ratio, and the most memory that each took beyond the start.
"""

import multiprocessing
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from unpooled.center import Center
from unpooled.keys import CenterKey
from unpooled.messages import LatticeQuestion, decode_answer, encode
from unpooled.policy import Policy
from unpooled.sources import open_source


def write(path: Path, rows: int) -> None:
    """Roughly gamma-shaped values: the sum of four exponential ones."""
    import duckdb

    drawn = " + ".join(["-ln(1 - random())"] * 4)
    duckdb.sql(f"COPY (SELECT {drawn} AS v FROM range({rows})) TO '{path}' (FORMAT parquet)")


def sort(path: Path) -> None:
    """Sort the column and take every thousandth of it, as a center would need."""
    import duckdb

    counted = f"SELECT v, row_number() OVER (ORDER BY v) AS i FROM '{path}'"
    duckdb.connect().execute(f"SELECT sum(v) FROM ({counted}) WHERE i % 1000 = 0").fetchall()


def answer(path: Path) -> None:
    """The center's whole answer, through its gate."""
    center = Center("Haifa", open_source(path), Policy(), CenterKey.from_seed(1, "Haifa"))
    said = decode_answer(center.answer(encode(LatticeQuestion(variable="v"))).payload)
    if said.aggregate is None:
        raise RuntimeError(f"the center refused: {said.refusals}")


def _measured(
    work: Callable[[Path], None], path: Path, told: "multiprocessing.Queue[float]"
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    work(path)
    told.put(perf_counter() - start)
    told.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def measured(work: Callable[[Path], None], path: Path) -> tuple[float, float]:
    """Seconds, and megabytes, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    told: multiprocessing.Queue[float] = context.Queue()
    process = context.Process(target=_measured, args=(work, path, told))
    process.start()
    process.join()
    return told.get(timeout=5), told.get(timeout=5)


def main(rows: int) -> None:
    """Print both, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "center.parquet"
        write(path, rows)
        print(f"{rows} rows, {path.stat().st_size / 1e6:.0f} MB")
        sorting, answering = measured(sort, path), measured(answer, path)
    print(f"sorting by DuckDB {sorting[0]:7.2f} s {sorting[1]:7.0f} MB")
    print(f"the center        {answering[0]:7.2f} s {answering[1]:7.0f} MB")
    print(f"ratio of times    {answering[0] / sorting[0]:7.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
