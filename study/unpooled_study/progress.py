"""A progress bar with the time left: on a terminal only, silent in a pipe."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Advance]:
    """Count up to `total`; call what is given with how many more are done."""
    if not sys.stderr.isatty() or done == total:
        yield lambda _more: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda more: bar.advance(task, more)
