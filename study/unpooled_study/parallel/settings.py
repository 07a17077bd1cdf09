"""What is simulated of the parallel method; names decide seeds, so every K sees the same people."""

from collections.abc import Iterator

import msgspec

from unpooled.maths.lattice.cells import Moments

EFFECT = 0.0625
LEVELS = 5


class ParallelQuantiles(msgspec.Struct, frozen=True, tag="parallel quantiles"):
    """Five quantiles of a family in the paper's centers, or in centers of these sizes.

    A simulation gives, for each quantile, our error, that of the full data, whether our interval
    holds the truth, its length, the length of the full-data order-statistic interval, and whether
    the answer notes that cells tell little there.
    """

    family: str
    centers: int
    k: int = 10
    moments: Moments = "tails"
    sizes: tuple[int, ...] = ()

    @property
    def columns(self) -> int:
        """How many numbers a simulation gives."""
        return 6 * LEVELS

    @property
    def where(self) -> str:
        """The centers in a few words.

        Examples
        --------
        >>> ParallelQuantiles("normal", 3).where
        '3'
        >>> ParallelQuantiles("normal", 2, sizes=(40, 60)).where
        '2 of 40 to 60'
        """
        if not self.sizes:
            return str(self.centers)
        low, high = min(self.sizes), max(self.sizes)
        return f"{self.centers} of {low}" + (f" to {high}" if high > low else "")

    @property
    def name(self) -> str:
        """What simulations are seeded by."""
        return f"parallel quantiles {self.family} {self.where} centers"


class ParallelTests(msgspec.Struct, frozen=True, tag="parallel tests"):
    """Two groups at the paper's ten centers, y larger by `delta`, centers' levels with SD 0.1.

    A simulation gives log(p/p_combined), the two-sided p-value, and the errors of P(Y > X) and of
    the shift against the combined data, in standard errors.
    """

    family: str
    delta: float = 0.0
    k: int = 10
    moments: Moments = "all"

    @property
    def columns(self) -> int:
        """How many numbers a simulation gives."""
        return 4

    @property
    def name(self) -> str:
        """What simulations are seeded by."""
        return f"parallel tests {self.family} delta {self.delta:g}"


PAPER = ("gamma 4", "gamma 10")
NAMED = (
    "normal",
    "lognormal",
    "t3",
    "bimodal",
    "weibull 1.5",
    "weibull .8",
    "exponential",
    "exponential, no bound",
    "uniform",
    "uniform, no bound",
    "gap mixture",
)
GRIDDED = ("rounded", "zero-inflated")
OTHERS = (
    "laplace",
    "beta 2 2",
    "inverse gauss",
    "pareto 3",
    "triangular",
    "skew mixture",
    "logistic",
    "gumbel",
    "chi-square 3",
    "beta 5 1",
    "t5",
    "contaminated",
)
ODD = (
    "arcsine",
    "gamma .5",
    "weibull .5",
    "cauchy",
    "three clusters",
    "far apart",
    "few far out",
    "hidden tenth",
)
_RESIZED = ("normal", "exponential, no bound", "gap mixture", "laplace", "pareto 3")
_SIZES: tuple[tuple[int, tuple[int, ...]], ...] = (
    (10, (200, 300, 400, 500)),
    (10, (150,) * 6),
    (5, (100, 150, 200)),
    (20, (100, 120, 150, 180, 200, 220, 250, 300)),
    (30, (200, 300, 400, 600)),
    (10, (75,) * 20),
    (10, (40, 60, 80, 120)),
)
_TOLD: tuple[Moments, ...] = ("tails", "all")
TESTED = ("normal", "t3", "gamma 4")
SETS = ("main", "all", "k20", "held-out", "sizes", "odd", "gridded")


def quantile_settings(name: str) -> Iterator[ParallelQuantiles]:
    """The cells of a set; where it does not say otherwise, K = 10 and what policies tell at first.

    Examples
    --------
    >>> [len(list(quantile_settings(name))) for name in SETS]
    [28, 28, 26, 24, 35, 17, 4]
    """
    if name in ("main", "all"):
        moments: Moments = "all" if name == "all" else "tails"
        for family in (*PAPER, *NAMED):
            for centers in (3, 5, 10) if family in PAPER else (3, 10):
                yield ParallelQuantiles(family, centers, moments=moments)
    elif name == "k20":
        for family in (*PAPER, *NAMED):
            yield from (ParallelQuantiles(family, 10, 20, setting) for setting in _TOLD)
    elif name == "held-out":
        yield from (ParallelQuantiles(family, 10, k) for family in OTHERS for k in (10, 20))
    elif name == "sizes":
        for k, sizes in _SIZES:
            yield from (ParallelQuantiles(f, len(sizes), k, sizes=sizes) for f in _RESIZED)
    elif name == "odd":
        yield from (ParallelQuantiles(family, 10, k) for family in ODD for k in (10, 20))
        yield ParallelQuantiles("hidden tenth", 15, 10, sizes=(60,) * 15)
    elif name == "gridded":
        yield from (ParallelQuantiles(family, n) for family in GRIDDED for n in (3, 10))
    else:
        raise ValueError(f"set must be one of {', '.join(SETS)}, got {name!r}")


def test_settings() -> Iterator[ParallelTests]:
    """The tests: all cells' moments and those of tails, without and with an effect."""
    variants: tuple[tuple[Moments, int], ...] = (("all", 10), ("tails", 10), ("all", 20))
    for moments, k in variants:
        for family in TESTED:
            yield from (ParallelTests(family, delta, k, moments) for delta in (0.0, EFFECT))
