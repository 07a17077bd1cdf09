"""The same benchmark on two checkouts by turns: python -m benchmarks.beside OTHER NAME [NAME ...].

Both compare themselves with the same thing (bare maths, sorting); printed are both ratios of
processor time and how they relate. `OTHER` is a checkout of an earlier commit.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

_ROWS = """
import importlib, json
for row in importlib.import_module("benchmarks.{name}").rows():
    print(json.dumps([row.compared, row.ratio.cpu or row.ratio.value]))
"""


def ratios(checkout: Path, name: str) -> dict[str, float]:
    """What is compared → ratio of processor time, or of memory."""
    paths = os.pathsep.join((str(checkout / "src"), str(checkout)))
    done = subprocess.run(
        [sys.executable, "-c", _ROWS.format(name=name)],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    return dict(json.loads(line) for line in lines)


def main(other: Path, names: list[str]) -> None:
    """Print a line for each thing that both measure."""
    print(f"{'what is compared':<86}{'new':>7}{'old':>7}{'new/old':>9}")
    for name in names:
        old, new = ratios(other, name), ratios(Path(__file__).parents[1], name)
        for compared, ratio in new.items():
            if compared in old:
                before = old[compared]
                print(
                    f"{compared:<86}{ratio:>7.2f}{before:>7.2f}{ratio / before:>9.2f}", flush=True
                )


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
