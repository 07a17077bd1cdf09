"""The parallel test against the combined data: python -m benchmarks.parallel_tests [RUNS] [SEED].

Two groups of 1500 people in the paper's ten centers, x = ε + α_l and y = ε + α_l + δ. Printed: the
standard deviation of log(p/p_combined) (one-sided), how often the null hypothesis is rejected at
.05 (two-sided), and the mean errors of P(Y > X) and of the shift against the combined data, in
standard errors.
"""

import sys
from concurrent.futures import ProcessPoolExecutor

from unpooled_study.parallel.settings import ParallelTests, test_settings
from unpooled_study.parallel.study import TestSummary
from unpooled_study.simulations.simulation import simulate


def work(setting: ParallelTests, seed: int, runs: int) -> str:
    """A line of the table."""
    result = TestSummary.of(simulate(setting, seed, 0, runs))
    band = 1.96 * (0.05 * 0.95 / runs) ** 0.5
    level = "-" if setting.delta else f"{result.level:.3f} (.05 ± {band:.3f})"
    return (
        f"{setting.family:<8} {setting.moments:<6} {setting.k:>3} {setting.delta:>7} "
        f"{result.sd_log_p:>8.4f} {level:>18} {result.effect:>9.4f} {result.shift:>9.4f}"
    )


def main(runs: int, seed: int) -> None:
    """Print the table, two processes at work."""
    print(f"{runs} runs a line, 10 centers, seed {seed}")
    print("family   tell    K   delta  SD log p              level   effect     shift")
    cells = list(test_settings())
    with ProcessPoolExecutor(2) as pool:
        for text in pool.map(work, cells, [seed] * len(cells), [runs] * len(cells)):
            print(text, flush=True)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*(given + [300, 20270312][len(given) :]))
