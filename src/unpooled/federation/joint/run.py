"""A joint center, from those who join to its answer: one center more for everybody else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol as Interface

from unpooled.analyses.conversation import Conversation
from unpooled.center.data.variables import Codebook
from unpooled.center.questions import (
    Answer,
    JointQuestion,
    JointShares,
    Keeper,
    Protocol,
    ProtocolAnswer,
    Refusal,
    decode_question,
    encode,
)
from unpooled.center.questions.joint import LEAST_MEMBERS
from unpooled.errors import JointError
from unpooled.federation.joint.plan import Public, joint_plan


class Keepers(Interface):
    """Whoever holds shares and computes with them."""

    @property
    def keepers(self) -> tuple[Keeper, ...]:
        """Their names and public keys."""
        ...

    def compute(self, question: JointQuestion, shares: Mapping[str, JointShares]) -> Answer:
        """What they open; raises JointError, with the name of who is to blame."""
        ...


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
        return f"joint ({len(self.members)} centers)"


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
            asked = conversation.ask(question, JointShares, members)
            refusals += asked.refusals
            if len(asked.aggregates) == len(members):
                answer = keepers.compute(question, asked.aggregates)
                return JointCenter(members, question, answer, tuple(refusals))
            members = tuple(member for member in members if member in asked.aggregates)
    except JointError as error:
        return JointCenter(members, refusals=tuple(refusals), problem=str(error))
    few = f"fewer than {LEAST_MEMBERS} centers take part"
    return JointCenter(members, refusals=tuple(refusals), problem=few)


def _as_it_arrives(question: JointQuestion) -> JointQuestion:
    """The question with numbers as centers read them: its bytes name what shares are sealed for."""
    read = decode_question(encode(question))
    assert isinstance(read, JointQuestion)  # its tag says so
    return read
