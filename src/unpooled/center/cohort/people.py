"""The people that a question is about, as they are at a center.

Words choose people: a grouping, a condition. They are judged before anybody's value is looked at,
and without regard to who lacks a value. Nothing here leaves the center by itself.

Fewer than K people whose value is not known would undo every count by subtraction. So in a column
that words use, each of fewer than K missing values is completed by that of somebody else, drawn by
the center's key, always the same. And where fewer than K of a group lack the variable's value, each
of them counts with a draw from people who are alike (`donors`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unpooled.center.cohort.donors import MOST_PEOPLE, find_donors
from unpooled.center.data import where
from unpooled.center.data.sources import ROW, Source
from unpooled.center.data.sql import UNKNOWN_WORDS, literal, quote, words_sql
from unpooled.center.data.variables import Variable
from unpooled.center.policy import PerPerson, Policy
from unpooled.center.questions import (
    EVERYBODY,
    OTHER,
    CategoryQuestion,
    CohortQuestion,
    OutcomeQuestion,
    Reason,
    Refusal,
    SizesQuestion,
    bands,
)
from unpooled.errors import WhereError
from unpooled.maths import big_arrays
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray, Places

NUMBERS: tuple[where.Kind, ...] = ("integer", "float", "boolean")
PERSON = '"unpooled: person"'  # a column that numbers the people from 0
_MOST_SORTS, _MOST_LEVELS = 100, 12  # columns in which people alike are looked for; their levels
MOST_CROSSED = 2  # groupings in a condition, where a policy allows no others

_YES = {"no": "yes", "No": "Yes", "NO": "YES", "f": "t", "F": "T", "False": "True"}
_CODES = {  # every value of the event column → the one that means the event
    frozenset({"0"}): "1",
    frozenset({"0", "1"}): "1",
    frozenset({"2"}): "2",
    frozenset({"1", "2"}): "2",
    **{frozenset({yes}): yes for yes in _YES.values()},
    **{frozenset({no}): yes for no, yes in _YES.items()},
    **{frozenset({no, yes}): yes for no, yes in _YES.items()},
}
_PER_PERSON = {
    "mean": "list_avg(list_sort(list(v) FILTER (v IS NOT NULL)))",  # sorted: one sum, one answer
    "max": "max(v)",
    "first": f"arg_min(v, {ROW}) FILTER (v IS NOT NULL)",
}


ByWords = tuple[str | None, tuple[float, ...] | None, str | None, bool]


class RefusedQuestion(Exception):  # noqa: N818 - not an error of the program but a center's answer
    """The center does not answer this question at all."""

    def __init__(self, reason: Reason, name: str | None = None, limit: int | None = None) -> None:
        self.refusal = Refusal(reason=reason, name=name, limit=limit)
        super().__init__(reason)


@dataclass(frozen=True)
class Rows:
    """A center's rows and the people they belong to."""

    source: Source
    policy: Policy
    secret: bytes
    plain: "Rows | None" = None  # where a protocol's K or codes make them others: as they are
    _completions: dict[str, str] = field(default_factory=dict)
    last: dict[ByWords, dict[str, BoolArray]] = field(default_factory=dict)  # who was read last
    _values: dict[str, FloatArray] = field(default_factory=dict)  # and what of them

    @cached_property
    def several(self) -> bool:
        """Whether rows of one person are put together."""
        person, rule = self.policy.person, self.policy.per_person
        return person is not None and rule is not None and self.source.repeats(person)

    @cached_property
    def size(self) -> int:
        """How many people there are."""
        if not self.several or self.policy.person is None:
            return self.source.size
        person = quote(self.policy.person)
        counted = f"SELECT count(DISTINCT {person}) FROM {self.source.relation}"
        return int(self.source.rows(counted)[0][0])

    @cached_property
    def sorts(self) -> Mapping[str, IntArray]:
        """The level of each person in each column that sorts people; to find who is alike.

        Those are the declared groupings; where people may be grouped by any column, those of few
        different values.
        """
        if self.plain is not None:
            return self.plain.sorts
        policy = self.policy
        if self.size > MOST_PEOPLE:
            return {}
        groupings = policy.grouped_by()
        if policy.ad_hoc == "free" and not groupings:
            groupings = dict.fromkeys(self._of_few_values())
        sorts = {}
        for name, cuts in groupings.items():
            if name in self.source.kinds:
                levels = column_levels(self, name, None, cuts, completed=True)
                sorts[name] = np.nan_to_num(levels.code, nan=-1).astype(np.int64)
        return sorts

    def _of_few_values(self) -> list[str]:
        """Columns that people may be asked about and that have few different values."""
        source = self.source
        names = [name for name in source.kinds if self.policy.allows(name)][:_MOST_SORTS]
        different = ", ".join(f"count(DISTINCT {quote(name)})" for name in names)
        counts = source.rows(f"SELECT {different} FROM {source.relation}")[0] if names else ()
        return [name for name, n in zip(names, counts, strict=True) if 1 < n <= _MOST_LEVELS]

    def numbered(self, words: Sequence[str] = ()) -> str:
        """SQL for the rows with the number of each one's person; `words` are completed."""
        person = ROW
        if self.several and self.policy.person is not None:
            name = quote(self.policy.person)
            rank = f"dense_rank() OVER (ORDER BY {name} NULLS LAST) - 1"
            person = f"CASE WHEN {name} IS NOT NULL THEN CAST({rank} AS INTEGER) END"
        rows = f"(SELECT *, {person} AS {PERSON} FROM {self.source.numbered})"
        completed = [c for c in map(self._completion, dict.fromkeys(words)) if c]
        if not completed:
            return rows
        return f"(SELECT * REPLACE ({', '.join(completed)}) FROM {rows})"

    def _completion(self, column: str) -> str:
        """SQL that completes a column of which fewer than K values are missing; else nothing."""
        if column not in self._completions:
            self._completions[column] = self._completed(column)
        return self._completions[column]

    def _completed(self, column: str) -> str:
        source, name = self.source, quote(column)
        number = source.kinds[column] == "float"
        plain = f"nullif({name}, 'NaN')" if number else name
        if source.kinds[column] == "text":
            plain = f"nullif(CAST({name} AS VARCHAR), '')"
        missing = f"SELECT {ROW} FROM {source.numbered} WHERE {plain} IS NULL LIMIT {self.policy.k}"
        places = [row for (row,) in source.rows(missing)]
        if not 0 < len(places) < self.policy.k or len(places) == source.size:
            return ""
        key = hashlib.blake2b(column.encode(), key=self.secret[:64], person=b"unpooled missing")
        cases = []
        for place in places:
            keyed = key.copy()
            keyed.update(int(place).to_bytes(8, "little"))
            after = int.from_bytes(keyed.digest()[:8], "little") % source.size
            donor = (
                f"SELECT CAST({name} AS VARCHAR), typeof({name}) FROM {source.numbered} "
                f"WHERE {plain} IS NOT NULL ORDER BY {ROW} < {after}, {ROW} LIMIT 1"
            )
            ((text, kind),) = source.rows(donor)
            cases.append(f"WHEN {place} THEN CAST({literal(text)} AS {kind})")
        whole = f"CASE {ROW} {' '.join(cases)} ELSE {name} END"
        return f"{whole} AS {name}"

    def values(self, variable: str) -> FloatArray:
        """The numbers of a column; kept for the next question where memory is not bounded."""
        if variable not in self._values:
            values = self.source.values(variable)
            if self.source.is_bounded:
                return values
            self._values.clear()
            self._values[variable] = values
        return self._values[variable]

    def varies(self, column: str) -> bool:
        """Whether a column differs between rows of one person, whoever that is."""
        return self.policy.person is not None and self.source.varies(column, self.policy.person)

    def label(self, column: str, cuts: Sequence[float] | None = None) -> str:
        """SQL for a row's group; whole numbers read alike whether stored as 1, 1.0 or '1'."""
        name, kind = quote(column), self.source.kinds[column]
        number = f"nullif(CAST({name} AS DOUBLE), 'NaN'::DOUBLE)"
        if cuts is not None:
            names = [literal(band) for band in bands(cuts)]
            upper = zip(cuts, names, strict=False)
            cases = " ".join(f"WHEN {number} < {cut!r}::DOUBLE THEN {band}" for cut, band in upper)
            return f"CASE {cases} WHEN {number} IS NOT NULL THEN {names[-1]} END"
        match kind:
            case "float":
                whole = f"CAST(CAST({number} AS HUGEINT) AS VARCHAR)"
                return (
                    f"CASE WHEN abs({number}) < 1e15 AND {number} = trunc({number}) "
                    f"THEN {whole} ELSE CAST({number} AS VARCHAR) END"
                )
            case "boolean":
                return f"CASE WHEN {name} THEN 'True' WHEN NOT {name} THEN 'False' END"
            case _:
                return f"nullif(CAST({name} AS VARCHAR), '')"


