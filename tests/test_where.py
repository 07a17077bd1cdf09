"""The `where` language: what it reads, what it refuses and where, and which rows it selects."""

import math
import operator
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpooled.center.data import where
from unpooled.center.data.where import (
    OPERATORS,
    And,
    Column,
    Comparison,
    Condition,
    In,
    Kind,
    Literal,
    Missing,
    Not,
    Or,
    columns,
    parse,
    to_sql,
)
from unpooled.errors import InputError, WhereError

Truth = bool | None  # None is unknown
Query = Callable[[str, list[object]], list[tuple[object, ...]]]

AGE, SEX = Column("age"), Column("sex")
OLD = Comparison(AGE, ">=", Literal(65))
FEMALE = Comparison(SEX, "==", Literal("F"))

MEANT: list[tuple[str, Condition]] = [
    ("age >= 65", OLD),
    ("65 <= age", OLD),
    ("age >= 65 and (sex == 'F' and age >= 65)", And((OLD, FEMALE, OLD))),
    ("age >= 65 or age >= 65 and sex == 'F'", Or((OLD, And((OLD, FEMALE))))),
    ("(age >= 65 or sex == 'F') and age >= 65", And((Or((OLD, FEMALE)), OLD))),
    ("not age >= 65 and sex == 'F'", And((Not(OLD), FEMALE))),
    ("not not age >= 65", Not(Not(OLD))),
    ("65 <= age != high", And((OLD, Comparison(AGE, "!=", Column("high"))))),
    ("sex in ('F', 1, true)", In(SEX, (Literal("F"), Literal(1), Literal(True)))),
    ("sex not in ('F')", Not(In(SEX, (Literal("F"),)))),
    ("age is missing", Missing(AGE)),
    ("age is not missing", Not(Missing(AGE))),
]

WRITTEN: list[tuple[str, str]] = [
    ("  age>=65\n", "age >= 65"),
    ("(((`age` >= 6.5e1)))", "age >= 65"),
    ('65.0<=age AND(sex=="F")', "age >= 65 and sex == 'F'"),
    ("18 <= age < 65", "age >= 18 and age < 65"),
    ("not 1 < age < 2", "not (age > 1 and age < 2)"),
    ("sex IN ['F', \"M\",]", "sex in ('F', 'M')"),
    ("not sex in ('F') Or Not age Is Missing", "sex not in ('F') or age is not missing"),
    ("x==-.5 or x == -0.0 or x == 1.5E-7", "x == -0.5 or x == 0 or x == 1.5e-07"),
    ("x == 9223372036854775807 or x == 1e20", "x == 9223372036854775807 or x == 1e+20"),
    ("x == TRUE", "x == true"),
    ('x == "O\'Brien" or x == \'say ""\'', "x == 'O''Brien' or x == 'say \"\"'"),
    ("x == 'a\\' or x == ''", "x == 'a\\' or x == ''"),
    ("Größe_2.cm is missing or גיל is missing", "Größe_2.cm is missing or גיל is missing"),
    ("`length of stay` == `a``b`", "`length of stay` == `a``b`"),
    ("`And` is missing or Missing2 is missing", "`And` is missing or Missing2 is missing"),
]

