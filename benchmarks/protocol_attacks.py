"""Attacks on protocols at scale: python -m benchmarks.protocol_attacks [RUNS [FIRST]].

A small center, K = 3, two random protocols, and questions of their own before, between and after
them. An attacker puts everything that left into one system of linear equations, by variable, and
looks for a combination that speaks of fewer than K people. Then pairs of protocols that cut age at
neighbouring years, where 1 to K − 1 people have that age: is it told how many these are? A third
line does the same with the rule taken out, so that it is known that the attack works.

Each value is its own crowd here, as in tests/privacy: for sums the rule promises K of those then.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from tests.privacy.taken_out import anything_goes
from tests.privacy.test_protocols import K, after

from unpooled import Federation
from unpooled.center.questions import Grouping, Protocol, ProtocolVariable, Sizes, block_levels
from unpooled.center.rule import disclosure

CUT_K = 10
_PART = 50  # runs, after which a line is printed


@contextmanager
def own_crowds() -> Iterator[pytest.MonkeyPatch]:
    """Each value is its own crowd."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disclosure, "_CROWD", 1)
        yield patch


def protocols_and_questions(seeds: range, *, judged: bool = True) -> tuple[int, int, int]:
    """How many runs, in how many fewer than K people are exposed, how many numbers were told."""
    exposed = numbers = 0
    with own_crowds() as patch:
        if not judged:
            anything_goes(patch)
        for seed in seeds:
            people, more = after(seed)
            exposed += people < K
            numbers += more
    return len(seeds), exposed, numbers


def _under(fed: Federation, cut: float, number: int) -> int | None:
    band = Grouping(name="band", of="age", cuts=(cut,))
    plan = Protocol(title=f"{number}", groups=(band,), variables={"crp": ProtocolVariable()})
    sizes = fed.ask_protocol(plan).answers["A"].parts[0].answer.aggregate
    blocks = sizes.sizes if isinstance(sizes, Sizes) else ()
    young = [s.n for s in blocks if block_levels(s.group) == ((f"under {cut:g}",),)]
    return young[0] if young else None


def neighbouring_cuts(seeds: range, *, judged: bool = True) -> tuple[int, int]:
    """How many runs, and in how many the number of people of one age follows."""
    follows = 0
    with pytest.MonkeyPatch.context() as patch:
        if not judged:
            anything_goes(patch)
        for seed in seeds:
            random = np.random.default_rng([64, seed])
            few = int(random.integers(1, CUT_K))
            age = [*random.integers(40, 64, 60), *[64] * few, *random.integers(65, 90, 60)]
            crp = random.lognormal(1, 0.8, len(age)).round(1)
            frame = pl.DataFrame({"age": age, "crp": crp})
            cuts = (64.0, 65.0) if random.random() < 0.5 else (65.0, 64.0)
            with Federation.local({"A": frame}, k=CUT_K, seed=seed) as fed:
                one, other = (_under(fed, cut, number) for number, cut in enumerate(cuts))
            follows += one is not None and other is not None and abs(one - other) == few
    return len(seeds), follows


def main() -> None:
    """Print the lines."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seeds, some = range(first, first + runs), range(first, first + max(runs // 20, 5))
    count, exposed, numbers = protocols_and_questions(seeds)
    print(
        f"two protocols and questions: {exposed} of {count} exposed, {numbers} numbers", flush=True
    )
    count, exposed, numbers = protocols_and_questions(some, judged=False)
    print(f"the same without the rule: {exposed} of {count} exposed", flush=True)
    count, follows = neighbouring_cuts(seeds)
    print(f"cuts at 64 and 65: people of 64 follow in {follows} of {count}", flush=True)
    count, follows = neighbouring_cuts(some, judged=False)
    print(f"the same without the rule: {follows} of {count}", flush=True)


if __name__ == "__main__":
    main()