class Cohort:
    """The people of one question, group by group."""

    def __init__(
        self,
        rows: Rows,
        question: CohortQuestion,
        declared: Variable,
        selected: where.Condition | None,
        blocks: Mapping[str, BoolArray] | None = None,
    ) -> None:
        self.k = rows.policy.k
        self.question = question
        self.declared = declared
        self.rows = rows
        self._selected = selected
        self.groups: dict[str, BoolArray] = {}
        self._values: FloatArray | None = None
        self._status: Places | None = None
        self._sorted: dict[str, FloatArray] = {}
        self._counted: dict[str, BoolArray] = {}
        self._cells: tuple[tuple[float, ...], Places] | None = None
        self.nearest: tuple[str, ...] = ()  # groups that are answered as an earlier set was
        self.blocks = None if blocks is None else dict(blocks)  # of everybody, also if left out
        if self.blocks is None:
            self._read_groups()
        else:
            self.groups = dict(self.blocks)

    # --- who they are -----------------------------------------------------------------------

    def _read_groups(self) -> None:
        """Who belongs to each group, by words alone; a chain asks of the same people again."""
        question, last = self.question, self.rows.last
        if question.by is None and self._selected is None:
            self.groups = {EVERYBODY: big_arrays.full(self.rows.size, True, bool)}
            return
        words = question.by, question.cuts, question.where
        groups = last.get((*words, question.groups is None), last.get((*words, True), {}))
        if question.groups is not None:
            groups = {name: groups[name] for name in question.groups if name in groups}
        if groups and len(groups) == len(question.groups or groups):
            self.groups = dict(groups)
            return
        self._find_groups()
        last.clear()
        last[(*words, question.groups is None)] = dict(self.groups)

    def _find_groups(self) -> None:
        question, source = self.question, self.rows.source
        used = [] if self._selected is None else list(where.columns(self._selected))
        words = used if question.by is None else [*used, question.by]
        condition, parameters = self._condition()
        label = literal(EVERYBODY)
        if question.by is not None:
            label = self.rows.label(question.by, question.cuts)
        chosen = (
            f"SELECT {PERSON} AS unit, CASE WHEN {condition} THEN {label} END AS g "
            f"FROM {self.rows.numbered(words)} WHERE {PERSON} IS NOT NULL"
        )
        names = self._named(chosen, parameters)
        codes = " ".join(f"WHEN ? THEN {code}" for code in range(len(names)))
        self.groups = {name: big_arrays.full(self.rows.size, False, bool) for name in names}
        if not names:
            return
        coded = f"SELECT unit, CAST(CASE g {codes} END AS INTEGER) AS code FROM ({chosen})"
        if self.rows.several:
            numbered = f"SELECT unit, code FROM ({coded}) WHERE code IS NOT NULL"
            for batch in source.batches(numbered, (*names, *parameters)):
                for code, members in enumerate(self.groups.values()):
                    members[batch["unit"][batch["code"] == code]] = True
            return
        start = 0
        for batch in source.batches(
            f"SELECT coalesce(code, -1) AS code FROM ({coded})", (*names, *parameters)
        ):
            place = slice(start, start + len(batch["code"]))
            for code, members in enumerate(self.groups.values()):
                members[place] = batch["code"] == code
            start = place.stop

    def _named(self, chosen: str, parameters: tuple[object, ...]) -> tuple[str, ...]:
        question = self.question
        if question.by is None:
            return (EVERYBODY,)
        if question.groups is not None:
            return question.groups
        people = "DISTINCT unit" if self.rows.several else "*"
        counted = (
            f"SELECT g FROM ({chosen}) WHERE g IS NOT NULL GROUP BY g "
            f"HAVING count({people}) >= {self.k} ORDER BY g"
        )
        return tuple(group for (group,) in self.rows.source.rows(counted, parameters))

    def _condition(self) -> tuple[str, tuple[object, ...]]:
        if self._selected is None:
            return "TRUE", ()
        try:
            sql, parameters = where.to_sql(self._selected, self.rows.source.kinds)
        except where.WhereKindError as error:
            raise RefusedQuestion(Reason.BAD_WHERE, error.column) from error
        return sql, tuple(parameters)

    def only(self, names: Sequence[str]) -> None:
        """Leave the other groups out."""
        self.groups = {name: self.groups[name] for name in names}

    def put(self, group: str, people: BoolArray) -> None:
        """Answer for these people in place of a group's own."""
        self.groups[group] = people
        self._values = self._status = self._cells = None
        for kept in (self._sorted, self._counted):
            kept.pop(group, None)

    def members(self, group: str) -> BoolArray:
        """Who belongs to a group, by words alone."""
        return self.groups[group]

    # --- what they have ---------------------------------------------------------------------

    def counted(self, group: str) -> BoolArray:
        """Who counts as having a value: all but the missing ones where these are K or more."""
        if group not in self._counted:
            members = self.groups[group]
            present = members if self._of_everybody else self._present(group)
            few = int(np.count_nonzero(members)) - int(np.count_nonzero(present)) < self.k
            self._counted[group] = members if few else present
        return self._counted[group]

    @property
    def _of_everybody(self) -> bool:
        """Whether people count whatever values they have: the sizes of blocks."""
        return self.blocks is not None and isinstance(self.question, SizesQuestion)

    def n(self, group: str) -> int:
        """How many of a group count as having a value."""
        return int(np.count_nonzero(self.counted(group)))

    def missing(self, group: str) -> int | None:
        """How many of a group have no value; None where they are fewer than K."""
        lacking = int(np.count_nonzero(self.groups[group])) - self.n(group)
        return lacking or None

    def values(self, group: str) -> FloatArray:
        """The sorted values of a group."""
        if group not in self._sorted:
            values = big_arrays.chosen(self.value(), self.counted(group))
            big_arrays.sort(values)
            self._sorted[group] = values
        return self._sorted[group]

    def value(self) -> FloatArray:
        """Each person's value; who counts without one has that of somebody else, drawn once.

        The draw is the same in all answers: else the mean of many would tell it from a value.
        """
        if self._values is None:
            self._values = self._with_draws()
        return self._values

    def known_values(self) -> FloatArray:
        """Each person's own value, NaN for those without one; of a category the level's number."""
        return self._own_values()

    def cells(self, edges: tuple[float, ...]) -> Places:
        """In which cell (edges[b−1], edges[b]], from 0, the value of each person lies.

        The gate asks for what was asked for as the answer was made.
        """
        if self._cells is None or self._cells[0] != edges:
            inner = np.array(edges, dtype=np.float64)
            self._cells = edges, big_arrays.placed(self.value(), inner)
        return self._cells[1]

    def level_names(self) -> tuple[str, ...]:
        """The levels of a category that may be named: those declared, or that K people have."""
        assert isinstance(self.question, CategoryQuestion)
        return self._column_levels.names

    def may_be_empty(self) -> tuple[bool, ...]:
        """Which of these levels, and of all others, may be said to have nobody."""
        return self._column_levels.empty

    def levels(self, group: str, cells: Sequence[Sequence[str]]) -> Places:
        """In which of these cells of levels, from 0, that of each who counts lies."""
        place = {level: cell for cell, levels in enumerate(cells) for level in levels}
        names = self._column_levels.names_and_other
        cell_of = np.array([place.get(name, len(cells)) for name in names], dtype=np.int32)
        code = big_arrays.chosen(self.value(), self.counted(group))
        return np.asarray(cell_of[code.astype(np.int64)])

    @cached_property
    def _column_levels(self) -> "ColumnLevels":
        assert isinstance(self.question, CategoryQuestion)
        return column_levels(self.rows, self.question.variable, self.question.levels)

    def status(self) -> Places:
        """Of an outcome: 1 for who had the event, 2 for who had not, 0 where it is not known.

        Who counts without a time and a status has both of somebody else, by the same draw.
        """
        if self._status is None:
            people, donors = self._draws()
            self._status = big_arrays.copied(self._known_status)
            self._status[people] = self._known_status[donors]
        return self._status

    @cached_property
    def _known_status(self) -> Places:
        assert isinstance(self.question, OutcomeQuestion)
        had = self._had_event()
        code = f"CASE WHEN {had} THEN 1 WHEN NOT {had} THEN 2 ELSE 0 END"
        rows = f"SELECT {PERSON} AS unit, {code} AS s FROM {self.rows.numbered()}"
        status = big_arrays.full(self.rows.size, 0, np.int32)
        for batch in self.rows.source.batches(f"{rows} WHERE {PERSON} IS NOT NULL"):
            status[batch["unit"]] = batch["s"]
        return status

    def _present(self, group: str) -> BoolArray:
        return big_arrays.mapped(
            bool, lambda who, v: who & ~np.isnan(v), self.groups[group], self._own_values()
        )

    @cached_property
    def _raw(self) -> FloatArray:
        if isinstance(self.question, CategoryQuestion):
            return self._column_levels.code
        return self._numbers

    @cached_property
    def _numbers(self) -> FloatArray:
        variable, source = self.question.variable, self.rows.source
        if source.kinds[variable] not in NUMBERS:
            return big_arrays.full(self.rows.size, np.nan, np.float64)
        if not self.rows.several:
            return self.rows.values(variable)
        condition, parameters = self._condition()
        used = [] if self._selected is None else where.columns(self._selected)
        number = f"nullif(CAST({quote(variable)} AS DOUBLE), 'NaN'::DOUBLE)"
        rows = (
            f"SELECT {PERSON} AS unit, {ROW}, {number} AS v FROM {self.rows.numbered(used)} "
            f"WHERE ({condition}) AND {PERSON} IS NOT NULL"
        )
        rule: PerPerson = self.rows.policy.per_person or "first"
        people = f"SELECT unit, {_PER_PERSON[rule]} AS v FROM ({rows}) GROUP BY unit"
        values = big_arrays.full(self.rows.size, np.nan, np.float64)
        for batch in source.batches(
            f"SELECT unit, coalesce(v, 'NaN'::DOUBLE) AS v FROM ({people})", parameters
        ):
            values[batch["unit"]] = batch["v"]
        return values

    def _own_values(self) -> FloatArray:
        """Each person's value; of an outcome only of those whose status is known."""
        if not isinstance(self.question, OutcomeQuestion):
            return self._raw
        return self._timed

    @cached_property
    def _timed(self) -> FloatArray:
        return big_arrays.mapped(
            np.float64, lambda v, s: np.where(s > 0, v, np.nan), self._raw, self._known_status
        )

    def _as_ordered(self, values: FloatArray) -> FloatArray:
        """Values as those alike are looked for: of a category in the column's own order.

        Which of its levels a question names, or that it takes a number for one, draws nobody else.
        """
        if not isinstance(self.question, CategoryQuestion):
            return values
        if self.rows.source.kinds[self.question.variable] in NUMBERS:
            ordered = self._numbers
        else:
            ordered = level_order(self.rows, self.question.variable)
        return np.where(np.isnan(values), np.nan, ordered)

    def _with_draws(self) -> FloatArray:
        values, (people, donors) = self._own_values(), self._draws()
        if not len(people):
            return values
        drawn = big_arrays.copied(values)
        drawn[people] = values[donors]
        return drawn

    def _draws(self) -> tuple[IntArray, IntArray]:
        """Who counts without a value, and whose value each has."""
        values, nobody = self._own_values(), np.zeros(0, dtype=np.int64)
        lacking = [
            np.flatnonzero(self.counted(group) & ~self._present(group)) for group in self.groups
        ]
        people = np.unique(np.concatenate([nobody, *lacking]))
        if not len(people):
            return nobody, nobody
        variable, rows = self.question.variable, self.rows
        sorts = {name: of for name, of in rows.sorts.items() if name != variable}
        k = (rows.plain or rows).policy.k  # the center's, whatever a protocol wants
        ordered = self._as_ordered(values) if sorts else values
        donors = find_donors(variable, ordered, people, sorts, k, rows.secret)
        return people[: len(donors)], donors

    def _had_event(self) -> str:
        """SQL for whether a row has the event; NULL where it is missing, or a word says so.

        The whole column says how it is coded, so that no choice of people changes what counts.
        """
        assert isinstance(self.question, OutcomeQuestion)
        event, meant = self.question.event, self.question.event_is
        source = self.rows.source
        label = self.rows.label(event)
        if source.kinds[event] == "text" and meant not in UNKNOWN_WORDS:
            label = f"(CASE WHEN {label} NOT IN {words_sql(UNKNOWN_WORDS)} THEN {label} END)"
        if meant is None:
            codes = f"SELECT DISTINCT {label} AS code FROM {source.relation}"
            some = source.rows(f"SELECT code FROM ({codes}) WHERE code IS NOT NULL LIMIT 4")
            meant = _CODES.get(frozenset(code for (code,) in some))
            if meant is None:
                raise RefusedQuestion(Reason.UNCLEAR_EVENT, event)
        return f"({label} = {literal(meant)})"


