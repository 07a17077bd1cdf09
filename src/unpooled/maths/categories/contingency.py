"""Tests and shares of one table of counts, groups by levels.

A table's rows are groups and its columns levels of a category. Groups and levels without people
are left out of every test, and the result's note says so. P-values are natural logarithms, so that
none of them underflows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import BoolArray, FloatArray, IntArray, read_only
from unpooled.maths.ranks.effect import normal_quantile
from unpooled.maths.ranks.mann_whitney import (
    Alternative,
    TestResult,
    log_chi2_survival,
    normal_test,
)

_MOST_WORK = 5_000_000  # ways to fill half a table that an exact test tries: some seconds
_AT_ONCE = 500_000  # of them held at once
_TIE = 1e-7  # tables whose chances differ by less than this share count as equally likely, as in R
_ALTERNATIVES = "two-sided", "greater", "less"


@dataclass(frozen=True, slots=True)
class Chi2Test:
    """A chi-square statistic and the natural logarithm of its p-value.

    `df` is 0 where there is nothing to test; `note` says what is unusual.
    """

    __test__: ClassVar[bool] = False  # not a test case, whatever its name

    method: str
    statistic: float
    df: int
    log_p: float
    note: str | None

    def __post_init__(self) -> None:
        if not self.statistic >= 0 or self.df < 0:
            raise ValueError(
                f"statistic and df must not be negative, got {self.statistic} and {self.df}"
            )
        if not self.log_p <= 0:
            raise ValueError(f"log_p must be at most 0, got {self.log_p}")

    @classmethod
    def of(cls, method: str, statistic: float, df: int, note: str | None = None) -> "Chi2Test":
        """The test of a statistic; with df = 0 it is 0 and its p-value 1."""
        if not df:
            return cls(method, 0.0, 0, 0.0, note or "nothing to test, p = 1")
        return cls(method, statistic, df, log_chi2_survival(statistic, df), note)

    @property
    def p_value(self) -> float:
        """The p-value; 0 where it is smaller than any float."""
        return math.exp(self.log_p)

    @property
    def log10_p(self) -> float:
        """The decimal logarithm of the p-value."""
        return self.log_p / math.log(10)


@dataclass(frozen=True, slots=True)
class ExactTest:
    """The natural logarithm of an exact p-value; `note` says what is unusual."""

    __test__: ClassVar[bool] = False

    method: str
    log_p: float
    note: str | None

    def __post_init__(self) -> None:
        if not self.log_p <= 0:
            raise ValueError(f"log_p must be at most 0, got {self.log_p}")

    @property
    def p_value(self) -> float:
        """The p-value; 0 where it is smaller than any float."""
        return math.exp(self.log_p)

    @property
    def log10_p(self) -> float:
        """The decimal logarithm of the p-value."""
        return self.log_p / math.log(10)


@dataclass(frozen=True, slots=True)
class Percentages:
    """Percent of each group's people at each level, with Wilson's limits.

    A group without people has percentages that are not a number, between 0 and 100.
    """

    percent: FloatArray
    low: FloatArray
    high: FloatArray

    def __post_init__(self) -> None:
        for name in ("percent", "low", "high"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


def check_table(counts: npt.ArrayLike) -> FloatArray:
    """A table of counts as an array, if it is one; counts need not be whole.

    Examples
    --------
    >>> check_table([[1, 2], [3, 4]])
    array([[1., 2.], [3., 4.]])
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"counts must be a table of groups by levels, got shape {table.shape}")
    if not ((table >= 0) & (table < np.inf)).all():
        raise ValueError("counts must be finite and not negative")
    return table


def expected_counts(counts: npt.ArrayLike) -> FloatArray:
    """The counts that would be expected if groups did not differ.

    Examples
    --------
    >>> expected_counts([[10, 20], [30, 40]])
    array([[12., 18.], [28., 42.]])
    """
    table = check_table(counts)
    total = table.sum()
    if total == 0:
        return np.zeros_like(table)
    return np.outer(table.sum(axis=1), table.sum(axis=0) / total)


