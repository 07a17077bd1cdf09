"""What a fresh process waits for: importing the package, and the command line's help."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.side_by_side import Call, Row, side_by_side

ROUNDS = 15


def rows() -> Iterator[Row]:
    """Whole processes, the interpreter's own start included."""
    numpy, typer = _python("import numpy"), _python("import typer, rich")
    script = str(Path(sys.executable).with_name("unpooled"))
    yield Row(
        "starting",
        "import unpooled / import numpy",
        side_by_side(_python("import unpooled"), numpy, ROUNDS),
        target=2.0,
    )
    yield Row(
        "starting",
        "unpooled --help / import typer, rich",
        side_by_side(_process(script, "--help"), typer, ROUNDS),
        target=2.0,
    )
    yield Row(
        "starting",
        "import unpooled, and unpooled.Federation used / import numpy",
        side_by_side(_python("import unpooled; unpooled.Federation"), numpy, ROUNDS),
    )


def _python(code: str) -> Call:
    return _process(sys.executable, "-c", code)


def _process(*command: str) -> Call:
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