@dataclass(frozen=True, slots=True)
class ColumnLevels:
    """A column as a category: the number of each person's level, NaN for those without one.

    All levels that are not named count as one more. `empty` says of each, and of that, whether it
    may be said that nobody has it: not where the name of a level that hardly anybody has was
    chosen by the asker, and "nobody" would say that a certain person is not there.
    """

    names: tuple[str, ...]
    code: FloatArray
    empty: tuple[bool, ...]

    @property
    def names_and_other(self) -> tuple[str, ...]:
        """All that a person's number may mean."""
        return self.names if OTHER in self.names else (*self.names, OTHER)


def column_levels(
    rows: Rows,
    column: str,
    declared: Sequence[str] | None,
    cuts: Sequence[float] | None = None,
    bands_named: Sequence[str] | None = None,
    *,
    completed: bool = False,
) -> ColumnLevels:
    """Each person's level of a column, or the band of a number; `completed` as words are."""
    k, zeros, label = rows.policy.k, rows.policy.zero_cells, rows.label(column, cuts)
    people = _level_of_people(rows, column, label, declared, completed=completed)
    counted = f"SELECT g, count(*) FROM ({people}) WHERE g IS NOT NULL GROUP BY g"
    counts = dict(rows.source.rows(counted))
    if cuts is not None:
        names = bands(cuts)
        chosen = set(cuts) <= set((rows.policy.groupings or {}).get(column, ()))
        empty = (zeros and chosen,) * len(names) + (True,)
    else:
        frequent = sorted(level for level, n in counts.items() if n >= k)
        names = tuple(frequent) if declared is None else tuple(declared)
        all_frequent = len(frequent) == len(counts)
        each = (all_frequent or counts.get(name, 0) >= k for name in names)
        empty = tuple(zeros and may for may in (*each, all_frequent))
    other = names.index(OTHER) if OTHER in names else None
    coded = f"SELECT unit, {_coded('g', names, other)} AS c FROM ({people})"
    code = big_arrays.full(rows.size, np.nan, np.float64)
    for batch in rows.source.batches(f"SELECT unit, coalesce(c, -1) AS c FROM ({coded})"):
        code[batch["unit"]] = np.where(batch["c"] < 0, np.nan, batch["c"])
    return ColumnLevels(tuple(bands_named or names), code, empty)