def chi2_test(counts: npt.ArrayLike, *, correction: bool = False) -> Chi2Test:
    """Pearson's chi-square test of a table.

    Parameters
    ----------
    counts
        People, groups by levels; need not be whole.
    correction
        Yates' correction for continuity of a 2×2 table [1]_, by ½ or less where counts are nearer
        to what is expected. Larger tables have none.

    References
    ----------
    .. [1] Yates (1934), Supplement to the Journal of the Royal Statistical Society 1, 217-235.

    Examples
    --------
    >>> chi2_test([[10, 20], [30, 40]])
    Chi2Test(method='chi2', statistic=0.793..., df=1, log_p=-0.986..., note=None)
    """
    table, note = _with_people(check_table(counts))
    if min(table.shape) < 2:
        return Chi2Test.of("chi2", 0.0, 0, "fewer than two groups or levels: nothing to test")
    df = (table.shape[0] - 1) * (table.shape[1] - 1)
    expected = expected_counts(table)
    off = np.abs(table - expected)
    if correction and df == 1:
        off -= np.minimum(off, 0.5)
    return Chi2Test.of("chi2", float((off**2 / expected).sum()), df, note)


def cramers_v(counts: npt.ArrayLike) -> float | None:
    """Cramér's V [1]_, from 0 (independent) to 1; None with fewer than two groups or levels.

    References
    ----------
    .. [1] Cramér (1946), Mathematical Methods of Statistics, p. 282.

    Examples
    --------
    >>> cramers_v([[10, 0], [0, 10]])
    1.0
    """
    table, _ = _with_people(check_table(counts))
    smaller = min(table.shape) - 1
    if smaller < 1:
        return None
    share = chi2_test(table).statistic / float(table.sum() * smaller)
    return math.sqrt(min(share, 1.0))


def percentages(counts: npt.ArrayLike, level: float = 0.95) -> Percentages:
    """Percent of each group's people at each level, with Wilson's score limits [1]_.

    References
    ----------
    .. [1] Wilson (1927), Journal of the American Statistical Association 22, 209-212.

    Examples
    --------
    >>> percentages([[0, 10]]).high.round(1)
    array([[ 27.8, 100. ]])
    """
    table = check_table(counts)
    quantile = normal_quantile(level)
    people = np.broadcast_to(table.sum(axis=1, keepdims=True), table.shape)
    anyone = people > 0
    n = np.where(anyone, people, 1.0)
    share = table / n
    middle = (share + quantile**2 / (2 * n)) / (1 + quantile**2 / n)
    margin = np.sqrt(share * (1 - share) / n + quantile**2 / (4 * n**2))
    margin = quantile * margin / (1 + quantile**2 / n)
    low = np.where(anyone & (table > 0), np.clip(middle - margin, 0, share), 0.0)
    high = np.where(anyone & (table < people), np.clip(middle + margin, share, 1), 1.0)
    return Percentages(100 * np.where(anyone, share, np.nan), 100 * low, 100 * high)


def cochran_armitage(
    counts: npt.ArrayLike,
    scores: Sequence[float] | None = None,
    alternative: Alternative = "two-sided",
) -> TestResult:
    """The test for trend in two groups over ordered levels [1]_ [2]_.

    The statistic is a normal deviate; positive where the second group is at higher levels, which
    is what `greater` asks for. Its variance is that of independent people, with N where the
    permutation variance of `linear_by_linear` has N − 1.

    Parameters
    ----------
    counts
        People, two groups by levels in order.
    scores
        Where the levels lie; 0, 1, 2, … if not given.

    References
    ----------
    .. [1] Cochran (1954), Biometrics 10, 417-451.
    .. [2] Armitage (1955), Biometrics 11, 375-386.

    Examples
    --------
    >>> cochran_armitage([[20, 10, 5], [10, 10, 15]])
    TestResult(method='cochran-armitage', statistic=2.86..., log_p=-5.49..., note=None, df=None)
    """
    table = check_table(counts)
    if len(table) != 2:
        raise ValueError(f"counts must have two groups, got {len(table)}")
    trend, variance = score_sum(table, scores, None)
    n = float(table.sum())
    spread = variance * (n - 1) / n if n else 0.0
    return normal_test("cochran-armitage", trend, spread, alternative, _trend_note(variance))


