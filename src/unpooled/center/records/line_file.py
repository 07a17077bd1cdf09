"""Files that a center alone may read and write, appended to line by line by one writer."""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from unpooled.errors import LedgerError

_PIECE = 2**20  # bytes that are read at once


@contextmanager
def file_errors(problem: str) -> Iterator[None]:
    """Raise a LedgerError that names the file and the reason where the system raises its own."""
    try:
        yield
    except OSError as error:
        raise LedgerError(f"{problem}: {error.strerror or error}") from error


@contextmanager
def open_lines(path: Path) -> Iterator[BinaryIO]:
    """The lines of a file, as bytes."""
    with file_errors(f"{path} cannot be read"), open(path, "rb") as file:
        yield file


def create_file(path: Path, content: bytes) -> None:
    """Make a file that its owner alone may read: whole or not at all, never over another one."""
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.link(draft, path)  # unlike a rename, fails when there is such a file
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # a file on disk can still lose its name in a crash
    finally:
        os.close(folder)


class LineFile:
    """A file that is appended to line by line, by one writer at a time; locked until `close`.

    Given its first line, it is created where there is none.
    """

    def __init__(self, path: Path, first: bytes | None = None) -> None:
        self.path = path.absolute()
        with file_errors(f"{path} cannot be opened"):
            if first is not None and not path.exists():
                with suppress(FileExistsError):  # another process was faster
                    create_file(self.path, first)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND)
        self._descriptor = descriptor
        self.close = weakref.finalize(self, os.close, descriptor)
        _lock(path, descriptor)
        self._end = os.fstat(descriptor).st_size

    def __iter__(self) -> Iterator[bytes]:
        """The lines; the file is open only while a piece is read, whoever stops in between."""
        place, rest = 0, b""
        while piece := self._piece(place):
            place += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in lines)
        if rest:
            yield rest

    def _piece(self, place: int) -> bytes:
        with open_lines(self.path) as file:
            file.seek(place)
            return file.read(_PIECE)

    def append(self, line: bytes, size: int) -> None:
        """Put a line on disk after the first `size` bytes, or raise and leave those as they are."""
        if not self.close.alive:
            raise LedgerError(f"{self.path} is closed; nothing was recorded")
        with file_errors(f"{self.path} cannot be written, nothing was recorded"):
            self._check_untouched(size)
            os.ftruncate(self._descriptor, size)  # what a failed or interrupted append left
            self._end = size + len(line)
            try:
                self._write(line)
            except OSError:
                with suppress(OSError):  # the next append tries again
                    self._cut(size)
                raise

    def set_aside(self, last: bytes) -> Path:
        """Move the last bytes of the file to one of their own next to it."""
        aside = self.path.with_name(f"{self.path.name}.cut-{sha256(last).hexdigest()[:12]}")
        with file_errors(f"{self.path} cannot be written"):
            with suppress(FileExistsError):  # these very bytes, from a move that was cut short
                create_file(aside, last)
            self._cut(self._end - len(last))
        return aside

    def _cut(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        os.fsync(self._descriptor)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        os.fsync(self._descriptor)

    def _check_untouched(self, size: int) -> None:
        status = os.fstat(self._descriptor)
        same = os.path.samestat(status, os.stat(self.path))
        if not (same and size <= status.st_size <= self._end):
            rule = "no other program may write, move or replace it while it is open"
            raise LedgerError(f"{self.path}: {rule}; nothing was recorded")


def _lock(path: Path, descriptor: int) -> None:
    try:
        import fcntl  # here, since a ledger in memory works where there is none
    except ImportError:
        raise LedgerError(f"{path} cannot be locked: files need Linux, macOS or WSL") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LedgerError(f"{path} is open in another place: it has one writer at a time") from None
