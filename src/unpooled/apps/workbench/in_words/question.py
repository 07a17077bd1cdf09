"""A question in words, for people who do not program."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from unpooled.apps.workbench.in_words.words import Words, name, names
from unpooled.center.questions import (
    CatalogueQuestion,
    CohortQuestion,
    Grouping,
    JointQuestion,
    OutcomeQuestion,
    Protocol,
    ProtocolCheckQuestion,
    ProtocolQuestion,
    Question,
    SurvivalQuestion,
    decode_question,
)
from unpooled.errors import MessageError


def read_question(text: str) -> Question | None:
    """The question of a held payload or a ledger's entry; None where it could not be read."""
    try:
        return None if text == "null" else decode_question(text.encode())
    except MessageError:
        return None


def in_words(question: object, words: Words) -> Markup:
    """What is asked, in a sentence."""
    match question:
        case None:
            return words("question.unreadable")
        case CatalogueQuestion():
            return words("question.catalogue")
        case ProtocolQuestion():
            return words("question.protocol", title=name(question.protocol.title))
        case ProtocolCheckQuestion():
            return words("question.protocol-check", title=name(question.protocol.title))
        case JointQuestion():
            return words("question.joint", title=name(question.protocol.title))
        case CohortQuestion():
            return _of_people(question, words)
        case _:  # a kind that came after this page: its own name says what it is
            kind = str(getattr(type(question), "__struct_config__").tag)  # noqa: B009
            return words("question.other", kind=name(kind), variable="", people="")


def _of_people(question: CohortQuestion, words: Words) -> Markup:
    kind = str(type(question).__struct_config__.tag)
    values: dict[str, object] = {
        "variable": name(question.variable),
        "people": _people(question, words),
    }
    if isinstance(question, OutcomeQuestion):
        values["event"] = name(question.event)
        if question.event_is is not None:
            values["event"] = name(f"{question.event} = {question.event_is}")
    if isinstance(question, SurvivalQuestion):
        values["horizon"] = f"{question.horizon:g}"
    if question.blocks is not None and kind == "sizes":  # it looks at nobody's value
        return words("question.sizes-blocks", **values)
    if not words.has(f"question.{kind}"):
        return words("question.other", kind=name(kind), **values)
    return words(f"question.{kind}", **values)


def _people(question: CohortQuestion, words: Words) -> Markup:
    """Of which people, and in which groups."""
    text = Markup()
    if question.blocks:
        crossed = words("question.crossed").join(name(block.name) for block in question.blocks)
        text += words("question.by-blocks", by=crossed)
    elif question.cuts is not None:
        cuts = ", ".join(f"{cut:g}" for cut in question.cuts)
        text += words("question.by-cuts", by=name(question.by), cuts=cuts)
    elif question.by is not None and question.groups is not None:
        text += words("question.by-groups", by=name(question.by), groups=names(question.groups))
    elif question.by is not None:
        text += words("question.by", by=name(question.by))
    if question.where is not None:
        text += words("question.where", where=Markup("<code>{}</code>").format(question.where))
    return text


def protocol_of(question: object) -> Protocol | None:
    """The protocol that a question is of, if it is of one."""
    kinds = ProtocolQuestion | ProtocolCheckQuestion | JointQuestion
    return question.protocol if isinstance(question, kinds) else None


def variables_of(question: object) -> tuple[str, ...]:
    """The variables that a question is about."""
    protocol = protocol_of(question)
    if protocol is not None:
        outcomes = (name for o in protocol.survival for name in (o.time, o.event))
        return tuple(dict.fromkeys((*protocol.variables, *outcomes)))
    if isinstance(question, OutcomeQuestion):
        return question.variable, question.event
    return (question.variable,) if isinstance(question, CohortQuestion) else ()


@dataclass(frozen=True, slots=True)
class ProtocolInWords:
    """A protocol as its page shows it."""

    purpose: str | None
    k: int | None
    groups: Sequence[tuple[str, str, Markup]]  # name, column, levels
    variables: Sequence[tuple[str, str, str]]  # name, kind, meaning
    outcomes: Sequence[Markup]
    pairs: Sequence[Markup]


def protocol_in_words(protocol: Protocol, words: Words) -> ProtocolInWords:
    """Groupings, variables and outcomes of a study."""
    variables = [
        (
            key,
            str(words(f"protocol.kind-{declared.kind or 'open'}")),
            " ".join(filter(None, (declared.label, declared.unit and f"({declared.unit})"))),
        )
        for key, declared in protocol.variables.items()
    ]
    outcomes = [
        words(
            "protocol.outcome",
            time=name(outcome.time),
            event=name(outcome.event),
            horizon=f"{outcome.horizon:g}",
        )
        for outcome in protocol.survival
    ]
    pairs = [
        words("protocol.pair", one=name(pair.variables[0]), other=name(pair.variables[1]))
        for pair in protocol.pairs
    ]
    groups = [(g.name, g.column, _levels(g, words)) for g in protocol.groups]
    return ProtocolInWords(protocol.purpose, protocol.k, groups, variables, outcomes, pairs)


def _levels(grouping: Grouping, words: Words) -> Markup:
    return names(grouping.names) if grouping.names else words("protocol.found")
