"""The words of the `where` language: how they are found in a text, written, and given to DuckDB."""

import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

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
        """An error that points at a token, the next one unless told."""
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
