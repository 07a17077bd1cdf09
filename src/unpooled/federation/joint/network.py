"""The keepers of a federation over the network, as the coordinator asks them.

It passes sealed shares on and can read none. What all three say must be the same.
"""

from collections.abc import Mapping, Sequence
from secrets import token_bytes

from unpooled.analyses.conversation import Link
from unpooled.center.questions import (
    Answer,
    JointQuestion,
    JointShares,
    Keeper,
    Refusal,
    decode_answer,
)
from unpooled.center.records.signatures import signed_by_all, without_signatures
from unpooled.errors import JointError, MessageError
from unpooled.federation.joint.keepers.keeping import hold_question, keep_question

_RUN = 32  # bytes that name a computation


class NetworkKeepers:
    """Three centers that keep shares; they reach each other by addresses in their kits."""

    def __init__(self, link: Link, keepers: Sequence[Keeper]) -> None:
        self._link = link
        self.keepers = tuple(keepers)

    def compute(self, question: JointQuestion, shares: Mapping[str, JointShares]) -> Answer:
        """What all three opened; raises JointError, with names."""
        run, names = token_bytes(_RUN), [keeper.name for keeper in self.keepers]
        for place, name in enumerate(names):  # each gets what is sealed to it, and no more
            sealed = [shares[member].sealed[place] for member in question.members]
            self._asked(hold_question(question, run, sealed), [name])
        replies = self._asked(keep_question(question, run), names)
        answers = [decode_answer(reply) for reply in replies.values() if isinstance(reply, bytes)]
        first, *others = map(without_signatures, answers)
        if any(other != first for other in others):
            raise JointError(f"the keepers {', '.join(names)} do not say the same")
        return signed_by_all(answers)

    def _asked(self, payload: bytes, names: Sequence[str]) -> Mapping[str, bytes | Refusal]:
        """What keepers say; raises JointError with the names of those who do not do it."""
        replies = self._link.ask(payload, names)
        problems = {name: _problem(replies[name]) for name in names}
        if any(problems.values()):
            words = [f"keeper {name}: {problem}" for name, problem in problems.items() if problem]
            raise JointError("; ".join(dict.fromkeys(words)))
        return replies


def _problem(reply: bytes | Refusal) -> str | None:
    """Why a keeper opened nothing, with the name of whoever is to blame."""
    if isinstance(reply, Refusal):
        return reply.rule
    try:
        answer = decode_answer(reply)
    except MessageError:
        return "its answer cannot be read"
    for refusal in answer.refusals:
        return f"{refusal.rule} ({refusal.name})" if refusal.name else refusal.rule
    return None
