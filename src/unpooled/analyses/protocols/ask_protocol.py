"""A protocol is asked once: what every center says to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unpooled.analyses.conversation import Conversation
from unpooled.center.data.variables import Codebook
from unpooled.center.questions import (
    MISSING,
    Protocol,
    ProtocolAnswer,
    ProtocolCheck,
    ProtocolCheckQuestion,
    ProtocolQuestion,
    Refusal,
)
from unpooled.results.protocol_check import ProtocolCheckResult
from unpooled.results.provenance.refusals import center_refusals
from unpooled.results.provenance.releases import Received


@dataclass(frozen=True, slots=True)
class ProtocolReplies:
    """What came back for a protocol, center by center.

    Attributes
    ----------
    answers
        What each center says, part by part, each with its own refusals.
    received
        The very bytes of these answers.
    refusals
        The centers that say nothing, and why.
    rounds
        How often the centers were asked.
    members
        The centers whose people count in a joint center; it stands among `answers`.
    no_joint
        Why there is no joint center, where one was wanted.
    """

    protocol: Protocol
    centers: tuple[str, ...]
    answers: Mapping[str, ProtocolAnswer]
    received: tuple[Received, ...]
    refusals: tuple[tuple[str, Refusal], ...]
    rounds: int
    members: tuple[str, ...] = ()
    no_joint: str | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The centers that may answer when they are asked again: down, late, or not decided."""
        again = {center for center, refusal in self.refusals if refusal.reason in MISSING}
        return tuple(center for center in self.centers if center in again)


def ask_protocol(
    conversation: Conversation,
    protocol: Protocol,
    centers: Sequence[str] | None = None,
    *,
    stewards: bool = True,
) -> ProtocolReplies:
    """Ask all centers, or these, everything at once; a missing center stops nobody.

    Without `stewards` no center is waited for whose steward has not decided.
    """
    asked = conversation.centers if centers is None else tuple(centers)
    question = ProtocolQuestion(protocol=protocol)
    round_ = conversation.ask(
        question, ProtocolAnswer, asked, whoever_answers=True, stewards=stewards
    )
    answered = tuple(one for one in conversation.received if one.center in round_.aggregates)
    return ProtocolReplies(
        protocol, asked, round_.aggregates, answered, round_.refusals, conversation.rounds
    )


def check_protocol(
    conversation: Conversation,
    protocol: Protocol,
    variables: Codebook,
    *,
    joint: bool = False,
) -> ProtocolCheckResult:
    """Ask all centers what they would tell; a missing center stops nobody."""
    question = ProtocolCheckQuestion(protocol=protocol, joint=joint)
    round_ = conversation.ask(question, ProtocolCheck, whoever_answers=True)
    refusals = center_refusals(round_.refusals)
    return ProtocolCheckResult(protocol, round_.aggregates, refusals, variables)
