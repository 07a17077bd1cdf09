"""Running settings in pieces that are kept, so that a second run goes on where the first stopped.

A piece is a fixed range of simulations, a small file named after it. The folder of a setting is
named after all that its numbers depend on (setting, seed, the code itself), so numbers of another
setting or another version are never taken for one's own.
"""

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled_study.progress import Advance, progress
from unpooled_study.simulations.settings import Simulated
from unpooled_study.simulations.simulation import simulate

Setting = TypeVar("Setting", bound=Simulated)
PIECE = 100
_STUDY_CODE = (
    "simulations/families.py",
    "simulations/methods.py",
    "simulations/outcomes.py",
    "simulations/settings.py",
    "simulations/simulation.py",
    "parallel/populations.py",
    "parallel/simulation.py",
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Simulations start..stop−1 of a setting, and the file that keeps them."""

    setting: Simulated
    seed: int
    start: int
    stop: int
    file: Path

    def kept(self) -> FloatArray | None:
        """The simulations, if an earlier run kept them whole."""
        try:
            array: FloatArray = np.load(self.file, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return array if array.shape == (self.stop - self.start, self.setting.columns) else None

    def keep(self, rows: FloatArray) -> None:
        """Write the simulations; the file appears whole or not at all."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        with part.open("wb") as stream:
            np.save(stream, rows, allow_pickle=False)
        os.replace(part, self.file)


def run(
    settings: Sequence[Setting],
    sims: int | Mapping[Setting, int],
    seed: int,
    jobs: int,
    folder: Path,
) -> dict[Setting, FloatArray]:
    """All simulations of all settings; what `folder` keeps is not simulated again.

    `sims` is the number of simulations of every setting, or of each. Neither `jobs` nor an
    interruption changes a number. A KeyboardInterrupt is passed on after the finished pieces are
    kept.
    """
    each = dict.fromkeys(settings, sims) if isinstance(sims, int) else sims
    pieces = [piece for s in settings for piece in _pieces(s, each[s], seed, folder)]
    rows = {piece: piece.kept() for piece in pieces}
    missing = [piece for piece in pieces if rows[piece] is None]
    total = sum(p.stop - p.start for p in pieces)
    left = sum(p.stop - p.start for p in missing)
    with progress("simulating", total, total - left) as advance:
        for piece, array in _simulated(missing, jobs, advance):
            piece.keep(array)
            rows[piece] = array
    return {s: np.concatenate([rows[p] for p in pieces if p.setting == s]) for s in settings}


def _pieces(setting: Simulated, sims: int, seed: int, folder: Path) -> list[Piece]:
    place = folder / _fingerprint(setting, seed)
    return [
        Piece(
            setting,
            seed,
            start,
            min(start + PIECE, sims),
            place / f"{start}-{min(start + PIECE, sims)}.npy",
        )
        for start in range(0, sims, PIECE)
    ]


def _fingerprint(setting: Simulated, seed: int) -> str:
    text = msgspec.json.encode((setting, seed, np.__version__))
    return hashlib.sha256(text + _code()).hexdigest()[:20]


@cache
def _code() -> bytes:
    """A digest of the code that the numbers come from."""
    digest = hashlib.sha256()
    folder = Path(str(files("unpooled.maths")))
    maths = sorted(f.relative_to(folder).as_posix() for f in folder.rglob("*.py"))
    for package, names in (
        ("unpooled.maths", maths),
        ("unpooled_study", _STUDY_CODE),
        ("unpooled.analyses", ("numbers/quantiles.py", "survival.py")),
        ("unpooled.center", ("policy.py",)),
    ):
        for name in names:
            digest.update(files(package).joinpath(name).read_bytes())
    return digest.digest()


def _simulated(
    pieces: Sequence[Piece], jobs: int, advance: Advance
) -> Iterator[tuple[Piece, FloatArray]]:
    """The pieces as they are done, in any order."""
    if jobs == 1 or len(pieces) < 2:
        for piece in pieces:
            yield piece, _work(piece)
            advance(piece.stop - piece.start)
        return
    with _processes(min(jobs, len(pieces))) as pool:
        with _hearing(signal.SIGINT, signal.SIG_IGN):  # children leave Ctrl-C to us
            waiting: dict[Future[FloatArray], Piece] = {pool.submit(_work, p): p for p in pieces}
        for done in as_completed(waiting):
            piece = waiting[done]
            yield piece, done.result()
            advance(piece.stop - piece.start)


def _work(piece: Piece) -> FloatArray:
    return simulate(piece.setting, piece.seed, piece.start, piece.stop)


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of our own; whatever ends us, nothing that waits is begun."""
    import multiprocessing

    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_end_with_parent)
    with _hearing(signal.SIGTERM, signal.default_int_handler):
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Let this process end when the one that began it does, in whatever way."""
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None and wait([parent.sentinel]):
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _hearing(
    number: signal.Signals, answer: Callable[..., None] | signal.Handlers
) -> Iterator[None]:
    """Answer a signal so for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal reaches this thread, and none can be set from it
        return
    ours = signal.signal(number, answer)
    try:
        yield
    finally:
        signal.signal(number, ours)
