"""One answer in the making: for whom it would speak, judged beside all that was told before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from hashlib import sha256
from itertools import cycle

import numpy as np

from unpooled.center.memory.definition import Words, condition, definition
from unpooled.center.memory.history import History, WouldDiffer
from unpooled.center.memory.powers import Powered, check_powers, merged
from unpooled.center.memory.remainders import (
    Ks,
    Summed,
    few_values,
    fewest,
    plain,
    sorted_values,
    values_left,
    with_more,
)
from unpooled.center.memory.steps import Edges, Open, Step, Tell, take
from unpooled.center.memory.tables import Cells, Part, Values, parts
from unpooled.center.memory.units import Members, Units
from unpooled.errors import GateError
from unpooled.maths import large
from unpooled.maths.arrays import BoolArray, FloatArray
from unpooled.maths.moments import SD_NEEDS, telling_values
from unpooled.questions import (
    CohortQuestion,
    GroupMoments,
    GroupRanksQuestion,
    PowersQuestion,
    RanksQuestion,
)


@dataclass(frozen=True, slots=True)
class Group:
    """A group's people, with a value and without."""

    name: str
    present: Members
    missing: Members
    among: Members | None = None  # from whom their own value chose them


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a center knows of the answers about one variable."""

    units: Units
    history: History
    told: Mapping[Words, bytes]  # the words for a set → a digest of its people
    conditions: frozenset[Words]
    sets: int = 0  # how many sets its steps have used
    rows: Words | None = None  # the words that chose whose rows count; None: nothing was told
    powers: tuple[Powered, ...] = ()
    sums: tuple[Summed, ...] = ()

    def grown(self, units: Units) -> "Remembered":
        """The same with more people, of whom nothing was told."""
        history = self.history.grown(units.size)
        powers = tuple(told.grown(units.size) for told in self.powers)
        sums = tuple(told.grown(units.size) for told in self.sums)
        return replace(self, units=units, history=history, powers=powers, sums=sums)


@dataclass(frozen=True, slots=True)
class Draft:
    """What would be told so far, and the steps that lead there."""

    question: CohortQuestion
    k: int
    before: Remembered
    values: Values
    history: History
    steps: tuple[Step, ...] = ()
    sets: tuple[BoolArray, ...] = ()
    words: tuple[tuple[Words, bytes], ...] = ()
    powers: tuple[Powered, ...] = ()  # sets whose powers would be told
    sums: tuple[Summed, ...] = ()  # sets whose sums would be, as far as they may

    def tell(self, people: BoolArray, words: Words | None) -> "Draft":
        """The draft with one more set; raises WouldDiffer.

        What follows from earlier answers may be told again where no choice of words could have
        been made to find that out: without a condition, or under one that was answered before.
        """
        if words is not None and self.before.told.get(words) == digest(people):
            return self
        asked, before = condition(self.question.where), self.before
        history = self.history
        step = Tell(
            people=before.sets + len(self.sets),
            k=self.k,
            open_base=not asked or not (history.blocks or history.crossings),
            repeats=not asked or asked in before.conditions or asked in before.told,
        )
        draft = self._take(step, people)
        named = () if words is None else ((words, digest(people)),)
        return replace(draft, words=(*self.words, *named))

    def tell_powers(self, people: BoolArray, lambdas: Sequence[float]) -> "Draft":
        """The draft with the moments of a set at some λ; raises WouldDiffer."""
        new = Powered(people, frozenset(lambdas))
        check_powers(merged(self.before.powers, self.powers), new, self.ks, self.values)
        judged_alone = 0 < telling_values(sorted_values(self.values, people), *self.ks) < SD_NEEDS
        if not judged_alone and values_left(self.summed, people, self.ks, self.values):
            raise WouldDiffer
        return replace(self, powers=(*self.powers, new))

    def tell_counts(self, people: BoolArray, cells: Cells) -> "Draft":
        """The draft with a set told by cells, which may be a sum as well; raises WouldDiffer."""
        alike = plain(self.values, people, cells, self.before.history.k)  # a raised K hides nobody
        return self if alike is None else self._tell_sum(alike)

    def tell_ranks(self, people: BoolArray) -> "Draft":
        """The draft with a set ranked against others; raises WouldDiffer."""
        return self._tell_sum(people) if few_values(self.values, people, self.ks) else self

    def tell_chosen(self, among: BoolArray, *parts: BoolArray) -> "Draft":
        """The draft with parts that the variable itself chose, and the others; raises WouldDiffer.

        Those who died are told: then all others live, and the number is a sum of them all.
        """
        k = self.before.history.k  # a raised K hides nobody
        if any(plain(self.values, part, Cells(), k) is None for part in parts):
            return self
        return self._tell_sum(among)

    def _tell_sum(self, people: BoolArray) -> "Draft":
        if values_left(self.summed, people, self.ks, self.values):
            raise WouldDiffer
        return replace(self, sums=(*self.sums, Summed(people, 0)))

    @property
    def ks(self) -> Ks:
        """The K by which values are rare."""
        return self.before.history.k, self.k

    @property
    def summed(self) -> list[Summed]:
        """The sets whose sums were told, or would be; powers tell them too."""
        powers = (*self.before.powers, *self.powers)
        return [*self.before.sums, *self.sums, *(Summed(told.people, 0) for told in powers)]

    def open(self, people: BoolArray) -> "Draft":
        """The draft with a set ready to be told in a table; raises WouldDiffer."""
        return self._take(Open(people=self.before.sets + len(self.sets), k=self.k), people)

    def fix(self, block: int, edges: FloatArray) -> "Draft":
        """The draft with a block's first table told; raises WouldDiffer."""
        step = Edges(block=block, edges=tuple(edges.tolist()))
        told = take(self.history, step, lambda _: np.zeros(0, dtype=bool), self.values)
        return replace(self, history=told, steps=(*self.steps, step))

    def _take(self, step: Step, people: BoolArray) -> "Draft":
        told = take(self.history, step, lambda _: people, self.values)
        if told is self.history:
            return self
        return replace(self, history=told, steps=(*self.steps, step), sets=(*self.sets, people))