REFUSED: list[tuple[str, int, str]] = [
    ("", 0, "expected a condition"),
    ("   ", 3, "expected a condition"),
    ("age = 65", 4, "write '==' in place of '='"),
    ("age === 65", 6, "write '==' in place of '='"),
    ("age => 65", 4, "write '>=' in place of '=>'"),
    ("age ≤ 65", 4, "write '<=' in place of '≤'"),
    ("age <> 65", 4, "write '!=' in place of '<>'"),
    ("a == 1 && b == 2", 7, "write 'and' in place of '&&'"),
    ("a == 1 | b == 2", 7, "write 'or' in place of '|'"),
    ("!a == 1", 0, "write 'not' in place of '!'"),
    ("sex == ‘F’", 7, "write a straight quote in place of '‘'"),
    ("age >=", 6, "expected a value after '>='"),
    ("age >= and sex == 1", 7, "expected a value after '>='"),
    ("18 <= age <", 11, "expected a value after '<'"),
    ("age % 2 == 0", 4, "unknown character '%'"),
    ("age + 2 == 0", 4, "unknown character '+'"),
    ("age == 1; drop table t", 8, "unknown character ';'"),
    ("age == 1 \0", 9, "unknown character '\\x00'"),
    ("age == '\ud800'", 8, "unknown character '\\ud800'"),
    ("age == - 5", 7, "unknown character '-'"),
    ("age == ٣", 7, "unknown character '٣'"),
    ("sex == 'F", 7, "a string that is not closed"),
    ("sex == 'F''", 7, "a string that is not closed"),
    ("sex == \"F'", 7, "a string that is not closed"),
    ("`sex == 1", 0, "a name that is not closed"),
    ("`` == 1", 0, "a name that is empty"),
    ("age", 0, "'age' is compared with nothing"),
    ("a == 1 and age", 11, "'age' is compared with nothing"),
    ("(age) > 1", 1, "'age' is compared with nothing"),
    ("a == 1 or 'x' or b == 2", 10, "'x' is compared with nothing"),
    ("age 65", 4, "expected a comparison after 'age'"),
    ("age -5 > 1", 4, "expected a comparison after 'age'"),
    ("lower(sex) == 'f'", 5, "expected a comparison after 'lower'"),
    ("1 < 2", 0, "expected a column on one side of the comparison"),
    ("1 < 2 < age", 0, "expected a column on one side of the comparison"),
    ("2nd == 1", 0, "'2nd' is neither a number nor a name; put such a name in backticks"),
    ("x == 1.2.3", 5, "'1.2.3' is neither a number nor a name; put such a name in backticks"),
    ("x == 1e999", 5, "a number that is too large"),
    ("x == -9223372036854775809", 5, "a number that is too large"),
    ("x == " + "9" * 9000, 5, "a number that is too large"),
    ("a == 1 and", 10, "expected a condition after 'and'"),
    ("and a == 1", 0, "expected a condition"),
    ("not", 3, "expected a condition after 'not'"),
    ("missing == 1", 0, "expected a condition"),
    ("a == 1 b == 2", 7, "expected 'and' or 'or'"),
    ("a < 1 in (2)", 6, "expected 'and' or 'or'"),
    ("a == 1)", 6, "a ')' that was not opened"),
    ("b == 2 and (a == 1", 11, "a '(' that is not closed"),
    ("(a == 1 b", 8, "expected 'and', 'or' or ')'"),
    ("()", 1, "expected a condition after '('"),
    ("a is null", 5, "expected 'missing' after 'is'"),
    ("a is not", 8, "expected 'missing' after 'not'"),
    ("a not > 1", 6, "expected 'in' after 'not'"),
    ("a in 1", 5, "expected a list such as (1, 2) after 'in'"),
    ("a in ()", 6, "expected a value after '('"),
    ("a in (1 2)", 8, "expected ',' or ')'"),
    ("a in (1, 2]", 10, "expected ',' or ')'"),
    ("a in (1, 2", 5, "a '(' that is not closed"),
    ("a in [1,,2]", 8, "expected a value after ','"),
    ("sex in (F, M)", 8, "'F' is a name in a list of values; put text in quotes"),
    ("1 in (1, 2)", 0, "expected a column before 'in'"),
    ("1 is missing", 0, "expected a column before 'is'"),
]


@pytest.mark.parametrize(("text", "condition"), MEANT)
def test_an_expression_means_its_condition(text: str, condition: Condition) -> None:
    assert parse(text) == condition
    assert parse(str(condition)) == condition


@pytest.mark.parametrize(("text", "written"), WRITTEN)
def test_every_spelling_of_a_condition_has_one_text(text: str, written: str) -> None:
    assert str(parse(text)) == written
    assert parse(written) == parse(text)


@pytest.mark.parametrize(("text", "position", "problem"), REFUSED)
def test_what_cannot_be_read_is_pointed_at(text: str, position: int, problem: str) -> None:
    with pytest.raises(WhereError) as caught:
        parse(text)
    error = caught.value
    assert (error.text, error.position, error.problem) == (text, position, problem)


def test_true_is_not_one() -> None:
    assert parse("x == true") != parse("x == 1")
    assert len({Literal(True), Literal(1), Literal(1.0), Literal("1")}) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: Column(""),
        lambda: Column("a\0"),
        lambda: Literal("\udfff"),
        lambda: Literal(math.nan),
        lambda: Literal(-math.inf),
        lambda: Literal(2**63),
        lambda: In(AGE, ()),
        lambda: And((OLD,)),
        lambda: Comparison(AGE, "= 1 or 1 =", Literal(1)),  # type: ignore[arg-type]
    ],
)
def test_a_condition_that_could_not_be_written_cannot_be_made(make: Callable[[], object]) -> None:
    with pytest.raises(InputError, match="where: "):
        make()