def linear_by_linear(
    counts: npt.ArrayLike,
    level_scores: Sequence[float] | None = None,
    group_scores: Sequence[float] | None = None,
    alternative: Alternative = "two-sided",
) -> TestResult:
    """The test of linear association between ordered groups and ordered levels [1]_.

    The statistic is r·√(N − 1), with r the correlation of the scores.

    Parameters
    ----------
    counts
        People, groups in order by levels in order.
    level_scores, group_scores
        Where levels and groups lie; 0, 1, 2, … if not given.

    References
    ----------
    .. [1] Mantel (1963), Journal of the American Statistical Association 58, 690-700.

    Examples
    --------
    >>> linear_by_linear([[20, 10, 5], [10, 10, 10], [5, 10, 20]]).statistic
    4.26...
    """
    trend, variance = score_sum(check_table(counts), level_scores, group_scores)
    note = _trend_note(variance)
    return normal_test("linear-by-linear", trend, variance, alternative, note)


def score_sum(
    table: FloatArray, level_scores: Sequence[float] | None, group_scores: Sequence[float] | None
) -> tuple[float, float]:
    """Σ of the product of both scores, less its expectation, and its permutation variance."""
    levels = _check_scores("level_scores", level_scores, table.shape[1])
    groups = _check_scores("group_scores", group_scores, table.shape[0])
    of_groups, of_levels = table.sum(axis=1), table.sum(axis=0)
    n = float(of_groups.sum())
    if n <= 1:
        return 0.0, 0.0
    levels, groups = levels - of_levels @ levels / n, groups - of_groups @ groups / n
    spread = float(of_groups @ groups**2) * float(of_levels @ levels**2)
    if min(np.count_nonzero(of_groups), np.count_nonzero(of_levels)) < 2:
        spread = 0.0  # exactly: one group or level has no spread
    return float(groups @ table @ levels), spread / (n - 1)


def exact_test(counts: npt.ArrayLike, *, most_work: int = _MOST_WORK) -> ExactTest | None:
    """Fisher's exact test [1]_ of a table of any shape [2]_, or None if that is too much work.

    Summed are the chances of all tables with the same margins that are at most as likely as the
    one observed. Levels are split in two halves; each is filled in every possible way, ways that
    use up the same people with the same chance are counted together, and the halves are joined.

    Parameters
    ----------
    counts
        Whole numbers of people, groups by levels.
    most_work
        How many ways to fill half of a table may be tried. 2×2 tables have no such limit.

    References
    ----------
    .. [1] Fisher (1935), Journal of the Royal Statistical Society 98, 39-82.
    .. [2] Freeman, Halton (1951), Biometrika 38, 141-149.

    Examples
    --------
    >>> exact_test([[3, 1], [1, 3]])
    ExactTest(method='fisher', log_p=-0.722..., note=None)
    >>> exact_test([[3, 1, 0], [1, 3, 2]]).p_value
    0.371...
    """
    table, note = _with_people(_check_whole(counts))
    if min(table.shape) < 2:
        return ExactTest("fisher", 0.0, "fewer than two groups or levels: nothing to test")
    if table.shape == (2, 2):
        return ExactTest("fisher", _log_fisher(table, "two-sided"), note)
    log_p = _log_freeman_halton(table, most_work)
    return None if log_p is None else ExactTest("fisher-freeman-halton", log_p, note)


def fisher_exact(counts: npt.ArrayLike, alternative: Alternative = "two-sided") -> ExactTest:
    """Fisher's exact test of a 2×2 table; `greater` means an odds ratio a·d/(b·c) above 1.

    Examples
    --------
    >>> fisher_exact([[3, 1], [1, 3]], "greater").p_value
    0.242857...
    """
    table = _check_whole(counts)
    if table.shape != (2, 2):
        raise ValueError(f"counts must be a 2×2 table, got shape {table.shape}")
    if alternative not in _ALTERNATIVES:
        raise ValueError(f"alternative must be one of {_ALTERNATIVES}, got {alternative!r}")
    if 0 in table.sum(axis=0) or 0 in table.sum(axis=1):
        return ExactTest("fisher", 0.0, "fewer than two groups or levels: nothing to test")
    return ExactTest("fisher", _log_fisher(table, alternative), None)


