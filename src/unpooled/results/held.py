"""What waits for the steward, readable."""

from pathlib import Path

from unpooled.approval import Decision, HeldPayload, is_waited_for
from unpooled.messages import decode_question
from unpooled.results.releases import payload_sentence, question_sentence


def held_text(folder: Path, held: HeldPayload) -> str:
    """A held payload as a steward reads it: what was asked, what it says, the exact bytes."""
    unread = held.question == "null"
    asked = "unreadable" if unread else question_sentence(decode_question(held.question.encode()))
    waits = "the analyst waits" if is_waited_for(folder, held) else "nobody waits for it now"
    return "\n".join(
        [
            f"{held.short}  held since {held.since}, {waits}",
            f"  asked:        {asked}",
            f"  would leave:  {payload_sentence(held.answer.encode())}",
            f"  exact bytes:  {held.answer}",
        ]
    )


def decision_text(folder: Path, held: HeldPayload, decision: Decision) -> str:
    """What comes of a decision."""
    waited_for = is_waited_for(folder, held)
    match decision, waited_for:
        case "approved", True:
            return f"approved: {held.short} leaves now, or when the same question is asked again"
        case "approved", False:
            return f"approved: {held.short} leaves when the same question is asked again"
        case _:
            return f"refused: {held.short} does not leave; the running center records it"
