"""What waits for the steward, readable."""

from collections.abc import Sequence
from pathlib import Path

from unpooled.center.approval.reviewers import STEWARD, Reviewers
from unpooled.center.approval.steward import (
    Decision,
    HeldPayload,
    approvals,
    is_waited_for,
    refusal,
)
from unpooled.center.questions import (
    Grouping,
    JointQuestion,
    ProtocolAnswer,
    ProtocolQuestion,
    decode_answer,
    decode_question,
)
from unpooled.results.provenance.releases import (
    answer_sentence,
    payload_sentence,
    question_sentence,
)


def held_text(folder: Path, held: HeldPayload, reviewers: Reviewers = STEWARD) -> str:
    """A held payload as a steward reads it: what was asked, what it says, the exact bytes."""
    waits = "the analyst waits" if is_waited_for(folder, held) else "nobody waits for it now"
    lines = [
        f"{held.short}  held since {held.since}, {waits}",
        f"  asked:        {_asked(held)}",
        *([] if held.asker is None else [f"  by:           {held.asker}"]),
        *_purpose(held),
        f"  would leave:  {payload_sentence(held.answer.encode())}",
        *_parts(held),
        *(f"    of your people, {line}" for line in held.share),
        f"  exact bytes:  {held.answer}",
    ]
    if reviewers.needed > 1:
        names = ", ".join(str(r.by) for r in approvals(folder, held, reviewers)) or "nobody yet"
        lines.append(f"  approved by:  {names}; {reviewers.needed} must")
    return "\n".join(lines)


def _purpose(held: HeldPayload) -> list[str]:
    """What a study is for, as the analyst states it, and who is grouped how."""
    question = None if held.question == "null" else decode_question(held.question.encode())
    if not isinstance(question, ProtocolQuestion | JointQuestion):
        return []
    purpose = f"  purpose:      {question.protocol.purpose or 'not stated'}"
    return [purpose, *(f"  grouped by:   {_grouping(one)}" for one in question.protocol.groups)]


def _grouping(grouping: Grouping) -> str:
    """Who is grouped how."""
    of = "" if grouping.of is None else f" of {grouping.of}"
    levels = ", ".join(grouping.names) or "each level that K people have"
    others = " and ".join(grouping.with_ or ()) or "no other grouping"
    crossed = "" if grouping.with_ is None else f", with {others}"
    return f"{grouping.name}{of} ({levels}){crossed}"


def _parts(held: HeldPayload) -> list[str]:
    """Of a protocol, what is said to each of its questions."""
    answer = decode_answer(held.answer.encode()).aggregate
    parts = answer.parts if isinstance(answer, ProtocolAnswer) else ()
    return [f"    {question_sentence(p.question)}: {answer_sentence(p.answer)}" for p in parts]


def choice_text(held: Sequence[HeldPayload]) -> str:
    """What waits, a line each."""
    return "\n".join(f"  {h.short}  {_asked(h)}" for h in held)


def decision_text(
    folder: Path, held: HeldPayload, decision: Decision, reviewers: Reviewers = STEWARD
) -> str:
    """What comes of a decision."""
    missing = reviewers.needed - len(approvals(folder, held, reviewers))
    if decision == "approved" and missing > 0 and reviewers.keys:
        return f"approved: {held.short} leaves when {missing} more of the reviewers approve it"
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


def decided_text(
    folder: Path, held: HeldPayload, decision: Decision, reviewers: Reviewers = STEWARD
) -> str:
    """A decision in force, as a steward reads it."""
    lines = [f"{held.short}  {decision}", f"  asked:        {_asked(held)}"]
    no = refusal(folder, held) if decision == "refused" else None
    by = [no] if no is not None else approvals(folder, held, reviewers)
    names = [review.by for review in by if review.by is not None]
    lines += [f"  by:           {', '.join(names)}"] if names else []
    lines += [f"  reason:       {no.reason}"] if no is not None and no.reason else []
    return "\n".join(lines)


def withdrawn_text(held: HeldPayload) -> str:
    """What comes of taking a decision back."""
    return f"withdrawn: the next question like that of {held.short} is held again"


def _asked(held: HeldPayload) -> str:
    if held.question == "null":
        return "unreadable"
    return question_sentence(decode_question(held.question.encode()))