def _check_whole(counts: npt.ArrayLike) -> FloatArray:
    table = check_table(counts)
    if not (table == np.floor(table)).all():
        raise ValueError("counts must be whole numbers for an exact test")
    return table


def _check_scores(name: str, scores: Sequence[float] | None, length: int) -> FloatArray:
    checked = np.arange(length, dtype=np.float64) if scores is None else np.asarray(scores, float)
    if checked.shape != (length,) or not np.isfinite(checked).all():
        raise ValueError(f"{name} must be {length} finite numbers, got {scores}")
    return checked


def _with_people(table: FloatArray) -> tuple[FloatArray, str | None]:
    """The table without empty groups and levels, and what was left out."""
    groups, levels = table.sum(axis=1) > 0, table.sum(axis=0) > 0
    notes = [_left_out("group", groups), _left_out("level", levels)]
    note = " and ".join(filter(None, notes))
    return table[groups][:, levels], f"without people, left out: {note}" if note else None


def _left_out(name: str, kept: BoolArray) -> str:
    many = len(kept) - np.count_nonzero(kept)
    return f"{many} {name}{'s' if many > 1 else ''}" if many else ""


def _trend_note(variance: float) -> str | None:
    return None if variance else "fewer than two groups or levels: nothing to test, p = 1"


def _log_fisher(table: FloatArray, alternative: Alternative) -> float:
    """log p by the chances of every first cell, built by their ratios from the smallest cell."""
    (a, b), (c, d) = table
    first, second, chosen = a + b, c + d, a + c
    cells = np.arange(max(0.0, chosen - second), min(first, chosen) + 1)
    before = cells[:-1]
    up = np.log((first - before) * (chosen - before))
    down = np.log((before + 1) * (second - chosen + before + 1))
    chances = np.concatenate(([0.0], np.cumsum(up - down)))
    chances -= chances.max()
    observed = chances[int(a - cells[0])]
    counted = {
        "two-sided": chances <= observed + _TIE,
        "greater": cells >= a,
        "less": cells <= a,
    }[alternative]
    if counted.all():
        return 0.0
    return min(_log_sum(chances[counted]) - _log_sum(chances), 0.0)


def _log_sum(logs: FloatArray) -> float:
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum()))


