"""The memory of a center: what its answers released about which people, in one list for the rule.

Sets that words choose are judged over all variables, and together with the cells of every
variable; cells of a variable, those who lack a value among them, together with that variable's own.
The memory belongs to the people: were they others than when it began, nothing could be judged.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from unpooled.center.cohort.words import Words
from unpooled.center.questions import CatalogueQuestion, Disclosure, decode_question
from unpooled.center.questions.message import put_together
from unpooled.center.records.keys import Hex64
from unpooled.center.records.ledger import Ledger
from unpooled.center.records.line_file import LineFile
from unpooled.center.rule.disclosure import Crowds, Told, TooClose, crowds
from unpooled.center.rule.fingerprint import people_changed
from unpooled.errors import LedgerError
from unpooled.maths import big_arrays
from unpooled.maths.arrays import BoolArray, FloatArray, Places

_FORMAT = "unpooled memory 4"
_FAMILIES = 3  # of tables whose edges are tried

Fingerprint = Callable[[str | None], str]  # of the people, compared with an earlier one
Values = Callable[[], FloatArray]  # the value of each person, NaN where there is none
Key = tuple[str | None, tuple[float, ...] | None, str]  # grouping, cuts, group


class PackedSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A set that words chose, with the words."""

    key: Key
    words: tuple[str, ...]
    people: str
    nearest: bool = False


class PackedDisclosure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an answer released about which people."""

    part: str
    numbers: dict[str, tuple[int, ...]]
    parts: int
    edges: tuple[float, ...] = ()
    tables: tuple[tuple[int, int, tuple[float, ...]], ...] = ()


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one entry of the ledger added; for a refusal, which earlier answer stands against it."""

    number: int
    digest: Hex64
    about: str
    sets: tuple[PackedSet, ...] = ()
    tells: tuple[PackedDisclosure, ...] = ()
    crowds: dict[str, tuple[str, int]] = {}
    rows: dict[str, tuple[str, ...]] = {}
    against: int | None = None
    people: str | None = None  # the fingerprint from here on: the same people, more columns


class MemoryHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line: whose memory this is, and of which people."""

    format: str
    center: str
    people: str


@dataclass(frozen=True, slots=True)
class ToldSet:
    """A set that words chose."""

    key: Key
    words: Words
    people: bytes  # packed bits
    nearest: bool = False  # whether they are those of an earlier set, in place of the words' own

    def differs(self, bits: bytes) -> int:
        """By how many people another set differs."""
        some, others = (np.frombuffer(b, dtype=np.uint8) for b in (self.people, bits))
        return int(np.bitwise_count(some ^ others).sum())


@dataclass(frozen=True, slots=True)
class ToldTable:
    """Where a table of a variable was cut, and which people it described."""

    variable: str
    edges: FloatArray
    people: bytes


@dataclass(frozen=True, slots=True)
class Draft:
    """All that was released, and what one more answer would tell; nothing is remembered yet."""

    size: int
    words: Told
    variables: Mapping[str, Told] = field(default_factory=dict)
    sets: tuple[ToldSet, ...] = ()
    tables: tuple[ToldTable, ...] = ()
    rows: Mapping[str, Words] = field(default_factory=dict)
    new: tuple[Disclosure, ...] = ()
    new_crowds: Mapping[str, Crowds] = field(default_factory=dict)

    def tell(
        self,
        disclosure: Disclosure,
        answer: int,
        values: Values,
        *,
        judged: bool = True,
        search: bool = True,
    ) -> "Draft":
        """The draft with one more disclosure; raises TooClose, unless it is not to be judged."""
        new_crowds = dict(self.new_crowds)
        tell = partial(Told.tell, search=search) if judged else Told.heard
        if not disclosure.numbers:
            part, ones = disclosure.part, np.ones(len(disclosure.counts), dtype=np.int64)
            words = tell(self.words, part, ones, answer)
            lists = {v: tell(one, part, ones, answer) for v, one in self.variables.items()}
            return replace(self, words=words, variables=lists, new=(*self.new, disclosure))
        if self._is_known(disclosure):
            return self
        lists, tables = dict(self.variables), self.tables
        for variable, numbers in disclosure.numbers.items():
            one, each = lists.get(variable, self.words), np.array(numbers, dtype=np.int64)
            if each.max(initial=1) > 1 and not one.knows:
                new_crowds[variable] = crowds(values())
                one = one.knowing(new_crowds[variable])
            lists[variable] = tell(one, disclosure.part, each, answer)
        last = len(disclosure.counts)
        cut_at = [(1, last, disclosure.edges)] if disclosure.edges else disclosure.tables
        for first, last, edges in cut_at:
            inside = (disclosure.part >= first) & (disclosure.part <= last)
            cut = next(iter(disclosure.numbers))
            tables = (*tables, ToldTable(cut, np.array(edges), bits(inside)))
        return replace(
            self, variables=lists, tables=tables, new=(*self.new, disclosure), new_crowds=new_crowds
        )

    def tell_all(
        self, disclosures: Iterable[Disclosure], answer: int, values: Values, *, blocks: bool
    ) -> "Draft":
        """The draft with several disclosures; raises TooClose.

        Those of `blocks` are judged together first, and one after the other where that fails.
        """
        each = [one for one in disclosures if not one.numbers or not self._is_known(one)]
        if blocks:
            with suppress(TooClose):
                return self.tell_blocks(each, answer, values)
        draft = self
        for one in each:
            draft = draft.tell(one, answer, values, search=not blocks)
        return draft

    def tell_blocks(
        self, disclosures: Iterable[Disclosure], answer: int, values: Values
    ) -> "Draft":
        """The draft with disclosures of different people, judged as one; raises TooClose."""
        each = [one for one in disclosures if not one.numbers or not self._is_known(one)]
        draft = self
        for one in put_together(each):
            draft = draft.tell(one, answer, values, search=False)
        return draft

    def _is_known(self, disclosure: Disclosure) -> bool:
        """Whether it counts a set that words chose already, and nothing else."""
        alone = all(numbers == (1,) for numbers in disclosure.numbers.values())
        mark = bits(disclosure.part > 0) if alone and not disclosure.edges else None
        return any(one.people == mark for one in self.sets)

    def choose(
        self, key: Key, words: Words, people: BoolArray, answer: int, *, nearest: bool = False
    ) -> "Draft":
        """The draft with a set that words chose; raises TooClose."""
        chosen = ToldSet(key, words, bits(people), nearest)
        if chosen in self.sets:
            return self
        part = big_arrays.mapped(np.int32, lambda chosen: chosen, people)
        draft = self.tell(Disclosure(part, (None,)), answer, _no_values)
        if self.recorded(key, words) is not None:
            return draft
        return replace(draft, sets=(*draft.sets, chosen))

    def gathered(self, answer: int) -> "Draft":
        """The same in fewer disclosures, once an answer is whole."""
        words = self.words.gathered(answer)
        lists = {v: one.gathered(answer) for v, one in self.variables.items()}
        return replace(self, words=words, variables=lists)

    def choose_blocks(self, name: str, blocks: Mapping[str, BoolArray], answer: int) -> "Draft":
        """The draft with sets that words chose together, each person being in one; or TooClose."""
        sets = tuple(
            ToldSet((name, None, block), frozenset(), bits(people))
            for block, people in blocks.items()
        )
        if all(one in self.sets for one in sets):
            return self
        part = np.zeros(self.size, dtype=np.int32)
        for number, people in enumerate(blocks.values(), 1):
            part[people] = number
        whole = Disclosure(part, (None,) * len(sets))
        draft = self.tell(whole, answer, _no_values, search=False)
        return replace(draft, sets=(*draft.sets, *(one for one in sets if one not in self.sets)))

    def at(self, k: int) -> "Draft":
        """The same, judged by another K from here on."""
        lists = {variable: replace(one, k=k) for variable, one in self.variables.items()}
        return replace(self, words=replace(self.words, k=k), variables=lists)

    def tells_as(self, other: "Draft") -> bool:
        """Whether it has the very list of another, whatever the K."""
        return self.words.elements is other.words.elements and (
            {v: id(one.elements) for v, one in self.variables.items()}
            == {v: id(one.elements) for v, one in other.variables.items()}
        )

    def recorded_now(self) -> "Draft":
        """The same, with nothing that is still to be written down."""
        return replace(self, new=(), new_crowds={})

    def fresh(self) -> "Draft":
        """As if nothing had been released."""
        return Draft(self.size, Told.nothing(self.size, self.words.k))

    def follows(self, people: BoolArray) -> bool:
        """Whether a set is a combination of those that were released."""
        return self.words.follows(people.astype(np.int32))

    def nearest(self, key: Key, people: BoolArray, k: int) -> BoolArray | None:
        """The set of the same group that was released and differs by fewer than K people."""
        mark = bits(people)
        near = [(one.differs(mark), one) for one in self.sets if one.key == key]
        least = min((far for far, _ in near), default=k)
        if least >= k:
            return None
        return from_bits(next(one.people for far, one in near if far == least), self.size)

    def recorded(self, key: Key, words: Words) -> ToldSet | None:
        """The set that these very words chose before."""
        same = (one for one in self.sets if one.key == key and one.words == words)
        return next(same, None)

    def edges(self, variable: str, people: BoolArray) -> list[FloatArray]:
        """Edges that were released before, and that a table of these people may share.

        Those of the smallest table that has them all; of these, what tables of others have too,
        so that the rest of a grouping follows; what tables have whose people are these together;
        and what all tables have.
        """
        these = np.frombuffer(bits(people), dtype=np.uint8)
        size, whole, most = 0, None, None
        apart: list[FloatArray] = []
        for table in self.tables:
            theirs = np.frombuffer(table.people, dtype=np.uint8)
            if table.variable != variable:
                continue
            if not (these & theirs).any():
                apart.append(table.edges)
                continue
            most = table.edges if most is None else np.intersect1d(most, table.edges)
            count = int(np.bitwise_count(theirs).sum())
            if not (these & ~theirs).any() and (whole is None or count < size):
                size, whole = count, table.edges
        shared = [] if whole is None else [whole, *(np.intersect1d(whole, e) for e in apart[-3:])]
        shared += self._together(variable, these)
        shared += [] if most is None else [most]
        return list({edges.tobytes(): edges for edges in shared if len(edges)}.values())

    def _together(self, variable: str, these: NDArray[np.uint8]) -> list[FloatArray]:
        """What tables of some of these people share that have each of them once; latest first."""
        shared: list[FloatArray] = []
        mine, edges = np.zeros_like(these), list[FloatArray]()
        for table in reversed(self.tables):
            theirs = np.frombuffer(table.people, dtype=np.uint8)
            if table.variable != variable or (theirs & ~these).any():
                continue
            if (theirs & mine).any():  # another family begins
                mine, edges = np.zeros_like(these), []
            mine, edges = mine | theirs, [*edges, table.edges]
            if len(edges) > 1 and np.array_equal(mine, these):
                shared.append(reduce(np.intersect1d, edges))
                mine, edges = np.zeros_like(these), []
        return shared[:_FAMILIES]

    def rest(self, variable: str, people: BoolArray) -> FloatArray | None:
        """Edges at which a table of these people follows from those of others; None if none.

        They and the people of the latest tables are together those of earlier ones.
        """
        these = np.frombuffer(bits(people), dtype=np.uint8)
        mine, together = these, np.zeros_like(these)
        apart: list[FloatArray] = []
        crossing: list[FloatArray] = []
        for table in reversed(self.tables):
            theirs = np.frombuffer(table.people, dtype=np.uint8)
            if table.variable != variable or np.array_equal(theirs, these):
                continue
            if not (mine & theirs).any():
                mine = mine | theirs
                apart.append(table.edges)
            elif (these & theirs).any():
                together = together | theirs
                crossing.append(table.edges)
        if not apart or not crossing or (together & ~mine).any() or (mine & ~together).any():
            return None
        return reduce(np.intersect1d, [*apart, *crossing])

    def about_rows(self, variable: str, words: Words) -> "Draft":
        """The draft where these words say which rows of a person count; raises TooClose.

        A person has one value of a variable: the first answer about it says of which rows.
        """
        if self.rows.get(variable, words) != words:
            raise TooClose
        return replace(self, rows={**self.rows, variable: words})


class Memory:
    """What a center's answers have released, kept next to its ledger."""

    def __init__(self, k: int, people: int, file: "MemoryFile") -> None:
        self._file = file
        self.state = Draft(people, Told.nothing(people, k))
        self._about: dict[int, str] = {}
        self.against: dict[int, int] = {}  # refused entry → the earlier one that stands against it
        for line in () if file.changed else file.lines:
            self.state = _again(self.state, line)
            self._about[line.number] = line.about
            if line.against is not None:
                self.against[line.number] = line.against
        file.lines.clear()

    @property
    def changed(self) -> bool:
        """Whether the people are others than when the memory began."""
        return self._file.changed

    def about(self, number: int) -> str:
        """What an answer was about, in words."""
        return self._about.get(number, f"answer {number}")

    def record(
        self,
        number: int,
        digest: str,
        about: str,
        draft: Draft | None,
        against: int | None = None,
    ) -> None:
        """Put on disk what an entry of the ledger tells about which people."""
        if not self._file.kept:
            return
        line = Line(number=number, digest=digest, about=about, against=against)
        if draft is not None:
            line = msgspec.structs.replace(line, **_packed(self.state, draft))
        self._file.append(line)

    def remember(
        self, number: int, about: str, draft: Draft | None, against: int | None = None
    ) -> None:
        """Count it as released."""
        self._about[number] = about
        if against is not None:
            self.against[number] = against
        if draft is not None:
            self.state = draft.gathered(number).recorded_now().at(self.state.words.k)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class MemoryFile:
    """The memory on disk: one JSON object a line, a header first; without a path it is not kept.

    A line is written before the ledger's, so that nothing leaves that is not remembered. A line
    whose answer never left, after a crash, does no harm: the center remembers more than it said.
    """

    def __init__(
        self, center: str, path: Path | None, ledger: Ledger, people: Fingerprint | None = None
    ) -> None:
        self.lines: list[Line] = []
        self.changed = False
        self._file: LineFile | None = None
        if path is None:
            return
        now = ""
        if not path.exists():
            _check_ledger(path, ledger, set())
            now = "" if people is None else people(None)
        first = msgspec.json.encode(MemoryHeader(_FORMAT, center, now)) + b"\n"
        self._file = LineFile(path, first)
        try:
            before = self._read(path, center, ledger)
            if people is not None and not now:
                self._compare(before, people(before))
        except LedgerError:
            self.close()
            raise

    def _compare(self, before: str, now: str) -> None:
        """Note whether the people are others; new columns of the same people are written down."""
        self.changed = people_changed(before, now) is not None
        if not self.changed and now != before:
            self.append(Line(number=0, digest="0" * 64, about="more columns", people=now))

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

    def _read(self, path: Path, center: str, ledger: Ledger) -> str:
        """Read the lines; the fingerprint of the people whom they describe."""
        assert self._file is not None
        size, remembered, people = 0, set(), ""
        for number, raw in enumerate(self._file, 1):
            if not raw.endswith(b"\n"):
                break  # cut short by a crash: its answer never left
            if number == 1:
                people = _header(path, raw, center).people
            else:
                line = _decoded(path, number, raw)
                self.lines.append(line)
                remembered.add((line.number, line.digest))
                people = line.people or people
            size += len(raw)
        _check_ledger(path, ledger, remembered)
        self._size = size
        return people