def test_columns_are_named_once_in_order_of_first_use() -> None:
    condition = parse("z is missing or not (1 < b <= a) and b in (1) or A == z")
    assert columns(condition) == ("z", "b", "a", "A")


# --- bounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("opening", ["(", "not ", "a == 1 and (", "not("])
def test_nesting_is_bounded(opening: str) -> None:
    def nested(times: int) -> str:
        return opening * times + "x == 1" + ")" * (opening.count("(") * times)

    most = where.MAX_NESTING // (opening.count("(") + opening.count("not"))
    deepest = parse(nested(most))
    assert parse(str(deepest)) == deepest
    for times in (most + 1, 700):
        with pytest.raises(WhereError, match="nested more than 50 deep"):
            parse(nested(times))


def test_a_chain_under_the_deepest_not_can_still_be_written() -> None:
    deepest = parse("not " * (where.MAX_NESTING - 1) + "1 < x < 2")
    assert parse(str(deepest)) == deepest
    with pytest.raises(WhereError, match="nested more than 50 deep"):
        parse("not " * where.MAX_NESTING + "1 < x < 2")


def test_length_is_bounded_as_given_and_as_written() -> None:
    text = f"{'x' * (where.MAX_LENGTH - 5)} == 1"
    assert str(parse(text)) == text
    with pytest.raises(WhereError, match="longer than 10000 characters, at position 10001"):
        parse(text + " ")
    with pytest.raises(WhereError, match="longer than 10000 characters when written in full"):
        parse(f"1<{'x' * 5000}<2")


# --- properties -------------------------------------------------------------------------------

WRITABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
ANY_COLUMN = st.builds(Column, WRITABLE.filter(bool) | st.sampled_from(["age", "In", "a.b", "x`"]))
WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
ANY_LITERAL = st.builds(Literal, st.booleans() | WHOLE | FINITE | WRITABLE)