def level_order(rows: Rows, column: str) -> FloatArray:
    """The place of each person's level among all levels of a column, NaN for those without one."""
    people = _level_of_people(rows, column, rows.label(column), None, completed=False)
    placed = f"SELECT unit, dense_rank() OVER (ORDER BY g) AS c FROM ({people}) WHERE g IS NOT NULL"
    order = big_arrays.full(rows.size, np.nan, np.float64)
    for batch in rows.source.batches(placed):
        order[batch["unit"]] = batch["c"]
    return order


def _level_of_people(
    rows: Rows, column: str, label: str, declared: Sequence[str] | None, *, completed: bool
) -> str:
    """SQL for each person's level; of several rows the first or the highest, as the policy says."""
    words = [column] if completed else []
    read = f"SELECT {PERSON} AS unit, {ROW}, {label} AS g FROM {rows.numbered(words)}"
    read = f"{read} WHERE {PERSON} IS NOT NULL"
    if not rows.several:
        return f"SELECT unit, g FROM ({read})"
    one = f"arg_min(g, {ROW})"
    if rows.policy.per_person == "max":
        one = "max(g)" if declared is None else f"arg_max(g, {_coded('g', declared, -1)})"
    return f"SELECT unit, {one} FILTER (g IS NOT NULL) AS g FROM ({read}) GROUP BY unit"


