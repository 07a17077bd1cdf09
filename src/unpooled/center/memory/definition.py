"""The words that chose a set of people, in one spelling.

Whether two sets hold the same people must not be found out by asking: "everybody but those aged 58
with a value above t" equals everybody until t passes the value. So a set counts as known only if it
is asked for in words that mean the same whatever the data are.
"""

from collections.abc import Callable

import msgspec

from unpooled.data.where import And, Column, Comparison, Condition, Literal, columns, parse
from unpooled.questions import CohortQuestion, OutcomeQuestion

Words = frozenset[str]


def condition(where: str | None) -> Words:
    """The parts of a condition that must all hold.

    Examples
    --------
    >>> condition("age >= 65 and sex == 'F'") == condition("sex == 'F' and 65 <= age")
    True
    """
    return frozenset(map(_part, _parts(where)))


def rows_chosen(question: CohortQuestion, varies: Callable[[str], bool]) -> Words:
    """The words that choose some rows of a person and not others.

    Only a column that varies among the rows of one person can. Where the variable itself does not,
    whatever rows are chosen give the same value.

    Examples
    --------
    >>> from unpooled.questions import SizesQuestion
    >>> first = SizesQuestion(variable="crp", where="visit == 1 and sex == 'F'")
    >>> rows_chosen(first, lambda column: column in ("crp", "visit"))
    frozenset({"visit == '1'"})
    """
    if not varies(question.variable):
        return frozenset()
    parts = (part for part in _parts(question.where) if any(map(varies, columns(part))))
    words = frozenset(map(_part, parts))
    if question.by is not None and varies(question.by):  # rows without a group are left out
        words |= {f"by {Column(question.by)}"}
    return words


def without_own(question: CohortQuestion) -> CohortQuestion | None:
    """The question without what chooses people by their own value; None where nothing does.

    Examples
    --------
    >>> from unpooled.questions import SizesQuestion
    >>> died = SizesQuestion(variable="died", where="died == 1 and sex == 'F'")
    >>> without_own(died).where
    "sex == 'F'"
    >>> without_own(SizesQuestion(variable="died", where="sex == 'F'"))
    """
    parts = _parts(question.where)
    others = tuple(part for part in parts if question.variable not in columns(part))
    by_itself = question.by == question.variable
    if len(others) == len(parts) and not by_itself:
        return None
    where = str(And(others)) if len(others) > 1 else "".join(map(str, others)) or None
    by, groups = (None, None) if by_itself else (question.by, question.groups)
    return msgspec.structs.replace(question, where=where, by=by, groups=groups)


def status_needed(question: CohortQuestion) -> Words:
    """The words by which only the values of some people count: those who have a status.

    Examples
    --------
    >>> from unpooled.questions import FollowUpQuestion, SizesQuestion
    >>> status_needed(FollowUpQuestion(variable="months", event="died"))
    frozenset({'with died'})
    >>> status_needed(SizesQuestion(variable="months"))
    frozenset()
    """
    if not isinstance(question, OutcomeQuestion):
        return frozenset()
    return frozenset({f"with {Column(question.event)}"})


def _parts(where: str | None) -> tuple[Condition, ...]:
    if where is None:
        return ()
    parsed = parse(where)
    return parsed.parts if isinstance(parsed, And) else (parsed,)


def definition(question: CohortQuestion, group: str, *, missing: bool = False) -> Words:
    """The words for one group of a question: those with a value, or those without.

    Examples
    --------
    >>> from unpooled.questions import SizesQuestion
    >>> by_sex = SizesQuestion(variable="crp", by="sex", where="arm == 1")
    >>> by_arm = SizesQuestion(variable="crp", by="arm", where="sex == 'F'")
    >>> definition(by_sex, "F") == definition(by_arm, "1")
    True
    """
    words = condition(question.where)
    if question.by is not None:
        words |= {_equal(question.by, group)}
    return words | {"without a value"} if missing else words


def _part(part: object) -> str:
    match part:
        case Comparison(Column(name), "==", Literal(value)):
            return _equal(name, str(value))
        case _:
            return str(part)


def _equal(column: str, label: str) -> str:
    return f"{Column(column)} == {Literal(label)}"
