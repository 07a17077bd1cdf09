"""One large center's answer to the parallel round, in bounded memory.

`python -m benchmarks.parallel_rows [ROWS ...] [--ram-mb MB]`. The rows lie in a Parquet file. For
each number of rows, the better of two runs: the time that DuckDB takes to sort the column, the
times of the center's answer with `ram_mb` and without, their ratios to sorting, and whether both
answers are the same bytes.

What is bounded, and by the kernel: the process may have `ram_mb` megabytes more of private writable
memory (VmData, by RLIMIT_DATA) than when it started, its libraries loaded. An allocation beyond
that fails, and with it the benchmark. Scratch files are mapped as shared memory and do not count:
the system can write their pages to disk and take them back at any time. "anonymous" is the most
memory in use that it could not take back (RssAnon, looked at every 5 ms), beyond the start.
"""

import argparse
import multiprocessing
import resource
import tempfile
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from time import perf_counter

import numpy as np

from unpooled.center import Center
from unpooled.center.data.scratch import Scratch
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import LatticeQuestion, decode_answer, encode
from unpooled.center.records.keys import CenterKey

Measured = tuple[float, float, str]  # seconds, megabytes, a digest of what was said


def write(path: Path, rows: int) -> None:
    """Roughly gamma-shaped values: the sum of four exponential ones."""
    import duckdb

    drawn = " + ".join(["-ln(1 - random())"] * 4)
    duckdb.sql(f"COPY (SELECT {drawn} AS v FROM range({rows})) TO '{path}' (FORMAT parquet)")


def sort(path: Path, ram_mb: int | None) -> bytes:
    """Sort the column and take every thousandth of it, as a center would need."""
    import duckdb

    counted = f"SELECT v, row_number() OVER (ORDER BY v) AS i FROM '{path}'"
    duckdb.connect().execute(f"SELECT sum(v) FROM ({counted}) WHERE i % 1000 = 0").fetchall()
    return b""


def answer(path: Path, ram_mb: int | None) -> bytes:
    """The center's whole answer, its first, through its gate and with a ledger on disk."""
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    scratch = None if ram_mb is None else Scratch(ram_mb, folder)
    key, ledger = CenterKey.from_seed(1, "Haifa"), folder / "Haifa.ledger"
    center = Center("Haifa", open_source(path, scratch), Policy(ad_hoc="free"), key, None, ledger)
    payload = center.answer(encode(LatticeQuestion(variable="v"))).payload
    center.close()
    aggregate = decode_answer(payload)
    if aggregate.aggregate is None:
        raise RuntimeError(f"the center refused: {aggregate.refusals}")
    return payload


def status(name: str) -> int:
    """Bytes of this process, as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def _measured(
    work: Callable[[Path, int | None], bytes],
    path: Path,
    ram_mb: int | None,
    answers: "multiprocessing.Queue[Measured]",
) -> None:
    import duckdb

    duckdb.connect().execute("SELECT 1").fetchall()
    np.sort(np.zeros(10))
    before = most = status("RssAnon")
    if ram_mb is not None:
        limit = status("VmData") + ram_mb * 1_000_000
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.005):
            most = max(most, status("RssAnon"))

    watching = threading.Thread(target=watch)
    watching.start()
    start = perf_counter()
    aggregate = work(path, ram_mb)
    seconds = perf_counter() - start
    done.set()
    watching.join()
    answers.put((seconds, (most - before) / 1e6, sha256(aggregate).hexdigest()))


def measured(
    work: Callable[[Path, int | None], bytes], path: Path, ram_mb: int | None = None
) -> Measured:
    """Seconds, megabytes and what was said, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[Measured] = context.Queue()
    process = context.Process(target=_measured, args=(work, path, ram_mb, answers))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError("there was no answer: was the memory too little?")
    return answers.get(timeout=5)


def main(rows: int, ram_mb: int) -> None:
    """Print all three, and the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "center.parquet"
        write(path, rows)
        print(f"{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB")
        runs = [
            (measured(sort, path), measured(answer, path, ram_mb), measured(answer, path))
            for _ in range(2)
        ]
    sorting, bounded, free = (min(kind) for kind in zip(*runs, strict=True))
    for name, run in (
        ("sorting by DuckDB", sorting),
        (f"the center, ram_mb = {ram_mb}", bounded),
        ("the center, no bound", free),
    ):
        ratio = run[0] / sorting[0]
        print(f"{name:26} {run[0]:7.2f} s, ratio {ratio:5.2f}, anonymous {run[1]:6.0f} MB")
    print("the same answer" if bounded[2] == free[2] else "ANOTHER ANSWER")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One large center in bounded memory.")
    parser.add_argument("rows", nargs="*", type=int, default=[10_000_000])
    parser.add_argument("--ram-mb", type=int, default=1000)
    arguments = parser.parse_args()
    for rows in arguments.rows:
        main(rows, arguments.ram_mb)
