"""How often the 95 % intervals of effect and shift hold the truth: python -m benchmarks.coverage.

Each run draws the paper's ten centers (or three, or one) with a shift between the groups, and
compares through the federation; the share of intervals that hold the truth is printed.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import norm

from unpooled import Federation
from unpooled.maths.arrays import FloatArray
from unpooled.maths.effect import Interval

SIZES = {
    1: (300,),
    3: (698, 476, 326),
    10: (307, 250, 208, 172, 143, 118, 98, 81, 67, 56),
}
SHIFTS = (0.0, 0.25, 1.0)
BAND = (0.93, 0.97)
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
    """How many intervals there were, and how many held the truth."""

    told: int = 0
    held: int = 0

    def count(self, interval: Interval | None, truth: float) -> None:
        """Count an interval; None is one that the table was too coarse for."""
        if interval is not None:
            self.told += 1
            self.held += interval.low <= truth <= interval.high

    def __str__(self) -> str:
        return f"{self.held / self.told:.3f} of {self.told}" if self.told else "none told"

    @property
    def within(self) -> bool:
        """Whether the share that held the truth lies in the band."""
        return not self.told or BAND[0] <= self.held / self.told <= BAND[1]


def tally(family: Family, sizes: tuple[int, ...], shift: float, runs: int) -> tuple[Tally, Tally]:
    """The effect's and the shift's intervals over many runs."""
    truth = family.effect(shift)
    effect, moved = Tally(), Tally()
    for run in range(runs):
        random = np.random.default_rng([20261115, run])
        frames = {}
        for i, n in enumerate(sizes):
            values = np.concatenate([family.draw(random, n), family.draw(random, n) + shift])
            frames[f"c{i}"] = pl.DataFrame({"v": values, "g": ["x"] * n + ["y"] * n})
        methods = ["weighted", "table"]
        result = Federation.local(frames, seed=run).compare("v", by="g", method=methods)
        effect.count(result.effect, truth)
        moved.count(result.shift, shift)
    return effect, moved


def lines(runs: int) -> Iterator[str]:
    """A line per setting."""
    yield f"{'family':<10} {'centers':>7} {'shift':>6}  {'effect':<16} {'shift':<16}"
    for name, family in FAMILIES.items():
        for centers, sizes in SIZES.items():
            for shift in SHIFTS:
                effect, moved = tally(family, sizes, shift, runs)
                verdict = "ok" if effect.within and moved.within else "outside .93-.97"
                yield f"{name:<10} {centers:>7} {shift:>6}  {effect!s:<16} {moved!s:<16} {verdict}"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        print(line, flush=True)
