"""The rule: which answers a center may give together.

A *disclosure* is what an answer tells about which people: each person has a part, 0 where it tells
nothing. A part tells its count, and perhaps more numbers of a variable's values: with mean and SD
it tells three. What was released is an ordered list of disclosures.

Rule
    A disclosure may stand in the list if each of its parts is tied to the outside by steps of K
    *witnesses*. A witness of a step from one part to another, or to the outside, is a pair, one
    person of either, whom no earlier disclosure distinguishes; a person about whom no earlier
    disclosure tells anything is a witness of the step from their part to the outside. No person is
    in two.

Proof
    Of any combination of released counts that is not trivially zero, take the last disclosure that
    occurs in it, and a part of it with a coefficient c ≠ 0. Outside it is 0, so on the way there
    some step joins parts with different coefficients. On each of its pairs earlier disclosures
    agree and later ones do not occur, so the combination differs between the two: it is not zero on
    both. On a fresh person it is the coefficient. So it is not zero on K people: every number that
    follows from what was released describes at least K people. ∎

Three remarks make it complete.

*What follows.* A part that is a combination of earlier ones tells nothing new and needs no witness.
The sums of a part in which all share one value follow from its count. Where some parts
together follow, the coefficient of one of them may be taken from all of these: so parts that are
tied to each other and follow together need not be tied to the outside.

*Several numbers.* A part that tells m numbers (count, Σx, Σx², ...) has a polynomial P of degree
m − 1 in the value x for its c, and so have earlier ones; let no part tell more than M numbers. A
polynomial that is not zero everywhere is zero on at most M − 1 values. A value that three people or
more share is a *crowd*; the *spare* people of a part, among those whom no earlier disclosure tells
apart, are all but its M − 1 largest crowds. Take first a step on which the two polynomials differ
by a number. Either the rest of the combination is a number, too, and the pairs are as above; or on
all the spare people of both parts, and of all parts that tell counts alone, it is not zero; in any
case the two of a pair who share a value differ. So a step has as many witnesses as there are pairs,
or spare people or pairs that share a value if these are fewer. Now take a step
on which they differ by more than a number. Among people whom no earlier *sum* tells apart the rest
of the combination is the same polynomial but for numbers, so it takes away at most one of the two:
the step has as many witnesses as the part with fewer spare people has. Both are asked for. Where a
part's count follows from earlier ones, but not its sums, the second is enough. Where the sums of
some parts together follow, the polynomial of one may be taken from all of these, as above. And m
numbers need max(K, 2m) witnesses, since m equations of few people can be solved.

*Order.* What was released may be put in any order that gives all their witnesses.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from unpooled.maths import big_arrays
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray, Places

_DENSE = 400  # parts that are solved for; with more, nothing is said to follow
_ROUNDS = 8  # of ties between clusters
_EXACT = 1e-6  # how close a combination must come to a part, person by person
_SORTED = 30  # disclosures of which every order is searched; of more only some are tried
_SEARCH = 10**7  # steps to find an order, or which earlier answer stands against one
_DENSE_KEYS = 16  # keys up to this many times their number are counted, more of them sorted
_EVERY = 2**20  # sums, more than anybody tells
_CROWD = 3  # people who share a value; of fewer it is their own
_CROWDS = 256  # values of a variable that are distinguished in counting who shares them


class TooClose(Exception):  # noqa: N818 - not an error of the program but a judgement
    """Together with earlier answers this would describe fewer than K people."""

    def __init__(
        self,
        against: Callable[[], int | None] = lambda: None,
        lacking: frozenset[int] = frozenset(),
    ) -> None:
        self._against = against
        self.lacking = lacking  # parts without enough witnesses, where telling less may do
        super().__init__()

    @cached_property
    def against(self) -> int | None:
        """The number of the earlier answer; it takes a while to find."""
        return self._against()


@dataclass(frozen=True, slots=True)
class Crowds:
    """Who shares a value of a variable with many: a number per person, 0 for all others."""

    of: Places
    others: int = 1  # the most people who share a value that has no number


class Element(NamedTuple):
    """A disclosure in the list: the part of each atom, how many numbers each part tells."""

    part: IntArray
    numbers: IntArray
    answer: int  # that released it

    def beside(self, other: "Element") -> "Element":
        """Both as one; they are of different people."""
        part = np.where(other.part > 0, other.part + len(self.numbers), self.part)
        return Element(part, np.append(self.numbers, other.numbers), self.answer)


@dataclass(frozen=True)
class Told:
    """The list of what was released, in its order, for one variable or of sets of people alone.

    People whom no disclosure tells apart are one *atom*: `of[i]` is the atom of person i, `count`
    how many there are, `crowd` which value they share.
    """

    k: int
    of: Places
    count: IntArray
    crowd: IntArray
    elements: tuple[Element, ...] = ()
    others: int = 1  # the most people who share a value that has no number
    knows: bool = False  # whether it is known who shares values
    end: "_Prefix | None" = None  # what all disclosures together tell apart, once it was looked at
    _judgements: "list[_Judgement]" = field(init=False, default_factory=list)  # the last two

    @classmethod
    def nothing(cls, people: int, k: int) -> "Told":
        """Nothing was released yet."""
        of = big_arrays.full(people, 0, np.int32)
        return cls(k, of, np.array([people]), np.zeros(1, dtype=np.int64))

    def knowing(self, crowds: Crowds) -> "Told":
        """The same once it is known who shares values; nothing but counts was released before."""
        joint, crowd = self._split(crowds.of)
        return replace(joint, crowd=crowd, others=crowds.others, knows=True)

    def tell(self, part: Places, numbers: IntArray, answer: int, *, search: bool = True) -> "Told":
        """The list with one more disclosure; raises TooClose.

        `part` has a number per person, 0 for none; `numbers` says of parts 1, 2, ... how many
        numbers each tells. Without `search` only the likely orders are tried, which is fast. What
        was just judged, as the answer was made, is not worked out again at the gate.
        """
        for last in self._judgements:
            if last.is_of(part, numbers, answer):
                return last.after
        after = self._tell(part, numbers, answer, search=search)
        self._judgements[:] = [_Judgement(part, numbers, answer, after), *self._judgements[:1]]
        return after

    def _tell(self, part: Places, numbers: IntArray, answer: int, *, search: bool) -> "Told":
        joint, label = self._split(part)
        if not label.any():
            return self
        new = Element(label, numbers, answer)
        prefixes, fewest = joint._prefixes(), frozenset[int]()
        last = prefixes[len(joint.elements)]
        if not joint._unknown(joint.elements, last, label, numbers).any():
            return self
        for order in joint._orders(new):
            try:
                return joint._judged(order, prefixes, new)
            except TooClose as close:
                fewest = min(filter(None, (fewest, close.lacking)), key=len, default=fewest)
        if search:
            with suppress(TooClose):
                return joint._sorted(new)
        raise TooClose(partial(joint._against, new), fewest)

    def heard(self, part: Places, numbers: IntArray, answer: int) -> "Told":
        """The list with a disclosure that was made, whatever today's K says of it.

        At the end of the list it needs no witnesses for those that come after it to have theirs.
        """
        try:
            return self.tell(part, numbers, answer)
        except TooClose:
            joint, label = self._split(part)
            heard = (*joint.elements, Element(label, numbers, answer))
            return replace(joint, elements=heard, end=None)

    def follows(self, part: Places) -> bool:
        """Whether a set is a combination of what was released."""
        joint, label = self._split(part)
        before = joint._prefixes()[len(joint.elements)]
        together = (label > 0).astype(np.int64)
        return not joint._unknown(
            joint.elements, before, together, np.ones(1, dtype=np.int64)
        ).any()

    def gathered(self, answer: int) -> "Told":
        """The list with one answer's disclosures as few: those of different people are one.

        What all parts of a later one say together is left out. The rule judges this as it does an
        order, so nothing is released that it would not allow.
        """
        prefixes = self._prefixes()
        for one, other in pairwise([e for e in self.elements if e.answer == answer]):
            if np.any((one.part > 0) & (other.part > 0)):
                continue
            new = one.beside(other)
            left = [e for e in self.elements if e is other or not (e is one or _follows(e, new))]
            with suppress(TooClose):
                order = [new if e is other else e for e in left]
                return self._judged(order, prefixes, new).gathered(answer)
        return self

    # --- the rule ---------------------------------------------------------------------------

    def _judged(self, order: Sequence[Element], prefixes: "_Prefixes", new: Element) -> "Told":
        """The list in this order; raises TooClose where somebody lacks witnesses."""
        same = (a is b for a, b in zip(order, self.elements, strict=False))
        start = next((place for place, alike in enumerate(same) if not alike), len(self.elements))
        kept, before = list(order[:start]), prefixes[start]
        for element in order[start:]:
            try:
                judged = self._new_parts(kept, before, element)
            except TooClose:
                if element is new:
                    raise
                raise TooClose from None  # an older one lacks them
            if judged.any():
                kept.append(element._replace(part=judged))
                before = before.after(judged, element.numbers)
        return replace(self, elements=tuple(kept), end=before)

    def _new_parts(self, kept: Sequence[Element], before: "_Prefix", element: Element) -> IntArray:
        """The parts that are new, behind these; raises TooClose where some lack witnesses."""
        label, numbers, _ = element
        most = max([int(numbers.max()), *(int(one.numbers.max()) for one in kept)])
        once, follow = np.ones(len(numbers), dtype=np.int64), frozenset[int]()
        apart = self._apart(before, label, numbers, most)
        if apart:
            loose = frozenset[int]().union(*apart)
            follow = loose - _parts(self._unknown(kept, before, label, once, loose))
            label = _without(label, [part for part in follow if numbers[part - 1] == 1])
            apart = self._apart(before, label, numbers, most, follow, thorough=True)
        self._check_together(kept, before, label, apart, [1] * len(apart))
        apart = self._apart_by_sums(before, label, numbers, most)
        if apart:
            loose = frozenset[int]().union(*apart)
            label = _without(
                label, loose - _parts(self._unknown(kept, before, label, numbers, loose))
            )
            apart = self._apart_by_sums(before, label, numbers, most)
        most_of = [max(int(numbers[part - 1]) for part in parts) for parts in apart]
        self._check_together(kept, before, label, apart, most_of)
        return label

    def _check_together(
        self,
        kept: Sequence[Element],
        before: "_Prefix",
        label: IntArray,
        apart: Sequence[frozenset[int]],
        numbers: Sequence[int],
    ) -> None:
        """Raise TooClose unless this many numbers of each of these parts put together follow."""
        group = np.zeros(int(label.max(initial=0)) + 1, dtype=np.int64)
        for number, parts in enumerate(apart, 1):
            group[list(parts)] = number
        together = group[label]
        left = _parts(self._unknown(kept, before, together, np.array(numbers, dtype=np.int64)))
        if left:
            raise TooClose(lacking=frozenset[int]().union(*(apart[n - 1] for n in left)))

    def _apart(
        self,
        before: "_Prefix",
        label: IntArray,
        numbers: IntArray,
        most: int,
        follow: frozenset[int] = frozenset(),
        *,
        thorough: bool = False,
    ) -> list[frozenset[int]]:
        """The parts that counts do not tie to the outside; together those tied to each other."""
        some = np.array(sorted(_parts(label)), dtype=np.int64)
        if not len(some):
            return []
        size, tie = len(numbers) + 1, _Ties(len(numbers) + 1)
        steps_from = self._steps(before, label, numbers, most)
        tie.join(np.array(sorted(follow), dtype=np.int64), np.zeros(size, dtype=np.int64))
        for partner in self._partners(before, label, some, size):
            enough = self._ties(steps_from, partner)
            tie.join(some[enough[some]], partner)
            if tie.are_all_outside(some):
                return []
        if thorough:
            self._tie_most_alike(tie, before, label, steps_from, some)
        return tie.apart(some)

    def _partners(
        self, before: "_Prefix", label: IntArray, some: IntArray, size: int
    ) -> Iterator[IntArray]:
        """To which part, or the outside, the step from each part may lead; the likely ones."""
        yield np.zeros(size, dtype=np.int64)
        yield _next(some, size)
        yield from (np.full(size, base) for base in self._largest(label))
        yield self._largest_beside(before, label, size)

    def _ties(self, steps: "_Steps", partner: IntArray) -> BoolArray:
        """Whether the step from each part to its partner has K witnesses."""
        return steps.witnesses(partner) >= self.k

    def _tie_most_alike(
        self, tie: "_Ties", before: "_Prefix", label: IntArray, steps: "_Steps", some: IntArray
    ) -> None:
        """Tie each part to the one of another cluster with which it shares most runs."""
        if len(some) > _DENSE:
            return
        shared = self._shared(before, label, len(steps.plain))
        for _ in range(_ROUNDS):
            clusters = tie.clusters
            others = np.where(clusters[:, None] == clusters, 0, shared)
            partner = np.where(others.max(axis=1) >= self.k, others.argmax(axis=1), 0)
            linked = some[partner[some] > 0]
            enough = self._ties(steps, partner)
            tie.join(linked[enough[linked]], partner)
            left = linked[~enough[linked]]
            shared[left, partner[left]] = 0
            if not len(linked):
                return

    def _shared(self, before: "_Prefix", label: IntArray, size: int) -> IntArray:
        """How many pairs of people of two parts no earlier disclosure tells apart, at most."""
        inside = ~before.fresh & (label > 0)
        key, people = _summed(before.run[inside] * size + label[inside], self.count[inside])
        run, part = key // size, key % size
        shared = np.zeros((size, size), dtype=np.int64)
        for step in range(1, len(key)):
            same = run[step:] == run[:-step]
            if not same.any():
                break
            one, other = part[step:][same], part[:-step][same]
            pairs = np.minimum(people[step:][same], people[:-step][same])
            np.add.at(shared, (one, other), pairs)
            np.add.at(shared, (other, one), pairs)
        return shared

    def _steps(self, before: "_Prefix", label: IntArray, numbers: IntArray, most: int) -> "_Steps":
        """The steps that parts can make, for counts."""
        size, old = len(numbers) + 1, ~before.fresh
        keys = before.run[old] * size + label[old]
        key, people = _summed(keys, self.count[old])
        fresh = np.bincount(label[before.fresh], self.count[before.fresh], size).astype(np.int64)
        spare = people - self._crowded(keys, old, most) if most > 1 else people
        plain, none = np.append(True, numbers == 1), np.zeros(0, dtype=np.int64)
        alike = (none, none) if most == 1 else self._by_crowd(keys, key, old)
        return _Steps(size, before.runs, fresh, plain, most, key, people, spare, alike)

    def _by_crowd(
        self, keys: IntArray, key: IntArray, atoms: BoolArray
    ) -> tuple[IntArray, IntArray]:
        """For each key, by its place, and crowd together: how many people there are."""
        place = np.searchsorted(key, keys)
        return _summed(place * (_CROWDS + 1) + self.crowd[atoms], self.count[atoms])

    def _apart_by_sums(
        self, before: "_Prefix", label: IntArray, numbers: IntArray, most: int
    ) -> list[frozenset[int]]:
        """The parts with sums that are tied to no part without; together those tied likewise."""
        rich = np.append(False, numbers > 1)
        some = np.array([part for part in sorted(_parts(label)) if rich[part]], dtype=np.int64)
        if not len(some):
            return []
        size, tie = len(numbers) + 1, _Ties(len(numbers) + 1)
        spare = self._spare(before, label, size, most)
        spare = np.column_stack((spare[:, ~rich].sum(axis=1), spare[:, some]))
        needed = np.maximum(self.k, 2 * numbers[some - 1])
        steps = np.minimum(spare[:, :1], spare[:, 1:])  # to the parts without sums
        steps[before.without_sums] = spare[before.without_sums, 1:]  # no other sum takes them away
        tie.join(some[steps.sum(axis=0) >= needed], np.zeros(size, dtype=np.int64))
        steps = np.minimum(spare[:, 1:-1], spare[:, 2:])  # from one to the next
        enough = steps.sum(axis=0) >= np.maximum(needed[:-1], needed[1:])
        tie.join(some[:-1][enough], _next(some, size))
        return tie.apart(some)

    def _spare(self, before: "_Prefix", label: IntArray, size: int, most: int) -> IntArray:
        """Who is left in each part without its crowds; a row per run of earlier sums."""
        keys = before.run * size + label
        key, first = np.unique(keys, return_index=True)
        _, people = _summed(keys, self.count)
        spare = people - self._crowded(keys, np.full(len(keys), True), most)
        cell = before.sums[first] * size + key % size
        rows = len(before.without_sums)
        return np.bincount(cell, spare, rows * size).astype(np.int64).reshape(rows, size)

    def _crowded(self, keys: IntArray, atoms: BoolArray, numbers: int) -> IntArray:
        """How many people are in the m − 1 largest crowds of those of each different key.

        `keys` has one per atom among `atoms`.
        """
        different, inverse = _numbered(keys)
        if numbers == 1 or not self.knows:
            return np.zeros(len(different), dtype=np.int64)
        both, people = _summed(inverse * (_CROWDS + 1) + self.crowd[atoms], self.count[atoms])
        group, crowd = both // (_CROWDS + 1), both % (_CROWDS + 1)
        group, people = self._with_unnumbered(group, crowd, people, numbers - 1)
        order = np.lexsort((-people, group))
        group, people = group[order], people[order]
        first = np.searchsorted(group, np.arange(len(different)))
        top = np.arange(len(group)) - first[group] < numbers - 1
        return np.bincount(group[top], people[top], len(different)).astype(np.int64)

    def _with_unnumbered(
        self, group: IntArray, crowd: IntArray, people: IntArray, most: int
    ) -> tuple[IntArray, IntArray]:
        """Crowds, with as many more as there may be among those whose value has no number."""
        numbered = (crowd > 0) & (people >= _CROWD)
        groups, sizes = [group[numbered]], [people[numbered]]
        left = np.where(crowd == 0, people, 0)
        for _ in range(most if self.others >= _CROWD else 0):
            one = np.minimum(left, self.others)
            groups.append(group[one >= _CROWD])
            sizes.append(one[one >= _CROWD])
            left = left - one
        return np.concatenate(groups), np.concatenate(sizes)

    # --- what follows -----------------------------------------------------------------------

    def _unknown(
        self,
        kept: Sequence[Element],
        before: "_Prefix",
        label: IntArray,
        numbers: IntArray,
        among: frozenset[int] | None = None,
    ) -> IntArray:
        """A disclosure without those of these parts that follow from earlier ones.

        None does that has somebody whom no earlier disclosure tells apart from somebody outside.
        """
        doubtful = before.whole(label)
        if among is not None:
            doubtful = doubtful[np.isin(doubtful, list(among))]
        if len(doubtful) > _DENSE or not kept:
            return label
        label = label.copy()
        for each in np.unique(numbers[doubtful - 1]).tolist():
            alike = doubtful[numbers[doubtful - 1] == each]
            rows = [np.where(self._sums_of(e)[e.part] >= each, e.part, 0) for e in kept]
            span = _Span.of([row for row in rows if row.any()], len(self.count))
            held = span.holds((label == alike[:, None]).astype(np.float64))
            label[np.isin(label, alike[held])] = 0
        return label

    def _sums_of(self, element: Element) -> IntArray:
        """How many numbers each part tells; one value that all share gives every sum away."""
        size = len(element.numbers) + 1
        low, high = np.full(size, _CROWDS), np.zeros(size, dtype=np.int64)
        np.minimum.at(low, element.part, self.crowd)
        np.maximum.at(high, element.part, self.crowd)
        return np.where((low == high) & (low > 0), _EVERY, np.append(0, element.numbers))

    # --- the list ---------------------------------------------------------------------------

    def _split(self, part: Places) -> tuple["Told", IntArray]:
        """The list with its atoms parted by a new disclosure, and the part of each atom."""
        size, atoms = int(part.max(initial=0)) + 1, len(self.count)
        if part.min(initial=size) == size - 1:  # all in one part
            return self, np.full(atoms, size - 1)
        if atoms * size <= 4 * len(part) + 10**6:
            counted = _joint(self.of, part, size, atoms)
            key = np.flatnonzero(counted)
            place = np.zeros(len(counted), dtype=np.int32)
            place[key] = np.arange(len(key), dtype=np.int32)
            of = big_arrays.mapped(
                np.int32, lambda old, new: place[old.astype(np.int64) * size + new], self.of, part
            )
            count = counted[key]
        else:
            keys = self.of.astype(np.int64) * size + part
            key, inverse, count = np.unique(keys, return_inverse=True, return_counts=True)
            of = inverse.astype(np.int32)
        old = key // size
        elements = tuple(e._replace(part=e.part[old]) for e in self.elements)
        end = self._prefixes()[len(self.elements)].among(old)
        joint = replace(self, of=of, count=count, crowd=self.crowd[old], elements=elements, end=end)
        return joint, key % size

    def _prefixes(self) -> "_Prefixes":
        return _Prefixes(self.elements, len(self.count), self.end)

    def _orders(self, new: Element) -> Iterator[list[Element]]:
        """Orders to try first: without sets that follow from the new one; with it late, early."""
        old = list(self.elements)
        left = [e for e in old if not _follows(e, new)]
        if len(left) < len(old):
            for place in dict.fromkeys((len(left), 0)):
                yield [*left[:place], new, *left[place:]]
        yield [*old, new]
        same = [p for p, e in enumerate(old) if _is_whole(new.part > 0, e.part)]
        for place in dict.fromkeys((*same, 0)):
            if place < len(old):
                yield [*old[:place], new, *old[place:]]

    def _sorted(self, new: Element) -> "Told":
        """The list in an order that is found from its end; raises TooClose.

        Whatever has its witnesses behind all others may be the last.
        """
        left, tail = [*self.elements, new], list[Element]()
        if len(left) > _SORTED or len(left) ** 2 * len(self.count) > _SEARCH:
            raise TooClose
        marks = {id(e): _Marks.of(place, e) for place, e in enumerate(left)}
        while left:
            for last in sorted(left, key=lambda e: (e.part.max() > 1, e.numbers.max())):
                rest = [e for e in left if e is not last]
                before = _Prefix.of([marks[id(e)] for e in rest], rest, len(self.count))
                with suppress(TooClose):
                    judged = self._new_parts(rest, before, last)
                    break
            else:
                raise TooClose
            left = rest
            if judged.any():
                tail.append(last._replace(part=judged))
        return replace(self, elements=tuple(reversed(tail)), end=None)

    def _largest(self, label: IntArray) -> list[int]:
        """The parts that have most people, and most of different values."""
        inside = label > 0
        part, people = _summed(label[inside], self.count[inside])
        spare = people - self._crowded(label[inside], inside, 3)
        return list(dict.fromkeys(part[[np.argmax(people), np.argmax(spare)]].tolist()))

    def _largest_beside(self, before: "_Prefix", label: IntArray, size: int) -> IntArray:
        """For each part the largest one of those that earlier disclosures do not tell from it."""
        inside = label > 0
        key, people = _summed(before.run[inside] * size + label[inside], self.count[inside])
        order = np.argsort(people, kind="stable")  # of several the last one stays
        run, part = key[order] // size, key[order] % size
        largest, home = np.zeros(before.runs, dtype=np.int64), np.zeros(size, dtype=np.int64)
        largest[run], home[part] = part, run
        return np.where(np.arange(size) > 0, largest[home], 0)

    # --- what to say about a refusal --------------------------------------------------------

    def _against(self, new: Element) -> int | None:
        """The earlier answer without which this one could be given; else the nearest."""
        cost = max(1, len(self.elements) ** 2 * len(self.count))
        answers = list(dict.fromkeys(e.answer for e in reversed(self.elements)))
        for answer in answers[: _SEARCH // cost]:
            others = tuple(e for e in self.elements if e.answer != answer)
            left = replace(self, elements=others, end=None)
            prefixes = left._prefixes()
            for order in ([*left.elements, new], [new, *left.elements]):
                with suppress(TooClose):
                    left._judged(order, prefixes, new)
                    return answer
        return self._nearest(new.part)

    def _nearest(self, label: IntArray) -> int | None:
        """The earlier answer that speaks of most alike people."""
        far = [int(self.count[(e.part > 0) != (label > 0)].sum()) for e in self.elements]
        return self.elements[int(np.argmin(far))].answer if far else None


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What came of a disclosure that the rule allowed."""

    part: Places
    numbers: IntArray
    answer: int
    after: Told

    def is_of(self, part: Places, numbers: IntArray, answer: int) -> bool:
        """Whether it is the very same disclosure."""
        return (
            answer == self.answer
            and np.array_equal(numbers, self.numbers)
            and (part is self.part or np.array_equal(part, self.part))
        )


