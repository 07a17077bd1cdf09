"""The ledger of a joint center: which joint releases were opened, for whom, and what they said.

Keepers open one joint release for the same people. The same question again has the same answer.
"""

from pathlib import Path

from unpooled.center.questions import (
    Answer,
    JointQuestion,
    Reason,
    decode_answer,
    decode_question,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import Ledger
from unpooled.errors import JointError

NAME = "joint"


class JointRecord:
    """What was opened; on disk where there is a path."""

    def __init__(self, key: CenterKey, path: Path | None = None) -> None:
        self.ledger = Ledger(NAME, key, path)

    def earlier(self, question: JointQuestion) -> Answer | None:
        """The answer to the same question; raises JointError where another has some of its people.

        Two joint releases of nearly the same people would leave, by subtraction, the few others.
        """
        for entry in self.ledger:
            answer = decode_answer(entry.answer.encode())
            if entry.kind != "release" and not _has_begun(answer):
                continue
            asked = decode_question(entry.question.encode())
            if asked == question:
                if entry.kind == "release":
                    return answer
            elif isinstance(asked, JointQuestion):
                both = sorted({*asked.members} & {*question.members})
                if both:
                    raise JointError(
                        f"another joint release has the people of {', '.join(both)} already: a "
                        "second one could reveal something about few people"
                    )
        return None

    def note(self, question: JointQuestion, answer: Answer) -> None:
        """Write down what was opened."""
        self.ledger.append("release", encode(question), encode(answer))

    def close(self) -> None:
        """Let go of the file."""
        self.ledger.close()


def _has_begun(answer: Answer) -> bool:
    """Whether something may have been opened to keepers before it came to nothing."""
    return any(refusal.reason is Reason.INTERRUPTED for refusal in answer.refusals)
