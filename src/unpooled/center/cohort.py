"""The people that a question is about, as they are at a center.

From the center's rows, its policy and the question: check what may be asked, select the rows, make
people of them, count each group, and give the sorted values of those with at least K people.
Nothing here leaves the center by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isinf

from unpooled.center.memory.definition import Words, rows_chosen, status_needed
from unpooled.center.memory.proposal import Proposal
from unpooled.center.memory.units import Members, Units
from unpooled.center.policy import PerPerson, Policy, k_in_force, nobody_told, people_needed
from unpooled.center.reading import read_people
from unpooled.data import where
from unpooled.data.sources import ROW, Source
from unpooled.data.sql import quote
from unpooled.data.variables import Variable
from unpooled.errors import WhereError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.binning import Rule
from unpooled.questions import EVERYBODY, CohortQuestion, Reason, Refusal

NUMBERS: tuple[where.Kind, ...] = ("integer", "float", "boolean")


class RefusedQuestion(Exception):  # noqa: N818 - not an error of the program but a center's answer
    """The center does not answer this question at all."""

    def __init__(self, reason: Reason, name: str | None = None, limit: int | None = None) -> None:
        self.refusal = Refusal(reason=reason, name=name, limit=limit)
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class People:
    """How many people of a group have a value, and how many have none."""

    n: int
    missing: int


@dataclass(frozen=True, slots=True)
class Cohort:
    """The selected people of one variable, by group; values are read when first needed."""

    source: Source
    people: str  # SQL: a row per person, columns v (value), g (group) and those that name it
    parameters: tuple[object, ...]
    declared: Variable
    named: bool = False  # whether people have keys; else they are rows
    _values: dict[str, FloatArray] = field(default_factory=dict)
    _members: dict[str, tuple[Members, Members]] = field(default_factory=dict)

    def every_size(self) -> dict[str, People]:
        """Every group that is there, and how many people it has; no value is kept."""
        rows = self.source.rows(
            f"SELECT g, count(*), count(v) "
            f"FROM ({self.people}) WHERE g IS NOT NULL GROUP BY g ORDER BY g",
            self.parameters,
        )
        return {group: People(n=n, missing=count - n) for group, count, n in rows}

    def sizes(self, groups: Sequence[str]) -> list[People]:
        """How many people each group has."""
        members = self.members(groups)
        return [People(n=len(present), missing=len(missing)) for present, missing in members]

    def values(self, groups: Sequence[str]) -> list[FloatArray]:
        """Each group's values, sorted."""
        self._read(groups)
        return [self._values[group] for group in groups]

    def members(self, groups: Sequence[str]) -> list[tuple[Members, Members]]:
        """Who belongs to each group, with a value and without."""
        self._read(groups)
        return [self._members[group] for group in groups]

    def _read(self, groups: Sequence[str]) -> None:
        """Read the groups that were not read before, in one query."""
        new = [group for group in dict.fromkeys(groups) if group not in self._values]
        if not new:
            return
        people = read_people(self.source, self.people, self.parameters, new, named=self.named)
        for group, some in zip(new, people, strict=True):
            self._members[group] = (some.present, some.missing)
            self._values[group] = some.values


