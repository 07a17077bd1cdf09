"""Moments at several λ: for how many people a difference of two such answers must speak.

G of them are 2G + 1 numbers about the same people, which could be solved for their values if these
were few. So what follows from several answers must speak for as many people as one answer with all
these λ needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.center.memory.history import History, WouldDiffer
from unpooled.center.memory.remainders import Ks, remainders, same_people, sorted_values
from unpooled.center.memory.tables import Values
from unpooled.center.policy import people_for_powers
from unpooled.maths import large
from unpooled.maths.arrays import BoolArray
from unpooled.maths.moments import Rare


@dataclass(frozen=True, slots=True)
class Powered:
    """A set of people, and the λ at which its moments were told."""

    people: BoolArray
    lambdas: frozenset[float]

    def tells_all_of(self, new: "Powered") -> bool:
        """Whether another says nothing new."""
        return new.lambdas <= self.lambdas and same_people(self.people, new.people)

    def grown(self, size: int) -> "Powered":
        """The same among more people."""
        more = size - len(self.people)
        return Powered(np.pad(self.people, (0, more)), self.lambdas) if more else self


def merged(told: Sequence[Powered], new: Iterable[Powered]) -> tuple[Powered, ...]:
    """What was told, and more: each set once."""
    found = list(told)
    for one in new:
        place = next(
            (at for at, known in enumerate(found) if same_people(known.people, one.people)), None
        )
        if place is None:
            found.append(one)
        else:
            found[place] = Powered(one.people, one.lambdas | found[place].lambdas)
    return tuple(found)


def check_powers(told: Sequence[Powered], new: Powered, ks: Ks, values: Values) -> None:
    """Raise WouldDiffer where a difference from what was told would speak for too few people.

    The λ of all sets that share people, directly or through others, are counted together.
    """
    near = _sharing(told, new)
    if not near or any(known.tells_all_of(new) for known in near):
        return  # judged alone by rule 10, or nothing new
    lambdas = new.lambdas.union(*(known.lambdas for known in near))
    needed = people_for_powers(max(ks), len(lambdas))
    history = History.empty(len(new.people), needed)
    for known in (*near, new):
        history = history.tell(known.people, needed, open_base=True, repeats=True)
    for people in (new.people, *remainders([known.people for known in near], new.people)):
        own = sorted_values(values, people)
        if any(0 < Rare.of(own, k).people < needed for k in ks):
            raise WouldDiffer


def _sharing(told: Sequence[Powered], new: Powered) -> list[Powered]:
    """The sets that share people with a new one, directly or through others, in their order."""
    found, reached = set[int](), new.people
    while True:
        more = [
            place
            for place, known in enumerate(told)
            if place not in found and large.count(np.logical_and, known.people, reached)
        ]
        if not more:
            return [told[place] for place in sorted(found)]
        found.update(more)
        for place in more:
            reached = large.mapped(bool, np.logical_or, reached, told[place].people)
