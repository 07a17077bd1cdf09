"""How far the draws for missing values move means and tests: python -m benchmarks.missing [RUNS].

A hospital of 304 people in two arms that differ by .8 SD; of one arm 9 of 152 have no value. Told
means and P(Y > X) less those of the people who have a value, in standard errors: bias and SD.

Then another way: the mean of those who have a value, beside the count of all. Of a column and its
copy that lacks one value, it gives that value; the table says how far off, in SDs.
"""

import sys
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import polars as pl

from unpooled import Federation
from unpooled.center.cohort import people
from unpooled.maths.arrays import FloatArray
from unpooled.maths.moments import MeanSD
from unpooled.maths.precision import round_mean_sd

SIZE, LACKING, SHIFT = 152, 9, 0.8


def hospital(random: np.random.Generator) -> pl.DataFrame:
    """Two arms, of which the second has higher values; sex has nothing to do with them."""
    value = np.round(np.append(random.normal(0, 1, SIZE), random.normal(SHIFT, 1, SIZE)), 3)
    gone = SIZE + random.choice(SIZE, LACKING, replace=False)
    kept = [None if i in gone else x for i, x in enumerate(value.tolist())]
    arms = ["a"] * SIZE + ["b"] * SIZE
    return pl.DataFrame({"x": kept, "arm": arms, "sex": random.choice(["F", "M"], 2 * SIZE)})


def off(seed: int) -> tuple[float, float, float]:
    """How far mean, SD and P(Y > X) are off, in standard errors."""
    rows = hospital(np.random.default_rng(seed))
    y = rows.filter(pl.col("arm") == "b")["x"].drop_nulls().to_numpy()
    x = rows.filter(pl.col("arm") == "a")["x"].to_numpy()
    with Federation.local({"Bern": rows}, k=10, seed=seed) as fed:
        group = fed.describe("x", by="arm").to_dict()["groups"][1]
        effect = fed.compare("x", by="arm", groups=("a", "b"), method="weighted").to_dict()
    above = (x[:, None] < y).mean()
    placed = [(x < one).mean() for one in y], [(y > one).mean() for one in x]
    error = np.sqrt(sum(np.var(place, ddof=1) / len(place) for place in placed))
    return (
        float((group["mean"] - y.mean()) / (y.std(ddof=1) / np.sqrt(len(y)))),
        float((group["sd"] - y.std(ddof=1)) / (y.std(ddof=1) / np.sqrt(2 * len(y)))),
        float((effect["effect"]["estimate"] - above) / error),
    )


def guess_error(seed: int, size: int) -> float:
    """How far off the value is that a copy lacks, where its mean is of those who have one."""
    values = np.random.default_rng(seed).normal(0, 1, size)
    everybody = round_mean_sd(MeanSD.of(values)).mean
    others = round_mean_sd(MeanSD.of(values[1:])).mean
    return float(abs(size * everybody - (size - 1) * others - values[0]))


def _print(title: str, runs: Sequence[tuple[float, ...]]) -> None:
    each: FloatArray = np.array(runs).T
    columns = "   ".join(f"{one.mean():>6.2f} {one.std(ddof=1):>5.2f}" for one in each)
    print(f"{title:<28}{columns}", flush=True)


def main(runs: int) -> None:
    """Print both tables."""
    print(f"{'bias and SD, in errors of':<28}{'mean':>8}{'SD':>15}{'P(Y > X)':>17}")
    with patch.object(people, "MOST_PEOPLE", 0):
        _print("draws from everybody", [off(seed) for seed in range(runs)])
    _print("draws from people alike", [off(seed) for seed in range(runs)])
    for size in (30, 120, 300):
        far = np.median([guess_error(seed, size) for seed in range(10 * runs)])
        print(
            f"means of those with a value: {size} people, the value that a copy lacks ± {far:.2f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
