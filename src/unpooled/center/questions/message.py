"""What every question and every answer has in common, and what an aggregate must be able to say."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import ClassVar, Literal, Protocol

import msgspec
import numpy as np

from unpooled.center.data.variables import Variable
from unpooled.errors import GateError, InputError
from unpooled.maths import big_arrays
from unpooled.maths.arrays import BoolArray, FloatArray, Places
from unpooled.maths.lattice.cells import dominated

Code = float | str  # a value that means "missing"
Limits = Literal["open", "natural", "buffer"]
CellMoments = Literal["none", "tails", "all"]  # which cells tell mean and SD
EVERYBODY = "all"  # the one group of a question without `by`
OTHER, MISSING_LEVEL = "other", "missing"  # levels that nobody declared
MOST_GROUPS = 1000  # that a question may name: each costs time, whoever is in it


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A frozen message; unknown fields are an error."""


def bands(cuts: Sequence[float]) -> tuple[str, ...]:
    """What the bands of a number are called.

    Examples
    --------
    >>> bands((50, 65.5))
    ('under 50', '50 to under 65.5', '65.5 and over')
    """
    inner = [f"{low:g} to under {high:g}" for low, high in pairwise(cuts)]
    return (f"under {cuts[0]:g}", *inner, f"{cuts[-1]:g} and over")


class Grouping(Message, frozen=True, rename={"with_": "with"}):
    """A variable that people are grouped by: whole levels, or a number in bands.

    A grouping is crossed with all others of the protocol; one `with` some only with these.

    Examples
    --------
    >>> Grouping(name="age_band", of="age", cuts=(65,)).names
    ('under 65', '65 and over')
    """

    name: str
    of: str | None = None  # the column, where it has another name
    levels: tuple[str, ...] | None = None  # None: those that K people have
    cuts: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None  # of the bands
    ordered: bool = False
    with_: tuple[str, ...] | None = None
    missing: tuple[Code, ...] = ()  # codes of the column that mean "no value"

    def __post_init__(self) -> None:
        if self.cuts is None:
            if self.labels is not None:
                raise InputError(f"groups: {self.name} has labels, but no cuts that they name")
            if len(set(self.levels or ())) < len(self.levels or ()):
                raise InputError(f"groups: the levels of {self.name} must differ")
            return
        if self.levels is not None:
            raise InputError(f"groups: {self.name} must have levels or cuts, not both")
        rise = all(a < b for a, b in pairwise(self.cuts)) and all(map(isfinite, self.cuts))
        if not self.cuts or not rise:
            cuts = ", ".join(f"{cut:g}" for cut in self.cuts)
            raise InputError(f"groups: the cuts of {self.name} must rise, got {cuts or 'none'}")
        if self.labels is not None and len(self.labels) != len(self.cuts) + 1:
            raise InputError(
                f"groups: {self.name} needs {len(self.cuts) + 1} labels for {len(self.cuts)} cuts, "
                f"got {len(self.labels)}"
            )

    @property
    def column(self) -> str:
        """The column that it reads."""
        return self.of or self.name

    @property
    def names(self) -> tuple[str, ...]:
        """Its levels, in order, as far as they are declared."""
        if self.cuts is not None:
            return self.labels or bands(self.cuts)
        return self.levels or ()

    @property
    def rises(self) -> bool:
        """Whether its levels have an order."""
        return self.ordered or self.cuts is not None


