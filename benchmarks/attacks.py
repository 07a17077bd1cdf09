"""Attacks on one center's honest answers, at scale: python -m benchmarks.attacks [RUNS].

Each line: how many claims about fewer than K people are right, of how many made and how many there
were to find. Lattices are reduced further where `fpylll` is installed (it is no dependency). The
last lines tell what eight odd questions a variable by one person leave to all others.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
from tests.privacy.curious import Score, ask, open_center, total
from tests.privacy.lattice_attack import Reduce, Whole, reduced
from tests.privacy.linear_attack import claims
from tests.privacy.test_combinations import DECOYS, SMALL_K, asked, decoy_attack
from tests.privacy.test_decoding import (
    Random,
    days,
    digits_attack,
    dominance_attack,
    powers_attack,
    scores,
    ties_attack,
    titres_attack,
    windows_attack,
)
from tests.privacy.test_oracles import (
    bisection_attack,
    carrier_attack,
    completed_attack,
    size_attack,
)
from tests.privacy.test_two_columns import (
    KINDS,
    attribute_attack,
    between_attack,
    copy_attack,
    fresh_columns_attack,
    items_attack,
    refused_group_attack,
)

from unpooled.center import Center
from unpooled.center.questions import (
    AboutPeople,
    LatticeQuestion,
    MomentsQuestion,
    SizesQuestion,
    TableQuestion,
)
from unpooled.maths.arrays import FloatArray

RUNS = 100
SLOW = 20  # runs of attacks that reduce large lattices
BLOCK = 20  # of the stronger reduction
LINE = "{:<56} {:>5} {:>16} {:>8} {:>6}"


def ages(random: Random, people: int) -> FloatArray:
    """Ages of 18 to 95 in whole years."""
    return np.clip(random.normal(60, 12, people).round(), 18.0, 95.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """A variable in whole numbers."""

    name: str
    draw: Callable[[Random, int], FloatArray]
    values: FloatArray
    people: int


SCALES = (
    Scale("score 0-27", scores, np.arange(28.0), 60),
    Scale("score 0-27", scores, np.arange(28.0), 90),
    Scale("length of stay", days, np.arange(1.0, 61.0), 60),
    Scale("length of stay", days, np.arange(1.0, 61.0), 120),
    Scale("age", ages, np.arange(18.0, 96.0), 60),
)


def strongest() -> Reduce:
    """The reduction of `fpylll` where it is there, else the tests' own."""
    if find_spec("fpylll") is None:
        return reduced
    return partial(_block_reduced, import_module("fpylll"))


