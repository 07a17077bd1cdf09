"""The `where` language: which rows of a center a question is about.

    18 <= age < 65 and not (ward in ('ICU', 'ER') or `length of stay` is missing)

- Comparisons `== != < <= > >=` of a column with a value or another column; they may be chained.
- `in (…)`, `not in (…)`, `is missing`, `is not missing`, `and`, `or`, `not`, parentheses.
- Values: numbers, true, false, and strings in single or double quotes. A quote inside a string is
  doubled (`'O''Brien'`); a backslash is an ordinary character.
- Columns: letters, digits, underscores and dots; any other name in backticks, a backtick doubled.
- Keywords in any case, names exactly as they are. No functions, no arithmetic, never `eval`.

A comparison with a missing value is unknown, and `not` unknown is unknown: such a row is not
selected. NaN is missing. Text is ordered by code point, false before true. A date is the midnight
it begins with; times are compared to the microsecond.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain

from unpooled.center.data.where_tokens import MIRRORED, OPERATORS, RULES, Operator, Reader, Token
from unpooled.center.data.where_tokens import Column as Column
from unpooled.center.data.where_tokens import Kind as Kind
from unpooled.center.data.where_tokens import Literal as Literal
from unpooled.errors import InputError, WhereError

MAX_LENGTH = 10_000
MAX_NESTING = 50


class UnknownColumnError(InputError):
    """A `where` names a column that the rows do not have."""

    def __init__(self, column: str) -> None:
        self.column = column
        super().__init__(f"where: there is no column {column!r}")


class WhereKindError(InputError):
    """A `where` compares a column with something of another kind."""

    def __init__(self, column: str, kind: Kind, other: str) -> None:
        self.column = column
        self.kind = kind
        super().__init__(f"where: column {column!r} is of kind {kind}: {RULES[kind]}, got {other}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column beside a value or another column; `65 <= age` is kept as `age >= 65`."""

    left: Column
    operator: Operator
    right: Column | Literal

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise InputError(f"where: a comparison is one of {' '.join(OPERATORS)}")

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class In:
    """A column's value is in a list."""

    column: Column
    values: tuple[Literal, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InputError("where: a list must hold at least one value")

    def __str__(self) -> str:
        return f"{self.column} in ({', '.join(map(str, self.values))})"


@dataclass(frozen=True, slots=True)
class Missing:
    """A column has no value."""

    column: Column

    def __str__(self) -> str:
        return f"{self.column} is missing"


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a part; unknown stays unknown."""

    part: "Condition"

    def __str__(self) -> str:
        match self.part:
            case In(column, values):
                return f"{column} not in ({', '.join(map(str, values))})"
            case Missing(column):
                return f"{column} is not missing"
            case And() | Or():
                return f"not ({self.part})"
            case Comparison() | Not():
                return f"not {self.part}"


@dataclass(frozen=True)
class _Joined:
    """Two or more parts; a part of the same class is spliced in."""

    parts: "tuple[Condition, ...]"

    def __post_init__(self) -> None:
        parts = (p.parts if isinstance(p, type(self)) else (p,) for p in self.parts)
        object.__setattr__(self, "parts", tuple(chain.from_iterable(parts)))
        if len(self.parts) < 2:
            raise InputError("where: 'and' and 'or' join at least two conditions")


class And(_Joined):
    """Every part holds."""

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Or) else str(p) for p in self.parts)


class Or(_Joined):
    """Some part holds."""

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


Condition = Comparison | In | Missing | Not | And | Or


def parse(text: str) -> Condition:
    """Read an expression; its `str` is the same for every spelling of it.

    >>> str(parse("65<=age AND (sex in ['F'])"))
    "age >= 65 and sex in ('F')"
    >>> parse("age = 65")
    Traceback (most recent call last):
    unpooled.errors.WhereError: where: write '==' in place of '=', at position 5
      age = 65
          ^
    """
    if len(text) > MAX_LENGTH:
        raise WhereError(text[:MAX_LENGTH], MAX_LENGTH, f"longer than {MAX_LENGTH} characters")
    reader = Reader(text)
    condition = _either(reader, 0)
    reader.finish()
    if len(str(condition)) > MAX_LENGTH:  # so that what it writes can be read again
        raise WhereError(text, 0, f"longer than {MAX_LENGTH} characters when written in full")
    return condition


def columns(condition: Condition) -> tuple[str, ...]:
    """The names of the columns used, in order of first use.

    >>> columns(parse("18 <= age < limit and sex == 'F' and age != 40"))
    ('age', 'limit', 'sex')
    """
    match condition:
        case Comparison(left, _, Column() as right):
            return tuple(dict.fromkeys((left.name, right.name)))
        case Comparison(column) | In(column) | Missing(column):
            return (column.name,)
        case Not(part):
            return columns(part)
        case And(parts) | Or(parts):
            return tuple(dict.fromkeys(chain.from_iterable(map(columns, parts))))


def meant_as_text(condition: Condition, name: str, columns: Collection[str]) -> Comparison | None:
    """The comparison of a known column with a name that may be a text without its quotes.

    >>> str(meant_as_text(parse("age > 40 and sex == F"), "F", ["age", "sex"]))
    "sex == 'F'"
    """
    match condition:
        case Comparison(left, sign, Column() as right) if name in (left.name, right.name):
            if right.name != name:
                left, sign = right, MIRRORED.get(sign, sign)
            return Comparison(left, sign, Literal(name)) if left.name in columns else None
        case Not(part):
            return meant_as_text(part, name, columns)
        case And(parts) | Or(parts):
            meant = (meant_as_text(part, name, columns) for part in parts)
            return next(filter(None, meant), None)
        case _:
            return None


def to_sql(condition: Condition, kinds: Mapping[str, Kind]) -> tuple[str, list[object]]:
    """A DuckDB expression with `?` placeholders, and its parameters.

    >>> to_sql(parse("age >= 65 or ill == 1"), {"age": "integer", "ill": "boolean"})
    ('(("age" >= ?) OR ("ill" == ?))', [65, True])
    """
    writer = _Writer(kinds)
    return writer.sql(condition), writer.parameters


def _either(reader: Reader, depth: int) -> Condition:
    parts = [_both(reader, depth)]
    while reader.accept("or"):
        parts.append(_both(reader, depth))
    return Or(tuple(parts)) if len(parts) > 1 else parts[0]


def _both(reader: Reader, depth: int) -> Condition:
    parts = [_single(reader, depth)]
    while reader.accept("and"):
        parts.append(_single(reader, depth))
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


def _single(reader: Reader, depth: int) -> Condition:
    if depth > MAX_NESTING:
        raise reader.error(f"nested more than {MAX_NESTING} deep")
    if reader.accept("not"):
        return Not(_single(reader, depth + 1))
    if not (opening := reader.accept("(")):
        return _test(reader, depth)
    condition = _either(reader, depth + 1)
    reader.close(opening, "'and', 'or'")
    return condition


def _test(reader: Reader, depth: int) -> Condition:
    """`in`, `is missing`, or comparisons."""
    start = reader.next
    left = reader.term("a condition")
    if not (word := reader.accept("in", "not", "is")):
        return _chain(reader, left, start, depth)
    if isinstance(left, Literal):
        raise reader.error(f"expected a column before {word}", start)
    if word.kind == "is":
        word = reader.accept("not") or word
        reader.expect("missing")
        return Not(Missing(left)) if word.kind == "not" else Missing(left)
    if word.kind == "not":
        reader.expect("in")
    test = In(left, reader.values())
    return Not(test) if word.kind == "not" else test


def _chain(reader: Reader, left: Column | Literal, start: Token, depth: int) -> Condition:
    """One comparison or, as in `18 <= age < 65`, several."""
    parts: list[Comparison] = []
    while sign := reader.operator():
        right = reader.term("a value")
        if isinstance(left, Column):
            parts.append(Comparison(left, sign, right))
        elif isinstance(right, Column):
            parts.append(Comparison(right, MIRRORED.get(sign, sign), left))
        else:
            raise reader.error("expected a column on one side of the comparison", start)
        left = right
    if not parts and reader.next.kind in ("and", "or", ")", "end"):
        raise reader.error(f"{start} is compared with nothing", start)
    if not parts:
        raise reader.expected("a comparison")
    if len(parts) > 1 and depth == MAX_NESTING:  # after `not` it is written in parentheses
        raise reader.error(f"nested more than {MAX_NESTING} deep", start)
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes SQL and gathers its parameters, in the order of their placeholders."""

    kinds: Mapping[str, Kind]
    parameters: list[object] = field(default_factory=list)

    def sql(self, condition: Condition) -> str:
        match condition:
            case Comparison(left, operator, right):
                return f"({left.sql(self._kind(left))} {operator} {self._side(left, right)})"
            case In(column, values):
                return f"({column.sql(self._kind(column))} IN ({self._list(column, values)}))"
            case Missing(column):
                return f"({column.sql(self._kind(column))} IS NULL)"
            case Not(part):
                return f"(NOT {self.sql(part)})"
            case And(parts):
                return f"({' AND '.join(map(self.sql, parts))})"
            case Or(parts):
                return f"({' OR '.join(map(self.sql, parts))})"

    def _side(self, left: Column, right: Column | Literal) -> str:
        if isinstance(right, Literal):
            self.parameters.append(self._parameter(left, right))
            return "?"
        kind, other = self._kind(left), self._kind(right)
        if RULES[kind] != RULES[other] or kind == "other":
            raise WhereKindError(left.name, kind, f"column {right.name!r} of kind {other}")
        return right.sql(other)

    def _list(self, column: Column, values: tuple[Literal, ...]) -> str:
        listed = [self._parameter(column, value) for value in values]
        if self._kind(column) == "integer":
            # A fraction matches no integer, and beside one DuckDB would compare as floats.
            listed = [value for value in listed if isinstance(value, int)] or listed
        self.parameters.extend(listed)
        return ", ".join("?" * len(listed))

    def _parameter(self, column: Column, literal: Literal) -> object:
        kind = self._kind(column)
        if (parameter := literal.parameter(kind)) is None:
            raise WhereKindError(column.name, kind, str(literal))
        return parameter

    def _kind(self, column: Column) -> Kind:
        if column.name not in self.kinds:
            raise UnknownColumnError(column.name)
        return self.kinds[column.name]
