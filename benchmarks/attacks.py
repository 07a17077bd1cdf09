"""Attacks on one center's honest answers, at scale: python -m benchmarks.attacks [RUNS [NAME ...]].

Each line: how many claims about fewer than K people are right, of how many made and how many there
were to find, and in how many runs (whole) every small count was right. Lattices are reduced further
where `fpylll` is installed (it is no dependency). The lines "exact" show that the decoder works on
exact numbers; the lines "counts alone" what the same attacker guesses of the same table without
its moments. The last lines tell what eight odd questions a variable by one person leave to others.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl
from tests.privacy.curious import Score, ask, open_center, total
from tests.privacy.lattice_attack import Reduce, Sums, Whole, reduced, whole_counts
from tests.privacy.linear_attack import claims
from tests.privacy.test_combinations import DECOYS, SMALL_K, asked, decoy_attack
from tests.privacy.test_decoding import (
    Random,
    days,
    digits_attack,
    dominance_attack,
    exact_sums,
    last_digit,
    near_a_guess,
    powers_attack,
    scores,
    shares,
    small_counts,
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
    PowersQuestion,
    SizesQuestion,
    TableQuestion,
)
from unpooled.center.questions.powers import GRID
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.cells import units
from unpooled.maths.lattice.lattice import public_lattice
from unpooled.maths.quantiles.yeo_johnson import transform

RUNS = 100
SLOW = 20  # runs of attacks that ask dozens of questions, and of the control
BLOCK = 20  # of the stronger reduction
LINE = "{:<62} {:>5} {:>14} {:>8} {:>6} {:>5}"


def ages(random: Random, people: int) -> FloatArray:
    """Ages of 18 to 95 in whole years."""
    return np.clip(random.normal(60, 12, people).round(), 18.0, 95.0)


class Decoder(Protocol):
    """Draws a center's answers about these values of a scale, and claims how many have each."""

    def __call__(self, values: FloatArray, scale: FloatArray, *, reduce: Reduce) -> Score: ...


Known = Literal["told", "counts", "exact"]

CELLS: tuple[tuple[str, str, Known], ...] = (
    ("tails", "tails", "told"),
    ("tails, counts alone", "tails", "counts"),
    ("all", "all", "told"),
    ("all, counts alone", "all", "counts"),
    ("all, exact moments", "all", "exact"),
)


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
    decoders: tuple[tuple[str, Decoder], ...] = (
        ("exact moments at seven λ", exact_attack),
        ("yj-likelihood", partial(powers_attack, method="yj-likelihood")),
        ("yj-grid", partial(powers_attack, method="yj-grid")),
        ("paper_iteration = true", allowed_attack),
        *(
            (f"cells, {name}", partial(cells_attack, moments=moments, knowing=knowing))
            for name, moments, knowing in CELLS
        ),
    )
    for scale in SCALES:
        for name, decoder in decoders:
            times = slow if decoder is exact_attack else runs

            def decoded(random: Random, scale: Scale = scale, decoder: Decoder = decoder) -> Score:
                return decoder(scale.draw(random, scale.people), scale.values, reduce=reduce)

            yield f"{name}: {scale.name}, {scale.people} people", times, decoded
    yield "ties in the variance of U", runs, ties_attack
    yield "ranks together with a window", runs, partial(windows_attack, chosen_by="crp")
    yield (
        "ranks together with a window in another unit",
        runs,
        partial(windows_attack, chosen_by="nmol"),
    )
    yield "digits of a mean", runs, digits_attack
    yield "a mean that one person dominates", runs, dominance_attack
    yield "mean and SD of fourfold dilutions", runs, titres_attack
    yield "raised K: size of a refused group", runs, size_attack
    yield "raised K: a value by halves", slow, bisection_attack
    for variable in ("hiv", "copies"):
        for kind in ("ranks", "describe"):
            once = partial(carrier_attack, variable=variable, kind=kind, again=False)
            yield f"who is a carrier, by {kind} of {variable}", runs, once
    yield "too small or not: who completes a set", runs, completed_attack
    for kind in KINDS:
        yield f"two columns, {kind}: an attribute", runs, partial(attribute_attack, kind=kind)
    yield "fresh columns: a value by halves", slow, fresh_columns_attack
    yield "items and their sum", runs, items_attack
    yield "groups of two columns: a small group", runs, refused_group_attack
    yield (
        "chain table together with a condition",
        runs,
        partial(between_attack, table=TableQuestion),
    )
    yield (
        "lattice table together with a condition",
        runs,
        partial(between_attack, table=LatticeQuestion),
    )
    yield "deaths behind two decoys", runs, partial(decoy_attack, decoys=DECOYS)
    yield f"random sequences, K = {SMALL_K}", runs, sequence_attack


# --- moments of many kinds, decoded to whole numbers of people ----------------------------------


def even_guess(values: FloatArray, scale: FloatArray) -> FloatArray:
    """Counts of a normal distribution with the people's mean and SD: where an attacker begins."""
    density = np.exp(-0.5 * ((scale - values.mean()) / values.std()) ** 2)
    return np.asarray(np.maximum(len(values) * density / density.sum(), 0.02))


