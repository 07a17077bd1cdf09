"""How the parallel round grows with centers: python -m benchmarks.parallel_scale [CENTERS ...].

Each center has 10,000 people. Printed for 10 to 1,000 of them in one process: rounds, bytes that
left, the coordinator's time for five quantiles with intervals, and the exponents with which bytes
and time grow.
"""

import sys
from itertools import pairwise
from math import log
from time import perf_counter

import numpy as np

from unpooled.analyses.conversation import Coordinator
from unpooled.analyses.numbers.quantiles import ParallelRound
from unpooled.analyses.request import Request
from unpooled.center.data.variables import Variable
from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.center.proposal.summarise import cell_table
from unpooled.center.questions import Answer, GroupTable, LatticeTables, encode
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import public_lattice

PEOPLE = 10_000
P = np.array([0.02, 0.25, 0.5, 0.75, 0.98])


class Told:
    """A link to centers whose releases are ready: only the coordinator's work is timed."""

    def __init__(self, centers: int) -> None:
        lattice = public_lattice(2.0, lower=0.0)
        self._payloads = {}
        for center in range(centers):
            random = np.random.default_rng([20261115, center])
            values = np.sort(random.gamma(4.0, 1.0, PEOPLE))
            draws = keyed_draws(random.bytes(32), "v")
            table = cell_table(lattice_table(values, lattice, 10, draws, "tails"))
            tables = (GroupTable(group="all", table=table),)
            answer = LatticeTables(scale=2.0, lower=0.0, moments="tails", groups=tables)
            self._payloads[f"{center:04d}"] = encode(Answer(k=10, aggregate=answer))

    @property
    def centers(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._payloads)

    def ask(self, question: bytes, centers: object, *, stewards: bool = True) -> dict[str, bytes]:
        """Every release, whatever is asked."""
        return dict(self._payloads)

    def close(self) -> None:
        """Nothing to let go of."""

    @property
    def size(self) -> int:
        """How many bytes leave in all."""
        return sum(map(len, self._payloads.values()))


def measure(centers: int) -> tuple[int, int, float]:
    """Rounds, bytes and the coordinator's seconds (the best of three)."""
    link = Told(centers)
    times = []
    for _ in range(3):
        start = perf_counter()
        result = ParallelRound(
            Coordinator(link).converse(), Request("v"), P, Variable(lower=0)
        ).estimate("parallel")
        times.append(perf_counter() - start)
    return result.rounds, link.size, min(times)


def main(sizes: list[int]) -> None:
    """Print a line for each number of centers, and the exponents between them."""
    print("centers  rounds       bytes  coordinator, s")
    result = []
    for centers in sizes:
        rounds, size, seconds = measure(centers)
        result.append((centers, size, seconds))
        print(f"{centers:>7}{rounds:>8}{size:>12}{seconds:>16.4f}", flush=True)
    for (n, size, seconds), (more, larger, longer) in pairwise(result):
        grown = log(more / n)
        print(
            f"{n} to {more}: bytes grow with exponent {log(larger / size) / grown:.2f}, "
            f"time with {log(longer / seconds) / grown:.2f}"
        )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [10, 100, 1000])
