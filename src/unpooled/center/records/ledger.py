"""The ledger: the append-only record at a center of every question, release and refusal.

One JSON object a line, a header first; questions and answers are kept as their exact text:

    {"format":"unpooled ledger 1","center":…,"public_key":…,"created":…,"hash":…,"signature":…}
    {"number":1,"time":…,"kind":…,"question":…,"answer":…,"previous":…,"hash":…,"signature":…}

Over a network an entry has a `ticket` after `answer`: a repeat of a question, such as after a
connection was lost, has the same one, so that it is recorded once. Where the network says which
analyst asks, `asker` follows.

`hash` is the SHA-256 of the line up to `,"hash":`, closed with `}`. `previous` is the hash of the
line before. `signature` is the center's, of the words `unpooled ledger line ` and the hash.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from unpooled.center.questions import Answer, Protocol
from unpooled.center.records.keys import CenterKey, Hex64, check_hex64, verifier
from unpooled.center.records.line_file import LineFile, open_lines
from unpooled.center.records.signatures import signed
from unpooled.errors import LedgerError

Kind = Literal["release", "refusal"]
Time = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z\Z")]
Signature = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{128}\Z")]

Ticket = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]

_BLANK = "0" * 64
_RECENT = 256  # entries that a repeated question finds
_SEAL_SIZE = len(f',"hash":"{_BLANK}","signature":"{_BLANK * 2}"}}\n')
_SIGNED = b"unpooled ledger line "


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line: whose ledger this is."""

    format: Literal["unpooled ledger 1"]
    center: str
    public_key: Hex64
    created: Time
    hash: Hex64
    signature: Signature


class Entry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """A question and what was said to it; `answer.encode()` gives the exact bytes back."""

    number: Annotated[int, msgspec.Meta(ge=1, le=10**15)]
    time: Time
    kind: Kind
    question: str
    answer: str
    ticket: Ticket | None = None
    asker: str | None = None
    previous: Hex64
    hash: Hex64
    signature: Signature


class Verdict(msgspec.Struct, frozen=True):
    """What `verify` found. `entries` and `head` count what is sound, up to the first problem."""

    ok: bool
    center: str | None
    public_key: str | None
    entries: int
    head: str | None
    problem: str | None
    line: int | None

    def __str__(self) -> str:
        if self.ok:
            return f"The ledger of {self.center} is sound: {self.entries} entries, head {self.head}"
        place = f"line {self.line}: " if self.line else ""
        return f"The ledger is not sound: {place}{self.problem}"


