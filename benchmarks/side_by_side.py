"""Two things measured by turns in one run; the verdict is their ratio, never a time.

A machine that is busy with something else slows both down, so the least of several times is taken
for each: it is the one that was disturbed least. The verdict is about the time that passes; the
processors' time is told beside it, since other people's work hardly changes that.
"""

import gc
import resource
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Least time of ours over least time of the other; the spread is that of single rounds.

    `cpu` is the same ratio of the processors' time, over all threads and child processes.
    """

    value: float
    low: float
    high: float
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds that passed, and seconds of all processors together."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of results; without a target it is there to be read, not judged."""

    name: str
    compared: str
    ratio: Ratio
    target: float | None = None

    @property
    def short(self) -> bool:
        """Whether the target is missed."""
        return self.target is not None and self.ratio.value > self.target

    @property
    def verdict(self) -> str:
        """ok, short, or nothing where there is no target."""
        return "" if self.target is None else "short" if self.short else "ok"


def side_by_side(ours: Call, other: Call, rounds: int) -> Ratio:
    """Run both by turns, beginning with the other one every second time.

    A first round of both goes uncounted: it pays for imports, caches and fresh memory.
    """
    mine: list[Time] = []
    others: list[Time] = []
    for round_ in range(rounds + 1):
        if round_ % 2:
            mine.append(measure(ours))
            others.append(measure(other))
        else:
            others.append(measure(other))
            mine.append(measure(ours))
    del mine[0], others[0]
    ratios = [a.wall / b.wall for a, b in zip(mine, others, strict=True)]
    wall = min(a.wall for a in mine) / min(b.wall for b in others)
    cpu = min(a.cpu for a in mine) / min(b.cpu for b in others)
    return Ratio(wall, min(ratios), max(ratios), cpu)


def least_cpu(call: Call, rounds: int) -> float:
    """The least of several processor times, in seconds."""
    return min(measure(call).cpu for _ in range(rounds))


def measure(call: Call) -> Time:
    """How long one call takes; rubbish of earlier calls is collected before, not during."""
    gc.collect()
    start, cpu = perf_counter(), _cpu()
    call()
    return Time(perf_counter() - start, _cpu() - cpu)


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
