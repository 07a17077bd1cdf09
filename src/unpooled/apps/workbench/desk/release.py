"""What an answer says, as tables whose every number of people is drawn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from unpooled.apps.workbench.in_words.question import in_words
from unpooled.apps.workbench.in_words.words import Words, name, names
from unpooled.center.questions import (
    EVERYBODY,
    Answer,
    Catalogue,
    Categories,
    CellTable,
    CenterJoin,
    CenterTable,
    CheckedPart,
    CohortQuestion,
    GroupRanks,
    JointQuestion,
    JointShares,
    LatticeTables,
    Moments,
    OutcomeQuestion,
    Powers,
    ProtocolAnswer,
    ProtocolCheck,
    Ranks,
    Sizes,
    SurvivalTables,
    block_levels,
)
from unpooled.errors import MessageError

MOST_NUMBERS = 500  # on one page


class Key(NamedTuple):
    """What a number is a number of, whichever question tells it."""

    about: str  # variable, groups and condition
    row: tuple[str, ...]
    column: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A number, and how many people it is, if it counts them."""

    text: str
    people: int | None = None
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What a row is about, and its numbers."""

    names: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Some numbers of an answer. `drawn` is the place of the column that bars show."""

    title: str
    naming: tuple[str, ...]  # headers of the rows' names
    columns: tuple[str, ...]  # headers of the numbers
    rows: tuple[Row, ...]
    drawn: int | None = None

    @property
    def most(self) -> int:
        """The longest bar."""
        return max((row.cells[self.drawn or 0].people or 0 for row in self.rows), default=0)


@dataclass(frozen=True, slots=True)
class Part:
    """A question, and what is said to it."""

    asked: Markup
    tables: tuple[Table, ...]
    remarks: tuple[Markup, ...]
    refusals: tuple[Markup, ...]

    @property
    def smallest(self) -> int | None:
        """The smallest number of people in it that is not zero."""
        return min((cell.people for _, cell in self.cells if cell.people), default=None)

    @property
    def numbers(self) -> int:
        """How many numbers it tells."""
        return sum(cell.key is not None for _, cell in self.cells)

    @property
    def cells(self) -> Iterator[tuple[Row, Cell]]:
        """Every number, with its row."""
        for table in self.tables:
            for row in table.rows:
                yield from ((row, cell) for cell in row.cells)


@dataclass(frozen=True)
class Leaving:
    """All that an answer says."""

    k: int
    parts: tuple[Part, ...]
    shuts_out: tuple[str, ...]

    @cached_property
    def smallest(self) -> tuple[int, str] | None:
        """The smallest number of people that is not zero, and where it stands."""
        counts = [
            (cell.people, " · ".join(filter(None, (table.title, *row.names))))
            for part in self.parts
            for table in part.tables
            for row in table.rows
            for cell in row.cells
            if cell.people is not None and cell.people > 0
        ]
        return min(counts, key=lambda counted: counted[0], default=None)

    @cached_property
    def is_long(self) -> bool:
        """Whether its parts have pages of their own, since one page would be hard to read."""
        return sum(part.numbers for part in self.parts) > MOST_NUMBERS and len(self.parts) > 1

    @cached_property
    def zeros(self) -> bool:
        """Whether it says of a cell that nobody is in it."""
        return any(cell.people == 0 for part in self.parts for _, cell in part.cells)


def leaving(question: object, answer: Answer, words: Words) -> Leaving:
    """What an answer says, part by part."""
    if isinstance(answer.aggregate, ProtocolAnswer):
        asked = [(part.question, part.answer) for part in answer.aggregate.parts]
        bare = replaced(answer, aggregate=None, shuts_out=())
        extra = [(question, bare)] if answer.refusals else []
        k = answer.aggregate.k
    else:
        asked, extra, k = [], [(question, answer)], answer.k
    if isinstance(answer.aggregate, ProtocolCheck):
        checked = tuple(_checked(part, words) for part in answer.aggregate.parts)
        return Leaving(answer.aggregate.k, checked, answer.shuts_out)
    pairs: list[tuple[Any, Answer]] = [*asked, *extra]
    parts = tuple(_part(each, part_answer, words) for each, part_answer in pairs)
    lost = [
        *answer.shuts_out,
        *(name for _, part_answer in pairs for name in part_answer.shuts_out),
    ]
    return Leaving(k, parts, tuple(dict.fromkeys(lost)))


