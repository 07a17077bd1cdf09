"""The memory on disk, beside the ledger: one JSON object a line, a header first.

A line is written before the ledger's, so that nothing leaves that is not remembered. A line whose
answer never left, after a crash, does no harm: the center remembers a little more than it said.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np

from unpooled.center.keys import Hex64
from unpooled.center.ledger import Ledger
from unpooled.center.line_file import LineFile
from unpooled.center.memory.steps import Step
from unpooled.center.memory.units import Units
from unpooled.errors import LedgerError
from unpooled.maths import large
from unpooled.maths.arrays import BoolArray
from unpooled.questions import CatalogueQuestion, decode_question

_FORMAT = "unpooled memory 3"


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line: whose memory this is."""

    format: str
    center: str


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one answer added: which of the ledger's lines it is, and for whom it spoke."""

    number: int
    digest: Hex64
    variable: str
    fingerprint: str  # of the variable's data
    units: tuple[str, str] | None  # keys and values of people who are new, where they have keys
    rows: tuple[str, ...]  # the words that chose rows of people
    sets: tuple[str, ...]
    steps: tuple[Step, ...]
    words: tuple[tuple[tuple[str, ...], Hex64], ...]
    condition: tuple[str, ...]
    powers: tuple[tuple[str, tuple[float, ...]], ...]  # sets, and the λ of their moments
    sums: tuple[tuple[str, int], ...]  # sets, and how many values were told beside their mean


class MemoryFile:
    """The lines of one center; without a path they are not kept."""

    def __init__(self, center: str, path: Path | None, ledger: Ledger) -> None:
        self.lines: dict[str, list[Line]] = {}
        self._file: LineFile | None = None
        if path is None:
            return
        first = msgspec.json.encode(Header(_FORMAT, center)) + b"\n"
        if not path.exists():
            _check_ledger(path, ledger, set())
        self._file = LineFile(path, first)
        try:
            self._size = self._read(path, first, ledger)
        except LedgerError:
            self.close()
            raise

    def append(self, line: Line) -> None:
        """Put a line on disk; if it raises, nothing may leave."""
        if self._file is None:
            return
        raw = msgspec.json.encode(line) + b"\n"
        self._file.append(raw, self._size)
        self._size += len(raw)

    @property
    def kept(self) -> bool:
        """Whether there is a file."""
        return self._file is not None

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _read(self, path: Path, first: bytes, ledger: Ledger) -> int:
        assert self._file is not None
        size, remembered = 0, set()
        for number, raw in enumerate(self._file, 1):
            if not raw.endswith(b"\n"):
                break  # cut short by a crash: its answer never left
            if number == 1:
                if raw != first:
                    raise LedgerError(f"{path}: line 1: {_wrong(raw, ledger.center)}")
            else:
                line = _decoded(path, number, raw)
                self.lines.setdefault(line.variable, []).append(line)
                remembered.add((line.number, line.digest))
            size += len(raw)
        _check_ledger(path, ledger, remembered)
        return size


def _wrong(first: bytes, center: str) -> str:
    """What is wrong with the first line of a file."""
    with suppress(msgspec.DecodeError):
        if msgspec.json.decode(first, type=Header).format != _FORMAT:
            return "another version wrote it. Begin a new ledger and memory; keep the old ones"
    return f"this is not the memory of {center}"


def memory_path(ledger: Path) -> Path:
    """Where the memory that belongs to a ledger lies."""
    return ledger.with_name(f"{ledger.stem}.memory")


def answer_digest(question: bytes, answer: bytes) -> str:
    """Ties a line of the memory to one of the ledger."""
    return sha256(question + b"\n" + answer).hexdigest()


def packed(people: BoolArray) -> str:
    """A set as text."""
    smaller = zlib.compressobj(1)
    parts = [smaller.compress(np.packbits(people[p]).tobytes()) for p in large.pieces(len(people))]
    return b64encode(b"".join((*parts, smaller.flush()))).decode()


def unpacked(text: str, size: int) -> BoolArray:
    """A set from its text, among so many.

    Examples
    --------
    >>> unpacked(packed(np.array([True, False, True])), 4)
    array([ True, False,  True, False])
    """
    people, known = large.full(size, False, bool), np.frombuffer(_bytes(text), dtype=np.uint8)
    for piece in large.pieces(min(size, 8 * len(known))):  # of whole bytes
        bits = known[piece.start // 8 : -(-piece.stop // 8)]
        people[piece] = np.unpackbits(bits, count=piece.stop - piece.start)
    return people


def packed_units(units: Units, known: int) -> tuple[str, str] | None:
    """The people behind the first ones as text, where they have keys."""
    if units.keys is None or units.values is None:
        return None
    keys, values = units.keys[known:].astype("<u8"), units.values[known:].astype("<f8")
    return _text(keys.tobytes()), _text(values.tobytes())


def with_units(units: Units, line: Line) -> Units:
    """The people once a line's new ones are among them."""
    if line.units is None:
        return units
    keys, values = map(_bytes, line.units)
    return units.with_more(np.frombuffer(keys, dtype="<u8"), np.frombuffer(values, dtype="<f8"))


def _text(content: bytes) -> str:
    return b64encode(zlib.compress(content, 1)).decode()


def _bytes(text: str) -> bytes:
    return zlib.decompress(b64decode(text))


def _decoded(path: Path, number: int, raw: bytes) -> Line:
    try:
        return msgspec.json.decode(raw, type=Line)
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{path}: line {number}: not a line of a memory: {error}") from error


def _check_ledger(path: Path, ledger: Ledger, remembered: Iterable[tuple[int, str]]) -> None:
    """Raise where the ledger has an answer about people that the memory does not know."""
    known = set(remembered)
    for entry in ledger:
        if entry.kind != "release":
            continue
        question = entry.question.encode()
        if isinstance(decode_question(question), CatalogueQuestion):
            continue
        if (entry.number, answer_digest(question, entry.answer.encode())) not in known:
            raise LedgerError(
                f"{path}: the memory does not know the ledger's answer {entry.number}, so no "
                "question can be judged beside it. Restore the memory from a backup, or begin a "
                "new ledger and a new memory (docs/memory.md says what that gives up)"
            )