def memory_path(ledger: Path) -> Path:
    """Where the memory that belongs to a ledger lies."""
    return ledger.with_name(f"{ledger.stem}.memory")


def read_refusals(path: Path) -> dict[int, str]:
    """Entry of the ledger → the earlier question that stands against it, in words."""
    about: dict[int, str] = {}
    days: dict[int, str] = {}
    if not path.exists():
        return days
    for raw in path.read_bytes().splitlines()[1:]:
        with suppress(msgspec.MsgspecError):
            line = msgspec.json.decode(raw, type=Line)
            about[line.number] = line.about
            if line.against is not None:
                days[line.number] = f"entry {line.against}, {about.get(line.against, '')}"
    return days


def answer_digest(question: bytes, answer: bytes) -> str:
    """Ties a line of the memory to one of the ledger."""
    return sha256(question + b"\n" + answer).hexdigest()


def bits(people: BoolArray) -> bytes:
    """A set, eight people in a byte."""
    return b"".join(
        np.packbits(people[piece]).tobytes() for piece in big_arrays.pieces(len(people))
    )


def from_bits(packed: bytes, size: int) -> BoolArray:
    """A set from its bits."""
    people, unpacked = big_arrays.full(size, False, bool), np.frombuffer(packed, dtype=np.uint8)
    for piece in big_arrays.pieces(size):  # of whole bytes
        some = unpacked[piece.start // 8 : -(-piece.stop // 8)]
        people[piece] = np.unpackbits(some, count=piece.stop - piece.start)
    return people


def _no_values() -> FloatArray:
    return np.zeros(0)


def _packed(before: Draft, draft: Draft) -> dict[str, object]:
    return {
        "sets": tuple(
            PackedSet(one.key, tuple(sorted(one.words)), _text(one.people), one.nearest)
            for one in draft.sets[len(before.sets) :]
        ),
        "tells": tuple(
            PackedDisclosure(
                _text(_narrow(disclosure.part)),
                dict(disclosure.numbers),
                len(disclosure.counts),
                disclosure.edges,
                disclosure.tables,
            )
            for disclosure in draft.new
        ),
        "crowds": {v: (_text(_narrow(c.of)), c.others) for v, c in draft.new_crowds.items()},
        "rows": {v: tuple(sorted(w)) for v, w in draft.rows.items() if v not in before.rows},
    }


def _again(before: Draft, line: Line) -> Draft:
    """What the center knew after a line."""
    draft, size = before, before.size
    new_crowds = {v: Crowds(_wide(text, size), others) for v, (text, others) in line.crowds.items()}
    for disclosure in line.tells:
        for variable in disclosure.numbers:
            if variable in new_crowds and not draft.variables.get(variable, draft.words).knows:
                elements = draft.variables.get(variable, draft.words).knowing(new_crowds[variable])
                draft = replace(draft, variables={**draft.variables, variable: elements})
        part = _wide(disclosure.part, size)
        again = Disclosure(
            part,
            (None,) * disclosure.parts,
            disclosure.numbers,
            disclosure.edges,
            disclosure.tables,
        )
        draft = draft.tell(again, line.number, _no_values, judged=False)
    sets = tuple(ToldSet(s.key, frozenset(s.words), _bytes(s.people), s.nearest) for s in line.sets)
    rows = {**draft.rows, **{v: frozenset(w) for v, w in line.rows.items()}}
    return replace(draft, sets=(*draft.sets, *sets), rows=rows).gathered(line.number).recorded_now()


def _narrow(part: Places) -> bytes:
    kind = np.min_scalar_type(int(part.max(initial=0)))
    return bytes(kind.char, "ascii") + part.astype(kind).tobytes()


def _wide(text: str, size: int) -> Places:
    raw = _bytes(text)
    return np.frombuffer(raw[1:], dtype=chr(raw[0]), count=size).astype(np.int32)


def _text(content: bytes) -> str:
    return b64encode(zlib.compress(content, 1)).decode()


def _bytes(text: str) -> bytes:
    return zlib.decompress(b64decode(text))


def _header(path: Path, raw: bytes, center: str) -> MemoryHeader:
    with suppress(msgspec.MsgspecError):
        header = msgspec.json.decode(raw, type=MemoryHeader)
        if header.format == _FORMAT and header.center == center:
            return header
    wrong = f"this is not the memory of {center}"
    with suppress(msgspec.MsgspecError):
        written = msgspec.json.decode(raw)
        if isinstance(written, dict) and written.get("format") != _FORMAT:
            wrong = "another version wrote it. Begin a new ledger and memory; keep the old ones"
    raise LedgerError(f"{path}: line 1: {wrong}")


def _decoded(path: Path, number: int, raw: bytes) -> Line:
    try:
        return msgspec.json.decode(raw, type=Line)
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{path}: line {number}: not a line of a memory: {error}") from error


def _check_ledger(path: Path, ledger: Ledger, remembered: Iterable[tuple[int, str]]) -> None:
    """Raise where the ledger has an answer about people that the memory does not know."""
    lines = set(remembered)
    for entry in ledger:
        if entry.kind != "release":
            continue
        question = entry.question.encode()
        if isinstance(decode_question(question), CatalogueQuestion):
            continue
        if (entry.number, answer_digest(question, entry.answer.encode())) not in lines:
            raise LedgerError(
                f"{path}: the memory does not know the ledger's answer {entry.number}, so no "
                "question can be judged together with it. Restore the memory from a backup, or "
                "begin a new ledger and a new memory (docs/steward.md says what that gives up)"
            )