class Ledger:
    """The record of one center, in memory unless a path is given.

    >>> ledger = Ledger("Haifa", CenterKey.from_seed(1, "Haifa"))
    >>> entry = ledger.append("refusal", b'{"variable":"los"}', b'{"reason":"too-small"}')
    >>> entry.number, entry.answer, len(ledger), ledger.head == entry.hash
    (1, '{"reason":"too-small"}', 1, True)

    A file is verified when it is opened, and locked until `close`: it has one writer at a time.
    A damaged one is refused and left as it is; see `mend` for a line that a crash cut short.
    """

    def __init__(self, center: str, key: CenterKey, path: Path | None = None) -> None:
        self.center = center
        self.path = path
        self.asker: str | None = None  # who asks now
        self._key = key
        self._turn = threading.Lock()
        header = Header("unpooled ledger 1", center, key.public, _now(), _BLANK, _BLANK * 2)
        first = _encoded(_sealed(header, key))
        self._lines: list[bytes] | LineFile = [first] if path is None else LineFile(path, first)
        try:
            self._chain = self._verified()
        except LedgerError:
            self.close()
            raise

    def append(
        self, kind: Kind, question: bytes, answer: bytes, ticket: str | None = None
    ) -> Entry:
        """Record an answer. Once this returns it is on disk; if it raises, nothing is recorded."""
        question_text, answer_text = _text("question", question), _text("answer", answer)
        with self._turn:
            chain = self._chain
            blank = Entry(
                number=chain.entries + 1,
                time=_now(),
                kind=kind,
                question=question_text,
                answer=answer_text,
                ticket=ticket,
                asker=self.asker,
                previous=chain.head,
                hash=_BLANK,
                signature=_BLANK * 2,
            )
            line = _encoded(_sealed(blank, self._key))
            entry = _decoded(line, Entry)  # what cannot be read again is not written
            size = chain.size + len(line)
            if isinstance(self._lines, LineFile):
                self._lines.append(line, chain.size)
            else:
                self._lines[entry.number :] = [line]
            # Interrupted before this, the line was not recorded: the next one takes its place.
            chain.entries, chain.head, chain.size = entry.number, entry.hash, size
            chain.note(entry)
        return entry

    def find(self, question: bytes, ticket: str) -> Entry | None:
        """What was said to this question with this ticket, if that was not long ago."""
        return self._chain.recent.get((ticket, question.decode()))

    def signed(self, answer: Answer, protocol: Protocol, center: str) -> Answer:
        """What is said to a protocol, with the signature of whose ledger this is."""
        return signed(answer, protocol, center, self._key.public, self._key.sign)

    @property
    def head(self) -> str:
        """The hash of the last line. Noted elsewhere, it later proves that no line was removed."""
        return self._chain.head

    def close(self) -> None:
        """Let go of the file, so that another process may write it."""
        if isinstance(self._lines, LineFile):
            self._lines.close()

    def __len__(self) -> int:
        return self._chain.entries

    def __iter__(self) -> Iterator[Entry]:
        last = len(self) + 1
        number = 1
        for number, line in enumerate(islice(self._lines, 1, last), 2):
            yield _decoded(line, Entry, f"{self.path}: line {number}: ")
        if number < last:
            raise LedgerError(f"{self.path}: line {number + 1}: removed while the ledger was open")

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.center!r}, entries={len(self)}, head='{self.head[:8]}...')"

    def _verified(self) -> "_Chain":
        chain = _Chain(self._key.public)
        damage = chain.follow(self._lines)
        if damage:
            raise LedgerError("{}: line {}: {}".format(self.path, *damage))
        if chain.header and chain.header.center != self.center:
            names = f"{chain.header.center!r}, not of {self.center!r}"
            raise LedgerError(f"{self.path}: line 1: this is the ledger of {names}")
        return chain


def verify(path: Path, public_key: str | None = None, head: str | None = None) -> Verdict:
    """Check every byte of a ledger, and find the first line that is not as the center wrote it.

    A file alone cannot show that its last lines were removed, nor that all of it was written again:
    give the center's `public_key`, and a `head` noted earlier, which must still be in the chain.
    """
    chain = _Chain(check_hex64("public_key", public_key), check_hex64("head", head))
    with open_lines(path) as file:
        line, problem = chain.follow(file) or (None, None)
    if problem is None and chain.wanted:
        problem = f"the head {head} is not in the chain: lines were removed or rewritten"
    center, key = (chain.header.center, chain.header.public_key) if chain.header else (None, None)
    return Verdict(problem is None, center, key, chain.entries, chain.head or None, problem, line)


def read(path: Path) -> tuple[Header, list[Entry]]:
    """What a ledger says, sound or not; raises where a line cannot be read."""
    with open_lines(path) as file:
        header = _decoded(next(file, b""), Header, f"{path}: line 1: ")
        lines = enumerate(file, 2)
        return header, [_decoded(line, Entry, f"{path}: line {n}: ") for n, line in lines]