def _block_reduced(fpylll: Any, rows: Whole) -> Whole:
    """As `reduced`; the steps taken follow from the first columns, which are multiples of them."""
    size = len(rows)
    basis = fpylll.IntegerMatrix.from_matrix(rows[:, :-size].tolist())
    fpylll.LLL.reduction(basis)
    fpylll.BKZ.reduction(basis, fpylll.BKZ.Param(block_size=min(BLOCK, size)))
    result = np.array([[int(entry) for entry in row] for row in basis], dtype=object)
    each = np.abs(rows[:, :size]).max(axis=0) // np.abs(rows[:, -size:]).max(axis=0)
    return np.concatenate((result, result[:, :size] // each), axis=1)


def attacks(runs: int, reduce: Reduce) -> Iterator[tuple[str, int, Callable[[Random], Score]]]:
    """Each attack with its name and how often it is tried."""
    slow = min(runs, SLOW)
    for scale in SCALES:
        for method in ("yj-likelihood", "yj-grid"):

            def powers(random: Random, scale: Scale = scale, method: str = method) -> Score:
                values = scale.draw(random, scale.people)
                return powers_attack(values, scale.values, method, reduce)

            yield f"{method}, {scale.name}, {scale.people} people", slow, powers
    yield "ties in the variance of U", runs, ties_attack
    yield "ranks beside a window", runs, partial(windows_attack, chosen_by="crp")
    yield "ranks beside a window in another unit", runs, partial(windows_attack, chosen_by="nmol")
    yield "digits of a mean", runs, digits_attack
    yield "a mean that one person dominates", runs, dominance_attack
    yield "mean and SD of fourfold dilutions", runs, titres_attack
    yield "raised K: size of a refused group", runs, size_attack
    yield "raised K: a value by halves", slow, bisection_attack
    for variable in ("hiv", "copies"):
        for kind in ("ranks", "describe"):
            once = partial(carrier_attack, variable=variable, kind=kind, again=False)
            yield f"who is a carrier, by {kind} of {variable}", slow, once
    yield "too small or not: who completes a set", slow, completed_attack
    for kind in KINDS:
        yield f"two columns, {kind}: an attribute", slow, partial(attribute_attack, kind=kind)
    yield "fresh columns: a value by halves", slow, fresh_columns_attack
    yield "items and their sum", runs, items_attack
    yield "groups of two columns: a small group", runs, refused_group_attack
    yield "chain table beside a condition", runs, partial(between_attack, table=TableQuestion)
    yield "lattice table beside a condition", runs, partial(between_attack, table=LatticeQuestion)
    yield "deaths behind two decoys", runs, partial(decoy_attack, decoys=DECOYS)
    yield f"random sequences, K = {SMALL_K}", runs, sequence_attack


def sequence_attack(random: Random) -> Score:
    """Whether some number about one or two people follows from six to eight answers."""
    answer, _ = asked(random)
    return Score(int(bool(claims(answer, SMALL_K))), 1, 1)


# --- what one person's odd questions leave to others -------------------------------------------

VARIABLES = ("crp", "ldl", "sodium", "creatinine", "hemoglobin", "albumin")
GROUPINGS: dict[str, tuple[str, ...]] = {
    "sex": ("F", "M"),
    "arm": ("A", "B"),
    "ward": ("a", "b", "c"),
}
ODD = (
    "age > 31",
    "age > 57 or bed == 3",
    "bed < 171",
    "sex == 'F' and age < 63",
    "arm == 'A' or age > 74",
    "ward == 'a' and bed > 20",
    "bed > 11 and age < 80",
    "ward != 'b' and bed < 190",
)


def clinic(random: Random, people: int = 200) -> pl.DataFrame:
    """People with three groupings, who have values of everything."""
    return pl.DataFrame(
        {
            "age": random.integers(18, 90, people),
            "bed": random.permutation(people),
            **{name: random.choice(groups, people) for name, groups in GROUPINGS.items()},
            **{variable: random.gamma(4, 1, people).round(2) for variable in VARIABLES},
        }
    )


def honest_questions() -> Iterator[AboutPeople]:
    """Every variable for everybody and by each grouping, described and in a table."""
    for variable in VARIABLES:
        yield MomentsQuestion(variable=variable)
        for by, groups in GROUPINGS.items():
            yield MomentsQuestion(variable=variable, by=by, groups=groups)
        yield LatticeQuestion(variable=variable, by="arm", groups=GROUPINGS["arm"])


def answered_in_full(center: Center, question: AboutPeople) -> bool:
    """Whether every group that was asked for is answered."""
    aggregate = ask(center, question)
    answer = aggregate.get("groups") or aggregate.get("moments") or ()
    return len(answer) == len(question.groups or ("all",))


def availability(seed: int, odd: tuple[str, ...]) -> tuple[int, int]:
    """How many honest questions are answered after these conditions on each variable, of all."""
    center = open_center(clinic(np.random.default_rng(seed)))
    for variable in VARIABLES:
        for where in odd:
            ask(center, SizesQuestion(variable=variable, where=where))
    answer = [answered_in_full(center, question) for question in honest_questions()]
    return sum(answer), len(answer)


def main(runs: int) -> None:
    """Print the table."""
    reduce = strongest()
    print("lattices by " + ("the tests' own reduction" if reduce is reduced else "fpylll"))
    print(LINE.format("attack", "runs", "right/claimed", "to find", "s"))
    for name, times, attack in attacks(runs, reduce):
        began = time.perf_counter()
        result = total(attack(np.random.default_rng(seed)) for seed in range(times))
        seconds = f"{time.perf_counter() - began:.0f}"
        shown = f"{result.right}/{result.claimed}"
        print(LINE.format(name, times, shown, result.tried, seconds), flush=True)
    for people in (30, 120):
        off = [copy_attack(np.random.default_rng(seed), people) for seed in range(runs)]
        print(f"a copy without one value, {people} people: off by {np.median(off):.2g} SD")
    for name, odd in (("nobody else", ()), ("one `age > 31`", ODD[:1]), ("eight odd ones", ODD)):
        answer, of = np.sum([availability(seed, odd) for seed in range(3)], axis=0)
        print(f"honest questions answered in full after {name} per variable: {answer} of {of}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