def replaced(answer: Answer, **fields: Any) -> Answer:
    """The answer with other fields."""
    return msgspec.structs.replace(answer, **fields)


def _part(question: object, answer: Answer, words: Words) -> Part:
    about = _about(question)
    naming = _naming(question, words)
    tables = tuple(_tables(answer.aggregate, _Writer(words, about, naming, question)))
    remarks = list(_remarks(answer, words))
    refusals = tuple(
        words("leave.refusal", name=name(refusal.name), rule=refusal.rule)
        if refusal.name is not None
        else Markup.escape(refusal.rule)
        for refusal in answer.refusals
    )
    return Part(in_words(question, words), tables, tuple(remarks), refusals)


def _checked(part: CheckedPart, words: Words) -> Part:
    """A part of a look ahead: the groups that would be answered, and what would be refused."""
    naming = _naming(part.question, words)
    write = _Writer(words, "", naming, part.question)
    rows = [Row(write.group(block), ()) for block in part.blocks]
    tables = (write.table([], rows),) if rows else ()
    refusals = tuple(Markup.escape(refusal.rule) for refusal in part.refusals)
    return Part(in_words(part.question, words), tables, (), refusals)


def _remarks(answer: Answer, words: Words) -> Iterator[Markup]:
    aggregate = answer.aggregate
    if answer.nearest:
        yield words("leave.nearest", names=names(answer.nearest), k=answer.k)
    if isinstance(aggregate, LatticeTables | SurvivalTables):
        steps = Markup()
        if aggregate.resolution is not None:
            steps = words("leave.resolution", resolution=f"{aggregate.resolution:.10g}")
        yield words("leave.lattice", scale=f"{aggregate.scale:.10g}", resolution=steps)
    if isinstance(aggregate, JointShares):
        yield words("leave.shares")
    if isinstance(aggregate, LatticeTables) and None in (aggregate.lower, aggregate.upper):
        yield words("leave.open")


def shut_out_in_words(leaves: Leaving, words: Words) -> Markup | None:
    """Which later answers it makes impossible."""
    if not leaves.shuts_out:
        return None
    groupings = [
        words("leave.everybody") if lost == EVERYBODY else name(lost) for lost in leaves.shuts_out
    ]
    return words("leave.shuts-out", names=Markup(", ").join(groupings), k=leaves.k)


def _about(question: object) -> str:
    """Whose values, in which groups: two questions of one such describe the same people."""
    if not isinstance(question, CohortQuestion):
        return str(type(question).__name__)
    event = getattr(question, "event", None) if isinstance(question, OutcomeQuestion) else None
    blocks = None if question.blocks is None else msgspec.to_builtins(question.blocks)
    fields = [question.variable, event, question.by, question.cuts, question.where, blocks]
    return msgspec.json.encode(fields).decode()


def _naming(question: object, words: Words) -> tuple[str, ...]:
    blocks = question.blocks if isinstance(question, CohortQuestion) else None
    if blocks:
        return tuple(block.name for block in blocks)
    by = question.by if isinstance(question, CohortQuestion) else None
    return (by or str(words("column.group")),)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Makes the rows of one part's tables."""

    words: Words
    about: str
    naming: tuple[str, ...]
    question: object

    def group(self, label: str) -> tuple[str, ...]:
        """What a group is called; of a block each grouping's levels."""
        if label == EVERYBODY:
            return (str(self.words("leave.everybody")),)
        with suppress(MessageError):
            levels = block_levels(label)
            if not levels:  # a protocol without groupings
                return (str(self.words("leave.everybody")),)
            if len(levels) == len(self.naming):
                return tuple(str(self.words("cell.or")).join(some) for some in levels)
        return (label, *("" for _ in self.naming[1:]))

    def row(self, named: tuple[str, ...], **cells: int | float | str | None) -> Row:
        """A row; what is called `people` counts them, and so does `missing`."""
        return Row(
            named,
            tuple(
                self.cell(named, column, value, counts=column in ("people", "missing"))
                for column, value in cells.items()
            ),
        )

    def cell(
        self, named: tuple[str, ...], column: str, value: int | float | str | None, counts: bool
    ) -> Cell:
        """A number as people read it."""
        if value is None:
            return Cell("–")
        key = Key(self.about, named, column)
        if isinstance(value, int) and counts:
            return Cell(f"{value:,}", value, key)
        return Cell(value if isinstance(value, str) else f"{value:.10g}", None, key)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Row],
        title: str = "",
        naming: tuple[str, ...] | None = None,
    ) -> Table:
        """A table whose column `people`, if there is one, is drawn."""
        headers = tuple(
            str(self.words(f"column.{column}")) if self.words.has(f"column.{column}") else column
            for column in columns
        )
        drawn = list(columns).index("people") if "people" in columns else None
        return Table(title, naming or self.naming, headers, tuple(rows), drawn)


