"""Approval: what the steward must see before it leaves.

With `approval = "ask"` the gate holds everything that it would let out. Each held payload is a file
in a folder beside the ledger, named after the hash of the question and the exact bytes:

    Haifa.pending/3f2a91c46d01….json        the question, and the payload that would leave
    Haifa.pending/3f2a91c46d01….approved    the steward's decision
    Haifa.pending/3f2a91c46d01….refused

An approval is of these very bytes as the answer to this very question, so they may leave again for
it. A refusal is recorded in the ledger and then forgotten: the next such question is held anew.
"""

import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from unpooled.errors import HeldError, InputError, LedgerError
from unpooled.line_file import create_file, file_errors

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


class Steward:
    """The steward's decisions, at one center."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with file_errors(f"{folder} cannot be made"):
            folder.mkdir(mode=0o700, exist_ok=True)

    def approves(self, question: bytes, answer: bytes, ticket: str | None) -> bool:
        """Whether these bytes may leave; raises `HeldError` until the steward has decided."""
        name = _name(question, answer)
        decided = self.decision(name)
        if decided is None:
            self._hold(name, question, answer, ticket)
            raise HeldError(name)
        return decided == "approved"

    def decision(self, name: str) -> Decision | None:
        """What the steward decided; None where he has not yet."""
        if (self._folder / f"{name}.refused").exists():
            return "refused"
        return "approved" if (self._folder / f"{name}.approved").exists() else None

    def still_holds(self, name: str) -> bool:
        """Whether a payload still waits; notes that somebody waits for it."""
        if self.decision(name) is not None:
            return False
        try:
            os.utime(self._folder / f"{name}.json")
        except OSError:  # a decision was recorded in the meantime
            return False
        return True

    def settle(self, question: bytes, answer: bytes) -> None:
        """Forget a payload that the ledger has now; an approval of it stays."""
        name = _name(question, answer)
        for suffix in (".json", ".refused"):
            with suppress(OSError):  # what stays is settled all the same: the ledger has it
                (self._folder / f"{name}{suffix}").unlink()

    def refused(self) -> list[HeldPayload]:
        """What the steward refused and the ledger does not have yet."""
        names = (path.with_suffix(".json") for path in self._folder.glob("*.refused"))
        return [held for path in names if (held := _read(path)) is not None]

    def _hold(self, name: str, question: bytes, answer: bytes, ticket: str | None) -> None:
        path = self._folder / f"{name}.json"
        before = _read(path)
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        held = HeldPayload(
            since=since if before is None else before.since,
            question=question.decode(),
            answer=answer.decode(),
            ticket=ticket,
        )
        draft = path.with_name(f".{name}.{os.urandom(4).hex()}")
        with file_errors(f"{path} cannot be written, nothing left"):
            create_file(draft, msgspec.json.encode(held))
            draft.replace(path)


def pending(folder: Path) -> list[HeldPayload]:
    """What waits for the steward, the oldest first."""
    steward = Steward(folder)
    held = [_read(path) for path in folder.glob("[!.]*.json")]
    undecided = [h for h in held if h is not None and steward.decision(h.name) is None]
    return sorted(undecided, key=lambda h: (h.since, h.name))


def is_waited_for(folder: Path, held: HeldPayload) -> bool:
    """Whether the analyst still waits for it."""
    try:
        return time.time() - (folder / f"{held.name}.json").stat().st_mtime < _FRESH
    except OSError:
        return False


def find(folder: Path, name: str | None) -> HeldPayload:
    """The one that the steward means: by its name, the beginning of it, or the only one."""
    held = pending(folder)
    if not held:
        raise InputError("nothing waits for the steward")
    meant = [h for h in held if h.name.startswith(name or "")]
    if len(meant) != 1:
        names = ", ".join(h.short for h in held)
        if name is None:
            raise InputError(f"{len(held)} payloads wait, say which. There are: {names}")
        found = "none" if not meant else "more than one"
        raise InputError(f"{name!r} names {found} of the payloads that wait. There are: {names}")
    return meant[0]


def decide(folder: Path, held: HeldPayload, decision: Decision) -> None:
    """Write the steward's decision down; the center finds it."""
    with file_errors(f"the decision cannot be written in {folder}"), suppress(FileExistsError):
        create_file(folder / f"{held.name}.{decision}", b"")


def _name(question: bytes, answer: bytes) -> str:
    return sha256(len(question).to_bytes(8) + question + answer).hexdigest()


def _read(path: Path) -> HeldPayload | None:
    """The payload in a file; None where it was settled in the meantime."""
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
    if held.name != path.stem:
        raise LedgerError(f"{path} was changed: its content is not what it was named after")
    return held
