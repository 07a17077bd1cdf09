"""A bar on the terminal for what takes longer; silent in a pipe, and in the first seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from unpooled.federation.progress import Progress, Show

PATIENCE = 2.0  # seconds of work before there is a bar


class WorkBar:
    """What is done now; of a question how many centers answered, and whose stewards have not.

    It comes after `PATIENCE` seconds and goes away in the end, so that nothing is left of it.
    """

    def __init__(self, stream: TextIO, words: str = "working") -> None:
        self._stream = stream
        self._words = words
        self._lock = Lock()
        self._last: Progress | None = None
        self._bar: Bar | None = None
        self._over = False
        self._timer = Timer(PATIENCE, self._begin)
        self._timer.daemon = True

    def start(self) -> None:
        """Begin to wait for the time of the bar."""
        self._timer.start()

    def stop(self) -> None:
        """Take the bar away; it does not come any more."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def show(self, progress: "Progress") -> None:
        """Say how far a question is."""
        with self._lock:
            self._last = progress
            self._update()

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                TimeElapsedColumn(),
                console=Console(file=self._stream),
                transient=True,
                redirect_stdout=False,  # what is printed goes where it always goes
                redirect_stderr=False,
            )
            self._bar.add_task(self._words, total=None)
            self._update()
            self._bar.start()

    def _update(self) -> None:
        if self._bar is None or self._last is None:
            return
        done, every = len(self._last.answered), len(self._last.asked)
        task = self._bar.task_ids[0]
        self._bar.update(task, description=str(self._last), completed=done, total=every)


@contextmanager
def centers_bar(as_json: bool = False) -> Iterator["Show | None"]:
    """What a federation tells its progress to; None where nobody sees it."""
    if as_json or not sys.stderr.isatty():
        yield None
        return
    bar = WorkBar(sys.stderr)
    bar.start()
    try:
        yield bar.show
    finally:
        bar.stop()


@contextmanager
def working(words: str, as_json: bool = False) -> Iterator[Callable[[str], None]]:
    """A bar for all that is no question to centers; gives what prints a line while it is there."""
    if as_json or not sys.stderr.isatty():
        yield print
        return
    bars = [WorkBar(sys.stderr, words)]

    def say(text: str) -> None:
        bars.pop().stop()  # a line and a bar would stand in each other
        print(text, flush=True)
        bars.append(WorkBar(sys.stderr, words))
        bars[-1].start()

    bars[-1].start()
    try:
        yield say
    finally:
        bars.pop().stop()
