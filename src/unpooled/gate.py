"""The gate: the one door of a center.

It encodes the answer, decodes those very bytes, judges what was decoded against the policy and
beside all that left before, writes memory and ledger, and only then seals the bytes into a
`Release`. There is no other way to make one and no
switch to skip it. An answer that breaks the policy raises; it is never trimmed into shape.
"""

from dataclasses import InitVar, dataclass

from unpooled.errors import GateError
from unpooled.ledger import Kind, Ledger
from unpooled.memory.memory import Memory
from unpooled.memory.proposal import Proposal
from unpooled.messages import Answer, Question, decode_answer, encode
from unpooled.policy import Policy
from unpooled.rules import judge
from unpooled.variables import Codebook

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

    def release(
        self, question: Question | None, answer: Answer, proposal: Proposal | None = None
    ) -> Release:
        """Judge, record, and only then seal. A question that could not be read is None.

        `proposal` says for whom an answer about people speaks. It is remembered, on disk, before
        the ledger is written, and taken for told once it is.
        """
        payload = encode(answer)
        said = decode_answer(payload)
        judge(said, question, self.policy, self.variables)
        self.memory.judge(said, question, proposal)
        asked = b"null" if question is None else encode(question)
        if answer.aggregate is None or proposal is None:
            kind: Kind = "refusal" if answer.aggregate is None else "release"
            self.ledger.append(kind, asked, payload)
        else:
            self.memory.record(proposal, len(self.ledger) + 1, asked, payload)
            self.ledger.append("release", asked, payload)
            self.memory.remember(proposal)
        return Release(self.center, payload, _SEAL)