def _tables(aggregate: object, write: _Writer) -> Iterator[Table]:
    match aggregate:
        case None:
            return
        case Catalogue():
            yield _catalogue(aggregate, write)
        case Sizes():
            rows = (write.row(write.group(s.group), people=s.n) for s in aggregate.sizes)
            yield write.table(["people"], rows)
        case Moments():
            yield _moments(aggregate, write)
        case LatticeTables():
            for group in aggregate.groups:
                yield _cells(group.table, write, write.group(group.group), None)
        case SurvivalTables():
            for statuses in aggregate.groups:
                some = {"events": statuses.events, "censored": statuses.censored}
                for status, table in {**some, "either": statuses.either}.items():
                    if table is not None:
                        yield _cells(table, write, write.group(statuses.group), status)
                if statuses.followed is not None:
                    yield _followed(statuses.followed, write, write.group(statuses.group))
        case Categories():
            yield from _categories(aggregate, write)
        case CenterTable():
            edges = (aggregate.lower, *aggregate.edges, aggregate.upper)
            for counted in aggregate.groups:
                yield _bins(edges, counted.counts, write, write.group(counted.group))
        case CenterJoin():
            yield from _pools(aggregate, write)
        case Ranks() | GroupRanks() | Powers():
            yield from _sums(aggregate, write)
        case JointShares():
            yield _shares(aggregate, write)
        case _:
            yield from _anything(aggregate, write)


def _catalogue(aggregate: Catalogue, write: _Writer) -> Table:
    rows = (Row((v.name,), (Cell(_kind(v.kind, write.words)),)) for v in aggregate.variables)
    return write.table(["kind"], rows, naming=(str(write.words("column.variable")),))


def _moments(aggregate: Moments, write: _Writer) -> Table:
    rows = (
        write.row(
            write.group(m.group),
            people=m.n,
            missing=m.missing,
            mean=m.mean,
            sd=m.sd,
            **({} if m.unit is None else {"unit": m.unit}),
        )
        for m in aggregate.moments
    )
    made = list(rows)
    columns = ["people", "missing", "mean", "sd"]
    if any(m.unit is not None for m in aggregate.moments):
        columns.append("unit")
        made = [Row(r.names, (*r.cells, *[Cell("–")] * (5 - len(r.cells)))) for r in made]
    return write.table(columns, made)


def _cells(table: CellTable, write: _Writer, group: tuple[str, ...], status: str | None) -> Table:
    """One group's cells; means of open cells are on a scale of their own."""
    title = " · ".join(part for part in group if part)
    if status is not None:
        title = f"{title}, {write.words(f'status.{status}')}"
    ranges = _ranges((None, *table.edges, None), write.words)
    rows = []
    for cell, people, mean, sd in zip(ranges, table.counts, table.means, table.sds, strict=True):
        row = write.row((*group, status or "", cell), people=people, mean=mean, sd=sd)
        rows.append(Row((cell,), row.cells))
    columns = ["people", "mean", "sd"]
    if all(mean is None for mean in (*table.means, *table.sds)):
        columns, rows = columns[:1], [Row(row.names, row.cells[:1]) for row in rows]
    return write.table(columns, rows, title, (str(write.words("column.cell")),))


def _followed(people: int, write: _Writer, group: tuple[str, ...]) -> Table:
    """How many people of a group are still followed at the horizon."""
    title = f"{' · '.join(filter(None, group))}, {write.words('status.followed')}"
    row = write.row((*group, "followed"), people=people)
    return write.table(["people"], [Row((), row.cells)], title, ())


def _kind(kind: str, words: Words) -> str:
    key = f"column.is-{kind}"
    return str(words(key)) if words.has(key) else kind


def _ranges(edges: Sequence[float | None], words: Words) -> list[str]:
    return [_range(low, high, words) for low, high in pairwise(edges)]


