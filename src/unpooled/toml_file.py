"""TOML files that people write: what cannot be read is said, and what was meant."""

import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from unpooled.errors import InputError, unknown

T = TypeVar("T", bound=msgspec.Struct)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_TAKEN = ("coordinator", "server", "authority", "all")
_NOT_WORDS = ("true", "false", "yes", "no", "on", "off", "t", "f", "y", "n", "inf", "nan")


def read_tables(path: str | Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} cannot be read: it is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{str(path)!r} is wrong: {error}") from error


def read_toml(path: str | Path, kind: type[T]) -> T:
    """A TOML file as a struct."""
    tables = read_tables(path)
    try:
        return convert(tables, kind)
    except InputError as error:
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
    _check_names(table, kind)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from error


def _check_names(value: object, kind: Any, place: str = "") -> None:
    """Raise where a table, or one within, has a name that its struct does not have."""
    if not isinstance(value, dict):
        return
    if get_origin(kind) is dict:
        for name, inner in value.items():
            _check_names(inner, get_args(kind)[1], f"{place}.{name}")
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
        for name, inner in value.items():
            if name not in fields:
                where = f" in [{place[1:]}]" if place else ""
                raise InputError(unknown("setting", name, fields, where))
            _check_names(inner, fields[name], f"{place}.{name}")
    else:
        for part in get_args(kind):  # as of Postgres | None
            _check_names(value, part, place)


def check_name(argument: str, name: str) -> None:
    """Names travel in certificates and file names, so they are plain."""
    rule = "must be letters, digits, - or _, beginning with a letter"
    if not _NAME.fullmatch(name):
        raise InputError(f"{argument} {rule}, got {name!r}")
    if name.lower() in (*_TAKEN, *_NOT_WORDS):
        raise InputError(f"{argument} must not be called {name!r}: the word has another meaning")