def _coded(label: str, names: Sequence[str], other: int | None = None) -> str:
    """SQL for the number of a level; all others have one more, or `other`."""
    rest = len(names) if other is None else other
    if not names:
        return f"CASE WHEN {label} IS NOT NULL THEN {rest} END"
    cases = " ".join(f"WHEN {literal(name)} THEN {code}" for code, name in enumerate(names))
    return f"CASE WHEN {label} IS NOT NULL THEN CASE {label} {cases} ELSE {rest} END END"


def find_cohort(rows: Rows, question: CohortQuestion, declared: Variable) -> Cohort:
    """Check the words of a question, and say which people they mean."""
    selected = _parse(question)
    _check_names(rows, question, selected)
    _check_words(rows, question, selected)
    return Cohort(rows, question, declared, selected)


def _parse(question: CohortQuestion) -> where.Condition | None:
    try:
        return None if question.where is None else where.parse(question.where)
    except WhereError as error:
        raise RefusedQuestion(Reason.BAD_WHERE) from error


def _check_names(rows: Rows, question: CohortQuestion, selected: where.Condition | None) -> None:
    used = [question.variable, *([] if question.by is None else [question.by])]
    if isinstance(question, OutcomeQuestion):
        used.append(question.event)
    if selected is not None:
        used += where.columns(selected)
    for name in used:
        if name not in rows.source.kinds:
            raise RefusedQuestion(Reason.UNKNOWN_VARIABLE, name)
        if not rows.policy.allows(name):
            raise RefusedQuestion(Reason.NOT_ALLOWED, name)
    if question.cuts is not None and rows.source.kinds[question.by or ""] not in NUMBERS:
        raise RefusedQuestion(Reason.NOT_NUMERIC, question.by)


