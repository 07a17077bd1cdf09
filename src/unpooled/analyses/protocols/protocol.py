"""A protocol as the analyst writes it: a TOML file, or plain values; and a first draft of one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.request import group_label, in_order
from unpooled.center.data.where import Kind
from unpooled.center.questions import (
    OTHER,
    Catalogue,
    CatalogueQuestion,
    Categories,
    CategoryQuestion,
    LatticeQuestion,
    LatticeTables,
    Moments,
    MomentsQuestion,
    Protocol,
)
from unpooled.errors import InputError
from unpooled.toml_file import convert, read_toml

ProtocolLike = Protocol | str | Path | Mapping[str, Any]
"""A protocol, the file that holds it, or its tables as plain values."""


def read_protocol(given: ProtocolLike) -> Protocol:
    """A protocol from its TOML file, or from plain values of the same shape.

    Examples
    --------
    >>> plan = read_protocol({
    ...     "title": "CRP in sepsis",
    ...     "groups": [{"name": "arm", "levels": ["control", "patient"]}],
    ...     "variables": {"crp": {"unit": "mg/L"}},
    ... })
    >>> plan.groups[0].levels, plan.variables["crp"].unit
    (('control', 'patient'), 'mg/L')
    >>> read_protocol({"title": "CRP", "variables": {"crp": {"unti": "mg/L"}}})
    Traceback (most recent call last):
        ...
    unpooled.errors.InputError: there is no setting 'unti' in [variables.crp]. Hint: did you mean
    'unit'?
    """
    match given:
        case Protocol():
            return given
        case str() | Path():
            try:
                return read_toml(given, Protocol, _with_texts)
            except InputError as error:
                raise InputError(f"protocol {error}") from error
        case Mapping():
            return convert(_with_texts(dict(given)), Protocol)
    raise InputError(
        f"a protocol is a file, a Protocol or a mapping of its tables, got {type(given).__name__}"
    )


def _with_texts(tables: dict[str, Any]) -> dict[str, Any]:
    """Levels and the event's value as the centers write them: 1, 1.0 and "1" are one level."""

    def texts(table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        changed = dict(table)
        if isinstance(table.get("levels"), list | tuple):
            changed["levels"] = [_as_text(level) for level in table["levels"]]
        if "event_is" in table:
            changed["event_is"] = _as_text(table["event_is"])
        return changed

    whole = dict(tables)
    for name in ("groups", "survival"):
        if isinstance(whole.get(name), list | tuple):
            whole[name] = [texts(table) for table in whole[name]]
    if isinstance(whole.get("variables"), Mapping):
        whole["variables"] = {name: texts(table) for name, table in whole["variables"].items()}
    return whole


def _as_text(level: object) -> object:
    return group_label(level) if isinstance(level, bool | int | float) else level


def protocol_text(plan: Protocol) -> str:
    """What a protocol asks, in words.

    Examples
    --------
    >>> print(protocol_text(read_protocol({"title": "CRP", "variables": {"crp": {}}})))
    CRP
    crp: a number
    """
    lines = [plan.title]
    if plan.purpose is not None:
        lines.append(f"purpose: {plan.purpose}")
    if plan.k is not None:
        lines.append(f"every number describes at least {plan.k} people")
    for grouping in plan.groups:
        levels = ", ".join(grouping.names) or "the levels of K people"
        crossed = "" if grouping.with_ is None else f"; crossed with {', '.join(grouping.with_)}"
        of = "" if grouping.of is None else f" (of {grouping.of})"
        lines.append(f"grouping {grouping.name}{of}: {levels}{crossed}")
    for name, variable in plan.variables.items():
        kind = variable.kind or ("category" if variable.levels else "number")
        unit = "" if variable.unit is None else f", {variable.unit}"
        label = "" if variable.label is None else f" ({variable.label}{unit})"
        levels = "" if variable.levels is None else f": {', '.join(variable.levels)}"
        lines.append(f"{name}{label}: a {kind}{levels}")
    lines += [
        f"survival: {outcome.time} until {outcome.event}, up to {outcome.horizon:g}"
        for outcome in plan.survival
    ]
    lines += [f"pair: {' and '.join(pair.variables)}" for pair in plan.pairs]
    return "\n".join(lines)


# --- a first draft ------------------------------------------------------------------------------

_MOST_LEVELS = 12  # of a variable that is drafted as a category
_FEW_VALUES = 10  # different whole numbers, at most, of a category
_HEAP = 0.05  # of the people share a value: that is a heap
_HEAPED = 0.3  # of the people are at multiples of ten, where a tenth should be


@dataclass(slots=True)
class _Drafted:
    """What the centers said about one column."""

    name: str
    kinds: dict[str, Kind] = field(default_factory=dict)  # center → kind
    people: int = 0
    missing: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    other: int = 0
    resolutions: list[float] = field(default_factory=list)
    shared: Counter[float] = field(default_factory=Counter)  # values that K people share
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def is_category(self) -> bool:
        """Text and booleans; whole numbers of which there are few."""
        if not set(self.kinds.values()) & {"integer", "float"}:
            return True
        few = 0 < len(self.levels) <= _FEW_VALUES and all(
            _is_number(name) and float(name).is_integer() for name in self.levels
        )
        return few and self.other * 20 <= sum(self.levels.values())


def draft_protocol(conversation: Conversation, title: str = "A study") -> str:
    """A protocol file to begin with, of what the centers say of their columns."""
    catalogues = conversation.ask(CatalogueQuestion(), Catalogue).aggregates
    columns: dict[str, _Drafted] = {}
    for center, catalogue in catalogues.items():
        for named in catalogue.variables:
            columns.setdefault(named.name, _Drafted(named.name)).kinds[center] = named.kind
    for column in columns.values():
        _look_at(conversation, column)
    if not columns:
        raise InputError("centers: none of them has a variable that may be asked for")
    return "\n".join(_lines(title, conversation.centers, list(columns.values()))) + "\n"


def _look_at(conversation: Conversation, column: _Drafted) -> None:
    centers = [center for center, kind in column.kinds.items() if kind not in ("date", "other")]
    if not centers:
        return
    round_ = conversation.ask(CategoryQuestion(variable=column.name), Categories, centers)
    for categories in round_.aggregates.values():
        for group in categories.groups:
            column.people += group.n
            column.missing += group.missing or 0
            for cell in group.cells:
                if len(cell.levels) == 1 and cell.levels[0] != OTHER:
                    column.levels[cell.levels[0]] += cell.count
                else:
                    column.other += cell.count
    column.refused = {center: refusal.rule for center, refusal in round_.refusals}
    if column.is_category:
        return
    for level, people in column.levels.items():
        if _is_number(level):
            column.shared[float(level)] += people
    moments = conversation.ask(MomentsQuestion(variable=column.name), Moments, centers)
    column.people = sum(m.n for answer in moments.aggregates.values() for m in answer.moments)
    tables = conversation.ask(LatticeQuestion(variable=column.name), LatticeTables, centers)
    for answer in tables.aggregates.values():
        if answer.resolution is not None:
            column.resolutions.append(answer.resolution)
    column.refused = {center: refusal.rule for center, refusal in tables.refusals}


def _lines(title: str, centers: Sequence[str], columns: Sequence[_Drafted]) -> Iterator[str]:
    yield f"# A first draft, from {', '.join(centers)}. Every line is yours to change;"
    yield "# docs/protocol.md says what each setting means."
    yield f"title = {_quoted(title)}"
    yield '# purpose = "what it is for, as the stewards will read it"'
    yield "# k = 10    # how many people a number describes at least; a center's K may be higher"
    groupings = [column for column in columns if column.is_category and _groups(column)]
    yield ""
    yield "# Groupings, the most important first. People who are alike in all of them are a block;"
    yield "# a block of too few people is joined to another along the last groupings first."
    yield "# Take out the # of those that you compare by. With more of them blocks are smaller."
    for column in groupings:
        yield "# [[groups]]"
        yield f"# name = {_quoted(column.name)}"
        yield f"# levels = [{', '.join(map(_quoted, _ordered(column)))}]"
    for column in columns:
        yield ""
        yield from _variable(column, len(centers))
    yield ""
    yield "# An outcome over time: how long until the event, or until nobody looked any more."
    yield "# [[survival]]"
    yield '# time = "months"'
    yield '# event = "died"'
    yield "# event_is = 1       # the value that means the event; a joint center needs it"
    yield "# horizon = 60"


def _groups(column: _Drafted) -> bool:
    return 2 <= len(column.levels) <= _MOST_LEVELS


def _ordered(column: _Drafted) -> list[str]:
    return in_order(column.levels)


def _variable(column: _Drafted, centers: int) -> Iterator[str]:
    name = column.name if _is_bare(column.name) else _quoted(column.name)
    lines = [f"[variables.{name}]"]
    kinds = sorted(set(column.kinds.values()))
    people = f"; {column.people} people with a value" if column.people else ""
    comments = [f"{', '.join(kinds)}{people}"]
    if column.missing:
        comments[0] += f", {column.missing} or more without"
    if len(column.kinds) < centers:
        comments.append(f"only {', '.join(column.kinds)} has it" if len(column.kinds) == 1
                        else f"only {', '.join(column.kinds)} have it")  # fmt: skip
    if len(kinds) > 1:
        comments.append("its kind differs between centers")
    leave_out = None
    if set(kinds) <= {"date", "other"}:
        leave_out = "a date is no number and no category; make a number of it, such as days"
    elif column.is_category and not column.levels:
        leave_out = "no value of it is that of K people: a name or a code of each?"
    elif column.is_category and len(column.levels) > _MOST_LEVELS:
        comments.append(f'{len(column.levels)} levels have K people; all others are "other"')
    if column.is_category:
        lines.append('kind = "category"')
        if 0 < len(column.levels) <= _MOST_LEVELS:
            lines.append(f"levels = [{', '.join(map(_quoted, _ordered(column)))}]")
            lines.append("# ordered = true        # where the levels rise")
        if column.other:
            comments.append(
                f"{column.other} people have levels that no center names, since too few have them"
            )
        comments += _spelled_twice(column.levels)
    else:
        lines.append('# label = ""')
        lines.append('# unit = ""')
        lines += _number_lines(column, comments)
    comments += [f"{center}: {why}" for center, why in column.refused.items()]
    yield from (f"# {comment}" for comment in comments)
    if leave_out is None:
        yield from lines
    else:
        yield f"# left out: {leave_out}"
        yield from (line if line.startswith("#") else f"# {line}" for line in lines)


def _number_lines(column: _Drafted, comments: list[str]) -> Iterator[str]:
    if column.resolutions and len(set(column.resolutions)) == 1:
        yield f"resolution = {column.resolutions[0]:g}        # as it was found"
    elif column.resolutions:
        listed = ", ".join(f"{resolution:g}" for resolution in sorted(set(column.resolutions)))
        comments.append(f"rounded differently at the centers: to {listed}")
    zeros = column.shared.get(0.0, 0)
    if zeros:
        comments.append(f"{zeros} people or more have 0: a value, or a code for missing?")
        yield "# missing = [0]         # if 0 means that nobody measured it"
    coded = [value for value in column.shared if value in (-1, -9, -99, 99, 999, 9999, -999)]
    for value in coded:
        comments.append(f"{column.shared[value]} people or more have {value:g}: a missing code?")
        yield f"# missing = [{value:g}]"
    heaps = [
        value
        for value, people in column.shared.most_common()
        if people >= _HEAP * column.people and value not in (0.0, *coded)
    ]
    if heaps:
        shown = ", ".join(f"{value:g}" for value in heaps[:6])
        comments.append(f"one in twenty people or more share a value: {shown}")
    tens = sum(people for value, people in column.shared.items() if value and value % 10 == 0)
    if min(column.resolutions, default=0.0) == 1 and tens > _HEAPED * column.people:
        comments.append(f"{tens} people or more have a multiple of ten: read off, or guessed?")


def _spelled_twice(levels: Iterable[str]) -> Iterator[str]:
    """Levels that differ in case or spaces only."""
    alike: dict[str, list[str]] = {}
    for level in levels:
        alike.setdefault(level.strip().lower(), []).append(level)
    for spellings in alike.values():
        if len(spellings) > 1:
            shown = " and ".join(map(_quoted, sorted(spellings)))
            yield f"{shown} look like one level: spell it one way at the centers"


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _is_bare(name: str) -> bool:
    return name.replace("_", "").replace("-", "").isalnum() and name.isascii()


def _quoted(text: str) -> str:
    """A text as TOML writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