class CohortQuestion(Message, frozen=True):
    """A question about one variable of some people, in groups.

    Of a protocol the groups are *blocks*, and `by`, `groups`, `cuts` and `where` are None; no
    question on its own may have `blocks` or `missing`.
    """

    variable: str
    by: str | None = None
    groups: tuple[str, ...] | None = None  # None: every group with at least K people
    cuts: tuple[float, ...] | None = None  # where `by`, a number, is cut into bands
    where: str | None = None
    blocks: tuple[Grouping, ...] | None = None  # that are crossed, the most important first
    missing: tuple[Code, ...] = ()  # codes of the variable that mean "no value"

    @property
    def has_meaning(self) -> bool:
        """Whether it can have an answer at any center."""
        groups, cuts = self.groups, self.cuts
        if self.blocks is not None:
            return self.by is None and groups is None and cuts is None and self.where is None
        if len(groups or ()) > MOST_GROUPS or len(set(groups or ())) != len(groups or ()):
            return False
        if cuts is None:
            return True
        ascending = all(a < b for a, b in pairwise(cuts))
        return self.by is not None and bool(cuts) and ascending and all(map(isfinite, cuts))

    @property
    def in_protocol(self) -> bool:
        """Whether only a protocol may ask it."""
        return self.blocks is not None or bool(self.missing)

    def needs(self, k: int) -> int:
        """How many people a group must have."""
        return k


class OutcomeQuestion(CohortQuestion, frozen=True, kw_only=True):
    """A question about times to an event; `variable` is the time."""

    event: str  # the column that says who had the event
    event_is: str | None = None  # the value that means it; None: as usual, such as 1 of 0/1

    @property
    def has_meaning(self) -> bool:
        """The event is another column than the time."""
        return super().has_meaning and self.event != self.variable and self.groups != ()


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What an answer tells about which people: a part per person, 0 where it tells nothing.

    Attributes
    ----------
    part
        For each person of the center the number of their part, from 1.
    counts
        For each part how many people the answer says it has; None where it does not say.
    numbers
        Variable → how many numbers of its values each part tells: 1 for the count alone, 3 with
        mean and SD. Empty where words alone, and nobody's value, decided who is in which part.
    edges
        Where a table of the first of these variables is cut, for the tables that come later.
    tables
        The same of several tables: the first and the last part of each, and its edges.
    """

    part: Places
    counts: tuple[int | None, ...]
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    edges: tuple[float, ...] = ()
    tables: tuple[tuple[int, int, tuple[float, ...]], ...] = ()

    def check(self) -> None:
        """Raise GateError where a count that is said is not that of the people declared."""
        sizes = big_arrays.frequencies(self.part, len(self.counts) + 1)[1:].tolist()
        if len(sizes) > len(self.counts) or any(
            count is not None and count != size
            for count, size in zip(self.counts, sizes, strict=False)
        ):
            raise GateError("a count must be that of the people whom it is declared to describe")


def put_together(disclosures: Sequence[Disclosure]) -> list[Disclosure]:
    """Disclosures of the same variables and of different people as one; as few as can be.

    Judged together their parts need each other less than one after the other.
    """
    layers: list[list[Disclosure]] = []
    taken: list[BoolArray] = []
    for one in disclosures:
        inside = one.part > 0
        for layer, people in zip(layers, taken, strict=True):
            if list(layer[0].numbers) == list(one.numbers) and not (people & inside).any():
                layer.append(one)
                people |= inside
                break
        else:
            layers.append([one])
            taken.append(inside)
    return [layer[0] if len(layer) == 1 else _as_one(layer) for layer in layers]


def _as_one(layer: Sequence[Disclosure]) -> Disclosure:
    part, first = np.zeros(len(layer[0].part), dtype=np.int32), 0
    tables: list[tuple[int, int, tuple[float, ...]]] = []
    for one in layer:
        part += np.where(one.part > 0, one.part + first, 0).astype(np.int32)
        last = first + len(one.counts)
        tables += [(first + 1, last, one.edges)] if one.edges else []
        first = last
    counts = tuple(count for one in layer for count in one.counts)
    numbers = {
        variable: tuple(number for one in layer for number in one.numbers[variable])
        for variable in layer[0].numbers
    }
    return Disclosure(part, counts, numbers, tables=tuple(tables))


class People(Protocol):
    """The people of a question, as its center knows them."""

    k: int

    def members(self, group: str) -> BoolArray:
        """Who belongs to a group, by words alone."""
        ...

    def counted(self, group: str) -> BoolArray:
        """Who counts as having a value: all but the missing ones where these are K or more."""
        ...

    def value(self) -> FloatArray:
        """Each person's value; who counts without one has a draw from the others of the group."""
        ...

    def cells(self, edges: tuple[float, ...]) -> Places:
        """In which cell (edges[b−1], edges[b]], from 0, the value of each person lies."""
        ...

    def level_names(self) -> Sequence[str]:
        """Of a category: the levels that may be named."""
        ...

    def levels(self, group: str, cells: Sequence[Sequence[str]]) -> Places:
        """In which of these cells of levels, from 0, that of each who counts lies."""
        ...

    def status(self) -> Places:
        """Of an outcome: 1 for who had the event, 2 for who had not, 0 where it is not known."""
        ...