def exact_attack(values: FloatArray, scale: FloatArray, reduce: Reduce) -> Score:
    """Exact sums at seven λ: the control, which no center gives."""
    sums = exact_sums(values, scale)
    claimed = near_a_guess(sums, even_guess(values, scale), reduce)
    return small_counts(claimed, shares(values, scale))


def allowed_attack(values: FloatArray, scale: FloatArray, reduce: Reduce) -> Score:
    """A policy that turns the paper's own iteration on: moments at all λ of the public grid."""
    center = open_center(pl.DataFrame({"v": values}), free=False, paper_iteration=True)
    groups = ask(center, PowersQuestion(variable="v", lambdas=GRID)).get("groups", ())
    claimed = None
    if groups:
        answer = groups[0]
        people, logs = answer["n"], answer["log_sum"]
        rows = [(scale * 0 + 1, people, 0.05), (transform(scale, 0.0), logs, last_digit(logs))]
        for lam, mean, variance in zip(GRID, answer["means"], answer["variances"], strict=True):
            part = transform(scale, lam)
            rows.append((part, people * mean, people * last_digit(mean)))
            rows.append(((part - mean) ** 2, people * variance, people * last_digit(variance)))
        weights, sums, errors = (np.array(column) for column in zip(*rows, strict=True))
        guess = even_guess(values, scale)
        claimed = near_a_guess(Sums(weights, sums, errors), guess, reduce)
    return small_counts(claimed, shares(values, scale))


def cells_attack(
    values: FloatArray, scale: FloatArray, moments: str, knowing: Known, reduce: Reduce
) -> Score:
    """The table of the parallel round: counts, means and SDs of cells, decoded cell by cell.

    Where only the counts are known, or nothing fits, people are spread evenly over a cell.
    """
    center = open_center(pl.DataFrame({"v": values}), moments=moments)
    answer = ask(center, LatticeQuestion(variable="v"))
    truth = shares(values, scale)
    if not answer:
        return small_counts(None, truth)
    table = answer["groups"][0]["table"]
    edges, counts = np.array(table["edges"]), np.array(table["counts"])
    means, sds = (np.array(table[name], dtype=np.float64) for name in ("means", "sds"))
    lattice = public_lattice(answer["scale"], answer["resolution"])
    unit = units(edges, lattice, counts, sds)
    open_scale = lattice.open_scale(edges)
    claimed = np.zeros(len(scale), dtype=np.int64)
    cell, placed = np.searchsorted(edges, scale), np.searchsorted(edges, values)
    for at, people in enumerate(counts.tolist()):
        inside = np.flatnonzero(cell == at)
        guess = np.full(len(inside), people / len(inside))
        if sds[at] == 0:
            claimed[inside] = np.where(np.isclose(scale[inside], means[at]), people, 0)
            continue
        solved = None
        if knowing != "counts" and not np.isnan(means[at]):
            scaled = open_scale.at(at)
            x, there = scaled.forth(scale[inside]), scaled.forth(values[placed == at])
            mean, error = (means[at], unit.mean[at]) if knowing == "told" else (there.mean(), 1e-9)
            rows = [(x * 0 + 1, people, 1e-6), (x, people * mean, people * error / 2)]
            if not np.isnan(sds[at]):
                sd, far = (sds[at], unit.sd[at]) if knowing == "told" else (there.std(), 1e-9)
                off = people * (far * sd + error**2 / 4)
                rows.append(((x - mean) ** 2, people * sd**2, off))
            weights, sums, errors = (np.array(column) for column in zip(*rows, strict=True))
            solved = whole_counts(Sums(weights, sums, errors), guess, reduce)
        claimed[inside] = guess.round() if solved is None else solved
    return small_counts(claimed, truth)


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


def main(runs: int, parts: Sequence[str]) -> None:
    """Print the table, or of it the attacks whose name has one of these parts."""
    reduce = strongest()
    print("lattices by " + ("the tests' own reduction" if reduce is reduced else "fpylll"))
    print(LINE.format("attack", "runs", "right/claimed", "to find", "whole", "s"))
    for name, times, attack in attacks(runs, reduce):
        if not any(part in name for part in parts or [name]):
            continue
        began = time.perf_counter()
        each = [attack(np.random.default_rng(seed)) for seed in range(times)]
        result, whole = total(each), sum(s.right == s.claimed == s.tried > 0 for s in each)
        seconds = f"{time.perf_counter() - began:.0f}"
        shown = f"{result.right}/{result.claimed}"
        print(LINE.format(name, times, shown, result.tried, whole, seconds), flush=True)
    if parts:
        return
    for people in (30, 120):
        off = [copy_attack(np.random.default_rng(seed), people) for seed in range(runs)]
        print(f"a copy without one value, {people} people: off by {np.median(off):.2g} SD")
    for name, odd in (("nobody else", ()), ("one `age > 31`", ODD[:1]), ("eight odd ones", ODD)):
        answer, of = np.sum([availability(seed, odd) for seed in range(3)], axis=0)
        print(f"honest questions answered in full after {name} per variable: {answer} of {of}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS, sys.argv[2:])
