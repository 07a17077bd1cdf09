"""How often tests reject without an effect, in small groups: python -m benchmarks.table_level.

Each run draws two groups alike at every center, of ordinary values, of whole ones or of zeros and
ones, and compares them through the federation. Printed: how often p < .05 by the table's test, by a
test that takes the chain's own counts for people (as the paper does), by weighted, and by SciPy's
test of the pooled people; last, the share of runs that weighted answered. Arguments: [RUNS] [SEED].
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from unpooled import Federation
from unpooled.errors import RefusedError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import table_test

Draw = Callable[[np.random.Generator, int, float], FloatArray]


def _normal(random: np.random.Generator, n: int, at: float) -> FloatArray:
    return random.normal(at, 1, n)


def _ages(random: np.random.Generator, n: int, at: float) -> FloatArray:
    return random.normal(60 + 12 * at, 12, n).round()


def _ones(share: float) -> Draw:
    return lambda random, n, at: (random.random(n) < share * (1 + at)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Setting:
    """A line of the table: the groups' sizes at each center, and where centers lie."""

    name: str
    draw: Draw
    sizes: tuple[int, int]
    levels: tuple[float, ...]


SETTINGS = (
    Setting("normal", _normal, (65, 65), (0.0,) * 5),
    Setting("normal", _normal, (100, 20), (0.0,) * 5),
    Setting("normal", _normal, (100, 30), (0.0,) * 5),
    Setting("normal", _normal, (300, 40), (0.0,) * 5),
    Setting("normal, centers 1 SD apart", _normal, (100, 40), (0.0, 1.0, 2.0)),
    Setting("ages in years", _ages, (150, 40), (0.0,) * 4),
    Setting("10 % ones", _ones(0.1), (150, 60), (0.0,) * 4),
    Setting("12 % ones", _ones(0.12), (200, 60), (0.0,) * 6),
    Setting("20 % ones", _ones(0.2), (60, 30), (0.0,) * 6),
)


def _run(setting: Setting, random: np.random.Generator, seed: int) -> list[float]:
    """The p-values; NaN where there is none."""
    people = {
        f"c{i}": [setting.draw(random, n, at) for n in setting.sizes]
        for i, at in enumerate(setting.levels)
    }
    frames = {
        name: pl.DataFrame({"v": np.concatenate(part), "g": np.repeat(["x", "y"], setting.sizes)})
        for name, part in people.items()
    }
    fed = Federation.local(frames, seed=seed)
    result = fed.compare("v", by="g", groups=("x", "y"), method=["weighted", "table"])
    computed = {test.method: test.p_value for test in result.methods}
    assert result.table is not None
    part = table_test(result.table.counts[0], result.table.counts[1], "two-sided").p_value
    x, y = (np.concatenate([groups[i] for groups in people.values()]) for i in (0, 1))
    pooled = stats.mannwhitneyu(x, y, use_continuity=False, method="asymptotic").pvalue
    return [computed.get("table", np.nan), part, computed.get("weighted", np.nan), float(pooled)]


def main(runs: int, seed: int) -> None:
    """Print the table."""
    print("| values | sizes | centers | table | chain's counts | weighted | pooled | answered |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for number, setting in enumerate(SETTINGS):
        rows = []
        for run in range(runs):
            try:
                rows.append(_run(setting, np.random.default_rng([seed, number, run]), run))
            except RefusedError:
                continue
        p = np.array(rows)
        answer = ~np.isnan(p)
        rejected = ((p < 0.05) & answer).sum(axis=0) / np.maximum(answer.sum(axis=0), 1)
        cells = " | ".join(f"{rate:.3f}" for rate in rejected)
        sizes, answered = "/".join(map(str, setting.sizes)), answer[:, 2].sum() / runs
        line = f"| {setting.name} | {sizes} | {len(setting.levels)} | {cells} | {answered:.2f} |"
        print(line, flush=True)


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*(given + [300, 20261127][len(given) :]))
