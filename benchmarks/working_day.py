"""A normal working day: thirty questions to one federation, and how many of them are answered.

    python -m benchmarks.working_day

Five synthetic hospitals of 60 to 700 people, K = 10: two arms, two sexes, ages, three biomarkers. A
question counts as answered if every center answers it in full, as partly answered if some centers
or groups are refused, and as refused if nobody answers.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from unpooled import Federation
from unpooled.errors import RefusedError

HOSPITALS = {"Haifa": 700, "Lausanne": 400, "Bern": 250, "Porto": 120, "Ghent": 60}

METHOD = "parallel"

Ask = Callable[[Federation], Any]
QUESTIONS: dict[str, Ask] = {
    "describe crp": lambda fed: fed.describe("crp"),
    "describe crp by arm": lambda fed: fed.describe("crp", by="arm"),
    "compare crp by arm": lambda fed: fed.compare("crp", by="arm"),
    "quantiles of crp by arm": lambda fed: fed.quantiles("crp", by="arm", method=METHOD),
    "quantiles of crp": lambda fed: fed.quantiles("crp", method=METHOD),
    "table of crp by arm": lambda fed: fed.table("crp", by="arm", method=METHOD),
    "describe crp by sex": lambda fed: fed.describe("crp", by="sex"),
    "compare crp by sex": lambda fed: fed.compare("crp", by="sex"),
    "quantiles of crp by sex": lambda fed: fed.quantiles("crp", by="sex", method=METHOD),
    "describe crp of the old": lambda fed: fed.describe("crp", where="age >= 65"),
    "compare crp by arm, the old": lambda fed: fed.compare("crp", by="arm", where="age >= 65"),
    "describe crp by arm, women": lambda fed: fed.describe("crp", by="arm", where="sex == 'F'"),
    "compare crp by arm, women": lambda fed: fed.compare("crp", by="arm", where="sex == 'F'"),
    "quantiles of crp, women": lambda fed: fed.quantiles("crp", where="sex == 'F'", method=METHOD),
    "compare crp by arm again": lambda fed: fed.compare("crp", by="arm"),
    "describe ldl by arm": lambda fed: fed.describe("ldl", by="arm"),
    "describe ldl": lambda fed: fed.describe("ldl"),
    "quantiles of ldl": lambda fed: fed.quantiles("ldl", method=METHOD),
    "compare ldl by arm": lambda fed: fed.compare("ldl", by="arm"),
    "table of ldl by sex": lambda fed: fed.table("ldl", by="sex", method=METHOD),
    "compare ldl by sex": lambda fed: fed.compare("ldl", by="sex"),
    "describe ldl of the old by sex": lambda fed: fed.describe("ldl", by="sex", where="age >= 65"),
    "quantiles of ldl by arm": lambda fed: fed.quantiles("ldl", by="arm", method=METHOD),
    "describe los by sex": lambda fed: fed.describe("los", by="sex"),
    "describe los": lambda fed: fed.describe("los"),
    "compare los by arm, by table": lambda fed: fed.compare("los", by="arm", method=METHOD),
    "quantiles of los by sex": lambda fed: fed.quantiles("los", by="sex", method=METHOD),
    "table of los": lambda fed: fed.table("los", method=METHOD),
    "describe los of the old": lambda fed: fed.describe("los", where="age >= 65"),
    "compare los by sex": lambda fed: fed.compare("los", by="sex"),
}


def federation(seed: int = 1) -> Federation:
    """The five hospitals."""
    frames = {}
    for number, (name, size) in enumerate(HOSPITALS.items()):
        random = np.random.default_rng([seed, number])
        arm = random.choice(["control", "patient"], size, p=[0.45, 0.55])
        shift = 0.4 * (arm == "patient")
        frames[name] = pl.DataFrame(
            {
                "crp": np.round(random.gamma(4, 1, size) * np.exp(shift), 2),
                "ldl": np.round(random.normal(3.2 + shift, 0.9, size), 2),
                "los": np.ceil(random.gamma(2, 3, size)),
                "arm": arm,
                "sex": random.choice(["F", "M"], size),
                "age": random.integers(30, 95, size),
            }
        )
    return Federation.local(frames, k=10, seed=seed)


def outcome(ask: Ask, fed: Federation) -> tuple[str, list[str]]:
    """Answered, partly or refused; and by whom for what."""
    try:
        result = ask(fed)
    except RefusedError as refused:
        return "refused", [f"{r.center}: {r.reason}" for r in refused.refusals]
    refusals = [
        f"{r.center}{f', {r.group}' if r.group else ''}: {r.reason}" for r in result.refusals
    ]
    return ("partly" if refusals else "answered"), refusals


def main() -> None:
    """Ask them in order and print how each fared."""
    fed, counted = federation(), Counter[str]()
    for number, (name, ask) in enumerate(QUESTIONS.items(), 1):
        how, refusals = outcome(ask, fed)
        counted[how] += 1
        print(f"{number:>2}  {name:<34} {how:<9} {'; '.join(refusals)}", flush=True)
    print(
        f"\nOf {len(QUESTIONS)} questions: {counted['answered']} answered by every center, "
        f"{counted['partly']} by some, {counted['refused']} refused."
    )


if __name__ == "__main__":
    main()
