"""A progress bar with the time left: on a terminal only, silent in a pipe and at first."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, Timer

Advance = Callable[[int], None]
PATIENCE = 2.0  # seconds of work before there is a bar
_silent = ContextVar("_silent", default=False)


@contextmanager
def silent(wanted: bool = True) -> Iterator[None]:
    """Without a bar, as for a program that reads JSON."""
    token = _silent.set(wanted)
    try:
        yield
    finally:
        _silent.reset(token)


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Advance]:
    """Count up to `total`; call what is given with how many more are done."""
    if _silent.get() or not sys.stderr.isatty() or done == total:
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
        redirect_stdout=False,  # what is printed goes where it always goes
        redirect_stderr=False,
    )
    task = bar.add_task(what, total=total, completed=done)
    lock, over = Lock(), False

    def begin() -> None:
        with lock:
            if not over:
                bar.start()

    timer = Timer(PATIENCE, begin)
    timer.daemon = True
    timer.start()
    try:
        yield lambda more: bar.advance(task, more)
    finally:
        timer.cancel()
        with lock:
            over = True
            bar.stop()
