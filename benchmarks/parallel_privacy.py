"""What a curious coordinator learns from tables: python -m benchmarks.parallel_privacy [RUNS].

Attacks on one center's table with everything public known. Printed per family and size, in SDs:
the median error per record of the best of five reconstructions (people spread evenly in their
cells; the people that this method places; the normal scores of the counts interpolated; the mean of
the last with either), beside the same attacks on the paper's own table (random boundaries,
buffers); the median error on the maximum; and the share of boundaries that are no lattice points,
which must be 0.
"""

import sys

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.density.placing import place
from unpooled.maths.density.smoothing import middles
from unpooled.maths.lattice.cells import Moments
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable
from unpooled_study.parallel.populations import EVERY
from unpooled_study.simulations.families import Random

FAMILIES = ("gamma 4", "normal", "lognormal", "t3")
SIZES = (56, 307, 698)
TOLD: tuple[Moments, ...] = ("all", "tails")  # without moments two open cells place nobody
K = 10


def paper_table(x: FloatArray, random: Random) -> tuple[FloatArray, IntArray]:
    """Cells of exactly K from the left, w·a + (1 − w)·v between them, mean gaps as buffers."""
    ranks = np.arange(1, len(x) // K) * K
    w = random.random(len(ranks))
    inner = w * x[ranks - 1] + (1 - w) * x[ranks]
    first, last = x[:K], x[ranks[-1] :]
    low = x[0] - (first[-1] - first[0]) / (len(first) - 1)
    high = x[-1] + (last[-1] - last[0]) / (len(last) - 1)
    counts = np.diff(np.concatenate(([0], ranks, [len(x)])))
    return np.concatenate(([low], inner, [high])), counts


def evenly(edges: FloatArray, counts: IntArray) -> FloatArray:
    """People spread evenly over their cells."""
    reached = np.concatenate(([0], np.cumsum(counts)))
    return np.interp(np.arange(reached[-1]) + 0.5, reached, edges)


def by_scores(edges: FloatArray, counts: IntArray) -> FloatArray:
    """The limits interpolated against the normal scores of the counts up to them."""
    n = int(counts.sum())
    reached = np.concatenate(([0.3], np.cumsum(counts)[:-1], [n - 0.3])) / n
    return np.asarray(PchipInterpolator(ndtri(reached), edges)(ndtri((np.arange(n) + 0.5) / n)))


def by_place(table: LatticeTable, lattice: Lattice) -> FloatArray:
    """The pseudo-people that the parallel method itself makes of a table."""
    people = place([table], lattice)
    levels = (np.arange(table.people) + 0.5) / table.people
    return np.interp(levels, middles(people.weights), people.values)


def attacks(
    x: FloatArray, edges: FloatArray, counts: IntArray, *guesses: FloatArray
) -> list[float]:
    """The median error per record of each guess, by normal scores, and of the mean of the two."""
    scores = by_scores(edges, counts)
    every = [*guesses, scores, *((guess + scores) / 2 for guess in guesses)]
    return [float(np.median(np.abs(guess - x))) for guess in every]


def one(name: str, n: int, moments: Moments, random: Random) -> tuple[FloatArray, ...]:
    """Errors against our table, against the paper's, on the maximum; boundaries off the lattice."""
    family = EVERY[name]
    lattice = family.lattice()
    x = np.sort(family.draw(random, n))
    edges, counts = paper_table(x, random)
    nothing = np.full(len(counts), np.nan)
    seen = LatticeTable(edges[1:-1], counts, nothing, nothing)
    buffers = Lattice(lattice.step, lower=float(edges[0]), upper=float(edges[-1]))
    paper = attacks(x, edges, counts, evenly(edges, counts), by_place(seen, buffers))
    table = lattice_table(x, lattice, K, keyed_draws(random.bytes(32), name), moments)
    placed = by_place(table, lattice)
    limits = np.concatenate(([placed[0]], table.edges, [placed[-1]]))
    limits = np.maximum.accumulate(limits + 1e-9 * np.arange(len(limits)))
    ours = attacks(x, limits, table.counts, evenly(limits, table.counts), placed)
    off = np.abs(table.edges - lattice.snap(table.edges)).max(initial=0.0) > 1e-9
    return np.array(ours), np.array(paper), np.array([abs(placed[-1] - x[-1])]), np.array([off])


def main(runs: int, seed: int) -> None:
    """Print the table."""
    print(f"{runs} runs a line, K = {K}, seed {seed}; errors in SDs")
    print("family        n  tell   per record   paper's   ratio   maximum   off the lattice")
    for name in FAMILIES:
        sample = EVERY[name].draw(np.random.default_rng(1), 100_000)
        sd = float(sample.std())
        for n in SIZES:
            for moments in TOLD:
                result = [
                    one(name, n, moments, np.random.default_rng([seed, n, run]))
                    for run in range(runs)
                ]
                ours, paper, top, off = (np.array(part) for part in zip(*result, strict=True))
                best, theirs = (np.median(part, axis=0).min() / sd for part in (ours, paper))
                print(
                    f"{name:<10}{n:>5}  {moments:<6} {best:>9.4f} {theirs:>9.4f} "
                    f"{best / theirs:>7.2f} {np.median(top) / sd:>9.2f} {off.mean():>9.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*(given + [200, 20261203][len(given) :]))
