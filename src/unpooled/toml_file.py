"""TOML files that people write: what cannot be read is said, on which line, and what was meant."""

import re
import tomllib
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from unpooled.errors import InputError, nearest, unknown

T = TypeVar("T", bound=msgspec.Struct)
Place = tuple[str | int, ...]  # the names and numbers that lead to a setting

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_TAKEN = ("coordinator", "server", "authority", "all")
_NOT_WORDS = ("true", "false", "yes", "no", "on", "off", "t", "f", "y", "n", "inf", "nan")
_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_SETTING = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|[\w-]+))*)\s*=""")
_WORD = re.compile(r"""\s*("[^"]*"|'[^']*'|[^.\s]+)\s*""")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]|\[(\.\.\.)\]")
_QUOTED = re.compile(r"'([^']+)'")


def read_tables(path: str | Path) -> dict[str, Any]:
    """What a TOML file holds."""
    return _parsed(path, _text(path))


Prepare = Callable[[dict[str, Any]], dict[str, Any]]
"""Changes how values are written, never where they stand."""


def read_toml(path: str | Path, kind: type[T], prepare: Prepare = dict) -> T:
    """A TOML file as a struct; what is wrong is said with its line."""
    text = _text(path)
    tables = prepare(_parsed(path, text))
    try:
        return _converted(tables, kind)
    except _SettingError as wrong:
        line = line_of(text, wrong.place) or _line_of_word(text, wrong.message)
        where = "" if line is None else f"line {line}: "
        raise InputError(f"{str(path)!r} is wrong: {where}{wrong.message}") from wrong


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} cannot be read: it is not UTF-8 text") from error


