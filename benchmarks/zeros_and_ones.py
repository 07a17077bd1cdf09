"""How many means of 0 and 1 are told: python -m benchmarks.zeros_and_ones.

Five hospitals of 60 to 700 people, K = 10; 5, 15, 30 and 50 % ones; ten questions in ten random
orders each. Counted are the means that hospitals tell, group by group.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from unpooled import Federation
from unpooled.errors import RefusedError
from unpooled.results.numbers.describe import DescribeResult

HOSPITALS = {"Haifa": 700, "Lausanne": 400, "Bern": 250, "Porto": 120, "Ghent": 60}
SHARES = (0.05, 0.15, 0.3, 0.5)
ORDERS = 10
PARALLEL = "parallel"

Ask = Callable[[Federation], Any]
QUESTIONS: tuple[Ask, ...] = (  # six means, beside ranks, tables and quantiles
    lambda fed: fed.describe("died"),
    lambda fed: fed.describe("died", by="arm"),
    lambda fed: fed.describe("died", by="sex"),
    lambda fed: fed.describe("died", where="age >= 65"),
    lambda fed: fed.compare("died", by="arm"),
    lambda fed: fed.compare("died", by="sex"),
    lambda fed: fed.table("died", method=PARALLEL),
    lambda fed: fed.table("died", by="arm", method=PARALLEL),
    lambda fed: fed.quantiles("died", method=PARALLEL),
    lambda fed: fed.quantiles("died", by="sex", method=PARALLEL),
)
MEANS = 6


def federation(share: float, seed: int) -> Federation:
    """The five hospitals."""
    frames = {}
    for number, (name, size) in enumerate(HOSPITALS.items()):
        random = np.random.default_rng([seed, number, round(100 * share)])
        frames[name] = pl.DataFrame(
            {
                "died": (random.random(size) < share).astype(int),
                "arm": random.choice(["control", "patient"], size),
                "sex": random.choice(["F", "M"], size),
                "age": random.integers(30, 95, size),
            }
        )
    return Federation.local(frames, k=10, seed=seed)


def means(share: float, order: int) -> int:
    """How many means are told in one order."""
    mixed, count = np.random.default_rng(order).permutation(len(QUESTIONS)), 0
    with federation(share, order) as fed:
        for question in mixed.tolist():
            try:
                result = QUESTIONS[question](fed)
            except RefusedError:
                continue
            if isinstance(result, DescribeResult):
                count += sum(group.mean is not None for group in result.centers)
    return count


def main() -> None:
    """Print a line for each share of ones."""
    every = 0
    for share in SHARES:
        answer = sum(means(share, order) for order in range(ORDERS))
        every += answer
        print(f"{share:>5.0%} ones: {answer:>5} means released", flush=True)
    most = len(SHARES) * ORDERS * len(HOSPITALS) * MEANS
    print(f"together: {every} of {most:,}")


if __name__ == "__main__":
    main()
