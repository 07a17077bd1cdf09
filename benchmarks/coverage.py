"""How often the 95 % intervals of effect and shift hold the truth: python -m benchmarks.coverage.

Each run draws the paper's ten centers (or three, or one) with a shift between the groups, and
takes the intervals with the functions that the federation uses, without its messages and ledgers
(they change no number). The share of intervals that hold the truth is printed, and how far the
estimate of the shift lies from the truth on average, in units of its standard deviation.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from scipy.stats import norm

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.effect import Interval, overall_effect
from unpooled.maths.ranks.shift import shift
from unpooled_study.simulations.methods import Federated

SIZES = {
    1: (300,),
    3: (698, 476, 326),
    10: (307, 250, 208, 172, 143, 118, 98, 81, 67, 56),
}
SHIFTS = (0.0, 0.25, 1.0)
BAND = (0.93, 0.97)
SEED = 20270301
Draw = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True, slots=True)
class Family:
    """A distribution, and P(Y > X) for Y shifted against X."""

    draw: Draw
    effect: Callable[[float], float]


def _lognormal_effect(shift: float) -> float:
    """By simulation once, since there is no closed form."""
    random = np.random.default_rng(0)
    x = np.sort(random.lognormal(0, 0.5, 400_000))
    y = random.lognormal(0, 0.5, 400_000) + shift
    return float(np.searchsorted(x, y).mean() / len(x))


FAMILIES = {
    "normal": Family(
        lambda random, n: random.normal(0, 1, n), lambda s: float(norm.cdf(s / np.sqrt(2)))
    ),
    "lognormal": Family(lambda random, n: random.lognormal(0, 0.5, n), _lognormal_effect),
}


@dataclass(slots=True)
class Tally:
    """How many intervals held the truth, and the estimates."""

    held: int = 0
    estimates: list[float] = field(default_factory=list)

    def count(self, interval: Interval | None, truth: float) -> None:
        """Count an interval; None is one for which the table told too little."""
        if interval is not None:
            self.estimates.append(interval.estimate)
            self.held += interval.low <= truth <= interval.high

    @property
    def intervals(self) -> int:
        """How many intervals there were."""
        return len(self.estimates)

    def bias(self, truth: float) -> float:
        """The mean error in standard deviations."""
        return float((np.mean(self.estimates) - truth) / np.std(self.estimates))

    def __str__(self) -> str:
        return (
            f"{self.held / self.intervals:.3f} of {self.intervals}"
            if self.intervals
            else "none given"
        )

    @property
    def within(self) -> bool:
        """Whether the share that held the truth lies in the band."""
        return not self.intervals or BAND[0] <= self.held / self.intervals <= BAND[1]


def tally(name: str, centers: int, moved: float, runs: int) -> tuple[Tally, Tally]:
    """The effect's and the shift's intervals over many runs; every cell has seeds of its own."""
    family, sizes = FAMILIES[name], SIZES[centers]
    truth = family.effect(moved)
    effects, shifts = Tally(), Tally()
    cell = crc32(f"{name} {centers} {moved:g}".encode())
    for run in range(runs):
        random = np.random.default_rng([SEED, cell, run])
        people = [[np.sort(family.draw(random, n) + s) for s in (0.0, moved)] for n in sizes]
        federated = Federated(people, 10, random)
        effects.count(overall_effect(federated.statistics), truth)
        shifts.count(_shift(federated), moved)
    return effects, shifts


def _shift(federated: Federated) -> Interval | None:
    result = federated.alike()
    if not result.keeps_shifts:
        return None
    try:
        return shift(federated.table.edges, *result.counts)
    except ValueError:
        return None


def lines(runs: int) -> Iterator[str]:
    """A line per setting."""
    yield f"{'family':<10} {'centers':>7} {'shift':>6}  {'effect':<16} {'shift':<16} {'bias':>6}"
    for name in FAMILIES:
        for centers in SIZES:
            for moved in SHIFTS:
                effects, shifts = tally(name, centers, moved, runs)
                verdict = "ok" if effects.within and shifts.within else "outside .93-.97"
                bias = f"{shifts.bias(moved):+.2f}" if shifts.intervals else ""
                answer = f"{effects!s:<16} {shifts!s:<16} {bias:>6}"
                yield f"{name:<10} {centers:>7} {moved:>6}  {answer}  {verdict}"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        print(line, flush=True)
