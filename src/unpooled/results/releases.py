"""All that left the centers, readable."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import msgspec

from unpooled.center.ledger import Entry, Header
from unpooled.coordinator import Received
from unpooled.errors import MessageError
from unpooled.questions import (
    AboutPeople,
    Aggregate,
    Answer,
    Catalogue,
    CatalogueQuestion,
    CenterJoin,
    CenterTable,
    GroupRanks,
    GroupRanksQuestion,
    GroupStatuses,
    JoinQuestion,
    LatticeQuestion,
    LatticeTables,
    Losses,
    LossQuestion,
    Moments,
    OutcomeQuestion,
    Powers,
    PowersQuestion,
    Question,
    Ranks,
    Sizes,
    SurvivalTables,
    decode_answer,
    decode_question,
    encode,
)
from unpooled.report.html import Html
from unpooled.report.text import columns_text, count, number


@dataclass(frozen=True, slots=True)
class Releases:
    """Every release that arrived, in order; `payload` has the very bytes."""

    received: tuple[Received, ...]

    def __iter__(self) -> Iterator[Received]:
        return iter(self.received)

    def __len__(self) -> int:
        return len(self.received)

    def to_dict(self) -> dict[str, Any]:
        """Per center: each question and what was said to it."""
        told: dict[str, list[dict[str, Any]]] = {}
        for release in self.received:
            told.setdefault(release.center, []).append(
                {
                    "question": msgspec.json.decode(encode(release.question)),
                    "answer": msgspec.json.decode(release.payload),
                }
            )
        return told

    def by_center(self) -> dict[str, list[str]]:
        """Each center's payloads, as text."""
        told: dict[str, list[str]] = {}
        for release in self.received:
            text = release.payload.decode("utf-8", "replace")
            told.setdefault(release.center, []).append(text)
        return told

    def __str__(self) -> str:
        return columns_text(*self.columns())

    def _repr_html_(self) -> str:
        return str(Html().table(*self.columns()))

    def columns(self) -> tuple[list[str], list[list[str]]]:
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
        return ["center", "asked", "left the center", "bytes"], rows


def question_sentence(question: Question) -> str:
    """A question in words."""
    if isinstance(question, CatalogueQuestion):
        return "variables"
    name = str(question.__struct_config__.tag)
    by = f" by {question.by}" if question.by is not None else ""
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
        case LossQuestion():
            return f", at {count(len(question.points), 'point')}"
        case _:
            return ""


def payload_sentence(payload: bytes) -> str:
    """What an answer's bytes say, in words."""
    try:
        return answer_sentence(decode_answer(payload))
    except MessageError:
        return "bytes that are not an answer"


def answer_sentence(answer: Answer) -> str:
    """What an answer says, in words."""
    parts = [] if answer.aggregate is None else [aggregate_sentence(answer.aggregate)]
    parts += [f"refused{'' if r.name is None else ' ' + r.name}: {r.rule}" for r in answer.refusals]
    return "; ".join(parts) or "nothing"


def aggregate_sentence(aggregate: Aggregate) -> str:
    """What an aggregate says, in words."""
    match aggregate:
        case Catalogue():
            return ", ".join(f"{v.name} ({v.kind})" for v in aggregate.variables)
        case Sizes():
            return ", ".join(f"{s.group} {s.n}" for s in aggregate.sizes)
        case Moments():
            return ", ".join(
                f"{m.group} n {m.n} mean {number(m.mean)} SD {number(m.sd)}"
                for m in aggregate.moments
            )
        case CenterTable():
            groups = ", ".join(f"{g.group} {sum(g.counts)}" for g in aggregate.groups)
            return f"{len(aggregate.edges) + 1} bins: {groups}"
        case CenterJoin():
            groups = ", ".join(
                f"{g.group} {sum(g.counts)} in {len(g.counts)} pools" for g in aggregate.groups
            )
            return f"{count(len(aggregate.splits), 'new edge')}: {groups}"
        case Ranks():
            return f"x {aggregate.n_x}, y {aggregate.n_y}, U {number(aggregate.u)}"
        case LatticeTables():
            return ", ".join(
                f"{g.group} {sum(sum(t.counts) for t in g.tables)} in "
                f"{sum(len(t.counts) for t in g.tables)} cells"
                for g in aggregate.groups
            )
        case GroupRanks():
            sizes = ", ".join(f"{g.group} {g.n}" for g in aggregate.groups)
            return f"{sizes}, U of {count(len(aggregate.pairs), 'pair')}"
        case SurvivalTables():
            return ", ".join(map(_statuses_sentence, aggregate.groups))
        case Powers():
            powers = ", ".join(f"{g.group} n {g.n}" for g in aggregate.groups)
            return f"moments at {len(aggregate.groups[0].means)} powers: {powers}"
        case Losses():
            losses = ", ".join(f"{g.group} n {g.n}" for g in aggregate.groups)
            return f"loss at {len(aggregate.groups[0].loss)} points: {losses}"
        case _:
            assert_never(aggregate)


def _statuses_sentence(group: GroupStatuses) -> str:
    events, censored, either = (
        sum(sum(table.counts) for table in tables or ())
        for tables in (group.events, group.censored, group.either)
    )
    if group.below is None:
        return f"{group.group} {events} events, {censored} censored"
    few = {"both": "either status"}.get(group.below, group.below)
    return f"{group.group} {either} people, fewer than K {few}"


def ledger_text(header: Header, entries: Sequence[Entry]) -> str:
    """A ledger as a steward reads it: each question, and what was said to it."""
    rows = [
        [
            str(entry.number),
            entry.time,
            _asked_sentence(entry.question),
            payload_sentence(entry.answer.encode()),
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
