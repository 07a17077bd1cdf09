"""Where a center keeps what its answers need: so much in memory, the rest on disk.

Files of arrays have no name from the beginning: nobody else can open them, and they are gone when
the process ends, however it ends. DuckDB's own files need names; they lie in a folder for the owner
alone. It is removed at the end, or, after a crash, when the next center starts there.
"""

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

from unpooled.errors import InputError, SourceError

LEAST = 256  # megabytes, below which DuckDB cannot read
_PREFIX = "unpooled-scratch-"
_SMALL = 1 << 16  # bytes; arrays below do not count
_OWN, _SHARED = 1 << 25, 1 << 28  # bytes; arrays below share files: each takes a descriptor
_ALIGNED = 64  # bytes, at a multiple of which arrays begin
_ARRAYS = 250_000  # bytes per megabyte of the bound that arrays may take


class Scratch:
    """Room for the answers of one center.

    Parameters
    ----------
    ram_mb
        How many megabytes of memory they may take: a quarter for arrays, half for DuckDB, and a
        quarter for what is worked on at a time.
    folder
        Where on disk the rest lies; else where the system keeps temporary files, if that is a disk.
    """

    def __init__(self, ram_mb: int, folder: Path | None = None) -> None:
        check_ram(ram_mb)
        self.database_mb = ram_mb // 2
        self._most = ram_mb * _ARRAYS
        self._held: dict[int, int] = {}  # arrays in memory → bytes
        self._shared: mmap | None = None  # a file for several arrays, and how much of it is used
        self._used = 0
        where = Path(tempfile.gettempdir()) if folder is None else folder
        try:
            _sweep(where)
            self.folder, lock = _locked_folder(where)
        except OSError as error:
            raise SourceError(f"{str(where)!r} takes no files: {error.strerror}") from error
        weakref.finalize(self, _remove, self.folder, lock)

    def empty(self, size: int, dtype: "np.dtype[Any]") -> np.ndarray[tuple[int], Any]:
        """An array of this size, in memory while there is room."""
        needed = size * dtype.itemsize
        if needed <= _SMALL:
            return np.empty(size, dtype)
        if needed + sum(list(self._held.values())) <= self._most:
            made = np.empty(size, dtype)
            self._held[id(made)] = needed
            weakref.finalize(made, self._held.pop, id(made)).atexit = False
            return made
        if needed > _OWN:
            return np.frombuffer(self._file(needed), dtype)
        if self._used + needed > len(self._shared or ()):
            self._shared, self._used = self._file(_SHARED), 0
        assert self._shared is not None
        start, self._used = self._used, self._used + needed + -needed % _ALIGNED
        return np.frombuffer(self._shared, dtype, size, start)

    def _file(self, size: int) -> mmap:
        """A file that is gone with the last array in it."""
        with tempfile.TemporaryFile(dir=self.folder) as file:  # mode 600, and no name
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)  # a full disk is found out here
            else:
                file.truncate(size)
            return mmap(file.fileno(), size)


def check_ram(ram_mb: int) -> None:
    """Raise where a setting leaves too little to work with."""
    if ram_mb < LEAST:
        raise InputError(f"ram_mb must be at least {LEAST}, got {ram_mb}")


def _locked_folder(where: Path) -> tuple[Path, int]:
    """A new folder for the owner alone, and the lock that says it is in use."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
        try:
            return folder, _lock(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # another center took it for a dead one's
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _lock(folder: Path) -> int:
    """The lock of a folder: a file in it, since on some disks a folder cannot be locked."""
    import fcntl

    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not (folder / "lock").exists():
            raise FileNotFoundError(folder)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _sweep(where: Path) -> None:
    """Remove the folders of centers that crashed."""
    for folder in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not folder.is_symlink() and folder.stat().st_uid == os.getuid():
                _remove(folder, _lock(folder))


def _remove(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