@dataclass(frozen=True, slots=True)
class Selection:
    """The groups of a cohort that a question may have an answer for, and the others' refusals."""

    cohort: Cohort
    rule: Rule
    people: dict[str, int]  # group → how many
    refusals: tuple[Refusal, ...]
    hidden: frozenset[str] = frozenset()  # groups whose number of missing values is not told
    left: Mapping[str, int] = field(default_factory=dict)  # values that its mean leaves others
    policy_k: int = 0

    @property
    def ks(self) -> tuple[int, int]:
        """The K by which values are rare: the policy's, and that in force."""
        return self.policy_k, self.rule.k

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that may be answered for."""
        return tuple(self.people)

    def values(self) -> list[FloatArray]:
        """The sorted values of each group."""
        return self.cohort.values(self.groups)


def select(cohort: Cohort, question: CohortQuestion, policy: Policy) -> Selection:
    """Judge each group of the question by its number of people."""
    k = k_in_force(question, policy)
    if question.k is not None and question.k < k:
        raise RefusedQuestion(Reason.K_BELOW_POLICY, limit=k)
    sizes, least = _sizes(cohort, question), people_needed(question, k)
    # Of people that the question chose, even "nobody" would tell on one of them: a condition such
    # as "age == 58 and crp > 10", or a long list of groups, finds a single person's value.
    zeros = nobody_told(question, policy)
    if not sizes:
        raise RefusedQuestion(Reason.ABSENT if zeros else Reason.TOO_SMALL, limit=least)
    people, refusals = {}, []
    for group, size in sizes.items():
        reason = _judge_size(size, k, zeros)
        if reason is None and size.n < least:
            reason = Reason.TOO_SMALL
        if reason is None:
            people[group] = size.n
        elif question.by is None:
            raise RefusedQuestion(reason, limit=least)
        elif question.groups is not None:  # a group that nobody named stays unnamed
            refusals.append(Refusal(reason=reason, name=group, limit=least))
    if not people and not refusals:
        raise RefusedQuestion(Reason.TOO_SMALL, limit=least)
    rule = Rule(k=k, zeros=policy.zero_cells)
    return Selection(cohort, rule, people, tuple(refusals), policy_k=policy.k)


def withhold(selection: Selection, question: CohortQuestion, proposal: Proposal) -> Selection:
    """The selection without the groups that earlier answers forbid."""
    k = selection.rule.k
    refusals = [
        Refusal(reason=Reason.WOULD_DIFFER, name=group, limit=k)
        for group in selection.groups
        if group in proposal.withheld
    ]
    if refusals and question.by is None:
        raise RefusedQuestion(Reason.WOULD_DIFFER, limit=k)
    if refusals and question.groups is None:  # a group that nobody named stays unnamed
        refusals = [Refusal(reason=Reason.WOULD_DIFFER, limit=k)]
    return replace(
        selection,
        people={g: n for g, n in selection.people.items() if g in proposal.people},
        refusals=(*selection.refusals, *refusals),
        hidden=frozenset(selection.groups) - frozenset(proposal.missing),
        left=proposal.values,
    )


def _sizes(cohort: Cohort, question: CohortQuestion) -> dict[str, People]:
    if question.by is not None and question.groups is None:
        return cohort.every_size()
    asked = question.groups if question.by is not None and question.groups else (EVERYBODY,)
    return dict(zip(asked, cohort.sizes(asked), strict=True))


def _judge_size(size: People, k: int, zeros: bool) -> Reason | None:
    if size.n >= k:
        return None
    if size.n or not zeros or 0 < size.missing < k:
        return Reason.TOO_SMALL
    return Reason.ALL_MISSING if size.missing else Reason.ABSENT


def find_cohort(
    source: Source,
    question: CohortQuestion,
    policy: Policy,
    declared: Variable,
    *,
    known: str = "TRUE",
    among: str = "TRUE",
) -> Cohort:
    """Check what is asked for, and say in SQL which people it means.

    `known` is SQL for whether a row's value counts, `among` for whether the row does. What is
    checked are all rows and all values.
    """
    selected = _parse(question)
    _check_names(source, question, policy, selected)
    check_column(source, question.variable, declared, policy)
    _check_people(source, question.by, policy)
    condition, parameters = _condition(source, selected)
    number = f"nullif(CAST({quote(question.variable)} AS DOUBLE), 'NaN'::DOUBLE)"
    value = f"CASE WHEN {known} THEN {number} END"
    person = "NULL" if policy.person is None else quote(policy.person)
    rows = (
        f"SELECT {value} AS v, {label_sql(source, question.by)} AS g, {person} AS p, {ROW} AS unit "
        f"FROM {source.numbered} WHERE ({condition}) AND {among}"
    )
    named = _has_several_rows(source, policy)
    people = rows if policy.per_person is None else _people(rows, policy.per_person, named)
    return Cohort(source, people, parameters, declared, named)


def units_of(source: Source, policy: Policy) -> Units:
    """What one person is at this center, before anybody was asked about."""
    return Units.of_persons() if _has_several_rows(source, policy) else Units(source.size)


def rows_of(source: Source, question: CohortQuestion, policy: Policy) -> Words:
    """The words of a question that choose which rows, or of which people, make up the values."""
    status, person = status_needed(question), policy.person
    if person is None or not _has_several_rows(source, policy):
        return status
    return status | rows_chosen(question, lambda column: source.varies(column, person))


def _has_several_rows(source: Source, policy: Policy) -> bool:
    """Whether rows of one person are put together: then people have keys."""
    if policy.person is None or policy.per_person is None:  # else repeated rows are refused
        return False
    return source.repeats(policy.person)


def _parse(question: CohortQuestion) -> where.Condition | None:
    try:
        return None if question.where is None else where.parse(question.where)
    except WhereError as error:
        raise RefusedQuestion(Reason.BAD_WHERE) from error


def _check_names(
    source: Source, question: CohortQuestion, policy: Policy, selected: where.Condition | None
) -> None:
    used = [question.variable, *([] if question.by is None else [question.by])]
    if selected is not None:
        used += where.columns(selected)
    for name in used:
        if name not in source.kinds:
            raise RefusedQuestion(Reason.UNKNOWN_VARIABLE, name)
        if not policy.allows(name):
            raise RefusedQuestion(Reason.NOT_ALLOWED, name)
    if source.kinds[question.variable] not in NUMBERS:
        least = people_needed(question, k_in_force(question, policy))
        column = quote(question.variable)
        rows, values = source.rows(f"SELECT count(*), count({column}) FROM {source.relation}")[0]
        if not rows:
            raise RefusedQuestion(
                Reason.ABSENT if policy.zero_cells else Reason.TOO_SMALL, limit=least
            )
        empty = not values and rows >= policy.k and policy.zero_cells
        raise RefusedQuestion(
            Reason.ALL_MISSING if empty else Reason.NOT_NUMERIC, question.variable
        )


def check_column(source: Source, variable: str, declared: Variable, policy: Policy) -> None:
    """Judge the whole column, so that no choice of people can find who breaks the rule."""
    _check_values(source, variable, declared)
    _check_resolution(source, variable, declared, policy)


def _check_values(source: Source, variable: str, declared: Variable) -> None:
    lower, upper = declared.lower, declared.upper
    if source.kinds[variable] != "float" and lower is None and upper is None:
        return
    least, most = source.extremes(variable)
    if least is None or most is None:
        return
    if isinf(least) or isinf(most):
        raise RefusedQuestion(Reason.NOT_FINITE)
    if (lower is not None and least < lower) or (upper is not None and most > upper):
        raise RefusedQuestion(Reason.OUTSIDE_LIMITS)


def _check_resolution(source: Source, variable: str, declared: Variable, policy: Policy) -> None:
    """Refuse where K people have values between its multiples; of fewer nothing shows.

    All rows and the policy's own K say so: no choice of people and no question moves it.
    """
    if declared.resolution is None:
        return
    means = policy.per_person == "mean"
    off = source.off_grid(variable, declared.resolution, policy.person, means=means)
    if off >= policy.k:
        raise RefusedQuestion(Reason.OFF_RESOLUTION)


def _condition(source: Source, selected: where.Condition | None) -> tuple[str, tuple[object, ...]]:
    if selected is None:
        return "TRUE", ()
    try:
        sql, parameters = where.to_sql(selected, source.kinds)
    except where.WhereKindError as error:
        raise RefusedQuestion(Reason.BAD_WHERE, error.column) from error
    return sql, tuple(parameters)


def label_sql(source: Source, by: str | None) -> str:
    """SQL for a row's group; whole numbers read alike whether stored as 1, 1.0 or '1'."""
    if by is None:
        return f"'{EVERYBODY}'"
    column = quote(by)
    match source.kinds[by]:
        case "float":
            number = f"nullif(CAST({column} AS DOUBLE), 'NaN'::DOUBLE)"
            whole = f"CAST(CAST({number} AS HUGEINT) AS VARCHAR)"
            return (
                f"CASE WHEN abs({number}) < 1e15 AND {number} = trunc({number}) "
                f"THEN {whole} ELSE CAST({number} AS VARCHAR) END"
            )
        case "boolean":
            return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
        case _:
            return f"nullif(CAST({column} AS VARCHAR), '')"


_PER_PERSON = {
    "mean": "list_avg(list_sort(list(v) FILTER (v IS NOT NULL)))",  # sorted: one sum, one answer
    "max": "max(v)",
    "first": "arg_min(v, unit) FILTER (v IS NOT NULL)",
}


def _people(rows: str, per_person: PerPerson, named: bool) -> str:
    """SQL for a row per person, by the policy's rule for repeated rows; named: by whose it is."""
    who = "CAST(md5_number_lower(CAST(p AS VARCHAR)) AS UBIGINT)" if named else "min(unit)"
    return (
        f"SELECT p, g, {_PER_PERSON[per_person]} AS v, {who} AS unit "
        f"FROM ({rows}) WHERE p IS NOT NULL GROUP BY p, g"
    )


def _check_people(source: Source, by: str | None, policy: Policy) -> None:
    """Refuse where somebody has several rows or, once these are put together, several groups.

    All rows say so, whatever the question selects: no choice of people can find who it is.
    """
    if policy.person is None or (policy.per_person is not None and by is None):
        return
    label = None if policy.per_person is None else label_sql(source, by)
    if source.repeats(policy.person, label):
        raise RefusedQuestion(Reason.REPEATED_PERSON)
