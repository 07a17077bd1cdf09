"""The simulation study against the reference implementation's cost, and against five minutes.

The reference's CPU seconds per simulation were measured once, on a machine like this one; they are
constants here. CPU time is what this process used, so other work on the machine matters little.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.side_by_side import Ratio, Row
from unpooled_study.paper.paper import PaperStudy
from unpooled_study.simulations.runs import run
from unpooled_study.simulations.settings import AnySetting, paper_quantiles, paper_test
from unpooled_study.simulations.simulation import simulate

TESTING = {3: 0.035, 5: 0.038, 10: 0.045}  # the reference's CPU seconds per simulation
ESTIMATION = {3: 0.17, 10: 0.22}
TIMES = 30
SIMS = 2000
SAMPLE = 40  # simulations of each setting from which the whole study's time is told
MINUTES = 5


def rows() -> Iterator[Row]:
    """Per simulation, then the whole study on two cores."""
    for centers, cost in TESTING.items():
        yield _row(f"testing, {centers} centers", paper_test(centers, (0.05, 0.1, 0.05)), 100, cost)
    for centers, cost in ESTIMATION.items():
        yield _row(f"estimation, {centers} centers", paper_quantiles(4, centers), 25, cost)
    seconds = [_whole_study() for _ in range(2)]
    ratios = [second / (60 * MINUTES) for second in seconds]
    yield Row(
        "study",
        f"{SIMS} simulations of every setting, 2 processes (from {SAMPLE}) / {MINUTES} minutes",
        Ratio(min(ratios), min(ratios), max(ratios)),
        target=1.0,
    )


def _row(what: str, setting: AnySetting, sims: int, cost: float) -> Row:
    simulate(setting, 1, 0, 5)  # pays for imports
    times = []
    for round_ in range(5):
        start = process_time()
        simulate(setting, 1, round_ * sims, (round_ + 1) * sims)
        times.append((process_time() - start) / sims)
    answer = (
        f"{what}: {1e3 * min(times):.2f} ms CPU, {cost / min(times):.0f} × less than the reference"
    )
    ratios = [TIMES * time / cost for time in times]
    return Row(
        "study",
        f"{answer}; {TIMES} × ours / its",
        Ratio(min(ratios), min(ratios), max(ratios)),
        target=1.0,
    )


def _whole_study() -> float:
    """Seconds for all simulations, told from a sample; starting the processes counts once."""
    sample = PaperStudy.of(None, SAMPLE, 1).simulations()
    settings = list(sample)
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        run(settings[:2], 20, 1, 2, Path(folder, "start"))
        begun = perf_counter()
        run(settings, sample, 1, 2, Path(folder, "sample"))
        starting, working = begun - start, perf_counter() - begun
    return starting + max(working - starting, 0.0) * SIMS / SAMPLE
