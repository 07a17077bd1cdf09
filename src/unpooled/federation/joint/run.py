"""A joint center, from those who join to its answer: one center more for everybody else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol as Interface

from unpooled.analyses.conversation import Conversation, Link
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies
from unpooled.center.data.variables import Codebook
from unpooled.center.questions import (
    Answer,
    JointQuestion,
    JointShares,
    Keeper,
    Protocol,
    ProtocolAnswer,
    ProtocolQuestion,
    Reason,
    Refusal,
    decode_question,
    encode,
)
from unpooled.center.questions.joint import LEAST_MEMBERS, JointNote
from unpooled.center.records.signatures import without_receipts
from unpooled.errors import JointError
from unpooled.federation.joint.plan import Public, joint_plan
from unpooled.results.provenance.record import joint_name
from unpooled.results.provenance.releases import Received


class Keepers(Interface):
    """Whoever holds shares and computes with them."""

    @property
    def keepers(self) -> tuple[Keeper, ...]:
        """Their names and public keys."""
        ...

    def compute(self, question: JointQuestion, shares: Mapping[str, JointShares]) -> Answer:
        """What they open; raises JointError, with the name of who is to blame."""
        ...


def ask_with_joint(
    conversation: Conversation,
    protocol: Protocol,
    keepers: Keepers,
    variables: Codebook,
    centers: Sequence[str] | None = None,
) -> ProtocolReplies:
    """Ask all centers everything at once; those that are too small count in a joint center.

    Where there is none, they are missing, and it is said why.
    """
    asked = conversation.centers if centers is None else tuple(centers)
    question = ProtocolQuestion(protocol=protocol, joint=True)
    round_ = conversation.ask(question, ProtocolAnswer, asked, whoever_answers=True)
    received = [one for one in conversation.received if one.center in round_.aggregates]
    joined = {
        center: round_.k[center]
        for center, refusal in round_.refusals
        if refusal.reason is Reason.JOINED
    }
    answers, refusals = dict(round_.aggregates), list(round_.refusals)
    if not joined:
        none = "no center's people count in one"
        return ProtocolReplies(
            protocol,
            asked,
            answers,
            tuple(received),
            tuple(refusals),
            conversation.rounds,
            (),
            none,
        )
    joint = run_joint(conversation, protocol, keepers, joined, answers, variables)
    if joint.answer is not None and isinstance(joint.answer.aggregate, ProtocolAnswer):
        payload = encode(joint.answer)
        answers[joint.name] = joint.answer.aggregate
        received.append(Received(joint.name, question, payload))
        conversation.keep(received[-1])
        refusals = [one for one in refusals if one[0] not in joint.members]
    return ProtocolReplies(
        protocol,
        (*asked, *([joint.name] if joint.answer is not None else [])),
        answers,
        tuple(received),
        (*refusals, *joint.refusals),
        conversation.rounds,
        joint.members if joint.answer is not None else (),
        joint.problem,
    )


@dataclass(frozen=True, slots=True)
class JointCenter:
    """What a joint center says, and who its members are; `problem` is why there is none."""

    members: tuple[str, ...] = ()
    question: JointQuestion | None = None
    answer: Answer | None = None
    refusals: tuple[tuple[str, Refusal], ...] = ()  # of those who do not take part after all
    problem: str | None = None

    @property
    def name(self) -> str:
        """What it is called among centers."""
        return joint_name(len(self.members))


def run_joint(
    conversation: Conversation,
    protocol: Protocol,
    keepers: Keepers,
    joined: Mapping[str, int],
    answers: Mapping[str, ProtocolAnswer],
    variables: Codebook,
) -> JointCenter:
    """Ask those who joined for shares, and have the keepers open what may be.

    `joined` has the K of each. Whoever does not share after all is left out: then it begins again
    without them, since who the members are is part of what each share is sealed for.
    """
    members, refusals = tuple(joined), list[tuple[str, Refusal]]()
    public = Public(variables, answers)
    try:
        while len(members) >= LEAST_MEMBERS:
            k = max([protocol.k or 0, *(joined[member] for member in members)])
            plan = joint_plan(protocol, public, k)
            question = _as_it_arrives(
                JointQuestion(
                    protocol=protocol, plan=plan, members=members, keepers=keepers.keepers
                )
            )
            asked = conversation.ask(question, JointShares, members, whoever_answers=True)
            refusals += asked.refusals
            if len(asked.aggregates) == len(members):
                answer = keepers.compute(question, asked.aggregates)
                _tell_members(conversation.coordinator.link, question, answer)
                answer = without_receipts(answer)
                return JointCenter(members, question, answer, tuple(refusals))
            members = tuple(member for member in members if member in asked.aggregates)
    except JointError as error:
        return JointCenter(members, refusals=tuple(refusals), problem=str(error))
    few = f"fewer than {LEAST_MEMBERS} centers take part"
    return JointCenter(members, refusals=tuple(refusals), problem=few)


def _tell_members(link: Link, question: JointQuestion, answer: Answer) -> None:
    """What the joint center said, for the ledgers of its members; who is away gets it next time."""
    if answer.aggregate is not None:
        note = JointNote(question=question, answer=encode(answer).decode())
        link.ask(encode(note), question.members)


def _as_it_arrives(question: JointQuestion) -> JointQuestion:
    """The question with numbers as centers read them: its bytes name what shares are sealed for."""
    read = decode_question(encode(question))
    assert isinstance(read, JointQuestion)  # its tag says so
    return read
