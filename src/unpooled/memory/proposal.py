"""One answer in the making: for whom it would speak, judged beside all that was told before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256

import numpy as np

from unpooled.maths.arrays import BoolArray
from unpooled.memory.definition import Words, condition, definition
from unpooled.memory.history import History, WouldDiffer
from unpooled.memory.steps import Step, Tell, take
from unpooled.memory.units import Members, Units
from unpooled.messages import CohortQuestion


@dataclass(frozen=True, slots=True)
class Group:
    """A group's people, with a value and without."""

    name: str
    present: Members
    missing: Members


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a center knows of the answers about one variable."""

    units: Units
    history: History
    told: Mapping[Words, bytes]  # the words for a set → a digest of its people
    conditions: frozenset[Words]
    sets: int = 0  # how many sets its steps have used


@dataclass(frozen=True, slots=True)
class Draft:
    """What would be told so far, and the steps that lead there."""

    question: CohortQuestion
    k: int
    before: Remembered
    history: History
    steps: tuple[Step, ...] = ()
    sets: tuple[BoolArray, ...] = ()
    words: tuple[tuple[Words, bytes], ...] = ()

    def tell(self, people: BoolArray, words: Words | None) -> "Draft":
        """The draft with one more set; raises WouldDiffer.

        What follows from earlier answers may be told again where no choice of words could have
        been made to find that out: without a condition, or under one that was answered before.
        """
        known = words is not None and self.before.told.get(words) == digest(people)
        asked = condition(self.question.where)
        repeats = not asked or known or asked in self.before.conditions
        history = self.history
        step = Tell(
            people=self.before.sets + len(self.sets),
            k=self.k,
            open_base=not asked or not (history.blocks or history.crossings),
            repeats=repeats,
        )
        told = take(history, step, people)
        named = () if words is None else ((words, digest(people)),)
        if told is history:
            return replace(self, words=(*self.words, *named))
        return replace(
            self,
            history=told,
            steps=(*self.steps, step),
            sets=(*self.sets, people),
            words=(*self.words, *named),
        )


@dataclass(frozen=True, slots=True)
class Proposal:
    """The groups that may be answered, and those that are withheld; not remembered yet."""

    draft: Draft
    people: Mapping[str, BoolArray]
    missing: Mapping[str, BoolArray]
    withheld: tuple[str, ...]

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
    with_missing: bool = False,
) -> Proposal:
    """Which groups may be answered: the largest first, so that small ones are withheld.

    People who are told in groups are told together too. Where that, assumed beforehand, lets more
    groups be told than without it, it is.
    """
    groups = sorted(groups, key=lambda group: -len(group.present))
    people = {group.name: before.units.mask(group.present) for group in groups}
    draft = Draft(question, k, before, before.history)
    found = _tell_groups(draft, people)
    if found.withheld and len(people) > 1:
        try:
            together = draft.tell(reduce(np.logical_or, people.values()), None)
            again = _tell_groups(together, people)
        except WouldDiffer:
            again = found
        found = again if len(again.withheld) < len(found.withheld) else found
    return _tell_missing(found, groups) if with_missing else found


def digest(people: BoolArray) -> bytes:
    """A fingerprint of a set."""
    return sha256(np.packbits(people).tobytes().rstrip(b"\0")).digest()


def _tell_groups(draft: Draft, people: Mapping[str, BoolArray]) -> Proposal:
    told, withheld = {}, []
    for name, mask in people.items():
        try:
            draft = draft.tell(mask, definition(draft.question, name))
            told[name] = mask
        except WouldDiffer:
            withheld.append(name)
    return Proposal(draft, told, {}, tuple(withheld))


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