def _range(low: float | None, high: float | None, words: Words) -> str:
    if low is None and high is None:
        return str(words("cell.all"))
    if low is None:
        return str(words("cell.below", high=f"{high:.10g}"))
    if high is None:
        return str(words("cell.above", low=f"{low:.10g}"))
    return str(words("cell.between", low=f"{low:.10g}", high=f"{high:.10g}"))


def _bins(
    edges: Sequence[float | None], counts: Sequence[int], write: _Writer, group: tuple[str, ...]
) -> Table:
    rows = []
    for cell, people in zip(_ranges(edges, write.words), counts, strict=True):
        rows.append(Row((cell,), write.row((*group, cell), people=people).cells))
    title, naming = " · ".join(filter(None, group)), (str(write.words("column.cell")),)
    return write.table(["people"], rows, title, naming)


def _pools(aggregate: CenterJoin, write: _Writer) -> Iterator[Table]:
    """Runs of bins, each with the people of the whole run."""
    question = write.question
    inner = sorted({*getattr(question, "edges", ()), *aggregate.splits})
    edges = (aggregate.lower, *inner, aggregate.upper)
    for pools in aggregate.groups:
        ends = [0]
        for span in pools.spans:
            ends.append(ends[-1] + span)
        some = [edges[min(end, len(edges) - 1)] for end in ends]
        yield _bins(some, pools.counts, write, write.group(pools.group))


def _categories(aggregate: Categories, write: _Writer) -> Iterator[Table]:
    level = str(write.words("column.level"))
    for group in aggregate.groups:
        named, rows = write.group(group.group), []
        for cell in group.cells:
            levels = str(write.words("cell.or")).join(cell.levels)
            rows.append(Row((levels,), write.row((*named, levels), people=cell.count).cells))
        if group.missing is not None:
            lacks = str(write.words("column.missing"))
            rows.append(Row((lacks,), write.row((*named, lacks), people=group.missing).cells))
        yield write.table(["people"], rows, " · ".join(filter(None, named)), (level,))


def _sums(aggregate: Ranks | GroupRanks | Powers, write: _Writer) -> Iterator[Table]:
    """Groups, each with its people; then every other number by its name."""
    match aggregate:
        case Ranks():
            sizes = [(aggregate.x, aggregate.n_x), (aggregate.y, aggregate.n_y)]
        case GroupRanks():
            sizes = [(group.group, group.n) for group in aggregate.groups]
        case Powers():
            sizes = [(group.group, group.n) for group in aggregate.groups]
    yield write.table(["people"], (write.row(write.group(g), people=n) for g, n in sizes))
    yield from _numbers(aggregate, write, skip={"n_x", "n_y", "n"})


def _shares(aggregate: JointShares, write: _Writer) -> Table:
    """Bytes that nobody can read alone, a row for each keeper."""
    question = write.question
    keepers = [k.name for k in question.keepers] if isinstance(question, JointQuestion) else []
    rows = [
        Row((keeper,), (Cell(f"{len(sealed):,}"),))
        for keeper, sealed in zip(keepers, aggregate.sealed, strict=False)
    ]
    return write.table(["bytes"], rows, naming=(str(write.words("column.keeper")),))


def _anything(aggregate: Any, write: _Writer) -> Iterator[Table]:
    """A kind that this page does not know: every number by its name."""
    yield from _numbers(aggregate, write, skip=set())


def _numbers(aggregate: Any, write: _Writer, skip: set[str]) -> Iterator[Table]:
    rows = []
    for path, value in _leaves(msgspec.to_builtins(aggregate), ()):
        if path and path[-1] in skip:
            continue
        if isinstance(value, int | float) and not isinstance(value, bool):
            label = " ".join(path)
            rows.append(Row((label,), write.row((label,), value=value).cells))
    naming = (str(write.words("column.number")),)
    if rows:
        yield write.table(["value"], rows, naming=naming)


def _leaves(tree: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every value of a message, with the names that lead to it."""
    match tree:
        case Mapping():
            shown = [f"{tree[key]}" for key in ("group", "x", "y") if key in tree]
            for key, value in tree.items():
                if key not in ("say", "group", "x", "y"):
                    yield from _leaves(value, (*path, *shown, str(key)))
        case list() | tuple():
            for place, value in enumerate(tree, 1):
                inner = isinstance(value, Mapping)
                yield from _leaves(value, path[:-1] if inner else (*path, str(place)))
        case _:
            yield path, tree
