"""Approval: what the steward must see before it leaves.

With `approval = "ask"` the gate holds everything that it would let out. Each held payload is a file
in a folder next to the ledger, named after the hash of the question and the exact bytes:

    Haifa.pending/3f2a91c46d01….json        the question, and the payload that would leave
    Haifa.pending/3f2a91c46d01….approved    the steward's decision on these bytes
    Haifa.pending/3f2a91c46d01….0530….approved   the same by a reviewer, who signs with a key
    Haifa.pending/b07c55e91a2f….refused     and on this question, whatever its answer is
    Haifa.pending/reviews.jsonl             who decided what and when, also what was withdrawn

An approval is of these very bytes as the answer to this very question, so they may leave again for
it. A refusal is of the question: were it of the bytes, being held again would tell the analyst that
the answer has changed. Both are remembered until the steward withdraws them.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from unpooled.center.approval.reviewers import STEWARD, Reviewer, Reviewers
from unpooled.center.records.line_file import create_file, file_errors
from unpooled.errors import HeldError, InputError, LedgerError

Decision = Literal["approved", "refused"]

MOST_REASON = 500  # letters
_FRESH = 10.0  # seconds since the question was last repeated


class HeldPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question, and what would leave in answer to it."""

    since: str
    question: str
    answer: str
    ticket: str | None  # of the question that waits, or waited last
    asker: str | None = None  # the analyst, as far as the network says who it is
    share: tuple[str, ...] = ()  # of sealed shares: what they are of, which does not leave

    @property
    def name(self) -> str:
        """Its name: the hash of question and payload."""
        return _name(self.question.encode(), self.answer.encode())

    @property
    def short(self) -> str:
        """What the steward calls it by."""
        return self.name[:12]

    def file(self, decision: Decision, by: Reviewer | None = None) -> str:
        """Where a decision about it is written down."""
        if decision == "approved":
            suffix = "" if by is None else f".{by.public[:16]}"
            return f"{self.name}{suffix}.approved"
        return f"{_name(self.question.encode(), b'')}.refused"