def _parsed(path: str | Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{str(path)!r} is wrong: {error}") from error


def convert(table: object, kind: type[T]) -> T:
    """A table as a struct.

    Examples
    --------
    >>> class Limits(msgspec.Struct, forbid_unknown_fields=True):
    ...     lower: float | None = None
    >>> convert({"lover": 1}, Limits)
    Traceback (most recent call last):
        ...
    unpooled.errors.InputError: there is no setting 'lover'. Hint: did you mean 'lower'?
    """
    try:
        return _converted(table, kind)
    except _SettingError as wrong:
        raise InputError(wrong.message) from wrong


class _SettingError(Exception):
    """A setting that cannot be, and where it is."""

    def __init__(self, message: str, place: Place) -> None:
        self.message, self.place = message, place
        super().__init__(message)


def _converted(table: object, kind: type[T]) -> T:
    _check_names(table, kind)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        place = _place(str(error), table, kind)
        rule = str(error).rpartition(" - at `$")[0] if place else str(error)
        raise _SettingError(_in_words(rule, place, table, kind), place) from error


_EXPECTED = re.compile(r"Expected `([^`]+)`(?: of length (\d+))?(?:, got (.*))?")
_BOUND = re.compile(r"Expected `(?:int|float)` ([<>]=?) ([-+.\de]+)")
_BOUNDS = {">=": "of at least", ">": "above", "<=": "of at most", "<": "below"}
_LACKS = re.compile(r"Object missing required field `([^`]+)`")
_KINDS = {
    "str": "a text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def _in_words(rule: str, place: Place, table: object, kind: Any) -> str:
    """The converter's words as people say it who write such a file."""
    value, name = _value_at(table, place), next((s for s in place[::-1] if isinstance(s, str)), "")
    where = _named_place(table, place[: _last_name(place)])
    if lacks := _LACKS.match(rule):
        inside = _named_place(table, place)
        return f"{lacks[1]} is missing{inside}"
    if rule.startswith("Invalid enum value"):
        choices = [str(choice) for choice in _choices(kind, place)]
        meant = nearest(str(value), choices)
        hint = "" if meant is None else f". Hint: did you mean {meant!r}?"
        return f"{name}{where} must be {' or '.join(choices)}, got {value!r}{hint}"
    if rule.startswith("Invalid value"):
        return f"{name}{where} cannot be {_written(value)}"
    expected = _EXPECTED.match(rule)
    if expected is None:
        return rule
    kinds = [one for one in expected[1].split(" | ") if one != "null"]
    words = " or ".join(_KINDS.get(one, one) for one in kinds)
    if bound := _BOUND.match(rule):
        words = f"{words} {_BOUNDS[bound[1]]} {bound[2].removesuffix('.0')}"
    if expected[2] is not None:
        return f"{name}{where} must be a list of {expected[2]}, got {len(_as_list(value))}"
    hint = ""
    if "array" in kinds and isinstance(value, dict):
        words, hint = "a list of tables", f". Hint: [[{name}]] in place of [{name}]"
        return f"{name}{where} must be {words}{hint}"
    if "array" in kinds and isinstance(value, str | int | float):
        hint = f". Hint: {name} = [{_written(value)}]"
    if kinds in (["int"], ["float"], ["int", "float"]) and isinstance(value, str):
        listed = f"[{value}]" if isinstance(place[-1], int) else value
        hint = f". Hint: {name} = {listed}" if _is_number(value) else ""
    part = "each of " if isinstance(place[-1], int) and kinds != ["object"] else ""
    return f"{part}{name}{where} must be {words}, got {_written(value)}{hint}"


def _last_name(place: Place) -> int:
    """Where the last name stands in a place."""
    return max((at for at, step in enumerate(place) if isinstance(step, str)), default=0)


def _named_place(table: object, place: Place) -> str:
    """In which table it is, by its name: `` in [[groups]] 'arm'``."""
    names = [step for step in place if isinstance(step, str)]
    if not names:
        return ""
    numbers = [at for at, step in enumerate(place) if isinstance(step, int)]
    if not numbers or numbers[0] != 1:
        return f" in [{'.'.join(names[:2])}]"
    entry = _value_at(table, place[:2])
    named = entry.get("name") if isinstance(entry, dict) else None
    which = f" {named!r}" if isinstance(named, str) else f", number {int(place[1]) + 1}"
    return f" in [[{place[0]}]]{which}"


def _value_at(table: Any, place: Place) -> Any:
    """What stands at a place; None where nothing does."""
    for step in place:
        try:
            table = table[step]
        except (KeyError, IndexError, TypeError):
            return None
    return table


def _choices(kind: Any, place: Place) -> tuple[object, ...]:
    """The values that a setting may have."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    for part in get_args(kind):
        if not place and (choices := _choices(part, ())):
            return choices
    if not place:
        return tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()
    first, *rest = place
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
        return _choices(fields[str(first)], tuple(rest)) if str(first) in fields else ()
    if get_origin(kind) in (dict, Mapping):
        return _choices(get_args(kind)[1], tuple(rest))
    if isinstance(first, int):
        return next((c for part in get_args(kind) if (c := _choices(part, tuple(rest)))), ())
    return next((c for part in get_args(kind) if (c := _choices(part, place))), ())


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _written(value: object) -> str:
    """A value as the file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_names(value: object, kind: Any, place: Place = ()) -> None:
    """Raise where a table, or one within, has a name that its struct does not have."""
    if isinstance(value, list):
        for number, inner in enumerate(value):
            for part in get_args(kind)[:1]:
                _check_names(inner, part, (*place, number))
    elif not isinstance(value, dict):
        return
    elif get_origin(kind) in (dict, Mapping):
        for name, inner in value.items():
            _check_names(inner, get_args(kind)[1], (*place, name))
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
        for name, inner in value.items():
            if name == kind.__struct_config__.tag_field:
                continue
            if name not in fields:
                names = ".".join(str(step) for step in place if isinstance(step, str))
                where = f" in [{names}]" if place else ""
                raise _SettingError(unknown("setting", name, fields, where), (*place, name))
            _check_names(inner, fields[name], (*place, name))
    else:
        for part in get_args(kind):  # as of Postgres | None
            if not _is_of_another_tag(value, part):
                _check_names(value, part, place)


def _is_of_another_tag(value: Mapping[str, object], kind: Any) -> bool:
    """Whether a table says by its tag that it is another struct of a union."""
    config = getattr(kind, "__struct_config__", None)
    return (
        config is not None and config.tag is not None and value.get(config.tag_field) != config.tag
    )


def _place(error: str, table: object, kind: type[msgspec.Struct]) -> Place:
    """Where an error of the converter is, by its words: ``... - at `$.groups[0].cuts` ``."""
    _, given, path = error.rpartition(" - at `$")
    steps: list[str | int] = []
    for name, number, any_name in _STEP.findall(path if given else ""):
        if any_name:
            entry = _wrong_entry(table, kind, steps)
            if entry is None:
                break
            steps.append(entry)
        else:
            steps.append(int(number) if number else name)
    return tuple(steps)


def _wrong_entry(table: Any, kind: Any, steps: list[str | int]) -> str | None:
    """Which entry of a table with free names it is: the converter does not say."""
    if len(steps) != 1 or not isinstance(table, dict):
        return None
    name = str(steps[0])
    types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    inner = get_args(types[name])[1]
    for entry, value in table[name].items():
        try:
            msgspec.convert(value, inner)
        except msgspec.ValidationError:
            return str(entry)
    return None


def line_of(text: str, place: Place) -> int | None:
    """The line of a TOML text on which a setting, or the nearest table around it, stands.

    Examples
    --------
    >>> text = 'title = "x"' + chr(10) + '[[groups]]' + chr(10) + 'name = "arm"'
    >>> line_of(text, ("groups", 0, "name")), line_of(text, ("groups", 0)), line_of(text, ("k",))
    (3, 2, None)
    """
    best, line = 0, None
    for number, here in _places(text):
        if here == place[: len(here)] and len(here) > best:
            best, line = len(here), number
    return line


def _places(text: str) -> list[tuple[int, Place]]:
    """The place that each line of a TOML text sets or opens."""
    table: Place = ()
    opened: dict[Place, int] = {}
    places: list[tuple[int, Place]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _within(_words(header[2]), opened)
            if header[1] == "[[":
                opened[table] = opened.get(table, -1) + 1
                table = (*table, opened[table])
            places.append((number, table))
        elif setting := _SETTING.match(line):
            places.append((number, (*table, *_words(setting[1]))))
    return places


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in _WORD.findall(text))


def _within(words: tuple[str, ...], opened: Mapping[Place, int]) -> Place:
    """A table's place; one below a list of tables belongs to its last."""
    place: Place = ()
    for i, word in enumerate(words):
        place = (*place, word)
        if i < len(words) - 1 and place in opened:
            place = (*place, opened[place])
    return place


def _line_of_word(text: str, message: str) -> int | None:
    """The first line with a text that a message quotes."""
    for word in _QUOTED.findall(message):
        for number, line in enumerate(text.splitlines(), 1):
            if f'"{word}"' in line or f"'{word}'" in line:
                return number
    return None


def check_name(argument: str, name: str) -> None:
    """Names travel in certificates and file names, so they are plain."""
    rule = "must be letters, digits, - or _, beginning with a letter"
    if not _NAME.fullmatch(name):
        raise InputError(f"{argument} {rule}, got {name!r}")
    if name.lower() in (*_TAKEN, *_NOT_WORDS):
        raise InputError(f"{argument} must not be called {name!r}: the word has another meaning")
