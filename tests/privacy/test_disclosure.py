"""The rule itself: random disclosures against an attacker who solves for everybody.

Each clause is taken out of the source once, and the same attack then finds somebody.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.privacy.linear_attack import fewest_of_sums
from unpooled.center.questions import Disclosure
from unpooled.center.rule import disclosure, memory
from unpooled.center.rule.disclosure import Crowds, Told, TooClose, crowds
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray, Places

K = 4
Random = np.random.Generator
SEQUENCES = 3000  # of each kind


@dataclass(frozen=True)
class Hospital:
    """A few people: what words can choose, a value, a status; some values are missing."""

    columns: list[IntArray]
    values: dict[str, FloatArray]
    status: IntArray

    @classmethod
    def of(cls, random: Random, more: int = 0) -> "Hospital":
        n = int(random.integers(14, 34)) + more
        columns = [random.integers(0, random.integers(2, 4), n) for _ in range(3)]
        values = {}
        for name in ("crp", "ldl"):
            part = random.integers(0, random.integers(2, 14 + 2 * more), n).astype(float)
            part[random.random(n) < random.choice([0.0, 0.25])] = np.nan
            values[name] = part
        return cls(columns, values, random.integers(1, 3, n))

    def some(self, random: Random) -> BoolArray:
        """People whom words choose, perhaps one more or less."""
        people = np.full(len(self.status), True)
        for column in random.choice(3, random.integers(0, 3), replace=False):
            people &= self.columns[column] == random.integers(0, 3)
        if random.random() < 0.3:
            people[random.integers(len(people))] ^= True
        return people


def numbered(label: IntArray) -> Places:
    """The same parts, with numbers from 1 on."""
    result, place = np.unique(label, return_inverse=True)
    return np.asarray(place + (result[0] > 0), dtype=np.int32)


def asked(hospital: Hospital, random: Random, *, sums: bool) -> Disclosure:
    """A set, a table, a mean, or a table by status."""
    people, name = hospital.some(random), str(random.choice(["crp", "ldl"]))
    values, kind = hospital.values[name], random.random()
    if kind < 0.35:
        return Disclosure(people.astype(np.int32), (None,))
    edges = np.unique(random.integers(0, 13, 2))
    cell = np.searchsorted(edges, np.nan_to_num(values)) + 1
    if kind < 0.6:  # a mean
        cell = np.ones(len(values), dtype=np.int64)
    elif kind < 0.8:  # by status
        cell = 2 * cell + hospital.status
    truth = ~np.isnan(values)
    label = numbered(np.where(people, np.where(truth, cell, 100), 0))
    parts = int(label.max(initial=0))
    of_missing = set(label[people & ~truth].tolist())
    rich = 3 if sums and (kind < 0.6 or random.random() < 0.3) else 1
    numbers = tuple(1 if part in of_missing else rich for part in range(1, parts + 1))
    return Disclosure(label, (None,) * parts, {name: numbers})


def fewest_after(
    random: Random, *, sums: bool, k: int = K, promised: int = K, more: int = 0
) -> tuple[int, int]:
    """Of how few people some told number speaks; and how many disclosures were accepted."""
    hospital = Hospital.of(random, more)
    n, answers = len(hospital.status), 0
    draft = memory.Draft(n, disclosure.Told.nothing(n, k))
    words: list[FloatArray] = []
    one: dict[str, list[FloatArray]] = {"crp": [], "ldl": []}
    for answer in range(int(random.integers(3, 9))):
        aggregate = asked(hospital, random, sums=sums)
        sizes = np.bincount(aggregate.part, minlength=2)[1:]
        if not len(sizes) or sizes.min() < k:
            continue
        name = next(iter(aggregate.numbers), "crp")
        try:
            number = answer // 3  # several are of one answer, and become one where they can
            draft = draft.tell(aggregate, number, partial(hospital.values.__getitem__, name))
            draft = draft.gathered(number)
        except disclosure.TooClose:
            continue
        answers += 1
        if not aggregate.numbers:
            words.append((aggregate.part > 0).astype(float))
        values = np.nan_to_num(hospital.values[name])
        for part, numbers in enumerate(aggregate.numbers.get(name, ()), 1):
            one[name] += [(aggregate.part == part) * values**power for power in range(numbers)]
    return min(fewest_of_sums([*words, *rows], promised) for rows in one.values()), answers


def exposed(*, sums: bool) -> bool:
    """Whether some sequence tells of fewer than K people."""
    answer = 0
    for seed in range(SEQUENCES):
        fewest, some = fewest_after(np.random.default_rng(seed), sums=sums)
        if fewest < K:
            return True
        answer += some
    assert answer > SEQUENCES, "most disclosures must be accepted"
    return False


@pytest.fixture
def _each_value_its_own_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disclosure, "_CROWD", 1)


def test_sums_as_shipped_speak_of_k_people_less_four() -> None:
    """A value of one or two people is no crowd: two such values may be left out of mean and SD."""
    assert disclosure._CROWD == 3
    answered = 0
    for seed in range(SEQUENCES // 6):
        random = np.random.default_rng(seed)
        fewest, some = fewest_after(random, sums=True, k=K + 4, promised=K, more=20)
        assert fewest >= K
        answered += some
    assert answered > SEQUENCES // 6


def test_no_counts_together_speak_of_fewer_than_k_people() -> None:
    assert not exposed(sums=False)


@pytest.mark.usefixtures("_each_value_its_own_crowd")
def test_no_counts_and_sums_together_speak_of_fewer_than_k_people() -> None:
    assert not exposed(sums=True)


# --- each clause, taken out --------------------------------------------------------------------


@contextmanager
def weakened(module: ModuleType, old: str, new: str) -> Iterator[None]:
    """A module whose source has something else in one place."""
    source = Path(str(module.__file__)).read_text()
    assert source.count(old) == 1, f"{old} must be in the source once"
    names = dict(vars(module))
    try:
        exec(compile(source.replace(old, new), str(module.__file__), "exec"), vars(module))
        disclosure._CROWD = 1
        if module is disclosure:
            for name in ("Told", "TooClose", "Crowds", "crowds"):
                setattr(memory, name, getattr(disclosure, name))
        yield
    finally:
        vars(module).update(names)
        disclosure._CROWD = 3
        for name, thing in {
            "Told": Told,
            "TooClose": TooClose,
            "Crowds": Crowds,
            "crowds": crowds,
        }.items():
            setattr(memory, name, thing)


COUNTS = {
    "K witnesses": ("partner) >= self.k", "partner) >= self.k - 1"),
    "pairs within runs of earlier disclosures": (
        "keys = before.run[old] * size + label[old]",
        "keys = label[old].astype(np.int64)",
    ),
    "disjoint pairs": (
        "pairs = np.minimum(people, np.where(there, people[at], 0))",
        "pairs = np.where(there, np.maximum(people, people[at]), 0)",
    ),
    "fresh people": (
        "return _Prefix(run, len(runs), self.fresh & (part == 0), sums, without)",
        "return _Prefix(run, len(runs), self.fresh, sums, without)",
    ),
    "what follows, exactly": ("_EXACT = 1e-6", "_EXACT = 0.6"),
    "together they follow": (
        "if left:\n            raise TooClose(lacking=frozen",
        "if False:\n            raise TooClose(lacking=frozen",
    ),
    "older ones behind the new": (
        "raise TooClose from None  # an older one lacks them",
        "judged = element.part",
    ),
    "what comes before the last": (
        "before = _Prefix.of([marks[id(e)] for e in rest], rest, len(self.count))",
        "before = _Prefix.empty(len(self.count))",
    ),
}
SUMS = {
    "crowds": (
        "return np.bincount(group[top], people[top], len(different)).astype(np.int64)",
        "return np.zeros(len(different), dtype=np.int64)",
    ),
    "steps of sums": (
        "apart = self._apart_by_sums(before, label, numbers, most)\n        if apart:",
        "apart = list[frozenset[int]]()\n        if apart:",
    ),
}
MEMORY = {
    "words beside the cells of each variable": (
        "lists = {v: tell(one, part, ones, answer) for v, one in self.variables.items()}",
        "lists = dict(self.variables)",
    ),
    "cells beside the words before": (
        "one, each = lists.get(variable, self.words), np",
        "one, each = lists.get(variable, Told.nothing(self.size, self.words.k)), np",
    ),
}


@pytest.mark.parametrize("clause", COUNTS.values(), ids=COUNTS)
def test_without_a_clause_counts_expose_somebody(clause: tuple[str, str]) -> None:
    with weakened(disclosure, *clause):
        assert exposed(sums=False)


@pytest.mark.parametrize("clause", SUMS.values(), ids=SUMS)
def test_without_a_clause_sums_expose_somebody(clause: tuple[str, str]) -> None:
    with weakened(disclosure, *clause):
        assert exposed(sums=True)


@pytest.mark.parametrize("clause", MEMORY.values(), ids=MEMORY)
def test_without_the_lists_of_others_counts_expose_somebody(clause: tuple[str, str]) -> None:
    with weakened(memory, *clause):
        assert exposed(sums=False)


# --- few people, many numbers ------------------------------------------------------------------


def solved(values: FloatArray) -> bool:
    """Whether n, Σx and Σx² of whole numbers have one solution."""
    wanted = values.sum(), (values**2).sum()
    fitting = [
        some
        for some in combinations_with_replacement(range(14), len(values))
        if (sum(some), sum(x * x for x in some)) == wanted
    ]
    return len(fitting) == 1


def solved_groups(seeds: int) -> int:
    """Groups of K people whose three numbers were told, and that are solved."""
    result = 0
    for seed in range(seeds):
        values = np.random.default_rng(seed).integers(0, 14, 12).astype(float)
        part = (np.arange(12) < K).astype(np.int32)
        answer = disclosure.Told.nothing(12, K).knowing(disclosure.crowds(values))
        try:
            answer.tell(part, np.array([3]), 1)
        except disclosure.TooClose:
            continue
        result += solved(values[:K])
    return result


def test_three_numbers_of_four_people_are_not_told() -> None:
    assert solved_groups(60) == 0
    old = "needed = np.maximum(self.k, 2 * numbers[some - 1])"
    new = "needed = np.maximum(self.k, 0 * numbers[some - 1])"
    with weakened(disclosure, old, new), pytest.MonkeyPatch.context() as patch:
        patch.setattr(disclosure, "_CROWD", 3)  # as it is: K people suffice but for this clause
        assert solved_groups(60) > 0
