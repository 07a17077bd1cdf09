"""What waits for the steward, readable."""

from collections.abc import Sequence
from pathlib import Path

from unpooled.center.questions import decode_question
from unpooled.center.steward import Decision, HeldPayload, is_waited_for
from unpooled.results.releases import payload_sentence, question_sentence


def held_text(folder: Path, held: HeldPayload) -> str:
    """A held payload as a steward reads it: what was asked, what it says, the exact bytes."""
    waits = "the analyst waits" if is_waited_for(folder, held) else "nobody waits for it now"
    return "\n".join(
        [
            f"{held.short}  held since {held.since}, {waits}",
            f"  asked:        {_asked(held)}",
            f"  would leave:  {payload_sentence(held.answer.encode())}",
            f"  exact bytes:  {held.answer}",
        ]
    )


def choice_text(held: Sequence[HeldPayload]) -> str:
    """What waits, a line each."""
    return "\n".join(f"  {h.short}  {_asked(h)}" for h in held)


def decision_text(folder: Path, held: HeldPayload, decision: Decision) -> str:
    """What comes of a decision."""
    waited_for = is_waited_for(folder, held)
    match decision, waited_for:
        case "approved", True:
            return f"approved: {held.short} leaves now, or when the same question is asked again"
        case "approved", False:
            return f"approved: {held.short} leaves when the same question is asked again"
        case _:
            return (
                f"refused: {held.short} does not leave, nor does any answer to this question; "
                "the running center records it"
            )


def decided_text(held: HeldPayload, decision: Decision) -> str:
    """A decision in force, as a steward reads it."""
    return f"{held.short}  {decision}\n  asked:        {_asked(held)}"


def withdrawn_text(held: HeldPayload) -> str:
    """What comes of taking a decision back."""
    return f"withdrawn: the next question like that of {held.short} is held anew"


def _asked(held: HeldPayload) -> str:
    if held.question == "null":
        return "unreadable"
    return question_sentence(decode_question(held.question.encode()))
