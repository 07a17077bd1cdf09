"""A joint center beside the pooled rows: 40 centers of 5 to 60 people.

python -m benchmarks.joint_accuracy [RUNS [FIRST]]: how far P(Y>X), quantiles and the log-rank
statistic are from those of all rows together, in standard errors, with a joint center and without
it. The keepers' rule is followed on the added counts in the clear, which gives what their program
opens (tests/joint/test_program.py); `--secure` runs the program.
"""

import sys

import numpy as np
import polars as pl
from lifelines.statistics import logrank_test
from scipy import stats
from tests.joint.pooled import expected, people_of

from unpooled import Federation
from unpooled.analyses.protocols.book import Book
from unpooled.center.policy import Policy
from unpooled.center.questions import Grouping, Protocol, ProtocolOutcome, ProtocolVariable
from unpooled.center.questions.joint import JointPlan
from unpooled.errors import UnpooledError
from unpooled.federation.joint.computation.program import JointNumbers
from unpooled.federation.joint.local import LocalKeepers
from unpooled.maths.joint.shares import FieldArray

K, CENTERS = 10, 40
PLAN = Protocol(
    title="40 centers",
    k=K,
    groups=(Grouping(name="arm", levels=("a", "b")),),
    variables={"crp": ProtocolVariable(kind="number", resolution=0.1, lower=0, upper=120)},
    survival=(ProtocolOutcome(time="months", event="died", event_is="1", horizon=48),),
)
WAYS = ("one center", "all joint", "small joint", "alone")
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def frames(rng: np.random.Generator) -> tuple[dict[str, pl.DataFrame], float]:
    """Centers of 5 to 60 people, and how the arms differ: half of the runs have no effect."""
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
    return result, effect


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
    """The same from a book, and which intervals cover; what it lacks is left out."""
    result: dict[str, float] = {}
    try:
        test = book.compare("crp", by="arm", method="parallel")
        assert test.effect is not None
        result["P(Y>X)"] = test.effect.estimate
        result["p of P(Y>X)"] = test.to_dict()["methods"][0]["p_value"]
        group = book.quantiles("crp", p=QUANTILES, by="arm")
        for one in group.to_dict()["quantiles"]:
            if one["group"] == "a" and one["estimate"] is not None:
                result[f"quantile {one['p']:g}"] = one["estimate"]
                covered = one["low"] <= stats.gamma(2, scale=8).ppf(one["p"]) <= one["high"]
                result[f"covers {one['p']:g}"] = float(covered)
        chi2 = book.survival("months", event="died", by="arm").to_dict()["logrank"]["statistic"]
        result["log-rank |z|"] = float(np.sqrt(chi2))
    except UnpooledError as error:
        print(f"  {str(error).splitlines()[0]}")
    return result


class PlainKeepers(LocalKeepers):
    """Keepers that follow the rule on the added counts in the clear: the same numbers, quickly."""

    def _computed(self, plan: JointPlan, numbers: FieldArray) -> JointNumbers | None:
        return expected(people_of(plan, numbers.astype(np.int64)))


def books(part: dict[str, pl.DataFrame], seed: int, *, plain: bool) -> dict[str, Book]:
    """The book of each way to count."""
    made = {}
    for name in WAYS:
        policy = Policy(k=K, ad_hoc="free", joint="all" if name == "all joint" else "small")
        centers = {"all": pl.concat(part.values())} if name == "one center" else part
        joint = name in ("all joint", "small joint")
        with Federation.local(centers, policy=policy, seed=seed, joint=joint) as fed:
            if joint and plain:
                assert isinstance(fed._keepers, LocalKeepers)
                fed._keepers.__class__ = PlainKeepers
            made[name] = fed.run(PLAN)
    return made


def main(runs: int, first: int = 0, *, plain: bool = True) -> None:
    """Print the mean error in standard errors, and how many centers count."""
    errors: dict[tuple[str, str], list[float]] = {}
    shares: dict[tuple[str, str], list[bool]] = {}
    counted: dict[str, list[int]] = {name: [] for name in WAYS}
    for seed in range(first, first + runs):
        part, effect = frames(np.random.default_rng(seed))
        exact = pooled(pl.concat(part.values()))
        for name, book in books(part, seed, plain=plain).items():
            counted[name].append(len(book.centers) + len(book.members) - bool(book.members))
            for what, value in from_book(book).items():
                if what.startswith("covers"):
                    shares.setdefault((what, name), []).append(bool(value))
                    continue
                if not effect and what in ("p of P(Y>X)", "log-rank |z|"):
                    rejects = value < 0.05 if what.startswith("p ") else value > 1.96
                    shares.setdefault((f"level of {what}", name), []).append(rejects)
                if what in exact:
                    truth, error = exact[what]
                    errors.setdefault((what, name), []).append((value - truth) / error)
        if (seed - first) % 10 == 9 or seed == first + runs - 1:
            report(seed - first + 1, errors, shares, counted)


def report(
    runs: int,
    errors: dict[tuple[str, str], list[float]],
    shares: dict[tuple[str, str], list[bool]],
    counted: dict[str, list[int]],
) -> None:
    """Print what is known so far."""
    print(f"{runs} runs of {CENTERS} centers of 5 to 60 people, K = {K}")
    for name, numbers in counted.items():
        print(f"{name}: {np.mean(numbers):.1f} centers count on average")
    for (what, name), some in sorted(errors.items()):
        print(
            f"{what:14} {name:11} bias {np.mean(some):+.2f} SE, mean |error| "
            f"{np.mean(np.abs(some)):.2f} SE, worst {np.max(np.abs(some)):.2f} ({len(some)} runs)"
        )
    for (what, name), hits in sorted(shares.items()):
        print(f"{what:24} {name:11} {np.mean(hits):.3f} ({len(hits)} runs)")
    sys.stdout.flush()


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:] if one.isdigit()]
    main(*(numbers or [20]), plain="--secure" not in sys.argv)