@dataclass(frozen=True, slots=True)
class _Ways:
    """Ways to fill some levels: people used of each group, Σ log 1/x!, and log how many ways."""

    used: IntArray  # ways × groups
    chance: FloatArray
    many: FloatArray

    @classmethod
    def together(cls, parts: Sequence["_Ways"], groups: IntArray) -> "_Ways":
        used, chance, many = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("used", "chance", "many")
        )
        return cls(used, chance, many).merged(groups)

    def and_level(self, fills: IntArray, groups: IntArray) -> "_Ways":
        """These ways with one more level, filled in each way that the groups' people allow."""
        rows = max(_AT_ONCE // len(fills), 1)
        starts = range(0, len(self.many), rows)
        parts = [self._rows(row, row + rows)._filled(fills, groups) for row in starts]
        return parts[0] if len(parts) == 1 else self.together(parts, groups)

    def _rows(self, start: int, end: int) -> "_Ways":
        return _Ways(self.used[start:end], self.chance[start:end], self.many[start:end])

    def _filled(self, fills: IntArray, groups: IntArray) -> "_Ways":
        from scipy.special import gammaln

        left = groups - self.used
        before, fill = np.nonzero((fills[None] <= left[:, None]).all(axis=2))
        chance = self.chance[before] - gammaln(fills + 1.0).sum(axis=1)[fill]
        return _Ways(self.used[before] + fills[fill], chance, self.many[before]).merged(groups)

    def merged(self, groups: IntArray) -> "_Ways":
        """Ways that use the same people with the same chance, as one."""
        place = _places(self.used, groups)
        order = np.lexsort((self.chance, place))
        place, chance = place[order], self.chance[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(place) > 0) | (np.diff(chance) > 1e-10)
        starts = np.flatnonzero(new)
        many = np.logaddexp.reduceat(self.many[order], starts)
        return _Ways(self.used[order][starts], chance[starts], many)


def _places(used: IntArray, groups: IntArray) -> IntArray:
    """A number for each combination of people used."""
    bases = np.concatenate(([1], np.cumprod(groups[:-1] + 1)))
    return np.asarray(used @ bases, dtype=np.int64)


def _log_freeman_halton(table: FloatArray, most_work: int) -> float | None:
    from scipy.special import gammaln

    table = table if table.shape[0] <= table.shape[1] else table.T
    groups = table.sum(axis=1).astype(np.int64)
    if math.prod(int(people) + 1 for people in groups) >= 2**62:
        return None
    left, right = _halves(table.sum(axis=0).astype(np.int64), len(groups))
    first = _filled(left, groups, most_work)
    second = None if first is None else _filled(right, groups, most_work)
    if first is None or second is None:
        return None
    observed = float(-gammaln(table + 1).sum())
    counted, everything = _joined(first, second, groups, observed + _TIE)
    return min(counted - everything, 0.0)


def _halves(levels: IntArray, groups: int) -> tuple[list[int], list[int]]:
    """Levels in two halves with about as many ways to fill each."""
    halves: tuple[list[int], list[int]] = ([], [])
    work = [0.0, 0.0]
    for people in sorted(levels.tolist(), reverse=True):
        smaller = int(work[1] < work[0])
        halves[smaller].append(people)
        work[smaller] += math.log(math.comb(people + groups - 1, groups - 1))
    return halves


def _filled(levels: list[int], groups: IntArray, most_work: int) -> _Ways | None:
    """Every way to fill these levels; None if there are too many."""
    ways = _Ways(np.zeros((1, len(groups)), dtype=np.int64), np.zeros(1), np.zeros(1))
    for people in levels:
        if len(ways.many) * math.comb(people + len(groups) - 1, len(groups) - 1) > most_work:
            return None
        ways = ways.and_level(_fills(people, len(groups)), groups)
    return ways


def _fills(people: int, groups: int) -> IntArray:
    """Every way to share out people to groups.

    Examples
    --------
    >>> _fills(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    rows = np.zeros((1, 0), dtype=np.int64)
    for _ in range(groups - 1):
        left = people - rows.sum(axis=1)
        start = np.cumsum(left + 1) - (left + 1)
        rows = np.repeat(rows, left + 1, axis=0)
        rows = np.column_stack((rows, np.arange(len(rows)) - np.repeat(start, left + 1)))
    return np.column_stack((rows, people - rows.sum(axis=1)))


def _joined(first: _Ways, second: _Ways, groups: IntArray, most: float) -> tuple[float, float]:
    """log Σ of chances up to `most`, and of all, over ways that together use everybody."""
    place, other = _places(first.used, groups), _places(groups - second.used, groups)
    order = np.lexsort((second.chance, other))
    other, chance = other[order], second.chance[order]
    weight = chance + second.many[order]
    counted, everything = [], []
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    for start, end in zip(starts, np.append(starts[1:], len(place)), strict=True):
        low, high = np.searchsorted(other, (place[start], place[start] + 1))
        if low == high:
            continue
        summed = np.logaddexp.accumulate(weight[low:high])
        least, of_own = first.chance[start:end], first.chance[start:end] + first.many[start:end]
        reach = np.searchsorted(chance[low:high], most - least, side="right")
        everything.append(of_own + summed[-1])
        counted.append((of_own + summed[np.maximum(reach - 1, 0)])[reach > 0])
    return _log_sum(np.concatenate(counted)), _log_sum(np.concatenate(everything))
