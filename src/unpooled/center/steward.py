"""Approval: what the steward must see before it leaves.

With `approval = "ask"` the gate holds everything that it would let out. Each held payload is a file
in a folder beside the ledger, named after the hash of the question and the exact bytes:

    Haifa.pending/3f2a91c46d01….json        the question, and the payload that would leave
    Haifa.pending/3f2a91c46d01….approved    the steward's decision on these bytes
    Haifa.pending/b07c55e91a2f….refused     and on this question, whatever its answer is

An approval is of these very bytes as the answer to this very question, so they may leave again for
it. A refusal is of the question: were it of the bytes, being held anew would tell the analyst that
the answer has changed. Both are remembered until the steward withdraws them.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

import msgspec

from unpooled.center.line_file import create_file, file_errors
from unpooled.errors import HeldError, InputError, LedgerError

Decision = Literal["approved", "refused"]

_FRESH = 10.0  # seconds since the question was last repeated


class HeldPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question, and what would leave in answer to it."""

    since: str
    question: str
    answer: str
    ticket: str | None  # of the question that waits, or waited last

    @property
    def name(self) -> str:
        """Its name: the hash of question and payload."""
        return _name(self.question.encode(), self.answer.encode())

    @property
    def short(self) -> str:
        """What the steward calls it by."""
        return self.name[:12]

    def file(self, decision: Decision) -> str:
        """Where a decision about it is written down."""
        answer = self.answer if decision == "approved" else ""
        return f"{_name(self.question.encode(), answer.encode())}.{decision}"


class Steward:
    """The steward's decisions, at one center."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with file_errors(f"{folder} cannot be made"):
            folder.mkdir(mode=0o700, exist_ok=True)

    def approves(self, question: bytes, answer: bytes, ticket: str | None) -> bool:
        """Whether these bytes may leave; raises `HeldError` until the steward has decided."""
        held = HeldPayload(
            since=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            question=question.decode(),
            answer=answer.decode(),
            ticket=ticket,
        )
        decision = decision_on(self._folder, held)
        if decision is None:
            self._hold(held)
            raise HeldError(held.name)
        return decision == "approved"

    def still_holds(self, name: str) -> bool:
        """Whether a payload still waits; notes that somebody waits for it."""
        path = self._folder / f"{name}.json"
        try:
            held = _read(path)
            if held is None or decision_on(self._folder, held) is not None:
                return False
            os.utime(path)
        except (OSError, LedgerError):  # recorded in the meantime, or changed: ask the gate
            return False
        return True

    def settle(self, question: bytes, answer: bytes) -> None:
        """Forget a payload that the ledger has now; the decision on it stays."""
        with suppress(OSError):  # what stays is settled all the same: the ledger has it
            (self._folder / f"{_name(question, answer)}.json").unlink()

    def refused(self) -> list[HeldPayload]:
        """What the steward refused and the ledger does not have yet."""
        waiting = _held(self._folder)
        return [held for held in waiting if decision_on(self._folder, held) == "refused"]

    def _hold(self, held: HeldPayload) -> None:
        path = self._folder / f"{held.name}.json"
        before = _read(path)
        if before is not None:
            held = msgspec.structs.replace(held, since=before.since)
        draft = path.with_name(f".{held.name}.{os.urandom(4).hex()}")
        with file_errors(f"{path} cannot be written, nothing left"):
            create_file(draft, msgspec.json.encode(held))
            draft.replace(path)


def decision_on(folder: Path, held: HeldPayload) -> Decision | None:
    """What the steward decided; None where he has not yet."""
    if (folder / held.file("refused")).exists():
        return "refused"
    return "approved" if (folder / held.file("approved")).exists() else None


def pending(folder: Path) -> list[HeldPayload]:
    """What waits for the steward, the oldest first."""
    undecided = [held for held in _held(folder) if decision_on(folder, held) is None]
    return sorted(undecided, key=lambda h: (h.since, h.name))


def decided(folder: Path) -> list[tuple[HeldPayload, Decision]]:
    """The decisions in force, the oldest first."""
    found: list[tuple[float, HeldPayload, Decision]] = []
    for decision in get_args(Decision):
        for path in folder.glob(f"[!.]*.{decision}"):
            held = _read(path)
            if held is not None and decision_on(folder, held) == decision:
                found.append((path.stat().st_mtime, held, decision))
    return [(held, decision) for _, held, decision in sorted(found, key=lambda f: f[0])]


def is_waited_for(folder: Path, held: HeldPayload) -> bool:
    """Whether the analyst still waits for it."""
    try:
        return time.time() - (folder / f"{held.name}.json").stat().st_mtime < _FRESH
    except OSError:
        return False


def find(folder: Path, name: str | None) -> HeldPayload:
    """The payload that the steward means: by its name, the beginning of it, or the only one."""
    held = pending(folder)
    if not held:
        raise InputError("nothing waits for the steward")
    return _meant(held, name, "payloads that wait")


def decide(folder: Path, held: HeldPayload, decision: Decision) -> None:
    """Write the steward's decision down; the center finds it."""
    with file_errors(f"the decision cannot be written in {folder}"), suppress(FileExistsError):
        create_file(folder / held.file(decision), msgspec.json.encode(held))


def withdraw(folder: Path, name: str | None) -> tuple[HeldPayload, Decision]:
    """Take a decision back: the next such question is held anew."""
    decisions = decided(folder)
    if not decisions:
        raise InputError("no decision is in force")
    held = _meant([held for held, _ in decisions], name, "decisions")
    decision = next(decision for other, decision in decisions if other is held)
    with file_errors(f"the decision in {folder} cannot be withdrawn"):
        for either in get_args(Decision):  # decided twice at once, the refusal is in force
            (folder / held.file(either)).unlink(missing_ok=True)
    return held, decision


def _meant(held: Sequence[HeldPayload], name: str | None, what: str) -> HeldPayload:
    meant = [h for h in held if h.name.startswith(name or "")]
    if len(meant) == 1:
        return meant[0]
    names = ", ".join(h.short for h in held)
    if name is None:
        raise InputError(f"there are {len(held)} {what}, say which: {names}")
    found = "none" if not meant else "more than one"
    raise InputError(f"{name!r} names {found} of the {what}. There are: {names}")


def _held(folder: Path) -> list[HeldPayload]:
    held = (_read(path) for path in folder.glob("[!.]*.json"))
    return [h for h in held if h is not None]


def _name(question: bytes, answer: bytes) -> str:
    return sha256(len(question).to_bytes(8) + question + answer).hexdigest()


def _read(path: Path) -> HeldPayload | None:
    """The payload in a file; None where it is gone in the meantime."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror}") from error
    try:
        held = msgspec.json.decode(content, type=HeldPayload)
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{path} is not a held payload: {error}") from error
    if path.name not in (f"{held.name}.json", held.file("approved"), held.file("refused")):
        raise LedgerError(f"{path} was changed: its content is not what it was named after")
    return held