def conditions(leaves: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    """Conditions joined from leaves."""

    def joined(parts: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        several = st.lists(parts, min_size=2, max_size=3).map(tuple)
        return st.builds(Not, parts) | st.builds(And, several) | st.builds(Or, several)

    return st.recursive(leaves, joined, max_leaves=8)


def leaves_of(
    column: st.SearchStrategy[Column],
    literal: st.SearchStrategy[Literal],
    other: st.SearchStrategy[Column],
) -> st.SearchStrategy[Condition]:
    """A comparison, a list, or missing."""
    return (
        st.builds(Comparison, column, st.sampled_from(OPERATORS), literal | other)
        | st.builds(In, column, st.lists(literal, min_size=1, max_size=3).map(tuple))
        | st.builds(Missing, column)
    )


@given(conditions(leaves_of(ANY_COLUMN, ANY_LITERAL, ANY_COLUMN)))
@settings(max_examples=300)
def test_any_condition_reads_back_from_its_text(condition: Condition) -> None:
    assert parse(str(condition)) == condition


FRAGMENTS = "and or not in is missing true ( ) [ ] , == = != < <= & ' \" ` - . 1 2.5e3 x é ٣ \\ %"


@given(st.text() | st.lists(st.sampled_from([*FRAGMENTS.split(), " "]), max_size=15).map("".join))
@settings(max_examples=500)
def test_any_text_is_read_or_pointed_at(text: str) -> None:
    try:
        condition = parse(text)
    except WhereError as error:
        assert 0 <= error.position <= len(text)  # noqa: PT017
    else:
        assert parse(str(condition)) == condition


# --- rows -------------------------------------------------------------------------------------

TYPES: dict[str, tuple[Kind, str]] = {
    "whole": ("integer", "BIGINT"),
    'q"uote': ("integer", "BIGINT"),
    "real": ("float", "DOUBLE"),
    "tick`s": ("float", "DOUBLE"),
    "Größe text": ("text", "VARCHAR"),
    "in": ("text", "VARCHAR"),
    "?": ("boolean", "BOOLEAN"),
    "$1": ("boolean", "BOOLEAN"),
    "day": ("date", "DATE"),
    "time": ("date", "TIMESTAMP"),
}
KINDS: dict[str, Kind] = {name: kind for name, (kind, _) in TYPES.items()}
TABLE = ", ".join(
    f'"{name.replace(chr(34), chr(34) * 2)}" {sql}' for name, (_, sql) in TYPES.items()
)

TEXT_DIFFERS = '(CAST("x" AS VARCHAR) COLLATE "binary" != ?)'
ATTACKS = ["x'; drop table rows; --", '" or 1=1 --', "`", "' or ''='", "\\' or 1=1", "$1", "?", "%"]
VALUES: dict[Kind, list[bool | int | float | str]] = {
    "integer": [0, 1, -1, 2.5, 2**53 + 1, 2**63 - 1, -(2**63), 2.0**63, 1e300],
    "float": [0, 1, -1, 2.5, 0.1, 2**53 + 1, 1e300, -1e-300],
    "text": ["", "a", "A", "ab", "é", "e\u0301", "\uffff", "\U00010000", *ATTACKS],
    "boolean": [True, False, 0, 1],
    "date": ["2024-02-29", "0001-01-01", "2024-02-29 08:30", "2024-02-29T08:30:00.000001"],
}
REALS = [0.0, -0.0, 1.0, 2.5, 0.1, 2.0**53, 1e300, -1e-300, math.nan, math.inf, -math.inf]
TIMES = [datetime.fromisoformat(str(text)) for text in VALUES["date"]]
CELLS: dict[str, list[object]] = {
    "BIGINT": [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2, -(2**63)],
    "DOUBLE": [*REALS],
    "VARCHAR": [*VALUES["text"]],
    "BOOLEAN": [True, False],
    "DATE": [moment.date() for moment in TIMES],
    "TIMESTAMP": [*TIMES],
}
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def leaves_of_kind(kind: Kind) -> st.SearchStrategy[Condition]:
    alike = {"integer", "float"} if kind in ("integer", "float") else {kind}
    part = st.sampled_from([Column(name) for name in KINDS if KINDS[name] == kind])
    other = st.sampled_from([Column(name) for name in KINDS if KINDS[name] in alike])
    return leaves_of(part, st.sampled_from([Literal(value) for value in VALUES[kind]]), other)


DRAW = random.Random(2)
ROWS = [tuple(DRAW.choice([None, *CELLS[sql]]) for _, sql in TYPES.values()) for _ in range(100)]


def value_of(side: Column | Literal, row: Mapping[str, object]) -> Any:
    """A value as Python compares it, None where missing."""
    value = side.value if isinstance(side, Literal) else row[side.name]
    if isinstance(value, float) and math.isnan(value):
        return None
    return datetime(*value.timetuple()[:3]) if type(value) is date else value


def compared(left: Column, sign: str, right: Column | Literal, row: Mapping[str, object]) -> Truth:
    value, other = value_of(left, row), value_of(right, row)
    if value is None or other is None:
        return None
    if "float" in {KINDS[side.name] for side in (left, right) if isinstance(side, Column)}:
        value, other = float(value), float(other)
    elif KINDS[left.name] == "date" and isinstance(other, str):
        other = datetime.fromisoformat(other)
    return bool(SIGNS[sign](value, other))


def holds(condition: Condition, row: Mapping[str, object]) -> Truth:
    """Whether a row fulfils a condition; None where that is unknown."""
    match condition:
        case Comparison(left, sign, right):
            return compared(left, sign, right, row)
        case In(column, values):
            return some([compared(column, "==", value, row) for value in values])
        case Missing(column):
            return value_of(column, row) is None
        case Not(part):
            return opposite(holds(part, row))
        case Or(parts):
            return some([holds(part, row) for part in parts])
        case And(parts):
            return opposite(some([opposite(holds(part, row)) for part in parts]))


def some(truths: list[Truth]) -> Truth:
    return True if True in truths else None if None in truths else False


def opposite(truth: Truth) -> Truth:
    return None if truth is None else not truth


@pytest.fixture(scope="module")
def query() -> Iterator[Query]:
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(f"CREATE TABLE rows ({TABLE})")
        database.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(TYPES))})", ROWS)
        yield lambda sql, parameters: database.execute(sql, parameters).fetchall()


