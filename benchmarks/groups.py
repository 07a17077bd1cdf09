"""Level and power of the tests of several groups: python -m benchmarks.groups [RUNS] [SEED].

Each run draws three to five groups in three or ten centers that differ among themselves, and
compares through the federation, once for any difference and once for a trend. Printed: how often
p < .05 by each method, and by the test on pooled data, which centers make too cautious or too bold.
In the settings "uneven" the last group is a fifth of the others, so that small centers refuse it.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
import polars as pl
from scipy import stats

from unpooled import Federation
from unpooled.maths.arrays import FloatArray

SIZES = {3: (349, 238, 163), 10: (154, 125, 104, 86, 72, 59, 49, 40, 34, 28)}  # people a group
METHODS = ("weighted", "sum", "fisher", "table", "pooled")
SPREAD = 0.2  # of the centers, in SD within a center
EFFECT = 0.1  # root of the sum of squared distances of the groups' means


@dataclass(frozen=True, slots=True)
class Setting:
    """A line of the table."""

    groups: int
    centers: int
    effect: float
    ties: bool = False
    uneven: bool = False

    @property
    def shifts(self) -> FloatArray:
        """Where the groups lie: evenly spaced, the same distance from no effect for any number."""
        place = np.arange(self.groups, dtype=np.float64) - (self.groups - 1) / 2
        return place * (self.effect / sqrt(float(place @ place)))

    def __str__(self) -> str:
        words = ["effect" if self.effect else "none"]
        words += ["ties"] * self.ties + ["uneven"] * self.uneven
        return f"{self.groups:>6} {self.centers:>7}  {', '.join(words):<15}"


def _draw(setting: Setting, random: np.random.Generator) -> dict[str, list[FloatArray]]:
    people = {}
    for number, size in enumerate(SIZES[setting.centers]):
        at = SPREAD * random.normal()
        sizes = [size] * setting.groups
        if setting.uneven:
            sizes[-1] = size // 5
        part = [
            random.normal(at + shift, 1, n) for shift, n in zip(setting.shifts, sizes, strict=True)
        ]
        people[f"c{number}"] = (
            [np.round(values * 2) / 2 for values in part] if setting.ties else part
        )
    return people


def _pooled(people: dict[str, list[FloatArray]]) -> tuple[float, float]:
    """Kruskal-Wallis and, as Kendall's test, Jonckheere-Terpstra on everybody together."""
    groups = [np.concatenate(part) for part in zip(*people.values(), strict=True)]
    place = np.repeat(np.arange(len(groups)), [len(part) for part in groups])
    trend = stats.kendalltau(place, np.concatenate(groups), method="asymptotic")
    return float(stats.kruskal(*groups).pvalue), float(trend.pvalue)


def _frame(groups: list[FloatArray]) -> pl.DataFrame:
    labels = [f"g{i}" for i, part in enumerate(groups) for _ in part]
    return pl.DataFrame({"v": np.concatenate(groups), "g": labels})


def rejected(setting: Setting, runs: int, seed: int) -> tuple[Counter[str], Counter[str]]:
    """How often each method rejects: any difference, then a trend."""
    differ: Counter[str] = Counter()
    trend: Counter[str] = Counter()
    groups = [f"g{i}" for i in range(setting.groups)]
    for run in range(runs):
        people = _draw(setting, np.random.default_rng([seed, setting.groups, setting.centers, run]))
        frames = {name: _frame(part) for name, part in people.items()}
        pooled = _pooled(people)
        with Federation.local(frames, seed=run) as fed:
            for ordered, count in ((False, differ), (True, trend)):
                result = fed.compare("v", by="g", groups=groups, ordered=ordered, method="all")
                p = {test.method: test.p_value for test in result.methods}
                p["pooled"] = pooled[ordered]
                count.update(method for method, value in p.items() if value < 0.05)
    return differ, trend


def settings() -> Iterator[Setting]:
    """The lines of the table: the level, then the power."""
    for effect in (0.0, EFFECT):
        for groups in (3, 4, 5):
            for centers in SIZES:
                yield Setting(groups, centers, effect)
        yield Setting(3, 10, effect, ties=True)
        yield Setting(3, 10, effect, uneven=True)


def lines(runs: int, seed: int) -> Iterator[str]:
    """A line per setting and test."""
    yield f"{'groups':>6} {'centers':>7}  {'':<15} {'test':<8}" + "".join(
        f"{m:>10}" for m in METHODS
    )
    for setting in settings():
        for name, each in zip(("differ", "trend"), rejected(setting, runs, seed), strict=True):
            yield f"{setting} {name:<8}" + "".join(f"{each[m] / runs:10.3f}" for m in METHODS)


if __name__ == "__main__":
    asked = [int(argument) for argument in sys.argv[1:]]
    for line in lines(*(asked + [500, 20261115][len(asked) :])):
        print(line, flush=True)