def mend(path: Path) -> Path:
    """Move a last line that was cut short to a file next to the ledger, and return its path.

    An answer leaves a center only after its line is on disk, so a line that a crash cut short
    speaks of an answer that never left. A cut by hand looks the same: that is why a person calls
    this, and opening a ledger does not. All lines before must be sound; the chain goes on there.
    """
    with closing(LineFile(path)) as file:
        *lines, last = list(file) or [b"\n"]
        damage = _Chain().follow(lines)
        if damage or last.endswith(b"\n"):
            damaged = "line {}: {}".format(*damage) if damage else "the last line is whole"
            raise LedgerError(f"{path}: mend is for a last line cut short; {damaged}")
        return file.set_aside(last)


class _Chain:
    """Where a ledger stands; takes line after line, each of which must continue the one before."""

    def __init__(self, public_key: str | None = None, wanted: str | None = None) -> None:
        self.public_key = public_key
        self.wanted = wanted
        self.header: Header | None = None
        self.entries = 0
        self.head = ""
        self.size = 0  # in bytes
        self.recent: dict[tuple[str, str], Entry] = {}

    def follow(self, lines: Iterable[bytes]) -> tuple[int, str] | None:
        """The number of the first line that is not sound and what is wrong with it, if any."""
        number = 0
        for number, line in enumerate(lines, 1):
            try:
                self._take(line)
            except LedgerError as error:
                return number, str(error)
        return None if number else (1, "the file is empty, a ledger begins with a header")

    def _take(self, raw: bytes) -> None:
        line = _decoded(raw, Entry) if self.header else _decoded(raw, Header)
        if _encoded(line) != raw:
            raise LedgerError("not as a ledger writes it (spaces, escapes or order of the fields)")
        if _digest(raw) != line.hash:
            raise LedgerError("the hash of the line does not match")
        if isinstance(line, Header):
            self._check_header(line)
        else:
            self._check_entry(line)
        if not self._is_signed(line.signature, _SIGNED + line.hash.encode()):
            raise LedgerError("the signature is wrong")
        if isinstance(line, Header):
            self.header = line
        else:
            self.entries = line.number
            self.note(line)
        self.head = line.hash
        self.size += len(raw)
        if self.head == self.wanted:
            self.wanted = None

    def note(self, entry: Entry) -> None:
        """Keep an entry at hand for a question that is repeated."""
        if entry.ticket is not None:
            self.recent[entry.ticket, entry.question] = entry
            if len(self.recent) > _RECENT:
                del self.recent[next(iter(self.recent))]

    def _check_header(self, header: Header) -> None:
        if self.public_key not in (None, header.public_key):
            keys = f"{header.public_key}, not by {self.public_key}"
            raise LedgerError(f"signed by the key {keys}")
        self._is_signed = verifier(header.public_key)

    def _check_entry(self, entry: Entry) -> None:
        if entry.number != self.entries + 1:
            expected = f"expected {self.entries + 1}, found {entry.number}"
            raise LedgerError(f"the number is out of order: {expected}")
        if entry.previous != self.head:
            raise LedgerError("the link to the line before is broken")


_Line = TypeVar("_Line", Header, Entry)


def _sealed(line: _Line, key: CenterKey) -> _Line:
    """The line with its hash and signature in the place of the blanks."""
    digest = _digest(_encoded(line))
    return replace(line, hash=digest, signature=key.sign(_SIGNED + digest.encode()).hex())


def _encoded(line: Header | Entry) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _digest(line: bytes) -> str:
    return sha256(line[:-_SEAL_SIZE] + b"}").hexdigest()


def _decoded(line: bytes, kind: type[_Line], place: str = "") -> _Line:
    if line and not line.endswith(b"\n"):
        raise LedgerError(f"{place}cut short, as by a crash; `unpooled ledger mend` sets it aside")
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        name = kind.__name__.lower()
        raise LedgerError(f"{place}not the JSON of a ledger's {name}: {error}") from error


def _text(argument: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        rule = "must be UTF-8 text to be recorded"
        raise LedgerError(f"{argument} {rule}, and is not at byte {error.start + 1}") from None


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
