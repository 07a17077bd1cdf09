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

import re
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from unpooled.errors import InputError, WhereError

Kind = typing.Literal["integer", "float", "text", "boolean", "date", "other"]
Operator = typing.Literal["==", "!=", "<", "<=", ">", ">="]

OPERATORS: tuple[Operator, ...] = typing.get_args(Operator)
MIRRORED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
RULES: dict[Kind, str] = {  # kinds with the same rule can be compared with each other
    "integer": "compare it with a number",
    "float": "compare it with a number",
    "text": "compare it with a text in quotes",
    "boolean": "compare it with true or false",
    "date": "compare it with a date in quotes, as '2024-01-31' or '2024-01-31 08:30'",
    "other": "ask only whether it is missing",
}
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "missing", "true", "false"})
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # not every source can hold these
_WHOLE_NUMBERS = range(-(2**63), 2**63)
_CLOSING = {"(": ")", "[": "]"}
_BARE_NAME = r"[^\W\d]\w*(?:\.\w+)*"
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?")
# Quantifiers with a second + never give back: a doubled quote is never taken for a closing one.
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
      | (?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?P<rest>[\w.]+)?
      | (?P<word>{_BARE_NAME})
      | (?P<string>'(?:[^']|'')*+'|"(?:[^"]|"")*+")
      | (?P<name>`(?:[^`]|``)*+`)
      | (?P<slip>&&?|\|\|?|=[<>]|<>|=(?!=)|!(?!=)|[≤≥≠‘’“”])
      | (?P<symbol>[=!<>]=|[<>(),\[\]])
      | (?P<open>['"`])""",
    re.VERBOSE,
)
_MEANT = {
    **dict.fromkeys(("&", "&&"), "'and'"),
    **dict.fromkeys(("|", "||"), "'or'"),
    **dict.fromkeys(("<>", "≠"), "'!='"),
    **dict.fromkeys(("=<", "≤"), "'<='"),
    **dict.fromkeys(("=>", "≥"), "'>='"),
    **dict.fromkeys("‘’“”", "a straight quote"),
    "=": "'=='",
    "!": "'not'",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column, by its name.

    >>> str(Column("age")), str(Column("length of stay")), str(Column("In"))
    ('age', '`length of stay`', '`In`')
    """

    name: str

    def __post_init__(self) -> None:
        if not self.name or _UNWRITABLE.search(self.name):
            raise InputError(f"where: {self.name!r} cannot be the name of a column")

    def __str__(self) -> str:
        bare = re.fullmatch(_BARE_NAME, self.name) and self.name.lower() not in _KEYWORDS
        return self.name if bare else _quoted(self.name, "`")

    def sql(self, kind: Kind) -> str:
        """DuckDB's expression for the column, NULL where it is missing."""
        name = _quoted(self.name, '"')
        match kind:
            case "float":
                return f"nullif(CAST({name} AS DOUBLE), 'NaN'::DOUBLE)"
            case "text":  # an enumeration or a collation would bring an order of its own
                return f'CAST({name} AS VARCHAR) COLLATE "binary"'
            case "date":  # a day too far off to have microseconds counts as missing
                return f"TRY_CAST({name} AS TIMESTAMP)"
            case "integer" | "boolean" | "other":
                return name


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A value. 65.0 becomes 65, so that a number has one spelling; true does not equal 1.

    >>> str(Literal("O'Brien")), str(Literal(65.0)), str(Literal(True))
    ("'O''Brien'", '65', 'true')
    """

    value: bool | int | float | str

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, str):
            if _UNWRITABLE.search(value):
                raise InputError(f"where: {value!r} cannot be a value")
        elif isinstance(value, int):
            if value not in _WHOLE_NUMBERS:
                raise InputError("where: a whole number must fit into 64 bits")
        elif value.is_integer() and int(value) in _WHOLE_NUMBERS:
            object.__setattr__(self, "value", int(value))
        elif not abs(value) < float("inf"):
            raise InputError(f"where: a number must be finite, got {value}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __str__(self) -> str:
        return _quoted(self.value, "'") if isinstance(self.value, str) else repr(self.value).lower()

    def parameter(self, kind: Kind) -> object:
        """What DuckDB shall compare with a column of this kind; None where the kinds differ."""
        match kind, self.value:
            case "boolean", bool() | 0 | 1:
                return bool(self.value)
            case "text", str(text):
                return text
            case "date", str(text) if _ISO.fullmatch(text):
                return _moment(text)
            case "integer", float(number) if number.is_integer() and abs(number) < 2**127:
                return int(number)  # exact, where DuckDB would round the column to a float
            case "integer", int() | float() if not isinstance(self.value, bool):
                return self.value
            case "float", int() | float() if not isinstance(self.value, bool):
                return float(self.value)
        return None

    def _identity(self) -> tuple[type, object]:
        return type(self.value), self.value


@dataclass(frozen=True, slots=True)
class Token:
    """One word. `kind` is the keyword or symbol itself, or column, literal, end."""

    kind: str
    raw: str
    position: int
    term: Column | Literal | None = None

    def __str__(self) -> str:
        return self.raw if self.raw[:1] in ("'", '"', "`") else f"'{self.raw}'"


class Reader:
    """Reads a text from left to right, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self.next = next(self._tokens)
        self.last: Token | None = None

    def accept(self, *kinds: str) -> Token | None:
        """The next token, if it is of one of these kinds."""
        if self.next.kind not in kinds:
            return None
        self.last = self.next
        self.next = next(self._tokens, self.next)
        return self.last

    def expect(self, keyword: str) -> None:
        """The keyword that must come next."""
        if not self.accept(keyword):
            raise self.expected(f"'{keyword}'")

    def term(self, what: str) -> Column | Literal:
        """The column or value that must come next; `what` names it in the error."""
        token = self.accept("column", "literal")
        if token is None or token.term is None:
            raise self.expected(what)
        return token.term

    def operator(self) -> Operator | None:
        """The comparison sign that comes next, if one does."""
        sign = next((sign for sign in OPERATORS if self.next.kind == sign), None)
        return sign if sign and self.accept(sign) else None

    def values(self) -> tuple[Literal, ...]:
        """The list that must come next, in parentheses or brackets."""
        opening = self.accept("(", "[")
        if opening is None:
            raise self.expected("a list such as (1, 2)")
        values = [self._value()]
        while self.accept(",") and self.next.kind not in _CLOSING.values():
            values.append(self._value())
        self.close(opening, "','")
        return tuple(values)

    def close(self, opening: Token, otherwise: str) -> None:
        """The closing mark that must come next; `otherwise` says what else could."""
        closing = _CLOSING[opening.kind]
        if self.next.kind == "end":
            raise self.error(f"a '{opening.kind}' that is not closed", opening)
        if not self.accept(closing):
            raise self.error(f"expected {otherwise} or '{closing}'")

    def finish(self) -> None:
        """Nothing may come next."""
        if self.next.kind == ")":
            raise self.error("a ')' that was not opened")
        if self.next.kind != "end":
            raise self.error("expected 'and' or 'or'")

    def error(self, problem: str, at: Token | None = None) -> WhereError:
        """An error that points at a token, by default the next one."""
        return WhereError(self._text, (at or self.next).position, problem)

    def expected(self, what: str) -> WhereError:
        """An error that the next token is not what must follow the last one."""
        return self.error(f"expected {what}" + (f" after {self.last}" if self.last else ""))

    def _value(self) -> Literal:
        token = self.next
        value = self.term("a value")
        if isinstance(value, Column):
            raise self.error(f"{token} is a name in a list of values; put text in quotes", token)
        return value


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, the last of kind end.

    >>> [token.kind for token in tokens("age >= 65 AND sex in ('F')")]
    ['column', '>=', 'literal', 'and', 'column', 'in', '(', 'literal', ')', 'end']
    """
    if bad := _UNWRITABLE.search(text):
        raise WhereError(text, bad.start(), f"unknown character {bad[0]!r}")
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        problem = _problem(match) if match else f"unknown character {text[position]!r}"
        if match is None or problem:
            raise WhereError(text, position, problem)
        if not match["space"]:
            yield _token(match)
        position = match.end()
    yield Token("end", "", len(text))


def _problem(match: re.Match[str]) -> str:
    """What is wrong with a token by itself; nothing if empty."""
    raw = match[0]
    if match["rest"]:
        return f"'{raw}' is neither a number nor a name; put such a name in backticks"
    if match["slip"]:
        return f"write {_MEANT[raw]} in place of '{raw}'"
    if match["open"]:
        return f"a {'name' if raw == '`' else 'string'} that is not closed"
    return "a name that is empty" if raw == "``" else ""


def _token(match: re.Match[str]) -> Token:
    raw, position = match[0], match.start()
    if match["number"]:
        return Token("literal", raw, position, _number(match))
    if match["string"]:
        return Token("literal", raw, position, Literal(_unquoted(raw)))
    if match["name"]:
        return Token("column", raw, position, Column(_unquoted(raw)))
    if match["word"] and raw.lower() not in _KEYWORDS:
        return Token("column", raw, position, Column(raw))
    if raw.lower() in ("true", "false"):
        return Token("literal", raw, position, Literal(raw.lower() == "true"))
    return Token(raw.lower(), raw, position)


def _number(match: re.Match[str]) -> Literal:
    raw = match[0]
    try:
        return Literal(int(raw) if raw.lstrip("-").isdigit() else float(raw))
    except ValueError:
        problem = "a number that is too large"
        raise WhereError(match.string, match.start(), problem) from None


def _unquoted(raw: str) -> str:
    return raw[1:-1].replace(raw[0] * 2, raw[0])


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


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
        super().__init__(f"where: column {column!r} has kind {kind}: {RULES[kind]}, got {other}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column next to a value or another column; `65 <= age` is kept as `age >= 65`."""

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
            # A fraction matches no integer, and next to one DuckDB would compare as floats.
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
