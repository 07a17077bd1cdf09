"""The words that choose people, in one spelling."""

from collections.abc import Callable

from unpooled.center.data.sql import UNKNOWN_WORDS
from unpooled.center.data.where import And, Column, Comparison, Condition, Literal, columns, parse
from unpooled.center.questions import CohortQuestion, OutcomeQuestion

Words = frozenset[str]


def condition(where: str | None) -> Words:
    """The parts of a condition that must all hold.

    Examples
    --------
    >>> condition("age >= 65 and sex == 'F'") == condition("sex == 'F' and 65 <= age")
    True
    """
    return frozenset(map(str, _parts(where)))


def is_plain(where: str | None) -> bool:
    """Whether a condition compares one column with one value: half of a grouping.

    Nothing about one person can be written into it.

    Examples
    --------
    >>> is_plain("sex == 'F'"), is_plain("age >= 65"), is_plain("not (age == 58 and died == 1)")
    (True, True, False)
    """
    parts = _parts(where)
    return not parts or (
        len(parts) == 1 and isinstance(parts[0], Comparison) and isinstance(parts[0].right, Literal)
    )


def rows_chosen(question: CohortQuestion, varies: Callable[[str], bool]) -> Words:
    """The words that choose some rows of a person and not others, or only those with a status.

    Codes that mean "missing" are such words, too: they choose which values a variable has.

    Only a column that varies among the rows of one person can choose some of them. Where the
    variable itself does not, whatever rows are chosen give the same value.

    Examples
    --------
    >>> from unpooled.center.questions import SizesQuestion
    >>> first = SizesQuestion(variable="crp", where="visit == 1 and sex == 'F'")
    >>> rows_chosen(first, lambda column: column in ("crp", "visit"))
    frozenset({'visit == 1'})
    """
    status = set()
    if isinstance(question, OutcomeQuestion):
        status.add(f"with {Column(question.event)}")
        if question.event_is in UNKNOWN_WORDS:  # which else means that the status is not known
            status.add(f"with {question.event_is}")
    if question.missing:
        codes = sorted(map(str, question.missing))
        status.add(f"without {', '.join(codes)}")
    if not varies(question.variable):
        return frozenset(status)
    parts = (part for part in _parts(question.where) if any(map(varies, columns(part))))
    words = set(map(str, parts)) | status
    if question.by is not None and varies(question.by):  # rows without a group are left out
        words.add(f"by {Column(question.by)}")
    return frozenset(words)


def uses_itself(question: CohortQuestion) -> bool:
    """Whether the variable itself chooses people.

    Examples
    --------
    >>> from unpooled.center.questions import RanksQuestion
    >>> uses_itself(RanksQuestion(variable="crp", by="arm", where="crp < 5"))
    True
    """
    used = {name for part in _parts(question.where) for name in columns(part)}
    return question.variable in used or question.by == question.variable


def _parts(where: str | None) -> tuple[Condition, ...]:
    if where is None:
        return ()
    parsed = parse(where)
    return parsed.parts if isinstance(parsed, And) else (parsed,)
