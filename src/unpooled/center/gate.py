"""The gate: the one door of a center.

It encodes the answer, decodes those very bytes, judges what was decoded against the policy and
beside all that left before, writes memory and ledger, and only then seals the bytes into a
`Release`. There is no other way to make one and no
switch to skip it. An answer that breaks the policy raises; it is never trimmed into shape.

Where the steward wants to be asked, the judged bytes are held, neither recorded nor released, until
he has decided.
"""

from dataclasses import InitVar, dataclass

from unpooled.center.approval import Steward
from unpooled.center.ledger import Kind, Ledger
from unpooled.center.memory.memory import Memory
from unpooled.center.memory.proposal import Proposal
from unpooled.center.policy import Policy
from unpooled.center.rules import judge
from unpooled.data.variables import Codebook
from unpooled.errors import GateError
from unpooled.questions import Answer, Question, Reason, Refusal, decode_answer, encode

_SEAL = object()


@dataclass(frozen=True, slots=True)
class Release:
    """Bytes that may leave a center. Only the gate can make one."""

    center: str
    payload: bytes
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise GateError("only the gate makes a release")


@dataclass(frozen=True, slots=True)
class Gate:
    """A center's one door, with its policy and its ledger."""

    center: str
    policy: Policy
    ledger: Ledger
    variables: Codebook
    memory: Memory
    steward: Steward | None = None  # None: what the policy allows leaves unasked

    def release(
        self,
        question: Question | None,
        answer: Answer,
        proposal: Proposal | None = None,
        ticket: str | None = None,
    ) -> Release:
        """Judge, record, and only then seal. A question that could not be read is None.

        `proposal` says for whom an answer about people speaks. It is remembered, on disk, before
        the ledger is written, and taken for told once it is. Raises `HeldError` while the steward
        has not decided, and `WouldDiffer` where a table with new edges tells too much beside
        earlier answers; a coarser one may not.
        """
        payload, told = self._judged(question, answer, proposal)
        asked = _asked(question)
        if self.steward is None:
            return self._recorded(asked, answer, payload, told, ticket)
        if self.steward.approves(asked, payload, ticket):
            released = self._recorded(asked, answer, payload, told, ticket)
        else:
            no = Refusal(reason=Reason.REFUSED_BY_STEWARD)
            refused = Answer(k=answer.k, aggregate=None, refusals=(no,))
            judged, _ = self._judged(question, refused, None)
            released = self._recorded(asked, refused, judged, None, ticket)
        self.steward.settle(asked, payload)
        return released

    def repeat(self, question: Question | None, ticket: str | None) -> Release | None:
        """The release that a question with this ticket had before; it is not recorded again."""
        entry = None if ticket is None else self.ledger.find(_asked(question), ticket)
        return None if entry is None else Release(self.center, entry.answer.encode(), _SEAL)

    def _judged(
        self, question: Question | None, answer: Answer, proposal: Proposal | None
    ) -> tuple[bytes, Proposal | None]:
        payload = encode(answer)
        said = decode_answer(payload)
        known = frozenset[float]() if proposal is None else proposal.fixed_edges
        judge(said, question, self.policy, self.variables, known)
        return payload, self.memory.judge(said, question, proposal)

    def _recorded(
        self,
        asked: bytes,
        answer: Answer,
        payload: bytes,
        told: Proposal | None,
        ticket: str | None,
    ) -> Release:
        if told is not None:
            self.memory.record(told, len(self.ledger) + 1, asked, payload)
        kind: Kind = "refusal" if answer.aggregate is None else "release"
        self.ledger.append(kind, asked, payload, ticket)
        if told is not None:
            self.memory.remember(told)
        return Release(self.center, payload, _SEAL)


def _asked(question: Question | None) -> bytes:
    return b"null" if question is None else encode(question)
