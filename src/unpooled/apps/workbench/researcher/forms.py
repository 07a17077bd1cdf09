"""Forms from the specifications: one field an argument, and back to arguments."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, NamedTuple

from unpooled.analyses.specification import Analysis, Argument
from unpooled.apps.workbench.researcher import words
from unpooled.errors import InputError
from unpooled.results.catalogue import CatalogueResult

Typed = Mapping[str, Sequence[str]]
FIRST = ("by", "groups", "where", "time", "event", "strata")  # others are folded away

GROUPED = ("by", "strata", "covariates")


class Option(NamedTuple):
    """Something that can be chosen."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form."""

    name: str
    label: str
    help: str
    control: str  # select, several, checks, check, text
    required: bool
    text: str = ""  # what is typed
    hint: str = ""
    options: tuple[Option, ...] = ()

    @property
    def first(self) -> bool:
        """Whether it is always shown."""
        return self.required or self.name in FIRST

    @property
    def chosen(self) -> tuple[str, ...]:
        """What is chosen."""
        return tuple(option.value for option in self.options if option.chosen and option.value)

    @property
    def foremost(self) -> str:
        """The first that is chosen, or nothing."""
        return next(iter(self.chosen), "")


Choices = Callable[[str], Sequence[tuple[str, str]]]
"""An argument's name → the variables that it may name, each with its label."""


def fields_of(analysis: Analysis, choices: Choices, typed: Typed) -> list[Field]:
    """The fields of an analysis, with what was typed before."""
    return [
        _field(argument, choices, typed)
        for argument in analysis.arguments
        if not argument.python_only
    ]


def _field(argument: Argument, choices: Choices, typed: Typed) -> Field:
    given = [text for text in typed.get(argument.name, ()) if text]
    label = words.ARGUMENTS.get(argument.name, argument.name.replace("_", " ").capitalize())
    about = argument.name, label, argument.help
    required = argument.required
    match argument.kind:
        case "variable" | "variables":
            control = "select" if argument.kind == "variable" else "several"
            nothing = words.NOBODY_GROUPED if argument.name in GROUPED else words.NOT_NAMED
            empty = () if required else (Option("", nothing, not given),)
            first = (Option("", words.CHOOSE, not given),) if required else empty
            options = (*first, *_options(choices(argument.name), given))
            return Field(*about, control, required, options=options)
        case "choice":
            chosen = given or [str(argument.default)]
            result = tuple(Option(word, word, word in chosen) for word in argument.choices)
            return Field(*about, "select", required, options=result)
        case "choices":
            chosen = given or [str(argument.default)]
            every = (*argument.choices, "all")
            result = tuple(Option(word, word, word in chosen) for word in every)
            return Field(*about, "checks", required, options=result)
        case "flag":
            return Field(*about, "check", required, text="yes" if given else "")
        case "numbers":
            text = " ".join(given) or _numbers_text(argument.default)
            return Field(*about, "text", required, text, words.NUMBERS_HINT)
        case "names":
            return Field(*about, "text", required, ", ".join(given), words.NAMES_HINT)
        case _:
            return Field(*about, "text", required, " ".join(given))


def _options(names: Sequence[tuple[str, str]], given: Sequence[str]) -> list[Option]:
    """What may be named; what was typed is there even if it may not."""
    options = [Option(name, label, name in given) for name, label in names]
    every_name = [name for name, _ in names]
    return [*options, *(Option(name, name, True) for name in given if name not in every_name)]


def choices_of(catalogue: CatalogueResult) -> Choices:
    """The centers' variables, for every argument; with how many centers have it, where not all."""
    every = len(catalogue.centers)
    names = [
        (row.name, row.name if not row.problems else _at(row.name, every, len(row.problems)))
        for row in catalogue.rows
    ]
    return lambda _: names


def _at(name: str, every: int, without: int) -> str:
    return f"{name} ({every - without} of {every} centers)"


def _numbers_text(default: object) -> str:
    return " ".join(f"{value:g}" for value in default) if isinstance(default, tuple) else ""


def read_arguments(analysis: Analysis, typed: Typed) -> dict[str, Any]:
    """What a form means: the arguments that differ from their defaults.

    Examples
    --------
    >>> from unpooled.analyses.specification import COMPARE
    >>> read_arguments(COMPARE, {"variable": ["crp"], "by": ["arm"], "groups": ['"a, b", c']})
    {'variable': 'crp', 'by': 'arm', 'groups': ['a, b', 'c']}
    """
    arguments = {}
    for argument in analysis.arguments:
        given = [text.strip() for text in typed.get(argument.name, ()) if text.strip()]
        if given and not argument.python_only:
            value = _read(argument, given)
            if value != argument.default and value not in ([argument.default], []):
                arguments[argument.name] = value
    analysis.check(arguments)
    return arguments


def _read(argument: Argument, given: list[str]) -> Any:
    match argument.kind:
        case "variables":
            named = list(dict.fromkeys(given))
            one = len(named) == 1 and argument.name != "variables"  # that is a list, also of one
            return named[0] if one else named
        case "choices":
            return list(dict.fromkeys(given))
        case "names":
            return names_in(", ".join(given))
        case "numbers":
            read = [_number(argument, text) for text in re.split(r"[\s,;]+", " ".join(given))]
            return None if tuple(read) == argument.default else read
        case "number":
            return _number(argument, given[0])
        case "whole":
            number = _number(argument, given[0])
            return int(number) if number.is_integer() else number
        case "flag":
            return True
        case _:
            return given[0]


def _number(argument: Argument, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        label = words.ARGUMENTS.get(argument.name, argument.name)
        rule = (argument.rule or "numbers").split(", such as")[0]
        raise InputError(f"{label}: this must be {rule}, got {text!r}") from None


def names_in(text: str) -> list[str]:
    """Names between commas, those with commas in quotes.

    Examples
    --------
    >>> names_in('control, "with, comma"')
    ['control', 'with, comma']
    """
    try:
        rows = list(csv.reader(StringIO(text), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise InputError(f"these are no names between commas: {text!r} ({error})") from error
    return [name.strip() for row in rows for name in row if name.strip()]