def _is_whole(people: BoolArray, part: IntArray) -> bool:
    """Whether people are some of the parts, and these whole."""
    inside = part[people]
    return bool(np.all(inside > 0)) and not np.isin(inside, part[~people]).any()


def _follows(old: Element, new: Element) -> bool:
    """Whether each part of one is parts of another, which tell as many numbers, put together."""
    some, inside = old.part > 0, new.part > 0
    if np.any(some & ~inside) or np.any(
        old.numbers[old.part[some] - 1] > new.numbers[new.part[some] - 1]
    ):
        return False
    both = np.unique(new.part[inside] * (len(old.numbers) + 1) + old.part[inside])
    return len(both) == len(np.unique(new.part[inside]))


class _Ties:
    """Which parts are joined by steps; 0 is the outside."""

    def __init__(self, size: int) -> None:
        self._root = np.arange(size)

    def join(self, parts: IntArray, partner: IntArray) -> None:
        """Join each of these parts to its partner."""
        others = partner[parts]
        if len(others) and np.all(others == others[0]):  # many to one, at once
            joined = np.zeros(len(self._root), dtype=bool)
            joined[self._root[parts]] = True
            self._root[joined[self._root]] = self._root[others[0]]
            return
        for part, other in zip(parts.tolist(), others.tolist(), strict=True):
            one, two = self._root[part], self._root[other]
            if one != two:
                self._root[self._root == one] = two

    @property
    def clusters(self) -> IntArray:
        """For each part, and the outside, a number that those it is joined to have, too."""
        return self._root.copy()

    def are_all_outside(self, some: IntArray) -> bool:
        """Whether all of these parts are joined to the outside."""
        return bool(np.all(self._root[some] == self._root[0]))

    def apart(self, some: IntArray) -> list[frozenset[int]]:
        """The parts that are not joined to the outside, those joined to each other together."""
        roots = self._root[some]
        loose = roots != self._root[0]
        clusters: dict[int, list[int]] = {}
        for root, part in zip(roots[loose].tolist(), some[loose].tolist(), strict=True):
            clusters.setdefault(root, []).append(part)
        return [frozenset(clusters[root]) for root in sorted(clusters)]


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps that the parts of a disclosure can make, and what their witnesses are counted from.

    A key is a run of people whom no earlier disclosure tells apart, and a part; `by_crowd` has the
    keys' places together with the values that people share.
    """

    size: int  # of the parts, and the outside
    runs: int
    fresh: IntArray  # per part: people about whom nothing was released
    plain: BoolArray  # which parts tell a count alone
    most: int  # numbers that a part tells
    key: IntArray
    people: IntArray
    spare: IntArray
    by_crowd: tuple[IntArray, IntArray]

    def witnesses(self, partner: IntArray) -> IntArray:
        """How many witnesses the step from each part to its partner has."""
        witnesses = np.where(partner == 0, self.fresh, 0)
        witnesses[0] = 0
        key, people = self.key, self.people
        run, part = key // self.size, key % self.size
        other = run * self.size + partner[part]
        at = np.minimum(np.searchsorted(key, other), len(key) - 1)
        there = (key[at] == other) & (part > 0) & (partner[part] != part)
        if not there.any():
            return witnesses
        pairs = np.minimum(people, np.where(there, people[at], 0))
        if self.most > 1:
            alone = np.where(self.plain[part], self.spare, 0)
            every = np.bincount(run, alone, self.runs)[run].astype(np.int64)
            both = self.plain[part] & self.plain[partner[part]]
            rich = np.where(both, every, self.spare + self.spare[at])
            pairs = np.minimum(pairs, np.maximum(rich, self._alike(at)))
        return witnesses + np.bincount(part[there], pairs[there], self.size).astype(np.int64)

    def _alike(self, at: IntArray) -> IntArray:
        """For each key and its partner: pairs of people who share a value."""
        both, people = self.by_crowd
        mine, crowd = both // (_CROWDS + 1), both % (_CROWDS + 1)
        other = at[mine] * (_CROWDS + 1) + crowd
        there = np.minimum(np.searchsorted(both, other), len(both) - 1)
        shared = np.where((both[there] == other) & (crowd > 0), people[there], 0)
        return np.bincount(mine, np.minimum(people, shared), len(self.key)).astype(np.int64)


def _next(some: IntArray, size: int) -> IntArray:
    """For each part the next one that has people; the last has itself."""
    following = np.arange(size)
    following[some[:-1]] = some[1:]
    return following


@dataclass(frozen=True, slots=True)
class _Prefix:
    """Which atoms the disclosures so far do not tell apart: a run each; fresh: none has them.

    `sums` are the runs that those with sums make; `without_sums` says which of these none has.
    """

    run: IntArray
    runs: int
    fresh: BoolArray
    sums: IntArray
    without_sums: BoolArray

    def whole(self, label: IntArray) -> IntArray:
        """The parts, ascending, that have each run with all its people or with none of them."""
        one, shared = np.zeros(self.runs, dtype=np.int64), np.zeros(self.runs, dtype=bool)
        one[self.run] = label  # of each run somebody's
        shared[self.run[label != one[self.run]]] = True
        people, torn = np.bincount(label), np.bincount(label[shared[self.run]])
        people[: len(torn)][torn > 0] = 0
        return np.flatnonzero(people[1:]) + 1

    def among(self, atoms: IntArray) -> "_Prefix":
        """The same for atoms that are parts of these, each named by the one it is of."""
        run, fresh, sums = self.run[atoms], self.fresh[atoms], self.sums[atoms]
        return replace(self, run=run, fresh=fresh, sums=sums)

    @classmethod
    def empty(cls, atoms: int) -> "_Prefix":
        nowhere = np.zeros(atoms, dtype=np.int64)
        return cls(nowhere, 1, np.full(atoms, True), nowhere, np.array([True]))

    @classmethod
    def of(cls, marks: Sequence["_Marks"], elements: Sequence[Element], atoms: int) -> "_Prefix":
        """Behind all of these."""
        if not elements:
            return cls.empty(atoms)
        runs, run = np.unique(np.sum([m.parts for m in marks], axis=0), return_inverse=True)
        total = np.sum([m.sums for m in marks], axis=0)
        sums, place = np.unique(total, return_inverse=True)
        fresh = ~np.any([e.part > 0 for e in elements], axis=0)
        return cls(run, len(runs), fresh, place, sums == 0)

    def after(self, part: IntArray, numbers: IntArray) -> "_Prefix":
        size = int(part.max(initial=0)) + 1
        runs, run = _numbered(self.run * size + part)
        rich = np.where(np.append(False, numbers > 1)[part], part, 0)
        keys, sums = _numbered(self.sums * size + rich)
        without = self.without_sums[keys // size] & (keys % size == 0)
        return _Prefix(run, len(runs), self.fresh & (part == 0), sums, without)


class _Prefixes:
    """What tells people apart before each place in a list; made where it is asked for."""

    def __init__(self, elements: Sequence[Element], atoms: int, end: _Prefix | None) -> None:
        self._told = elements
        self._atoms = atoms
        self._made = {} if end is None else {len(elements): end}

    def __getitem__(self, place: int) -> _Prefix:
        if place not in self._made:
            some = self._told[:place]
            marks = [_Marks.of(number, element) for number, element in enumerate(some)]
            self._made[place] = _Prefix.of(marks, some, self._atoms)
        return self._made[place]


class _Marks(NamedTuple):
    """Random numbers for the parts of a disclosure, 0 outside: sums of them tell parts apart."""

    parts: IntArray
    sums: IntArray  # of parts that tell sums

    @classmethod
    def of(cls, place: int, element: Element) -> "_Marks":
        size = len(element.numbers) + 1
        random = np.random.default_rng(place).integers(-(2**56), 2**56, size)
        random[0] = 0
        rich = np.append(False, element.numbers > 1)
        return cls(random[element.part], np.where(rich, random, 0)[element.part])


@dataclass(frozen=True)
class _Span:
    """All combinations of some disclosures' parts, as functions of the atoms.

    Disclosures of different people are one partition into cells: a function follows if it is the
    same in each cell once others are subtracted.
    """

    first: IntArray  # per atom: the first atom of its cell, itself where it is in none
    inside: BoolArray  # whether it is in a cell
    others: tuple[IntArray, ...]  # what can be added, less its value at the first atom

    @classmethod
    def of(cls, parts: Sequence[IntArray], atoms: int) -> "_Span":
        cell, others, free = np.zeros(atoms, dtype=np.int64), [], 1
        for part in sorted(parts, key=lambda one: -int(one.max(initial=0))):
            if np.any((part > 0) & (cell > 0)):
                others.append(part)
            else:
                cell += np.where(part > 0, part + free - 1, 0)
                free = int(cell.max()) + 1
        inside = cell > 0
        _, start, run = np.unique(cell, return_index=True, return_inverse=True)
        first = np.where(inside, start[run], np.arange(atoms))
        if sum(int(part.max()) for part in others) > _DENSE:
            others = []
        return cls(first, inside, tuple(others))

    def holds(self, functions: FloatArray) -> BoolArray:
        """Which of these are such combinations."""
        wanted = np.asarray(functions - np.where(self.inside, functions[:, self.first], 0.0))
        exact = np.abs(wanted).max(axis=1, initial=0.0) < _EXACT
        doubtful = ~exact
        for atoms in self._looked_at() if self.others else ():
            if doubtful.any():
                rows = self._rows(atoms)
                doubtful[doubtful] = _combine(rows, wanted[np.ix_(doubtful, atoms)])
        return np.asarray(exact | doubtful if self.others else exact)

    def _looked_at(self) -> Iterator[IntArray]:
        """Some atoms, where most functions turn out to be no combination; then all."""
        size, some = len(self.first), 4 * sum(int(part.max()) for part in self.others) + 64
        if some < size:
            yield np.sort(np.random.default_rng(size).choice(size, some, replace=False))
        yield np.arange(size)

    def _rows(self, atoms: IntArray) -> FloatArray:
        first, inside = self.first[atoms], self.inside[atoms]
        rows = [
            (part[atoms] == r).astype(np.float64) - (inside & (part[first] == r))
            for part in self.others
            for r in range(1, int(part.max()) + 1)
        ]
        return np.array(rows, dtype=np.float64)


def _combine(rows: FloatArray, wanted: FloatArray) -> BoolArray:
    """Which functions are combinations of the rows R: f Rᵀ G⁻ R is what R gives, G = R Rᵀ."""
    solver = np.linalg.pinv(rows @ rows.T, hermitian=True)
    left = wanted - ((wanted @ rows.T) @ solver) @ rows
    return np.asarray(np.abs(left).max(axis=1, initial=0.0) < _EXACT)


def _parts(label: IntArray) -> frozenset[int]:
    return frozenset(np.unique(label[label > 0]).tolist())


def _without(label: IntArray, parts: Iterable[int]) -> IntArray:
    return np.where(np.isin(label, list(parts)), 0, label)


def _joint(of: Places, part: Places, size: int, atoms: int) -> IntArray:
    """How many people there are of each atom and part."""
    people = np.zeros(atoms * size, dtype=np.int64)
    for piece in big_arrays.pieces(len(of)):
        keys = of[piece].astype(np.int64) * size + part[piece]
        people += np.bincount(keys, minlength=len(people))
    return people


def _summed(keys: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """The different keys, and how many people have each."""
    if int(keys.max(initial=0)) <= _DENSE_KEYS * len(keys):
        there = np.bincount(keys) > 0
        different = np.flatnonzero(there)
        return different, np.bincount(keys, count)[different].astype(np.int64)
    different, inverse = np.unique(keys, return_inverse=True)
    return different, np.bincount(inverse, count, len(different)).astype(np.int64)


def _numbered(keys: IntArray) -> tuple[IntArray, IntArray]:
    """The different keys, and for each entry the place of its own among them."""
    if int(keys.max(initial=0)) <= _DENSE_KEYS * len(keys):
        different = np.flatnonzero(np.bincount(keys))
        place = np.zeros(int(keys.max(initial=0)) + 1, dtype=np.int64)
        place[different] = np.arange(len(different))
        return different, place[keys]
    return np.unique(keys, return_inverse=True)


def crowds(values: FloatArray) -> Crowds:
    """Who shares a value with others; nobody's missing value is one value that they share.

    Examples
    --------
    >>> crowds(np.array([0.0, 7.5, 0.0, np.nan, np.nan, 0.0])).of
    array([1, 0, 1, 2, 2, 1], dtype=int32)
    """
    ordered = big_arrays.copied(values)
    big_arrays.sort(ordered)
    value, count = _shared(ordered)
    order = np.argsort(-count, kind="stable")
    common = order[: _CROWDS - 1][count[order[: _CROWDS - 1]] > 1]
    others = int(count[order[len(common)]]) if len(common) < len(order) else 1
    number = np.zeros(len(value) + 1, dtype=np.int32)
    number[common] = np.arange(1, len(common) + 1)
    last = len(value) - 1 if len(value) and np.isnan(value[-1]) else len(value)  # of nobody's

    def numbered(some: FloatArray) -> Places:
        place = np.searchsorted(value[:last], some)
        there = np.isnan(some) if last == 0 else value[np.minimum(place, last - 1)] == some
        return number[np.where(there, place, np.where(np.isnan(some), last, len(value)))]

    return Crowds(big_arrays.mapped(np.int32, numbered, values), max(others, 1))


def _shared(ordered: FloatArray) -> tuple[FloatArray, IntArray]:
    """The values that most people share, ascending, and how many share each; NaN is one value."""
    value, count = np.zeros(0), np.zeros(0, dtype=np.int64)
    for piece in big_arrays.pieces(len(ordered)):
        values, people = np.unique(ordered[piece], return_counts=True)
        if len(value) and np.array_equal(value[-1:], values[:1], equal_nan=True):
            people[0] += count[-1]
            value, count = value[:-1], count[:-1]
        most = np.sort(np.argsort(-count, kind="stable")[:_CROWDS])
        value, count = np.append(value[most], values), np.append(count[most], people)
    return value, count