class Review(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What somebody decided on a payload. A reason stays at the center."""

    held: HeldPayload
    decision: Decision
    time: str
    by: str | None = None  # the reviewer
    reason: str | None = None
    signature: str | None = None


class ReviewNote(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the record of reviews."""

    time: str
    act: Literal["approved", "refused", "withdrawn"]
    by: str | None
    payload: str
    question: str
    reason: str | None = None


class Steward:
    """The steward's decisions, at one center; `asker` is who asks now."""

    def __init__(self, folder: Path, reviewers: Reviewers = STEWARD) -> None:
        self._folder = folder
        self._reviewers = reviewers
        self.asker: str | None = None
        with file_errors(f"{folder} cannot be made"):
            folder.mkdir(mode=0o700, exist_ok=True)

    def approves(
        self,
        question: bytes,
        answer: bytes,
        ticket: str | None,
        share: Sequence[str] = (),
    ) -> bool:
        """Whether these bytes may leave; raises `HeldError` until the steward has decided."""
        held = HeldPayload(
            since=_now(),
            question=question.decode(),
            answer=answer.decode(),
            ticket=ticket,
            asker=self.asker,
            share=tuple(share),
        )
        decision = decision_on(self._folder, held, self._reviewers)
        if decision is None:
            self._hold(held)
            raise HeldError(held.name)
        return decision == "approved"

    def still_holds(self, name: str) -> bool:
        """Whether a payload still waits; notes that somebody waits for it."""
        path = self._folder / f"{name}.json"
        try:
            held = _read(path)
            if held is None or decision_on(self._folder, held, self._reviewers) is not None:
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
        return [
            held
            for held in waiting
            if decision_on(self._folder, held, self._reviewers) == "refused"
        ]

    def _hold(self, held: HeldPayload) -> None:
        path = self._folder / f"{held.name}.json"
        before = _read(path)
        if before is not None:
            held = msgspec.structs.replace(held, since=before.since)
        draft = path.with_name(f".{held.name}.{os.urandom(4).hex()}")
        with file_errors(f"{path} cannot be written, nothing left"):
            create_file(draft, msgspec.json.encode(held))
            draft.replace(path)


def decision_on(folder: Path, held: HeldPayload, reviewers: Reviewers = STEWARD) -> Decision | None:
    """What was decided; None where not enough have decided yet. One refusal is enough."""
    if (folder / held.file("refused")).exists():
        return "refused"
    enough = len(approvals(folder, held, reviewers)) >= reviewers.needed
    return "approved" if enough else None


def approvals(folder: Path, held: HeldPayload, reviewers: Reviewers = STEWARD) -> list[Review]:
    """The approvals of a payload that count: one a reviewer, the oldest first."""
    counted: dict[str | None, Review] = {}
    reviews = (_read_review(path) for path in folder.glob(f"{held.name}*.approved"))
    for review in sorted((r for r in reviews if r is not None), key=lambda r: (r.time, r.by or "")):
        vouched = reviewers.vouch(review.by, "approved", held.name, review.signature)
        if vouched and review.decision == "approved" and _same(review.held, held):
            counted.setdefault(review.by if reviewers.keys else None, review)
    return list(counted.values())


def refusal(folder: Path, held: HeldPayload) -> Review | None:
    """The refusal of the question of a payload, if it is refused."""
    return _read_review(folder / held.file("refused"))


def pending(folder: Path, reviewers: Reviewers = STEWARD) -> list[HeldPayload]:
    """What waits for the steward, the oldest first."""
    undecided = [held for held in _held(folder) if decision_on(folder, held, reviewers) is None]
    return sorted(undecided, key=lambda h: (h.since, h.name))


def decided(folder: Path, reviewers: Reviewers = STEWARD) -> list[tuple[HeldPayload, Decision]]:
    """The decisions in force, the oldest first."""
    decisions: dict[str, tuple[str, HeldPayload, Decision]] = {}
    for path in (*folder.glob("[!.]*.approved"), *folder.glob("[!.]*.refused")):
        review = _read_review(path)
        if review is None or decision_on(folder, review.held, reviewers) != review.decision:
            continue
        name = review.held.file(review.decision)
        last = max(review.time, decisions[name][0] if name in decisions else "")
        decisions[name] = (last, review.held, review.decision)
    return [
        (held, decision) for _, held, decision in sorted(decisions.values(), key=lambda f: f[0])
    ]


def is_waited_for(folder: Path, held: HeldPayload) -> bool:
    """Whether the analyst still waits for it."""
    try:
        return time.time() - (folder / f"{held.name}.json").stat().st_mtime < _FRESH
    except OSError:
        return False


def find(folder: Path, name: str | None, reviewers: Reviewers = STEWARD) -> HeldPayload:
    """The payload that the steward means: by its name, the beginning of it, or the only one."""
    held = pending(folder, reviewers)
    if not held:
        raise InputError("nothing waits for the steward")
    return _meant(held, name, "payloads that wait")


def newer(folder: Path, held: HeldPayload) -> HeldPayload | None:
    """The payload that took the place of this one: the same question now has another answer."""
    same = [h for h in _held(folder) if h.question == held.question]
    times = {h.name: (folder / f"{h.name}.json").stat().st_mtime_ns for h in same}
    last = max(same, key=lambda h: (times[h.name], h.since), default=None)
    return None if last is None or last.name == held.name else last


def decide(
    folder: Path,
    held: HeldPayload,
    decision: Decision,
    by: Reviewer | None = None,
    reason: str | None = None,
    reviewers: Reviewers = STEWARD,
) -> None:
    """Write a decision on these very bytes down; the center finds it.

    Raises InputError where it is decided already, where the reviewer has approved it already, or
    where the question has another answer by now.
    """
    if reviewers.keys and (by is None or reviewers.keys.get(by.name) != by.public):
        names = ", ".join(reviewers.keys)
        raise InputError(f"only a reviewer of this center may decide. There are: {names}")
    if reason is not None and len(reason) > MOST_REASON:
        raise InputError(f"a reason may have {MOST_REASON} letters, got {len(reason)}")
    with _locked(folder):
        _check_undecided(folder, held, by, decision, reviewers)
        review = Review(
            held=held,
            decision=decision,
            time=_now(),
            by=None if by is None else by.name,
            reason=reason or None,
            signature=None if by is None else by.sign(reviewers.center, decision, held.name),
        )
        with file_errors(f"the decision cannot be written in {folder}"):
            with suppress(FileExistsError):
                create_file(folder / held.file(decision, by), msgspec.json.encode(review))
            _note(folder, decision, review.by, held, review.reason)


def withdraw(
    folder: Path,
    name: str | None,
    by: Reviewer | None = None,
    reviewers: Reviewers = STEWARD,
) -> tuple[HeldPayload, Decision]:
    """Take a decision back: the next such question is held again."""
    decisions = decided(folder, reviewers)
    if not decisions:
        raise InputError("no decision is in force")
    held = _meant([held for held, _ in decisions], name, "decisions")
    decision = next(decision for other, decision in decisions if other is held)
    with _locked(folder), file_errors(f"the decision in {folder} cannot be withdrawn"):
        # of a refusal by hand and an approval at once, the refusal is in force: both go
        (folder / held.file("refused")).unlink(missing_ok=True)
        for path in folder.glob(f"{held.name}*.approved"):
            path.unlink(missing_ok=True)
        _note(folder, "withdrawn", None if by is None else by.name, held, None)
    return held, decision


def retract(folder: Path, held: HeldPayload, by: Reviewer) -> None:
    """Take a reviewer's own approval back, where others have not approved yet."""
    with _locked(folder), file_errors(f"the approval in {folder} cannot be taken back"):
        (folder / held.file("approved", by)).unlink(missing_ok=True)
        _note(folder, "withdrawn", by.name, held, None)


def read_reviews(folder: Path) -> list[ReviewNote]:
    """Who decided what, the oldest first."""
    try:
        lines = (folder / _RECORD).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    try:
        return [msgspec.json.decode(line, type=ReviewNote) for line in lines]
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{folder / _RECORD} is not a record of reviews: {error}") from error


_RECORD = "reviews.jsonl"


def _check_undecided(
    folder: Path,
    held: HeldPayload,
    by: Reviewer | None,
    decision: Decision,
    reviewers: Reviewers,
) -> None:
    before = decision_on(folder, held, reviewers)
    if before is not None:
        raise InputError(f"{held.short} was {before} already. Nothing was changed")
    if _read(folder / f"{held.name}.json") is None:
        raise InputError(f"{held.short} does not wait any more. Nothing was changed")
    if decision == "refused":
        return
    other = newer(folder, held)
    if other is not None:
        raise InputError(
            f"the answer to this question is another one by now, so {held.short} was not "
            f"approved. Look at {other.short}, which took its place"
        )
    if by is not None and any(r.by == by.name for r in approvals(folder, held, reviewers)):
        raise InputError(f"{by.name} has approved {held.short} already; nobody reviews twice")


def _meant(held: Sequence[HeldPayload], name: str | None, what: str) -> HeldPayload:
    meant = [h for h in held if h.name.startswith(name or "")]
    if len(meant) == 1:
        return meant[0]
    names = ", ".join(h.short for h in held)
    if name is None:
        raise InputError(f"there are {len(held)} {what}, say which: {names}")
    matches = "none" if not meant else "more than one"
    raise InputError(f"{name!r} names {matches} of the {what}. There are: {names}")


def _held(folder: Path) -> list[HeldPayload]:
    held = (_read(path) for path in folder.glob("[!.]*.json"))
    return [h for h in held if h is not None]


def _same(one: HeldPayload, other: HeldPayload) -> bool:
    return (one.question, one.answer) == (other.question, other.answer)


def _name(question: bytes, answer: bytes) -> str:
    return sha256(len(question).to_bytes(8) + question + answer).hexdigest()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One decision after the other, whichever process writes it."""
    import fcntl

    with file_errors(f"{folder} cannot be locked"):
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _note(
    folder: Path,
    act: Literal["approved", "refused", "withdrawn"],
    by: str | None,
    held: HeldPayload,
    reason: str | None,
) -> None:
    note = ReviewNote(
        time=_now(), act=act, by=by, payload=held.name, question=held.question, reason=reason
    )
    descriptor = os.open(folder / _RECORD, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(descriptor, "ab") as file:
        file.write(msgspec.json.encode(note) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _read_review(path: Path) -> Review | None:
    """The decision in a file; None where it is gone in the meantime."""
    content = _bytes(path)
    if content is None:
        return None
    try:
        review = msgspec.json.decode(content, type=Review)
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{path} is not a decision: {error}") from error
    named = review.held.name if review.decision == "approved" else review.held.file("refused")[:64]
    if path.name[:64] != named or path.suffix != f".{review.decision}":
        raise LedgerError(f"{path} was changed: its content is not what it was named after")
    return review


def _read(path: Path) -> HeldPayload | None:
    """The payload in a file; None where it is gone in the meantime."""
    content = _bytes(path)
    if content is None:
        return None
    try:
        held = msgspec.json.decode(content, type=HeldPayload)
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{path} is not a held payload: {error}") from error
    if path.name != f"{held.name}.json":
        raise LedgerError(f"{path} was changed: its content is not what it was named after")
    return held


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror}") from error
