"""What left a center before: read from its ledger, and compared with what would leave now."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from unpooled.apps.workbench.desk.folder import CenterFolder
from unpooled.apps.workbench.desk.release import Key, Leaving, leaving
from unpooled.apps.workbench.in_words.question import read_question, variables_of
from unpooled.apps.workbench.in_words.words import Words
from unpooled.center.approval.steward import HeldPayload
from unpooled.center.questions import decode_answer
from unpooled.center.records.ledger import Entry, Verdict, read, verify
from unpooled.center.rule.memory import memory_path, read_refusals
from unpooled.errors import LedgerError, MessageError


@dataclass(frozen=True, slots=True)
class Earlier:
    """A number that left, and in which entry it did so last."""

    text: str
    entry: int


@dataclass(slots=True)
class Record:
    """A ledger as it was read: its entries, whether it is sound, and every number in it."""

    entries: Sequence[Entry] = ()
    verdict: Verdict | None = None
    problem: str | None = None  # why its entries cannot be read
    against: dict[int, str] = field(default_factory=dict)  # refusal → what stands against it
    numbers: dict[Key, Earlier] = field(default_factory=dict)
    about: dict[str, list[Entry]] = field(default_factory=dict)  # variable → its answers

    def entry_of(self, held: HeldPayload) -> Entry | None:
        """Where these very bytes left as the answer to this question."""
        same = (e for e in reversed(self.entries) if e.question == held.question)
        return next((entry for entry in same if entry.answer == held.answer), None)

    def answers_about(self, variables: Sequence[str]) -> list[Entry]:
        """The answers about any of some variables, the newest first."""
        entries = {e.number: e for name in variables for e in self.about.get(name, ())}
        return [entries[number] for number in sorted(entries, reverse=True)]


@dataclass(frozen=True, slots=True)
class Difference:
    """How an answer stands to what left before."""

    new: int
    same: int
    other: int

    @classmethod
    def between(cls, leaves: Leaving, record: Record) -> "Difference":
        """Count the numbers that are new, the same, or others than before."""
        cells = [cell for part in leaves.parts for _, cell in part.cells if cell.key is not None]
        earlier = [(cell, record.numbers.get(cell.key)) for cell in cells if cell.key]
        new = sum(before is None for _, before in earlier)
        same = sum(before is not None and before.text == cell.text for cell, before in earlier)
        return cls(new, same, len(cells) - new - same)


@dataclass(slots=True)
class LedgerReader:
    """Reads a ledger again only where its file has changed."""

    folder: CenterFolder
    words: Words
    _mark: tuple[int, int] | None = None
    _record: Record = field(default_factory=Record)

    def read(self) -> Record:
        """The ledger as it is now; without entries where there is none yet."""
        try:
            state = self.folder.ledger.stat()
        except OSError:
            return Record()
        mark = (state.st_mtime_ns, state.st_size)
        if mark != self._mark:
            self._record, self._mark = self._fresh(), mark
        return self._record

    def _fresh(self) -> Record:
        path = self.folder.ledger
        verdict = verify(path, self.folder.public_key())
        try:
            _, entries = read(path)
        except LedgerError as error:
            return Record(verdict=verdict, problem=str(error))
        record = Record(entries, verdict)
        try:
            record.against = dict(read_refusals(memory_path(path)))
        except LedgerError:  # the page of the check says what is wrong with it
            record.against = {}
        for entry in entries:
            if entry.kind == "release":
                self._note(record, entry)
        return record

    def _note(self, record: Record, entry: Entry) -> None:
        question = read_question(entry.question)
        try:
            leaves = leaving(question, decode_answer(entry.answer.encode()), self.words)
        except MessageError:
            return
        for variable in variables_of(question):
            record.about.setdefault(variable, []).append(entry)
        for part in leaves.parts:
            for _, cell in part.cells:
                if cell.key is not None:
                    record.numbers[cell.key] = Earlier(cell.text, entry.number)
