"""A protocol as a form: what is typed, as the tables of its file, and the file itself."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from unpooled.analyses.protocols.protocol import read_protocol
from unpooled.apps.workbench.researcher.forms import Typed, names_in
from unpooled.center.data.variables import Codebook, Variable
from unpooled.center.questions import Protocol
from unpooled.errors import InputError
from unpooled.results.catalogue import CatalogueResult

_KINDS = {"integer": "number", "float": "number", "text": "category", "boolean": "category"}
_SPLIT = re.compile(r"[\s,;]+")


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A grouping as it is typed."""

    column: str = ""
    levels: str = ""
    cuts: str = ""
    beside: str = ""  # the grouping that alone it is crossed with
    place: float = 0.0


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """Times to an event, as they are typed."""

    time: str = ""
    event: str = ""
    horizon: str = ""
    event_is: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """All that is typed, in its order."""

    title: str
    purpose: str
    k: str
    groups: tuple[GroupRow, ...]
    variables: tuple[str, ...]
    kinds: Mapping[str, str]
    missing: Mapping[str, str]
    outcomes: tuple[OutcomeRow, ...]

    @classmethod
    def of(cls, typed: Typed) -> "Draft":
        """From the fields of the form; the ones that repeat stand side by side."""

        def one(name: str) -> str:
            return next(iter(typed.get(name, ())), "").strip()

        groups = [
            GroupRow(column, levels, cuts, beside, _place(place, i))
            for i, (column, levels, cuts, beside, place) in enumerate(
                _beside(typed, "group", "levels", "cuts", "beside", "place")
            )
            if column
        ]
        groups.sort(key=lambda row: row.place)
        outcomes = [
            OutcomeRow(*row)
            for row in _beside(typed, "time", "event", "horizon", "event_is")
            if row[0]
        ]
        variables = tuple(dict.fromkeys(typed.get("variable", ())))
        per = {
            part: {name: one(f"{part}.{name}") for name in variables if one(f"{part}.{name}")}
            for part in ("kind", "missing")
        }
        return cls(
            one("title"),
            one("purpose"),
            one("k"),
            tuple({row.column: row for row in groups}.values()),
            variables,
            per["kind"],
            per["missing"],
            tuple(outcomes),
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for yet."""
        return not self.variables and not self.outcomes

    def tables(self, catalogue: CatalogueResult, codebook: Codebook) -> dict[str, Any]:
        """The tables of a protocol's file."""
        kinds = {row.name: row.kind for row in catalogue.rows}
        whole: dict[str, Any] = {"title": self.title or "A study"}
        whole |= {"purpose": self.purpose} if self.purpose else {}
        if self.k:
            whole["k"] = _whole(self.k)
        groups = [self._group(row) for row in self.groups]
        whole |= {"groups": groups} if groups else {}
        whole["variables"] = {
            name: self._variable(name, kinds.get(name, ""), codebook.get(name, Variable()))
            for name in self.variables
        }
        survival = [_outcome(row) for row in self.outcomes]
        return whole | ({"survival": survival} if survival else {})

    def _group(self, row: GroupRow) -> dict[str, Any]:
        """A grouping: levels, or the cut points of a number."""
        table: dict[str, Any] = {"name": row.column}
        if row.cuts:
            table["cuts"] = _numbers(f"the cuts of {row.column}", row.cuts)
        elif row.levels:
            table["levels"] = names_in(row.levels)
        return table | ({"with": [row.beside]} if row.beside else {})

    def _variable(self, name: str, kind: str, public: Variable) -> dict[str, Any]:
        """A variable: its kind, chosen or that of most centers, and what is public about it."""
        chosen = self.kinds.get(name) or _KINDS.get(kind, "")
        table: dict[str, Any] = {"kind": chosen} if chosen else {}
        if chosen != "category":
            settings = ("unit", "resolution", "lower", "upper")
            table |= {n: v for n in settings if (v := getattr(public, n)) is not None}
        codes = self.missing.get(name)
        return table | ({"missing": [_code(text) for text in names_in(codes)]} if codes else {})

    def protocol(self, catalogue: CatalogueResult, codebook: Codebook) -> Protocol:
        """The protocol that it says; raises InputError."""
        return read_protocol(self.tables(catalogue, codebook))


def _beside(typed: Typed, *names: str) -> Iterator[tuple[str, ...]]:
    """Fields that repeat, row by row; the first says how many rows there are."""
    columns = [list(typed.get(name, ())) for name in names]
    for i in range(len(columns[0])):
        yield tuple(column[i].strip() if i < len(column) else "" for column in columns)


def _place(text: str, i: int) -> float:
    try:
        return float(text)
    except ValueError:
        return i + 1.0


def _whole(text: str) -> int:
    if not text.isdigit():
        raise InputError(f"k must be a positive whole number, got {text!r}")
    return int(text)


def _numbers(what: str, text: str) -> list[float]:
    try:
        return [float(token) for token in _SPLIT.split(text) if token]
    except ValueError:
        raise InputError(f"{what} must be numbers, got {text!r}") from None


def _code(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _outcome(row: OutcomeRow) -> dict[str, Any]:
    horizon = _numbers(f"the horizon of {row.time}", row.horizon or "none")[0]
    table = {"time": row.time, "event": row.event, "horizon": horizon}
    return table | ({"event_is": row.event_is} if row.event_is else {})


def blocks_of(protocol: Protocol) -> int | None:
    """How many blocks the groupings make, where all levels are declared."""
    levels = [len(grouping.names) for grouping in protocol.groups if grouping.with_ is None]
    return None if 0 in levels else prod(levels)


def as_file(tables: Mapping[str, Any]) -> str:
    """The tables as a TOML file.

    Examples
    --------
    >>> print(as_file({"title": "CRP", "groups": [{"name": "arm"}], "variables": {"c p": {}}}))
    title = "CRP"
    <BLANKLINE>
    [[groups]]
    name = "arm"
    <BLANKLINE>
    [variables."c p"]
    """
    lines = [f"{name} = {_toml(v)}" for name, v in tables.items() if not _is_table(v)]
    for name in ("groups", "survival"):
        for table in tables.get(name, ()):
            lines += ["", f"[[{name}]]", *_entries(table)]
        if name == "groups":
            for variable, table in tables.get("variables", {}).items():
                lines += ["", f"[variables.{_key(variable)}]", *_entries(table)]
    return "\n".join(lines)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    )


def _entries(table: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in table.items()]


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{value:g}" if isinstance(value, float) else _quoted(value)


def _quoted(value: object) -> str:
    """JSON's texts are TOML's, but for the character that JSON leaves bare."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