def _check_words(rows: Rows, question: CohortQuestion, selected: where.Condition | None) -> None:
    """Whether the policy lets a question choose people by these words."""
    policy = rows.policy
    if policy.ad_hoc == "none":
        raise RefusedQuestion(Reason.NO_AD_HOC)
    if policy.ad_hoc == "free":
        return
    groupings = policy.grouped_by()
    by, cuts = question.by, question.cuts
    if by is not None and (by not in groupings or not set(cuts or ()) <= set(groupings[by] or ())):
        raise RefusedQuestion(Reason.ONLY_GROUPINGS)
    if by is not None and cuts is None and groupings[by] is not None:
        raise RefusedQuestion(Reason.ONLY_GROUPINGS)
    if selected is not None and not _over_groupings(selected, groupings):
        raise RefusedQuestion(Reason.ONLY_GROUPINGS)


def _over_groupings(
    selected: where.Condition, groupings: Mapping[str, tuple[float, ...] | None]
) -> bool:
    """Whether a condition has levels or bands of few groupings, all of which must hold."""
    parts = selected.parts if isinstance(selected, where.And) else (selected,)
    few = len({name for part in parts for name in where.columns(part)}) <= MOST_CROSSED
    return few and all(_in_grouping(part, groupings) for part in parts)


def _in_grouping(part: where.Condition, groupings: Mapping[str, tuple[float, ...] | None]) -> bool:
    """Whether a part of a condition names levels of a grouping, or one side of a cut point."""
    match part:
        case where.Comparison(where.Column(name), operator, where.Literal(value)):
            cuts = groupings.get(name, ())
            if cuts is None:
                return operator == "=="
            return operator in (">=", "<") and value in cuts
        case where.In(where.Column(name), _):
            return groupings.get(name, ()) is None
        case _:
            return False