@dataclass(frozen=True, slots=True)
class Proposal:
    """The groups that may be answered, and those that are withheld; not remembered yet."""

    draft: Draft
    people: Mapping[str, BoolArray]
    missing: Mapping[str, BoolArray]
    withheld: tuple[str, ...]
    parts: Mapping[str, Sequence[Part]]  # group → block by block, where a table is asked for
    values: Mapping[str, int]  # group → how many values its mean would leave others, 0: enough

    def with_tables(self, told: Mapping[str, Sequence[Cells]]) -> "Proposal":
        """The proposal once tables with these cells are told, for each part of a group or for all.

        Raises GateError where an edge may not be told, WouldDiffer where new ones tell too much.
        """
        draft = self.draft
        for group, tables in told.items():
            parts = self.parts.get(group, ())
            if len(tables) not in (1, len(parts)):
                raise GateError("a table must speak for the people that are remembered")
            for part, cells in zip(parts, cycle(tables), strict=False):
                if part.edges is None:
                    draft = draft.fix(part.block, cells.edges) if len(cells.edges) else draft
                elif not np.isin(cells.edges, part.edges).all():
                    raise GateError("a table may have only the edges that were told before")
            whole = [self.people[group]] if len(tables) == 1 else [part.people for part in parts]
            for people, cells in zip(whole, tables, strict=True):
                draft = draft.tell_counts(people, cells)
        return replace(self, draft=draft)

    def with_sums(self, told: Mapping[str, GroupMoments]) -> "Proposal":
        """The proposal once these means and SDs are told; GateError where they may not be."""
        for group, moments in told.items():
            if fewest(moments.values, self.values.get(group, 0)) != moments.values:
                raise GateError("a mean must leave enough values to those beside its people")
        sums = tuple(Summed(self.people[group], said.values) for group, said in told.items())
        return replace(self, draft=replace(self.draft, sums=(*self.draft.sums, *sums)))

    @property
    def fixed_edges(self) -> frozenset[float]:
        """Edges that were told before."""
        fixed = (part.edges for parts in self.parts.values() for part in parts)
        return frozenset(edge for edges in fixed if edges is not None for edge in edges.tolist())

    @property
    def variable(self) -> str:
        """What the answer is about."""
        return self.draft.question.variable

    @property
    def condition(self) -> Words:
        """The condition that was asked under."""
        return condition(self.draft.question.where)

    @property
    def after(self) -> Remembered:
        """What the center knows once the answer has left."""
        draft = self.draft
        return replace(
            draft.before,
            powers=merged(draft.before.powers, draft.powers),
            sums=with_more(draft.before.sums, draft.sums),
            history=draft.history,
            told={**draft.before.told, **dict(draft.words)},
            conditions=draft.before.conditions | {self.condition},
            sets=draft.before.sets + len(draft.sets),
        )