def whole(
    people: People, group: str, variable: str, n: int, missing: int | None, numbers: int = 1
) -> Iterator[Disclosure]:
    """A group that is counted, with this many numbers of its values, next to those without one.

    Numbers as many as there are different values say how many people have each; so does the mean of
    three, with the unit that it is rounded to.
    """
    counted = people.counted(group)
    if numbers > 1:
        different = _different(people.value(), counted, max(numbers, _DECODED))
        if different is not None:
            numbers = 1
            yield _by_value(people, counted, variable, different)
    members = people.members(group)
    part = big_arrays.mapped(
        np.int32, lambda who, has: who + (who & ~has).astype(int), members, counted
    )
    if part.max(initial=1) < 2:
        if missing:
            raise GateError("an answer must not tell how many lack a value where they are few")
        yield Disclosure(part, (n,), {variable: (numbers,)})
    else:
        yield Disclosure(part, (n, missing), {variable: (numbers, 1)})


def check_mean(people: People, group: str) -> None:
    """Raise GateError where one person's value decides the mean of a group; ranks have none."""
    if dominated(people.value()[people.counted(group)]):
        raise GateError("a mean must not be that of one person")


def _different(values: FloatArray, among: BoolArray, most: int) -> FloatArray | None:
    """The different values of some people, if there are no more than `most`."""
    values_so_far = np.zeros(0)
    for piece in big_arrays.pieces(len(values)):
        values_so_far = np.union1d(values_so_far, values[piece][among[piece]])
        if len(values_so_far) > most:
            return None
    return values_so_far


def _by_value(
    people: People, counted: BoolArray, variable: str, different: FloatArray
) -> Disclosure:
    """Who has which of a few values; how many these are is not said directly."""
    part = np.zeros(len(counted), dtype=np.int32)
    part[counted] = np.searchsorted(different, people.value()[counted]) + 1
    none = (None,) * len(different)
    return Disclosure(part, none, {variable: (1,) * len(different)})


def in_cells(
    people: People,
    group: str,
    variable: str,
    edges: Sequence[float],
    counts: Sequence[int],
    numbers: Sequence[int] | None = None,
) -> Disclosure:
    """A group that is released by the cells (edges[b−1], edges[b]] of a table."""
    last = len(counts) + 1  # the part of those without a value

    def parts(has: BoolArray, member: BoolArray, cell: Places) -> Places:
        part: Places = (cell + 1) * has
        if (rest := member & ~has).any():
            part[rest] = last
        return part

    who = people.counted(group), people.members(group), people.cells(tuple(edges))
    part = big_arrays.mapped(np.int32, parts, *who)
    each = tuple(numbers or (1,) * len(counts))
    if part.max(initial=0) <= len(counts):
        return Disclosure(part, tuple(counts), {variable: each}, tuple(edges))
    return Disclosure(part, (*counts, None), {variable: (*each, 1)}, tuple(edges))