def check_persons(rows: Rows, question: CohortQuestion) -> None:
    """Refuse where somebody has several rows or, once these are put together, several groups.

    All rows say so, whatever the question selects, and after it was judged how many people it
    means: no choice of people can find who it is. An outcome is never put together: rows of one
    person have no common time and status.
    """
    policy, by = rows.policy, question.by
    together = policy.per_person is not None and not isinstance(question, OutcomeQuestion)
    if policy.person is None or (together and by is None):
        return
    label = rows.label(by, question.cuts) if together and by is not None else None
    if rows.source.repeats(policy.person, label):
        raise RefusedQuestion(Reason.REPEATED_PERSON)


def check_values(rows: Rows, question: CohortQuestion, declared: Variable) -> None:
    """Refuse where the variable's column is not such as a question needs.

    The whole column says so, and after the people were judged: no choice of people can find who
    breaks the rule.
    """
    source, policy, variable = rows.source, rows.policy, question.variable
    if isinstance(question, CategoryQuestion):
        if policy.per_person == "mean" and rows.varies(variable):
            raise RefusedQuestion(Reason.REPEATED_PERSON)
        return
    if source.kinds[variable] not in NUMBERS:
        column = quote(variable)
        ((values,),) = source.rows(f"SELECT count({column}) FROM {source.relation}")
        nobody = policy.zero_cells and not values
        reason = Reason.ALL_MISSING if nobody else Reason.NOT_NUMERIC
        raise RefusedQuestion(reason, variable)
    check_column(source, variable, declared, policy)
    if isinstance(question, OutcomeQuestion):
        least, _ = source.extremes(variable)
        if least is not None and least < 0:
            raise RefusedQuestion(Reason.NEGATIVE_TIME, variable)


def check_column(source: Source, variable: str, declared: Variable, policy: Policy) -> None:
    """Judge a whole column: finite, within declared limits, on its declared grid."""
    lower, upper = declared.lower, declared.upper
    if source.kinds[variable] == "float" or lower is not None or upper is not None:
        least, most = source.extremes(variable)
        if least is not None and most is not None:
            if np.isinf(least) or np.isinf(most):
                raise RefusedQuestion(Reason.NOT_FINITE)
            if (lower is not None and least < lower) or (upper is not None and most > upper):
                raise RefusedQuestion(Reason.OUTSIDE_LIMITS)
    if declared.resolution is not None:
        means = policy.per_person == "mean"
        off = source.off_grid(variable, declared.resolution, policy.person, means=means)
        if off >= policy.k:  # of fewer nothing shows
            raise RefusedQuestion(Reason.OFF_RESOLUTION)
