"""Run the benchmarks and print one table: python -m benchmarks [NAME ...]."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence

from benchmarks import (
    binning,
    comparison,
    federated_table,
    growth,
    memory,
    network,
    remembering,
    starting,
    study,
)
from benchmarks.side_by_side import Row

BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "binning": binning.rows,
    "federated_table": federated_table.rows,
    "comparison": comparison.rows,
    "memory": memory.rows,
    "remembering": remembering.rows,
    "growth": growth.rows,
    "starting": starting.rows,
    "study": study.rows,
    "network": network.rows,
}
LINE = "{:<16} {:<82} {:>6}  {:<14} {:>6} {:>7}  {}"


def main(names: Sequence[str]) -> int:
    """Run these benchmarks, or all; 1 where a target is missed."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}. There are: {', '.join(BENCHMARKS)}")
        return 2
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start\n")
    print(LINE.format("name", "what is compared", "ratio", "(rounds)", "cpu", "target", ""))
    missed = False
    for name in names or BENCHMARKS:
        for row in BENCHMARKS[name]():
            print(_line(row), flush=True)
            missed |= row.short
    return int(missed)


def _line(row: Row) -> str:
    ratio = row.ratio
    return LINE.format(
        row.name,
        row.compared,
        f"{ratio.value:.2f}",
        f"({ratio.low:.2f}–{ratio.high:.2f})",
        "" if ratio.cpu is None else f"{ratio.cpu:.2f}",
        "" if row.target is None else f"{row.target:g}",
        row.verdict,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
