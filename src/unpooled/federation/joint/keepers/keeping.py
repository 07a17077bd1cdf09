"""A keeper's side: opens the shares that are sealed to it, and computes with the other two.

The computation runs in a process of its own. What it opens leaves through the center's gate. What
it says to the other keepers goes to their addresses, or else through mailboxes, from which the
engine carries it.
"""

import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import IO
from typing import Protocol as Interface

import msgspec

from unpooled.center.gate import Release
from unpooled.center.questions import Answer, JointQuestion, Reason, Refusal, encode
from unpooled.center.questions.joint import (
    LEAST_MEMBERS,
    HoldQuestion,
    KeepQuestion,
    encoded,
)
from unpooled.center.records.ledger import Ledger
from unpooled.center.records.sealing import SealKey
from unpooled.errors import JointError, MessageError
from unpooled.federation.joint.answer import joint_answer
from unpooled.federation.joint.keepers.carried import (
    ANSWER,
    Mailbox,
    batch,
    framed,
    next_frame,
)
from unpooled.federation.joint.keepers.keeper import KeeperInput, KeeperOutput
from unpooled.federation.joint.record import JointRecord
from unpooled.federation.joint.shares import IsSigned, UnsignedError, opened_shares
from unpooled.maths.joint.shares import KEEPERS, added, to_bytes

KEEP = b'{"ask":"keep"'  # so a question to keepers begins
HOLD = b'{"ask":"hold"'  # and what brings them shares
_MOST_HELD = 4  # computations whose shares are held
_STARTING = 30.0  # seconds that a process may take in addition to the computation
_MOST_BOXES = 4  # of computations at once


class Place(Interface):
    """A keeper as the kits know it."""

    @property
    def name(self) -> str:
        """The center's name."""
        ...

    @property
    def address(self) -> str | None:
        """Where the other two reach it; None: through the engine."""
        ...

    @property
    def port(self) -> int:
        """At which port."""
        ...

    @property
    def public(self) -> str:
        """The key that shares are sealed to."""
        ...


class Gated(Interface):
    """The center that lets out what was opened."""

    def release_opened(
        self, question: JointQuestion, answer: Answer, record: Ledger, keys: Sequence[bytes]
    ) -> Release:
        """Let it out, once noted, with a receipt for each member."""
        ...

    def release_held(self, question: JointQuestion) -> Release:
        """Say that shares came."""
        ...


