"""TOML files that people write: what cannot be read is said, on which line, and what was meant."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from unpooled.errors import InputError, unknown

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
        named = place and rule.startswith(("Expected", "Object", "Invalid value", "Invalid enum"))
        name = ".".join(map(str, place))
        raise _SettingError(f"{name}: {rule}" if named else rule, place) from error


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
