"""What simulations say, each with its Monte Carlo standard error."""

import math
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray

PUBLISHED_SIMS = 2000
BIAS_STEP = 0.001  # Table S5 was computed from biases rounded so


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its standard error over `sims` simulations."""

    value: float
    error: float
    sims: int


@dataclass(frozen=True, slots=True)
class Published:
    """A published value; `step` is the last digit printed, `rounding` the SD of what it hides."""

    value: float
    step: float
    rounding: float

    @classmethod
    def of(cls, text: str) -> "Published":
        """A value as it was printed.

        Examples
        --------
        >>> Published.of("0.0474").step
        0.0001
        """
        step = 10.0 ** -len(text.partition(".")[2])
        return cls(float(text), step, step / math.sqrt(12))


def z_score(ours: Estimate, published: Published) -> float:
    """How many standard errors apart: both Monte Carlo errors, and what rounding hides.

    The published value's error is taken to be ours at its number of simulations.

    Examples
    --------
    >>> round(z_score(Estimate(0.0480, 0.0020, 2000), Published.of("0.0474")), 3)
    0.212
    """
    theirs = ours.error * math.sqrt(ours.sims / PUBLISHED_SIMS)
    error = math.hypot(ours.error, theirs, published.rounding)
    return (ours.value - published.value) / error if error > 0 else 0.0


def share(hits: FloatArray) -> Estimate:
    """How often something happened; the error never is 0 (as if one more run went either way).

    Examples
    --------
    >>> share(np.array([1.0, 0.0, 0.0, 0.0])).value
    0.25
    """
    n = len(hits)
    value, steadied = float(hits.mean()), (float(hits.sum()) + 1) / (n + 2)
    return Estimate(value, math.sqrt(steadied * (1 - steadied) / n), n)


def quantile(values: FloatArray, q: float) -> Estimate:
    """A quantile; its error is half the distance between those a standard error of q away.

    Examples
    --------
    >>> quantile(np.linspace(0, 1, 1001), 0.25).error.__round__(4)
    0.0137
    """
    margin = math.sqrt(q * (1 - q) / len(values))
    around = np.clip([q - margin, q, q + margin], 0.0, 1.0)
    low, value, high = np.quantile(values, around).tolist()
    return Estimate(value, (high - low) / 2, len(values))


def mean(values: FloatArray) -> Estimate:
    """The mean."""
    return Estimate(float(values.mean()), _error(values), len(values))


def standard_deviation(values: FloatArray) -> Estimate:
    """The standard deviation."""
    sd = float(values.std(ddof=1))
    return Estimate(sd, _error((values - values.mean()) ** 2) / (2 * sd), len(values))


def mean_square(values: FloatArray) -> Estimate:
    """The mean square."""
    return mean(values**2)


def bias_ratio(values: FloatArray) -> Estimate:
    """Squared bias over variance; near 0 the error is that of a squared normal mean."""
    n = len(values)
    bias, variance = float(values.mean()), float(values.var(ddof=1))
    centred = values - bias
    linear = _error(2 * bias * centred / variance - bias**2 / variance**2 * centred**2)
    return Estimate(bias**2 / variance, math.hypot(linear, math.sqrt(2) / n), n)


def published_ratio(text: str, sd: float, bias: float) -> Published:
    """A printed squared bias over variance: its bias had been rounded before."""
    read = Published.of(text)
    hidden = BIAS_STEP / math.sqrt(12)
    rounding = math.hypot(2 * abs(bias) * hidden, hidden**2) / sd**2
    return Published(read.value, read.step, math.hypot(read.rounding, rounding))


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))
