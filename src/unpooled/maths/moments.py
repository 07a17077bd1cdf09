"""Mean, standard deviation and Welch's t-test from released moments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, hypot, log, log1p, sqrt

import numpy as np

from unpooled.maths import big_arrays
from unpooled.maths.arrays import FloatArray, IntArray

# Different values that a group must take, where some of them belong to fewer than K people: with
# two, the mean is a count; with up to seven, mean and SD (or ranks) together decode single people.
MEAN_NEEDS = 3
SD_NEEDS = 8


@dataclass(frozen=True, slots=True)
class MeanSD:
    """Count, mean and standard deviation (with n − 1) of a group."""

    n: int
    mean: float
    sd: float

    @classmethod
    def of(cls, values: FloatArray) -> "MeanSD":
        """The moments of sorted values; the same whatever order they came in.

        Examples
        --------
        >>> MeanSD.of(np.full(30, 0.1))  # one value, to its last digit
        MeanSD(n=30, mean=0.1, sd=0.0)
        """
        if values[0] == values[-1]:
            return cls(len(values), float(values[0]), 0.0)
        total = squares(values).sum()
        return cls(len(values), float(values.mean()), float(np.sqrt(total / (len(values) - 1))))


def squares(values: FloatArray) -> FloatArray:
    """How far each value is from the mean, squared.

    Examples
    --------
    >>> squares(np.array([1.0, 2.0, 6.0]))
    array([4., 1., 9.])
    """
    mean = values.mean()
    squared: FloatArray = big_arrays.mapped(np.float64, lambda some: np.square(some - mean), values)
    return squared


def pool(parts: Sequence[MeanSD]) -> MeanSD:
    """The moments of all people together.

    Examples
    --------
    >>> pool([MeanSD.of(np.array([1.0, 2.0])), MeanSD.of(np.array([3.0, 4.0, 5.0]))])
    MeanSD(n=5, mean=3.0, sd=1.5811388300841898)
    """
    n = sum(part.n for part in parts)
    mean = sum(part.n * part.mean for part in parts) / n
    total = sum((part.n - 1) * part.sd**2 + part.n * (part.mean - mean) ** 2 for part in parts)
    return MeanSD(n, mean, sqrt(total / (n - 1)))


@dataclass(frozen=True, slots=True)
class Welch:
    """Welch's t-test of y against x: the difference of means with its interval."""

    statistic: float
    df: float
    log_p: float
    difference: float
    low: float
    high: float

    @property
    def p_value(self) -> float:
        """The two-sided p-value; 0.0 only where it is below the smallest float."""
        return exp(self.log_p)

    @property
    def log10_p(self) -> float:
        """Its decimal logarithm, which does not underflow."""
        return self.log_p / log(10)


def welch(x: MeanSD, y: MeanSD, level: float = 0.95) -> Welch | None:
    """Welch's two-sided t-test; None where both groups are constant.

    Examples
    --------
    >>> test = welch(MeanSD(10, 0.0, 1.0), MeanSD(20, 1.0, 2.0))
    >>> round(test.statistic, 4), round(test.df, 3), round(test.p_value, 5)
    (1.8257, 27.982, 0.07858)
    """
    from scipy.special import stdtrit

    a, b = x.sd**2 / x.n, y.sd**2 / y.n
    if a + b == 0:
        return None
    error = hypot(x.sd / sqrt(x.n), y.sd / sqrt(y.n))
    df = (a + b) ** 2 / (a**2 / (x.n - 1) + b**2 / (y.n - 1))
    difference = y.mean - x.mean
    margin = float(stdtrit(df, (1 + level) / 2)) * error
    t = difference / error
    return Welch(t, df, _log_two_sided(t, df), difference, difference - margin, difference + margin)


def _log_two_sided(t: float, df: float) -> float:
    """log P(|T| ≥ |t|), by the incomplete beta function, also where it underflows."""
    from scipy.special import betaln, hyp2f1, stdtr

    p = 2 * float(stdtr(df, -abs(t)))
    if p > 1e-280:
        return min(log(p), 0.0)
    a, b, x = df / 2, 0.5, df / (df + t * t)
    series = float(hyp2f1(a + b, 1.0, a + 1.0, x))  # I_x(a, b), DLMF 8.17.8
    return a * log(x) + b * log1p(-x) - log(a) - float(betaln(a, b)) + log(series)


@dataclass(frozen=True, slots=True)
class Rare:
    """The people of a group whose value belongs to fewer than K of them, and their values."""

    people: int
    values: int

    @classmethod
    def of(cls, values: FloatArray, k: int) -> "Rare":
        """Count them in a sorted group.

        Examples
        --------
        >>> Rare.of(np.repeat([0.0, 1.0, 2.0], [90, 2, 3]), 10)
        Rare(people=5, values=2)
        """
        people = different = 0
        for sharing in _sharing(values):
            rare = sharing < k
            people += int(sharing[rare].sum())
            different += int(rare.sum())
        return cls(people, different)


def _sharing(values: FloatArray) -> Iterator[IntArray]:
    """How many people share each value of a sorted group, some values at a time."""
    began = 0
    for piece in big_arrays.pieces(len(values) - 1):
        changed = values[1:][piece] != values[:-1][piece]
        ends = piece.start + 1 + np.flatnonzero(changed)
        yield np.diff(ends, prepend=began)
        began = int(ends[-1]) if len(ends) else began
    yield np.array([len(values) - began])


def telling_values(values: FloatArray, *ks: int) -> int:
    """How many different values a sorted group takes, if some belong to fewer than K people.

    0 when every value belongs to at least K people: then even the full table may be told. 1 when
    fewer than K people have such values: any sum would speak for them alone. 8 stands for 8
    or more. Of several K, the one that lets out least counts: among more people whose values are
    rare by a raised K, the few who are rare by the policy's would not be seen.

    Examples
    --------
    >>> telling_values(np.arange(50.0), 10), telling_values(np.repeat([0.0, 5.0], [99, 1]), 10)
    (8, 1)
    >>> telling_values(np.repeat([0.0, 1.0], [6, 7]), 10)
    2
    >>> rare = np.repeat([0.0, 1.0, 2.0], [90, 12, 3])
    >>> telling_values(rare, 13), telling_values(rare, 10, 13)
    (3, 1)
    """
    rare = {k: Rare.of(values, k).people for k in ks}
    if not any(rare.values()):
        return 0
    if any(0 < people < k for k, people in rare.items()):
        return 1
    different = 1 + big_arrays.count(np.not_equal, values[1:], values[:-1])
    return min(different, SD_NEEDS)
