"""The gate: the one door of a center.

It encodes the answer, decodes those very bytes, judges what was decoded against the policy, writes
the ledger, and only then seals the bytes into a `Release`. There is no other way to make one and no
switch to skip it. An answer that breaks the policy raises; it is never trimmed into shape.
"""

from dataclasses import InitVar, dataclass

from unpooled.errors import GateError
from unpooled.ledger import Kind, Ledger
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

    def release(self, question: Question | None, answer: Answer) -> Release:
        """Judge, record, and only then seal. A question that could not be read is None."""
        payload = encode(answer)
        judge(decode_answer(payload), question, self.policy, self.variables)
        kind: Kind = "refusal" if answer.aggregate is None else "release"
        self.ledger.append(kind, b"null" if question is None else encode(question), payload)
        return Release(self.center, payload, _SEAL)
