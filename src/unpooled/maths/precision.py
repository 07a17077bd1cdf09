"""How precisely a number may leave a center: never finer than 1/20 of its own standard error.

The last digits of a sum give single people away: which of ten people has a value with two decimals,
how many share a value, whole lists of whole numbers. They say nothing about the patients that the
sum describes: rounding to a unit u adds u²/12 to its squared error, that is 0.02 % for SE/20 and
0.13 % for SE/8, the coarsest that units of 1, 2 and 5 make of it.

The unit is the smallest of 1, 2, 5 times a power of ten that is at least SE/20. It is computed from
rounded numbers that are told themselves, so everybody can compute it again. A standard deviation
and a variance are their own scale: their unit is that of the *rounded* number. Near a change of
unit, rounding therefore goes to the nearest number that is a multiple of the unit it asks for. So
a rounded number stays as it is when it is rounded again, and that is what a gate checks: `is_...`
is true where the matching `round_...` changes nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from unpooled.maths.moments import MeanSD

if TYPE_CHECKING:  # a center that is asked for no ranks does without
    from unpooled.maths.ranks.mann_whitney import RankStatistics

PARTS = 20  # of a standard error: the finest unit
_DIGIT = 1e-9  # by so little a unit may miss SE/20: 4e-5/20 is not quite 2e-6
_LEAST, _MOST = 1e-290, 1e290  # beyond, units would not be floats


def unit(error: float) -> float:
    """The unit of a number with this standard error.

    Examples
    --------
    >>> unit(1.0), unit(2.0), unit(2.1), unit(4e-5)
    (0.05, 0.1, 0.2, 2e-06)
    """
    if not 0 < error < math.inf:
        raise ValueError(f"a standard error must be positive and finite, got {error}")
    least = max(error / PARTS * (1 - _DIGIT), math.ulp(0.0))
    return next(number for number in _units(math.floor(math.log10(least)) - 1) if number >= least)


def _units(power: int) -> Iterator[float]:
    """1, 2 and 5 times powers of ten, ascending, as the decimal number reads."""
    while True:
        yield from (float(f"{digit}e{power}") for digit in (1, 2, 5))
        power += 1


def is_unit(number: float) -> bool:
    """Whether a number is 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> is_unit(0.02), is_unit(0.03), is_unit(0.0)
    (True, False, False)
    """
    if not 0 < number < math.inf:
        return False
    return Decimal(repr(float(number))).normalize().as_tuple().digits in {(1,), (2,), (5,)}


def nearest(value: float, unit: float) -> float:
    """The nearest multiple of a unit, with no more digits than it needs.

    A value whose own last digit is coarser than the unit stays as it is.

    Examples
    --------
    >>> nearest(141.2837, 0.02), nearest(-0.001, 0.02), nearest(1e9 + 0.3, 1e-9)
    (141.28, 0.0, 1000000000.3)
    """
    if math.ulp(value) >= unit:
        return value
    exact = _exact(unit)
    return float(round(Fraction(value) / exact) * exact)


def _exact(unit: float) -> Fraction:
    """The decimal number that a unit stands for."""
    return Fraction(repr(float(unit)))


def _on_own_scale(value: float, share: float) -> float:
    """The nearest number x that is a multiple of unit(share · x)."""
    if value == 0:
        return 0.0
    if not _LEAST <= value <= _MOST:
        raise ValueError(f"a spread must lie between {_LEAST} and {_MOST}, got {value}")
    here = unit(share * value)
    around = unit(0.35 * PARTS * here), here, unit(1.5 * PARTS * here)  # 1 → 0.5, 1, 2
    rounded = [
        multiple
        for unit_scale in around
        for multiple in _multiples_beside(value, unit_scale)
        if multiple > 0 and unit(share * multiple) == unit_scale
    ]
    return min(rounded, key=lambda x: (abs(x - value), x))


def _multiples_beside(value: float, unit: float) -> tuple[float, float]:
    exact = _exact(unit)
    whole = math.floor(Fraction(value) / exact)
    return float(whole * exact), float((whole + 1) * exact)


def _same(*pairs: tuple[float, float]) -> bool:
    """Whether numbers are the same to the last bit; −0.0 is not 0.0."""
    return all(float(a).hex() == float(b).hex() for a, b in pairs)


def _sound(*values: float) -> bool:
    """Whether values can be spreads."""
    return all(value == 0 or _LEAST <= value <= _MOST for value in values)


# --- mean and standard deviation ---------------------------------------------------------------


def round_mean_sd(people: MeanSD) -> MeanSD:
    """Mean and SD of n people; SE of the mean SD/√n, of the SD itself SD/√(2(n − 1)).

    An SD of 0 says that all share the value, which is then told as it is: whether it may be is
    another rule's business.

    Examples
    --------
    >>> round_mean_sd(MeanSD(300, 131.62376, 17.634912))
    MeanSD(n=300, mean=131.6, sd=17.65)
    """
    if people.n < 2:
        raise ValueError(f"mean and SD must be of at least 2 people, got {people.n}")
    if people.sd == 0:
        return people
    sd = _on_own_scale(people.sd, 1 / math.sqrt(2 * (people.n - 1)))
    return MeanSD(people.n, nearest(people.mean, unit(sd / math.sqrt(people.n))), sd)


def is_mean_sd_rounded(n: int, mean: float, sd: float) -> bool:
    """Whether a center may have told these, as far as their digits go.

    Examples
    --------
    >>> is_mean_sd_rounded(300, 131.6, 17.65), is_mean_sd_rounded(300, 131.62, 17.65)
    (True, False)
    """
    if n < 2 or not math.isfinite(mean) or not _sound(sd):
        return False
    again = round_mean_sd(MeanSD(n, mean, sd))
    return _same((again.mean, mean), (again.sd, sd))


def round_mean(people: MeanSD) -> tuple[float, float]:
    """A mean and its unit, where the SD is withheld: both are told.

    Examples
    --------
    >>> round_mean(MeanSD(60, 1.2837, 0.7))
    (1.285, 0.005)
    """
    if not people.sd > 0:
        raise ValueError(f"the values of a mean must differ, got an SD of {people.sd}")
    spacing = unit(people.sd / math.sqrt(people.n))
    return nearest(people.mean, spacing), spacing


def is_mean_rounded(mean: float, unit: float) -> bool:
    """Whether a mean is a multiple of the unit told with it, and this a legal one.

    Examples
    --------
    >>> is_mean_rounded(1.285, 0.005), is_mean_rounded(1.284, 0.005), is_mean_rounded(1.284, 0.004)
    (True, False, False)
    """
    return math.isfinite(mean) and is_unit(unit) and _same((nearest(mean, unit), mean))


# --- ranks -------------------------------------------------------------------------------------


def round_variance(variance: float, people: int) -> float:
    """A variance of that many people; its SE is variance · √(2/people).

    For two groups `people` are those of the smaller one, for the variance of everybody's rank and
    that of a trend all of them.

    Examples
    --------
    >>> round_variance(31428.57, 30), round_variance(7524.913, 300), round_variance(0.0, 30)
    (31500.0, 7500.0, 0.0)
    """
    if people < 1:
        raise ValueError(f"a variance must be of at least 1 person, got {people}")
    return _on_own_scale(variance, math.sqrt(2 / people))


def is_variance_rounded(variance: float, people: int) -> bool:
    """Whether a center may have told this variance, as far as its digits go.

    Examples
    --------
    >>> is_variance_rounded(7500.0, 300), is_variance_rounded(7524.913, 300)
    (True, False)
    """
    return people >= 1 and _sound(variance) and _same((round_variance(variance, people), variance))


def round_ranks(ranks: "RankStatistics") -> "RankStatistics":
    """U of two groups and its variances.

    U has two standard errors: √variance if the groups do not differ, 2·n_x·n_y·√effect_variance
    as they are. The larger one counts. The second is the smaller one where the groups hardly
    overlap; there it would tell U to the last pair of people. U stays within ±n_x·n_y.

    Examples
    --------
    >>> from unpooled.maths.ranks.mann_whitney import RankStatistics
    >>> round_ranks(RankStatistics(50, 40, 217.0, 60666.67, 0.003871))
    RankStatistics(n_x=50, n_y=40, u=220.0, variance=61000.0, effect_variance=0.00385)
    """
    smaller, pairs = min(ranks.n_x, ranks.n_y), ranks.n_x * ranks.n_y
    variance = round_variance(ranks.variance, smaller)
    effect_variance = round_variance(ranks.effect_variance, smaller)
    error = max(math.sqrt(variance), 2 * pairs * math.sqrt(effect_variance))
    u = 0.0 if error == 0 else _at_most(pairs, ranks.u, unit(error))  # all tied: no pair differs
    return replace(ranks, u=u, variance=variance, effect_variance=effect_variance)


def _at_most(most: int, value: float, unit: float) -> float:
    """The nearest multiple between −most and most."""
    limit = nearest(value, unit)
    if abs(limit) <= most:
        return limit
    exact = _exact(unit)
    return math.copysign(float(math.floor(most / exact) * exact), value)


def are_ranks_rounded(
    n_x: int, n_y: int, u: float, variance: float, effect_variance: float
) -> bool:
    """Whether a center may have told these, as far as their digits go.

    Examples
    --------
    >>> are_ranks_rounded(50, 40, 220.0, 61000.0, 0.00385)
    True
    >>> are_ranks_rounded(50, 40, 217.0, 61000.0, 0.00385)
    False
    """
    from unpooled.maths.ranks.mann_whitney import RankStatistics

    try:
        ranks = RankStatistics(n_x, n_y, u, variance, effect_variance)
    except ValueError:
        return False
    if not _sound(variance, effect_variance):
        return False
    again = round_ranks(ranks)
    return _same((again.u, u), (again.variance, variance), (again.effect_variance, effect_variance))
