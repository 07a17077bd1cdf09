"""Populations for the studies of the parallel method, with their true quantiles."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special, stats

from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.lattice import Lattice, public_lattice
from unpooled_study.simulations.families import Random
from unpooled_study.simulations.settings import PROBABILITIES

P = np.array(PROBABILITIES)


@dataclass(frozen=True, slots=True)
class Population:
    """A distribution of people: how to draw from it, its cdf and what is declared about it."""

    draw: Callable[[Random, int], FloatArray]
    cdf: Callable[[FloatArray], FloatArray]
    lower: float | None = None
    resolution: float | None = None
    effect: float = 0.0  # SD of the logarithm of a center's scale

    def quantile(self, p: FloatArray, scales: FloatArray, shares: FloatArray) -> FloatArray:
        """The smallest x with F(x) ≥ p in the mixture over centers."""
        low, high = np.full(len(p), -1e4), np.full(len(p), 1e4)
        for _ in range(80):
            middle = (low + high) / 2
            with np.errstate(over="ignore"):  # far outside
                reached = self.cdf(middle[:, None] / scales) @ shares >= p
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    def lattice(self) -> Lattice:
        """The lattice of a scale that one coarse round would find: the robust SD."""
        one = np.ones(1)
        q25, q75 = self.quantile(np.array([0.25, 0.75]), one, one)
        return public_lattice((q75 - q25) / 1.349, self.resolution, self.lower)


def _gamma(shape: int) -> Population:
    median = float(special.gammaincinv(shape, 0.5))
    effect = math.log((median + 0.1 * math.sqrt(shape)) / median)
    return Population(
        lambda random, n: random.gamma(shape, 1.0, n),
        lambda x: special.gammainc(shape, np.maximum(x, 0.0)),
        lower=0.0,
        effect=effect,
    )


def _scipy(distribution: "stats.rv_frozen", lower: float | None = None) -> Population:
    return Population(
        lambda random, n: distribution.rvs(n, random_state=random), distribution.cdf, lower
    )


def _mixture(*parts: tuple[float, float, float]) -> Population:
    """Normal distributions, each a share, a mean and an SD."""
    shares, means, sds = np.array(parts).T

    def draw(random: Random, n: int) -> FloatArray:
        part = np.searchsorted(np.cumsum(shares[:-1]), random.random(n), "right")
        return np.asarray(random.normal(means[part], sds[part]))

    def cdf(x: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr((x[..., None] - means) / sds) @ shares)

    return Population(draw, cdf)


def _rounded() -> Population:
    """Gamma 4 in units of which an SD has 4, as lengths of stay in days."""
    return Population(
        lambda random, n: np.round(2.0 * random.gamma(4.0, 1.0, n)),
        lambda x: np.where(x < 0, 0.0, special.gammainc(4, np.maximum(np.floor(x) + 0.5, 0) / 2)),
        lower=0.0,
        resolution=1.0,
    )


def _zero_inflated() -> Population:
    """Three in ten have nothing, the others a lognormal amount."""

    def draw(random: Random, n: int) -> FloatArray:
        return np.where(random.random(n) < 0.3, 0.0, random.lognormal(0.0, 0.7, n))

    def cdf(x: FloatArray) -> FloatArray:
        positive = special.ndtr(np.log(np.maximum(x, 1e-300)) / 0.7)
        return np.where(x < 0, 0.0, 0.3 + 0.7 * positive)

    return Population(draw, cdf, lower=0.0)


FAMILIES: dict[str, Population] = {
    "gamma 4": _gamma(4),
    "gamma 10": _gamma(10),
    "normal": _scipy(stats.norm()),
    "lognormal": _scipy(stats.lognorm(1.0), 0.0),
    "t3": _scipy(stats.t(3)),
    "bimodal": _mixture((0.5, -1.5, 1.0), (0.5, 1.5, 1.0)),
    "weibull 1.5": _scipy(stats.weibull_min(1.5), 0.0),
    "weibull .8": _scipy(stats.weibull_min(0.8), 0.0),
    "exponential": _scipy(stats.expon(), 0.0),
    "exponential, no bound": _scipy(stats.expon()),
    "uniform": _scipy(stats.uniform(), 0.0),
    "uniform, no bound": _scipy(stats.uniform()),
    "gap mixture": _mixture((0.8, 0.0, 1.0), (0.2, 4.0, 0.5)),
}
GRIDDED = {"rounded": _rounded(), "zero-inflated": _zero_inflated()}
SEEN_LATE: dict[str, Population] = {  # looked at before the last choice of a constant
    "laplace": _scipy(stats.laplace()),
    "beta 2 2": _scipy(stats.beta(2, 2)),
    "inverse gauss": _scipy(stats.invgauss(1.0), 0.0),
    "pareto 3": _scipy(stats.pareto(3.0)),
    "triangular": _scipy(stats.triang(0.9)),
    "skew mixture": _mixture((0.6, 0.0, 1.0), (0.4, 2.0, 2.0)),
}
HELD_OUT: dict[str, Population] = {
    "logistic": _scipy(stats.logistic()),
    "gumbel": _scipy(stats.gumbel_r()),
    "chi-square 3": _scipy(stats.chi2(3), 0.0),
    "beta 5 1": _scipy(stats.beta(5, 1)),
    "t5": _scipy(stats.t(5)),
    "contaminated": _mixture((0.9, 0.0, 1.0), (0.1, 0.0, 5.0)),
}
ODD: dict[str, Population] = {  # of which cells tell too little: poles, clusters, far people
    "arcsine": _scipy(stats.beta(0.5, 0.5)),
    "gamma .5": _scipy(stats.gamma(0.5), 0.0),
    "weibull .5": _scipy(stats.weibull_min(0.5)),
    "cauchy": _scipy(stats.cauchy()),
    "three clusters": _mixture((0.3, -3.0, 0.6), (0.4, 0.0, 0.6), (0.3, 3.0, 0.6)),
    "far apart": _mixture((0.5, 0.0, 1.0), (0.5, 10.0, 1.0)),
    "few far out": _mixture((0.97, 0.0, 1.0), (0.03, 8.0, 0.5)),
    "hidden tenth": _mixture((0.9, 0.0, 1.0), (0.1, 5.0, 0.5)),
}
EVERY = FAMILIES | GRIDDED | SEEN_LATE | HELD_OUT | ODD


def draw_centers(
    name: str, sizes: tuple[int, ...], random: Random
) -> tuple[list[FloatArray], FloatArray]:
    """Sorted people of each center and the true quantiles."""
    population = EVERY[name]
    scales = np.exp(population.effect * random.normal(size=len(sizes)))
    centers = [
        np.sort(scale * population.draw(random, n)) for scale, n in zip(scales, sizes, strict=True)
    ]
    if not population.effect:
        return centers, _truth(name)
    return centers, population.quantile(P, scales, np.array(sizes) / sum(sizes))


@lru_cache
def _truth(name: str) -> FloatArray:
    return EVERY[name].quantile(P, np.ones(1), np.ones(1))


@lru_cache
def lattice_of(name: str) -> Lattice:
    """The lattice of a population."""
    return EVERY[name].lattice()