def propose(
    question: CohortQuestion,
    k: int,
    before: Remembered,
    groups: Sequence[Group],
    values: Values,
    *,
    missing: bool = False,
    table: int | None = None,
) -> Proposal:
    """Which groups may be answered: the largest first, so that small ones are withheld.

    People who are told in groups are told together too. Where that, assumed beforehand, lets more
    groups be told than without it, it is. `table` is how many people a table needs, where one is
    asked for.
    """
    groups = sorted(groups, key=lambda group: -len(group.present))
    people = {group.name: before.units.mask(group.present) for group in groups}
    draft = Draft(question, k, before, cache(values), before.history)
    found = _tell_groups(draft, people, table)
    if found.withheld and len(people) > 1:
        try:
            together = draft.tell(reduce(_either, people.values()), None)
            again = _tell_groups(together, people, table)
        except WouldDiffer:
            again = found
        found = again if len(again.withheld) < len(found.withheld) else found
    found = replace(found, draft=_tell_others(found, groups))
    if missing:  # means are told, and how many people have no value
        found = _tell_missing(replace(found, values=_values_left(found)), groups)
    return found


def digest(people: BoolArray) -> bytes:
    """A fingerprint of a set, whoever is behind its last one."""
    found, waiting = sha256(), 0
    for piece in large.pieces(len(people)):  # of whole bytes
        bits = np.packbits(people[piece]).tobytes()
        told = bits.rstrip(b"\0")
        if told:
            found.update(bytes(waiting) + told)
            waiting = 0
        waiting += len(bits) - len(told)
    return found.digest()


def _either(some: BoolArray, others: BoolArray) -> BoolArray:
    return large.mapped(bool, np.logical_or, some, others)


def _tell_groups(draft: Draft, people: Mapping[str, BoolArray], table: int | None) -> Proposal:
    told, withheld, found = {}, [], {}
    for name, mask in people.items():
        try:
            more = draft.tell(mask, definition(draft.question, name))
            if more is not draft:  # else it was told, and judged, before
                more = more.tell_counts(mask, Cells())
            if isinstance(draft.question, PowersQuestion):
                more = more.tell_powers(mask, draft.question.lambdas)
            if isinstance(draft.question, RanksQuestion | GroupRanksQuestion):
                more = more.tell_ranks(mask)
            if table is not None:
                more = more.open(mask)
                found[name] = parts(more.history, mask)
                if any(np.count_nonzero(part.people) < table for part in found[name]):
                    raise WouldDiffer
        except WouldDiffer:
            withheld.append(name)
        else:
            draft, told[name] = more, mask
    return Proposal(draft, told, {}, tuple(withheld), found, {})


def _tell_others(found: Proposal, groups: Sequence[Group]) -> Draft:
    """The draft where the variable itself chose the groups from more people; raises WouldDiffer."""
    draft, told = found.draft, found.people
    for group in groups:
        if group.among is not None and group.name in told:
            among = draft.before.units.mask(group.among)
            others = among & ~reduce(_either, told.values())
            draft = draft.tell_chosen(among, told[group.name], others)
    return draft


def _values_left(found: Proposal) -> dict[str, int]:
    """For each group, how many values its mean would leave to those beside its people."""
    ks, values = found.draft.ks, found.draft.values
    told, left = found.draft.summed, dict[str, int]()
    if not told:
        return left
    for group, people in found.people.items():
        left[group] = values_left(told, people, ks, values)
        own = telling_values(sorted_values(values, people), *ks)
        told.append(Summed(people, fewest(left[group], own)))
    return left


def _tell_missing(found: Proposal, groups: Sequence[Group]) -> Proposal:
    """The same with the people without a value, as far as their number may be told."""
    draft, told = found.draft, {}
    for group in groups:
        if group.name not in found.people or len(group.missing) < draft.k:
            continue
        mask = draft.before.units.mask(group.missing)
        try:
            draft = draft.tell(mask, definition(draft.question, group.name, missing=True))
            told[group.name] = mask
        except WouldDiffer:
            continue
    return replace(found, draft=draft, missing=told)
