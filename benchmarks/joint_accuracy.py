"""A joint center beside the pooled rows: 40 centers of 5 to 60 people.

python benchmarks/joint_accuracy.py [RUNS]: how far P(Y>X), quantiles and the log-rank statistic are
from those of all rows together, in standard errors, with a joint center and without it.
"""

import sys

import numpy as np
import polars as pl
from lifelines.statistics import logrank_test
from scipy import stats

from unpooled import Federation
from unpooled.analyses.protocols.book import Book
from unpooled.center.policy import Policy
from unpooled.center.questions import Grouping, Protocol, ProtocolOutcome, ProtocolVariable
from unpooled.errors import UnpooledError

K, CENTERS = 10, 40
PLAN = Protocol(
    title="40 centers",
    k=K,
    groups=(Grouping(name="arm", levels=("a", "b")),),
    variables={"crp": ProtocolVariable(kind="number", resolution=0.1, lower=0, upper=120)},
    survival=(ProtocolOutcome(time="months", event="died", event_is="1", horizon=48),),
)
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def frames(rng: np.random.Generator) -> dict[str, pl.DataFrame]:
    """Centers of 5 to 60 people; half of the runs have no effect."""
    effect = rng.choice([0.0, 0.25])
    result = {}
    for center in range(CENTERS):
        n = int(rng.integers(5, 61))
        arm = rng.choice(["a", "b"], n)
        shift = effect * (arm == "b")
        until = rng.exponential(40 * np.exp(-shift))
        censored = rng.uniform(5, 60, n)
        result[f"c{center}"] = pl.DataFrame(
            {
                "arm": arm,
                "crp": np.round(rng.gamma(2, 8, n) * np.exp(shift), 1).clip(0, 120),
                "months": np.round(np.minimum(until, censored), 1),
                "died": (until <= censored).astype(int),
            }
        )
    return result


def pooled(rows: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """Each number of all rows together, with its standard error."""
    x, y = (rows.filter(pl.col("arm") == arm)["crp"].to_numpy() for arm in "ab")
    u = stats.mannwhitneyu(y, x).statistic / (len(x) * len(y))
    result = {"P(Y>X)": (u, float(np.sqrt((len(x) + len(y) + 1) / (12 * len(x) * len(y)))))}
    for p in QUANTILES:
        low, high = (
            np.quantile(x, np.clip(p + d * np.sqrt(p * (1 - p) / len(x)), 0, 1)) for d in (-1, 1)
        )
        result[f"quantile {p:g}"] = float(np.quantile(x, p)), float((high - low) / 2)
    late = rows["months"] > 48
    times = rows["months"].clip(None, 48).to_numpy()
    events = (rows["died"].to_numpy() == 1) & ~late.to_numpy()
    first = (rows["arm"] == "a").to_numpy()
    chi2 = logrank_test(times[first], times[~first], events[first], events[~first]).test_statistic
    result["log-rank |z|"] = float(np.sqrt(chi2)), 1.0
    return result


def from_book(book: Book) -> dict[str, float]:
    """The same from a book; what it lacks is left out."""
    result: dict[str, float] = {}
    try:
        test = book.compare("crp", by="arm", method="parallel")
        assert test.effect is not None
        result["P(Y>X)"] = test.effect.estimate
        group = book.quantiles("crp", p=QUANTILES, by="arm")
        for one in group.to_dict()["quantiles"]:
            if one["group"] == "a" and one["estimate"] is not None:
                result[f"quantile {one['p']:g}"] = one["estimate"]
        chi2 = book.survival("months", event="died", by="arm").to_dict()["logrank"]["statistic"]
        result["log-rank |z|"] = float(np.sqrt(chi2))
    except UnpooledError as error:
        print(f"  {str(error).splitlines()[0]}")
    return result


def main(runs: int) -> None:
    """Print the mean error in standard errors, and how many centers count."""
    errors: dict[tuple[str, str], list[float]] = {}
    counted: dict[str, list[int]] = {"all joint": [], "small joint": [], "alone": []}
    for seed in range(runs):
        part = frames(np.random.default_rng(seed))
        exact = pooled(pl.concat(part.values()))
        for name in counted:
            policy = Policy(k=K, ad_hoc="free", joint="all" if name == "all joint" else "small")
            with Federation.local(part, policy=policy, seed=seed, joint=name != "alone") as fed:
                book = fed.run(PLAN)
            counted[name].append(len(book.centers) + len(book.members) - bool(book.members))
            for what, value in from_book(book).items():
                truth, error = exact[what]
                errors.setdefault((what, name), []).append((value - truth) / error)
    print(f"{runs} runs of {CENTERS} centers of 5 to 60 people, K = {K}")
    for name, numbers in counted.items():
        print(f"{name}: {np.mean(numbers):.1f} centers count on average")
    for (what, name), some in sorted(errors.items()):
        print(
            f"{what:14} {name:11} bias {np.mean(some):+.2f} SE, mean |error| "
            f"{np.mean(np.abs(some)):.2f} SE, worst {np.max(np.abs(some)):.2f} ({len(some)} runs)"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