class Keeping:
    """One of three keepers, next to its center."""

    def __init__(
        self,
        name: str,
        private: bytes,
        places: Sequence[Place],
        center: Gated,
        record: JointRecord,
        is_signed: IsSigned,
        *,
        patience: float = 20.0,
        longest: float = 300.0,
    ) -> None:
        self.record = record
        self._name, self._private, self._key = name, private, SealKey(private)
        self._places = tuple(places)
        self._place = [place.name for place in places].index(name)
        self._center, self._is_signed = center, is_signed
        self._patience, self._longest = patience, longest
        self._last: tuple[bytes, Release] | None = None  # a question that was repeated on the way
        self._boxes: dict[bytes, Mailbox] = {}
        self._held: dict[bytes, tuple[bytes, Sequence[bytes]]] = {}  # of a run: shares, receipts

    def answer(self, payload: bytes) -> Release:
        """Compute, and let out what was opened, or why nothing was."""
        digest = sha256(payload).digest()
        if self._last is not None and self._last[0] == digest:
            return self._last[1]
        try:
            if payload.startswith(HOLD):
                return self._hold(msgspec.json.decode(payload, type=HoldQuestion))
            asked = msgspec.json.decode(payload, type=KeepQuestion)
        except msgspec.MsgspecError as error:
            raise MessageError(f"these bytes are no question to keepers: {error}") from error
        answer, keys = self._answered(asked)
        release = self._center.release_opened(asked.question, answer, self.record.ledger, keys)
        self._last = digest, release
        return release

    def _hold(self, brought: HoldQuestion) -> Release:
        """Keep the sum of the members' shares until the computation begins."""
        question = brought.question
        refused = self._refused(question)
        vectors, keys = [], []
        for member, sealed in zip(question.members, brought.sealed, strict=True):
            if refused is not None:
                break
            try:
                key, vector = opened_shares(
                    self._key, self._name, question, member, sealed, self._is_signed
                )
            except UnsignedError:
                refused = _none(question, Reason.WRONG_SIGNATURE, member)
                break
            except JointError:
                refused = _none(question, Reason.WRONG_SHARES, member)
                break
            keys.append(key)
            vectors.append(vector)
        if refused is not None:
            return self._center.release_opened(question, refused, self.record.ledger, ())
        while len(self._held) >= _MOST_HELD:
            del self._held[next(iter(self._held))]
        self._held[_name_of(brought)] = to_bytes(added(vectors)), keys
        return self._center.release_held(question)

    def _refused(self, question: JointQuestion) -> Answer | None:
        """Why these keepers do not compute for these members; None where they do."""
        publics = {place.name: place.public for place in self._places}
        publics[self._name] = self._key.public  # a key file may be older than the kit
        if {keeper.name: keeper.public for keeper in question.keepers} != publics:
            return _none(question, Reason.OTHER_KEEPERS)
        if len(set(question.members)) < max(LEAST_MEMBERS, len(question.members)):
            return _none(question, Reason.FEW_MEMBERS, limit=LEAST_MEMBERS)
        try:
            self.record.earlier(question)
        except JointError:
            return _none(question, Reason.OTHER_JOINT)
        return None

    def mailbox(self, run: bytes) -> Mailbox:
        """Where the messages of a computation are, from whichever side comes first."""
        while len(self._boxes) >= _MOST_BOXES and run not in self._boxes:
            del self._boxes[next(iter(self._boxes))]
        return self._boxes.setdefault(run, Mailbox())

    def close(self) -> None:
        """Let go of the ledger."""
        self.record.close()

    def _answered(self, asked: KeepQuestion) -> tuple[Answer, Sequence[bytes]]:
        """What is opened, and the keys of receipts for it."""
        question = asked.question
        refused = self._refused(question)
        if refused is not None:
            return refused, ()
        if _name_of(asked) not in self._held:  # it started again since they were brought
            return _none(question, Reason.KEEPER_LOST, self._name), ()
        shares, keys = self._held.pop(_name_of(asked))
        output = self._compute(asked, shares)
        if output.problem is not None:
            name = output.names[0] if output.names else None
            reason = Reason.KEEPER_LOST if name is not None else Reason.UNEVEN_SHARES
            if output.begun:
                reason = Reason.INTERRUPTED
            return _none(question, reason, name), ()
        return joint_answer(question.protocol, question.plan, output.numbers), keys

    def _compute(self, asked: KeepQuestion, shares: bytes) -> KeeperOutput:
        """The computation in a process of its own."""
        addresses = [(place.address, place.port) for place in self._places if place.address]
        given = KeeperInput(
            plan=asked.question.plan,
            place=self._place,
            names=tuple(place.name for place in self._places),
            addresses=tuple(addresses) if len(addresses) == KEEPERS else None,
            publics=tuple(place.public for place in self._places),
            private=self._private,
            run=asked.run,
            shares=shares,
            patience=self._patience,
            longest=self._longest,
        )
        box = self.mailbox(asked.run)
        try:
            return run_keeper(given, box)
        finally:
            box.leaving.put(None)
            self._boxes.pop(asked.run, None)


def run_keeper(given: KeeperInput, box: Mailbox) -> KeeperOutput:
    """The process of a keeper, from its input to its output; it ends, whatever happens."""
    me = given.names[given.place]
    limit = given.patience + given.longest + _STARTING
    command = [sys.executable, "-m", "unpooled.federation.joint.keepers.keeper"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Timer(limit, process.kill)
        late.start()
        feeder = threading.Thread(target=_feed, args=(box, process.stdin), daemon=True)
        try:
            # its input comes first, though messages of others may have come before
            process.stdin.write(framed(given.place, msgspec.msgpack.encode(given)))
            process.stdin.flush()
            feeder.start()
            while (frame := next_frame(process.stdout)) is not None:
                place, message = frame
                if place == ANSWER:
                    return msgspec.msgpack.decode(message, type=KeeperOutput)
                box.leaving.put(framed(place, message))
        except (OSError, msgspec.MsgspecError):
            pass  # it ended
        finally:
            late.cancel()
            process.kill()
            box.arriving.put(None)
            feeder.join()
    return KeeperOutput(numbers=None, problem="it ended", names=(me,), begun=True)


def _feed(box: Mailbox, target: IO[bytes]) -> None:
    """Hand on what arrives."""
    with suppress(OSError, ValueError):
        while (some := batch(box.arriving)) is not None:
            target.write(some)
            target.flush()


def _none(
    question: JointQuestion, reason: Reason, name: str | None = None, limit: int | None = None
) -> Answer:
    refusal = Refusal(reason=reason, name=name, limit=limit)
    return Answer(k=question.plan.k, aggregate=None, refusals=(refusal,))


def _name_of(asked: HoldQuestion | KeepQuestion) -> bytes:
    """What shares are held under: the run, and the very question that they are for."""
    return asked.run + encoded(asked.question)


def hold_question(question: JointQuestion, run: bytes, sealed: Sequence[bytes]) -> bytes:
    """The bytes that one keeper gets."""
    return encode(HoldQuestion(question=question, run=run, sealed=tuple(sealed)))


def keep_question(question: JointQuestion, run: bytes) -> bytes:
    """The bytes that all three keepers get."""
    return encode(KeepQuestion(question=question, run=run))
