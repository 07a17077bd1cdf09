"""All that left the centers, readable."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from unpooled.center.questions import (
    EVERYBODY,
    AboutPeople,
    Answer,
    CatalogueQuestion,
    GroupRanksQuestion,
    JoinQuestion,
    JointQuestion,
    LatticeQuestion,
    OutcomeQuestion,
    PowersQuestion,
    ProtocolAnswer,
    ProtocolCheckQuestion,
    ProtocolQuestion,
    Question,
    decode_answer,
    decode_question,
    encode,
)
from unpooled.center.records.ledger import Entry, Header
from unpooled.errors import MessageError
from unpooled.results.data_frame import data_frame
from unpooled.results.report.parts import Grid, parts_html
from unpooled.results.report.text import columns_text, count


@dataclass(frozen=True, slots=True)
class Received:
    """A release as it arrived: the question, and the very bytes."""

    center: str
    question: Question = field(hash=False)  # a protocol holds tables
    payload: bytes


@dataclass(frozen=True, slots=True, repr=False)
class Releases:
    """Every release that arrived, in order; `payload` has the very bytes."""

    received: tuple[Received, ...]

    @classmethod
    def each_once(cls, several: "Iterable[Releases]") -> "Releases":
        """Those of several results together; what two of them rest on stands there once."""
        once = {(r.center, encode(r.question), r.payload): r for some in several for r in some}
        return cls(tuple(once.values()))

    def __iter__(self) -> Iterator[Received]:
        return iter(self.received)

    def __len__(self) -> int:
        return len(self.received)

    def to_dict(self) -> dict[str, Any]:
        """Per center: each question and what was said to it."""
        by_center: dict[str, list[dict[str, Any]]] = {}
        for release in self.received:
            by_center.setdefault(release.center, []).append(
                {
                    "question": msgspec.json.decode(encode(release.question)),
                    "answer": msgspec.json.decode(release.payload),
                }
            )
        return by_center

    def by_center(self) -> dict[str, list[str]]:
        """Each center's payloads, as text."""
        payloads: dict[str, list[str]] = {}
        for release in self.received:
            text = release.payload.decode("utf-8", "replace")
            payloads.setdefault(release.center, []).append(text)
        return payloads

    def to_frame(self) -> Any:
        """A row per release as a data frame, with the exact answer."""
        return data_frame(
            [
                {
                    "center": release.center,
                    "question": encode(release.question).decode(),
                    "answer": release.payload.decode("utf-8", "replace"),
                    "bytes": len(release.payload),
                }
                for release in self.received
            ]
        )

    def __str__(self) -> str:
        grid = self.grid()
        return columns_text(grid.header, grid.rows)

    def __repr__(self) -> str:
        return f"{count(len(self), 'release')} from {count(len(self.by_center()), 'center')}"

    def _repr_html_(self) -> str:
        return parts_html([self.grid()])

    def grid(self) -> Grid:
        """A row per release, center by center."""
        order = list(dict.fromkeys(release.center for release in self.received))
        rows = [
            [
                release.center,
                question_sentence(release.question),
                payload_sentence(release.payload),
                str(len(release.payload)),
            ]
            for release in sorted(self.received, key=lambda r: order.index(r.center))
        ]
        return Grid(["center", "asked", "left the center", "bytes"], rows)


def question_sentence(question: Question) -> str:
    """A question in words."""
    if isinstance(question, CatalogueQuestion):
        return "variables"
    if isinstance(question, ProtocolQuestion):
        return f"protocol {question.protocol.title}"
    if isinstance(question, ProtocolCheckQuestion):
        return f"check of protocol {question.protocol.title}"
    if isinstance(question, JointQuestion):
        return f"shares for {question.protocol.title}, of {len(question.members)} centers"
    name = str(question.__struct_config__.tag)
    by = f" by {question.by}" if question.by is not None else ""
    if question.blocks:
        by = f" by {' x '.join(grouping.name for grouping in question.blocks)}"
    if question.cuts is not None:
        by += f" cut at {', '.join(f'{cut:g}' for cut in question.cuts)}"
    groups = f" ({', '.join(question.groups)})" if question.groups is not None else ""
    where = f" where {question.where}" if question.where is not None else ""
    return f"{name} of {question.variable}{by}{groups}{where}{_details(question)}"


def _details(question: AboutPeople) -> str:
    match question:
        case JoinQuestion():
            return f", to {count(len(question.edges), 'edge')}"
        case LatticeQuestion():
            return "" if question.moments is None else f", moments of {question.moments} cells"
        case GroupRanksQuestion():
            return ", in this order" if question.ordered else ""
        case OutcomeQuestion():
            meant = "" if question.event_is is None else f" = {question.event_is}"
            return f", event {question.event}{meant}"
        case PowersQuestion():
            return f", λ = {', '.join(f'{value:.3g}' for value in question.lambdas)}"
        case _:
            return ""


def payload_sentence(payload: bytes) -> str:
    """What an answer's bytes say, in words."""
    try:
        return answer_sentence(decode_answer(payload))
    except MessageError:
        return "bytes that are not an answer"


def answer_sentence(answer: Answer) -> str:
    """What an answer says, in words, with what it makes impossible for later."""
    parts = [] if answer.aggregate is None else [answer.aggregate.sentence()]
    parts += [f"refused{'' if r.name is None else ' ' + r.name}: {r.rule}" for r in answer.refusals]
    same, lost = ", ".join(answer.nearest), shut_out(answer)
    parts += [f"{same} as in an earlier answer, fewer than {answer.k} people apart"] if same else []
    parts += [f"shuts out later answers by {', '.join(lost)}"] if lost else []
    return "; ".join(parts) or "nothing"


def shut_out(answer: Answer) -> tuple[str, ...]:
    """What a center can tell no more of after an answer, or after one of its parts.

    Examples
    --------
    >>> shut_out(Answer(k=10, aggregate=None, shuts_out=("all", "arm")))
    ('everybody', 'arm')
    """
    parts = answer.aggregate.parts if isinstance(answer.aggregate, ProtocolAnswer) else ()
    names = (*answer.shuts_out, *(name for part in parts for name in part.answer.shuts_out))
    return tuple("everybody" if name == EVERYBODY else name for name in dict.fromkeys(names))


def ledger_text(
    header: Header, entries: Sequence[Entry], against: Mapping[int, str] | None = None
) -> str:
    """A ledger as a steward reads it: each question, and what was said to it.

    `against` says of refusals, by their number, which earlier entry stands against them.
    """
    stands = against or {}
    rows = [
        [
            str(entry.number),
            entry.time,
            _asked_sentence(entry.question),
            payload_sentence(entry.answer.encode())
            + (f" (together with {stands[entry.number]})" if entry.number in stands else ""),
        ]
        for entry in entries
    ]
    title = f"Ledger of {header.center}, key {header.public_key}, {len(entries)} entries"
    return f"{title}\n{columns_text(['entry', 'time', 'asked', 'left the center'], rows)}"


def _asked_sentence(question: str) -> str:
    """What the text of a question asks, in words; a changed ledger may hold any text."""
    if question == "null":
        return "–"
    try:
        return question_sentence(decode_question(question.encode()))
    except MessageError:
        return "text that is not a question"
