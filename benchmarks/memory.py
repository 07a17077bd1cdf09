"""Peak memory of the federated table, over the column of values it is made of.

A process of its own makes the frames and one small table (so that everything is imported), gives
freed memory back, notes its resident memory, and resets the kernel's high-water mark of it. Then
it opens the frames and asks for the table. The high-water mark, less what was noted, is what the
table took beside the frames that were there already. (Linux only.)
"""

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.federated_table import PEOPLE, bins_text, federated_table
from benchmarks.five_centers import NAMES, frames
from benchmarks.side_by_side import Ratio, Row

COLUMN = len(NAMES) * PEOPLE * 8  # bytes
NO_BOUND = "none"


def rows() -> Iterator[Row]:
    """From polars and pandas frames, with 1,000 bins and with as many as K allows."""
    for kind in ("polars", "pandas"):
        for max_bins in (1_000, None):
            peaks = [_peak_of_a_process(kind, max_bins) / COLUMN for _ in range(2)]
            yield Row(
                "memory",
                f"{len(NAMES)} × {PEOPLE:,} rows, {kind}, {bins_text(max_bins)}: peak / column",
                Ratio(max(peaks), min(peaks), max(peaks)),
                target=4.0,
            )


def _peak_of_a_process(kind: str, max_bins: int | None) -> int:
    bins = NO_BOUND if max_bins is None else str(max_bins)
    command = [sys.executable, "-m", "benchmarks.memory", kind, bins]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def measure(kind: str, max_bins: int | None) -> int:
    """Bytes that the table took at its peak, beside the frames (in this process)."""
    federated_table(frames(kind, 1_000), max_bins)
    centers = frames(kind, PEOPLE)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    federated_table(centers, max_bins)
    return _status("VmHWM") - before


def _status(field: str) -> int:
    """A line of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line for line in lines if line.startswith(f"{field}:")).split()[1]
    return int(kilobytes) * 1024


if __name__ == "__main__":
    print(measure(sys.argv[1], None if sys.argv[2] == NO_BOUND else int(sys.argv[2])))