def in_levels(
    people: People,
    group: str,
    variable: str,
    cells: Sequence[tuple[Sequence[str], int]],
    missing: int | None,
) -> Disclosure:
    """A group that is released by cells of levels, next to those without one."""
    counted, members = people.counted(group), people.members(group)
    part = big_arrays.full(len(counted), 0, np.int32)
    part[counted] = people.levels(group, [levels for levels, _ in cells]) + 1
    rest = members & ~counted
    counts: tuple[int | None, ...] = tuple(count for _, count in cells)
    if rest.any():
        part[rest] = len(cells) + 1
        counts = (*counts, missing)
    elif missing:
        raise GateError("an answer must not tell how many lack a value where they are few")
    return Disclosure(part, counts, {variable: (1,) * len(counts)})


@dataclass(frozen=True, slots=True)
class Terms:
    """What a center's policy and codebook say about the answer to one question."""

    k: int
    zeros: bool  # whether "nobody" may be said of a cell
    limits: tuple[Limits, ...]  # the outer limits that a table may have
    moments: CellMoments
    lambdas: tuple[float, ...]  # of moments of the Yeo-Johnson transform; mostly none
    declared: Variable

    def check_people(self, *counts: int) -> None:
        """A statistic is of at least K people."""
        if min(counts, default=self.k) < self.k:
            raise GateError(f"a statistic must describe at least {self.k} people")

    def check_cells(self, *counts: int) -> None:
        """A cell has nobody or at least K people."""
        for count in counts:
            if count < 0 or (count < self.k and (count > 0 or not self.zeros)):
                raise GateError(f"a cell must describe 0 or at least {self.k} people")


_DECODED = 3  # of so few different values a mean may tell who has each
_MUST = ("labels", "tells", "limits", "sentence")


class Aggregate(Message, frozen=True):
    """The numbers of an answer. A kind that cannot say what it tells cannot be made.

    Each kind says which groups it names, whom it tells what, what it alone must keep to, and what
    a steward reads of it. The gate asks for all four and knows none of the kinds.
    """

    kinds: ClassVar[list[type["Aggregate"]]] = []

    def __init_subclass__(cls) -> None:
        lacking = [name for name in _MUST if name not in vars(cls)]
        if lacking:
            raise TypeError(f"{cls.__name__} must say its {', '.join(lacking)}")
        Aggregate.kinds.append(cls)

    @abstractmethod
    def labels(self) -> Sequence[str]:
        """Every group that is named."""

    @abstractmethod
    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """What it tells about which people, apart from who is in the groups it names."""

    @abstractmethod
    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Raise GateError unless it keeps to what it alone must keep to.

        Returns each number that is no count and that was checked: others do not leave.
        """

    @abstractmethod
    def sentence(self) -> str:
        """What a steward reads."""


def ascending(edges: Sequence[float]) -> None:
    """Raise GateError unless edges are finite and ascend."""
    if not all(map(isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise GateError("edges must be finite and ascend")


def asked_about(question: CohortQuestion) -> str:
    """What a question is about, in words."""
    parts = [question.variable]
    if question.by is not None:
        parts.append(f"by {question.by}")
    if question.blocks:
        parts.append(f"by {' x '.join(grouping.name for grouping in question.blocks)}")
    if question.cuts is not None:
        parts.append(f"cut at {', '.join(f'{cut:g}' for cut in question.cuts)}")
    if question.where is not None:
        parts.append(f"where {question.where}")
    return " ".join(parts)


def numbers_in(*some: float | Iterable[float | None] | None) -> list[float]:
    """These numbers, without those that are not released.

    Examples
    --------
    >>> numbers_in(1.5, None, [2.5, None])
    [1.5, 2.5]
    """
    each = (one if isinstance(one, Iterable) else (one,) for one in some)
    return [number for numbers in each for number in numbers if number is not None]


def in_words(number: float | None) -> str:
    """A number as a steward reads it."""
    return "–" if number is None else f"{number:.4g}"