@given(condition=conditions(st.one_of([leaves_of_kind(kind) for kind in VALUES])))
@settings(max_examples=500)
def test_duckdb_finds_what_three_valued_logic_says(query: Query, condition: Condition) -> None:
    sql, parameters = to_sql(condition, KINDS)
    result = [truth for (truth,) in query(f"SELECT {sql} FROM rows ORDER BY rowid", parameters)]
    assert result == [holds(condition, dict(zip(TYPES, row, strict=True))) for row in ROWS]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_stays_data(query: Query, attack: str) -> None:
    column, value = Column(attack), Literal(attack)
    name = attack.replace('"', '""')
    query(f'CREATE OR REPLACE TABLE attacked ("{name}" VARCHAR)', [])
    query("INSERT INTO attacked VALUES (?), ('other'), (NULL)", [attack])
    for text, rows in (
        (f"{column} == {value}", [(attack,)]),
        (f"{column} not in ({value})", [("other",)]),
        (f"{column} is missing", [(None,)]),
    ):
        sql, parameters = to_sql(parse(text), {attack: "text"})
        assert query(f"SELECT * FROM attacked WHERE {sql}", parameters) == rows
    assert query("SELECT count(*) FROM attacked", []) == [(3,)]
    assert to_sql(parse(f"x != {value}"), {"x": "text"}) == (TEXT_DIFFERS, [attack])


@pytest.mark.parametrize(
    ("cell", "kind", "true"),
    [
        ("'b'::ENUM ('b', 'a')", "text", "x > 'a'"),
        ("'a' COLLATE nocase", "text", "x != 'A' and x not in ('A')"),
        ("0.1::DECIMAL(4, 2)", "float", "x == 0.1"),
        ("200::UTINYINT", "integer", "-1 < x < 300 and x not in (-1, 300)"),
        ("18446744073709551615::UBIGINT", "integer", "x > 9223372036854775807 and x > -1"),
        ("9007199254740993::BIGINT", "integer", "x not in (9007199254740992, 0.5) and x != 0.5"),
        ("TIMESTAMP_NS '2024-01-31 08:30:00'", "date", "'2024-01-31 08:30' == x < '2900-01-01'"),
        ("DATE '5000000-01-01'", "date", "x is missing"),
        ("'infinity'::DATE", "date", "x > '9999-12-31'"),
        ("[1]", "other", "x is not missing"),
    ],
)
def test_other_types_of_a_kind_compare_alike(
    query: Query, cell: str, kind: Kind, true: str
) -> None:
    sql, parameters = to_sql(parse(true), {"x": kind})
    assert query(f"SELECT {sql} FROM (SELECT {cell} AS x)", parameters) == [(True,)]


def test_the_longest_expressions_run(query: Query) -> None:
    for text in (" or ".join(["a<b"] * 1000), f"a in ({','.join(['1'] * 3000)})"):
        sql, parameters = to_sql(parse(text), {"a": "integer", "b": "integer"})
        assert query(f"SELECT {sql} FROM (SELECT 1 AS a, 2 AS b)", parameters) == [(True,)]


@pytest.mark.parametrize(
    ("kind", "text", "got"),
    [
        ("integer", "x == '65'", "compare it with a number, got '65'"),
        ("integer", "x in (1, 'a')", "compare it with a number, got 'a'"),
        ("float", "x == true", "compare it with a number, got true"),
        ("text", "x == 65", "compare it with a text in quotes, got 65"),
        ("text", "x < y", "compare it with a text in quotes, got column 'y' of kind integer"),
        ("boolean", "x == 2", "compare it with true or false, got 2"),
        ("boolean", "x == 'true'", "compare it with true or false, got 'true'"),
        ("date", "x > 2024", "a date in quotes, as '2024-01-31' or '2024-01-31 08:30', got 2024"),
        ("date", "x > y", "got column 'y' of kind integer"),
        ("date", "x > '2024-13-01'", "got '2024-13-01'"),
        ("date", "x > '2024-1-1'", "got '2024-1-1'"),
        ("date", "x > '20240131'", "got '20240131'"),
        ("date", "x > '2024-01-31 08:30Z'", "got '2024-01-31 08:30Z'"),
        ("other", "x == 1", "ask only whether it is missing, got 1"),
        ("other", "x == x", "ask only whether it is missing, got column 'x' of kind other"),
    ],
)
def test_kinds_that_cannot_be_compared_are_named(kind: Kind, text: str, got: str) -> None:
    with pytest.raises(where.WhereKindError) as caught:
        to_sql(parse(text), {"x": kind, "y": "integer"})
    assert (caught.value.column, caught.value.kind) == ("x", kind)
    assert str(caught.value).startswith(f"where: column 'x' has kind {kind}: ")
    assert str(caught.value).endswith(got)


@pytest.mark.parametrize("text", ["Age == 1", "age == Age", "not Age is missing", "Age in (1)"])
def test_an_unknown_column_is_named(text: str) -> None:
    with pytest.raises(where.UnknownColumnError, match="there is no column 'Age'") as caught:
        to_sql(parse(text), {"age": "integer"})
    assert caught.value.column == "Age"
