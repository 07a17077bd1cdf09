"""How near a book's answers are to pooled ones, and whether tests within strata keep their level.

python -m benchmarks.book accuracy
python -m benchmarks.book strata 200
python -m benchmarks.book time
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars

from unpooled import Book, Federation
from unpooled.maths.ranks.mann_whitney import rank_statistics

GROUPS = [
    {"name": "arm", "levels": ["control", "patient"]},
    {"name": "sex", "levels": ["F", "M"]},
    {"name": "age_band", "of": "age", "cuts": [65]},
]
SIZES = {"one center": (900,), "four centers": (300, 240, 180, 120)}


def five_variables(random: np.random.Generator, sizes: tuple[int, ...]) -> polars.DataFrame:
    """A normal, a lognormal, a rounded, a skewed and a two-peaked variable, with effects."""
    parts = []
    for number, n in enumerate(sizes):
        arm, sex = random.integers(0, 2, n), random.integers(0, 2, n)
        effect = 0.35 * arm + 0.2 * sex
        parts.append(
            polars.DataFrame(
                {
                    "center": f"center {number}",
                    "arm": np.where(arm == 1, "patient", "control"),
                    "sex": np.where(sex == 1, "M", "F"),
                    "age": random.normal(63, 13, n).round(),
                    "pressure": random.normal(130 + 12 * effect, 18),
                    "crp": np.exp(random.normal(1.5 + effect, 0.8)).round(1),
                    "score": np.clip(random.normal(12 + 4 * effect, 5), 0, 27).round(),
                    "stay": random.gamma(1.5, 4 * np.exp(effect)).round(1),
                    "t": random.normal(effect + 3 * random.integers(0, 2, n), 0.7),
                }
            )
        )
    return polars.concat(parts)


VARIABLES = ("pressure", "crp", "score", "stay", "t")
SUBGROUPS: tuple[dict[str, str], ...] = (
    {},
    {"sex": "F"},
    {"sex": "M"},
    {"age_band": "under 65"},
    {"age_band": "65 and over"},
    {"sex": "F", "age_band": "65 and over"},
    {"sex": "M", "age_band": "under 65"},
)


def accuracy(runs: int = 3) -> None:
    """P(Y > X) within centers beside that of the people themselves, in standard errors."""
    for name, sizes in SIZES.items():
        errors = []
        for seed in range(runs):
            frame = five_variables(np.random.default_rng([7, seed]), sizes)
            plan = {"title": "a", "groups": GROUPS, "variables": {name: {} for name in VARIABLES}}
            book = Federation.split(frame, center="center", seed=seed).run(plan)
            for variable in VARIABLES:
                for where in SUBGROUPS:
                    errors += _errors(book, frame, variable, where)
        size = np.abs(errors)
        print(
            f"{name}: {len(size)} comparisons, off by {np.median(size):.3f} SE in the median, "
            f"{np.quantile(size, 0.95):.3f} in 95 %, {size.max():.3f} at most"
        )


def _errors(
    book: Book, frame: polars.DataFrame, variable: str, where: dict[str, str]
) -> list[float]:
    people = frame
    for grouping, level in where.items():
        over = polars.col("age") >= 65
        chosen = polars.col("sex") == level if grouping == "sex" else over == (level != "under 65")
        people = people.filter(chosen)
    result = book.compare(variable, by="arm", where=where)
    errors = []
    for center in result.centers:
        part = people.filter(center=center.center)
        x, y = (part.filter(arm=arm)[variable].sort().to_numpy() for arm in result.groups)
        truth = rank_statistics(x, y)
        answer = center.pairs["control", "patient"]
        if (answer.n_x, answer.n_y) == (truth.n_x, truth.n_y):  # nothing was merged
            errors.append((answer.effect - truth.effect) / truth.effect_variance**0.5)
    return errors


def confounded(random: np.random.Generator, effect: float) -> polars.DataFrame:
    """Older people and men are higher, and are more often patients."""
    parts = []
    for number, n in enumerate((900, 700, 500)):
        male, old = random.random(n) < 0.5, random.random(n) < 0.5
        patient = random.random(n) < 0.25 + 0.25 * male + 0.25 * old
        crp = np.exp(random.normal(1 + 0.4 * male + 0.4 * old + effect * patient, 0.8))
        age = np.where(old, random.uniform(65, 90, n), random.uniform(40, 65, n)).round()
        parts.append(
            polars.DataFrame(
                {
                    "center": f"center {number}",
                    "arm": np.where(patient, "patient", "control"),
                    "sex": np.where(male, "M", "F"),
                    "age": np.where(old, np.maximum(age, 65), np.minimum(age, 64)),
                    "crp": crp.round(2),
                }
            )
        )
    return polars.concat(parts)


def strata(runs: int = 200) -> None:
    """How often the tests reject at .05 without an effect, and cover one."""
    plan: dict[str, Any] = {"title": "s", "groups": GROUPS, "variables": {"crp": {}}}
    within, without, off = [], [], []
    covered = []
    truth = _true_effect(0.3)
    for seed in range(runs):
        frame = confounded(np.random.default_rng([11, seed]), 0.0)
        book = Federation.split(frame, center="center", seed=seed).run(plan)
        adjusted = book.compare("crp", by="arm", strata=["sex", "age_band"])
        within.append(adjusted.test.p_value < 0.05)
        without.append(book.compare("crp", by="arm").test.p_value < 0.05)
        off.append(adjusted.test.statistic - _van_elteren(frame))
        moved = confounded(np.random.default_rng([12, seed]), 0.3)
        book = Federation.split(moved, center="center", seed=seed).run(plan)
        effect = book.compare("crp", by="arm", strata=["sex", "age_band"]).effect
        covered.append(effect is not None and effect.low <= truth <= effect.high)
        if seed % 20 == 19:
            print(f"{seed + 1} runs: level {np.mean(within):.3f}, without strata "
                  f"{np.mean(without):.3f}, coverage {np.mean(covered):.3f}, z off by "
                  f"{np.median(np.abs(off)):.3f} in the median", flush=True)  # fmt: skip


def _van_elteren(frame: polars.DataFrame) -> float:
    """The same test on the people themselves."""
    weighted = squares = 0.0
    band = (polars.col("age") >= 65).alias("old")
    for _, part in frame.with_columns(band).group_by("center", "sex", "old"):
        x, y = (part.filter(arm=arm)["crp"].sort().to_numpy() for arm in ("control", "patient"))
        if len(x) and len(y):
            ranks = rank_statistics(x, y)
            weighted += len(x) * len(y) * ranks.u / ranks.variance
            squares += (len(x) * len(y)) ** 2 / ranks.variance
    return float(weighted / squares**0.5)


def _true_effect(effect: float) -> float:
    """P(Y > X) of two lognormal variables, so many SDs of .8 apart."""
    from scipy.special import ndtr

    return float(ndtr(effect / (0.8 * 2**0.5)))


def timing() -> None:
    """What analyses of a book cost after it was opened: five centers, ten variables."""
    random = np.random.default_rng(3)
    frame = five_variables(random, (1200, 900, 600, 400, 250))
    frame = frame.with_columns(polars.col(name).shuffle(1).alias(f"{name}2") for name in VARIABLES)
    names = [*VARIABLES, *(f"{name}2" for name in VARIABLES)]
    plan = {"title": "t", "groups": GROUPS, "variables": {name: {} for name in names}}
    fed = Federation.split(frame, center="center", seed=3)
    start = time.process_time()
    book = fed.run(plan)
    print(f"the run: {time.process_time() - start:.2f} s CPU, 1 round")
    analyses: dict[str, Callable[[], object]] = {
        "compare": lambda: book.compare("crp", by="arm", where={"sex": "F"}),
        "compare within strata": lambda: book.compare("crp", by="arm", strata=["sex"]),
        "quantiles": lambda: book.quantiles("crp", by="arm"),
        "table 1 of ten variables": lambda: book.table1(by="arm"),
    }
    for name, ask in analyses.items():
        took = []
        for _ in range(3):
            start = time.process_time()
            ask()
            took.append(1000 * (time.process_time() - start))
        print(f"{name}: first {took[0]:.0f} ms, then {min(took[1:]):.0f} ms CPU")


def main() -> None:
    """One of the three, by name."""
    what = sys.argv[1] if len(sys.argv) > 1 else "accuracy"
    if what == "strata":
        strata(int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    elif what == "time":
        timing()
    else:
        accuracy()


if __name__ == "__main__":
    main()
