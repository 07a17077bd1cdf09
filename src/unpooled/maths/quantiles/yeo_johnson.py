"""The Yeo-Johnson transformation h_λ: its moments at a center, its likelihood, its fits.

A center says the mean and the variance of h_λ(x) at a few λ; the likelihood needs little else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, read_only

BOUNDS = (-1.0, 2.0)
DEFAULT_GRID: FloatArray = read_only(np.linspace(*BOUNDS, 7))

_STEP = 2e-4  # between three λ: small for the parabola's error, large against rounding
_MAX_ROUNDS = 9
_CONTRADICT = 0.05  # SD between the moments given and the nearest possible ones


def transform(x: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
    """h_λ(x), the paper's eq. YJ; x and λ broadcast.

    >>> transform([-1, 0, 3], 0.0).round(4).tolist()
    [-1.5, 0.0, 1.3863]
    """
    x = _finite(x, "x")
    (power, log_only), log = _power(x, lam), np.log1p(np.abs(x))
    with np.errstate(over="ignore"):
        size = np.where(log_only, log, np.expm1(power * log) / power)
    return _finite(np.copysign(size, x), "the transform of x")


def inverse(z: npt.ArrayLike, lam: float) -> FloatArray:
    """h_λ⁻¹(z). A z outside h_λ(ℝ) (the paper's eq. YJ inverse) is a ValueError, never ±inf.

    >>> inverse([-1.5, 0.0, 1.3862943611198906], 0.0).round(4).tolist()
    [-1.0, 0.0, 3.0]
    """
    z = _finite(z, "z")
    x = inverse_or_nan(z, lam)
    if np.isnan(x).any():
        low, high = -1 / (lam - 2) if lam > 2 else -np.inf, -1 / lam if lam < 0 else np.inf
        rule = f"z must lie in ({low:g}, {high:g}) for λ = {lam:g}, and its inverse be finite"
        raise ValueError(f"{rule}, got {z[np.isnan(x)].flat[0]:g}")
    return x


def inverse_or_nan(z: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
    """h_λ⁻¹(z), NaN where there is none; z and λ broadcast.

    >>> inverse_or_nan([0.5, 1.0], -1.0).tolist()
    [1.0, nan]
    """
    z = np.asarray(z, dtype=np.float64)
    power, log_only = _power(z, lam)
    with np.errstate(all="ignore"):
        x = np.expm1(np.where(log_only, np.abs(z), np.log1p(power * np.abs(z)) / power))
    return np.where(np.isfinite(x), np.copysign(x, z), np.nan)


def _power(x: FloatArray, lam: npt.ArrayLike) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The power of 1 + |x|, and where it is 0: there h_λ is the logarithm."""
    lam = _finite(lam, "lam")
    power = np.where(x >= 0, lam, 2.0 - lam)
    log_only = np.abs(power) < 1e-20
    return np.where(log_only, 1.0, power), log_only


def _finite(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array


@dataclass(frozen=True, slots=True)
class PowerMoments:
    """n, Σ sign(x) log(1+|x|) and, per λ, mean and variance (÷ n) of h_λ(x)."""

    n: int
    log_sum: float
    lambdas: FloatArray
    mean: FloatArray
    variance: FloatArray

    def __post_init__(self) -> None:
        for name in ("lambdas", "mean", "variance"):
            object.__setattr__(self, name, read_only(_finite(getattr(self, name), name)))
        if not self.lambdas.shape == self.mean.shape == self.variance.shape == (self.lambdas.size,):
            raise ValueError("lambdas, mean and variance must be equally long vectors")
        if self.n < 1 or (self.variance < 0).any():
            raise ValueError(f"n must be ≥ 1, variance ≥ 0, got {self.n} and {self.variance}")
        _finite(self.log_sum, "log_sum")


def power_moments(x: npt.ArrayLike, lambdas: npt.ArrayLike) -> PowerMoments:
    """What one center says.

    >>> power_moments([0, 1, 2], [1.0]).mean.round(4).tolist()
    [1.0]
    """
    x, lambdas = _finite(x, "x").ravel(), np.atleast_1d(_finite(lambdas, "lambdas"))
    if x.size == 0:
        raise ValueError("x must have at least one value, got none")
    z = [transform(x, lam) for lam in lambdas]
    mean, variance = np.array([v.mean() for v in z]), np.array([v.var() for v in z])
    log_sum = float(np.sum(np.copysign(np.log1p(np.abs(x)), x)))
    return PowerMoments(x.size, log_sum, lambdas, mean, variance)


def weighted_moments(
    x: npt.ArrayLike, weights: npt.ArrayLike, lambdas: npt.ArrayLike
) -> PowerMoments:
    """The moments of points that stand for so many people each.

    >>> weighted_moments([0, 2], [10, 30], [1.0]).mean.round(4).tolist()
    [1.5]
    """
    return _Sample.of(x, weights).moments(np.atleast_1d(_finite(lambdas, "lambdas")))


def round_moments(moments: PowerMoments, digits: int = 5) -> PowerMoments:
    """Moments rounded so that the fits stay sound: a mean to `digits` digits of its SD.

    Significant digits would not do: at λ = −1 every mean of values near 250,000 is then 1.0000.
    The SD is that of the rounded variance, so that the digits follow from what is told.

    >>> round_moments(power_moments([250_000, 250_001, 250_007], [1.0]), 3).mean.tolist()
    [250002.67]
    """

    def short(value: float, scale: float) -> float:
        return round(value, digits - 1 - int(np.floor(np.log10(scale)))) if scale > 0 else value

    variance = [short(v, v) for v in moments.variance.tolist()]
    pairs = zip(moments.mean.tolist(), variance, strict=True)
    mean = [short(m, v**0.5 or abs(m)) for m, v in pairs]
    log_sum = moments.n * round(moments.log_sum / moments.n, digits)
    lambdas = moments.lambdas
    return PowerMoments(moments.n, log_sum, lambdas, np.array(mean), np.array(variance))


def are_moments_rounded(moments: PowerMoments, digits: int = 5) -> bool:
    """Whether moments have no more digits than that: rounded again, they stay.

    >>> moments = power_moments([250_000, 250_001, 250_007], [1.0])
    >>> are_moments_rounded(round_moments(moments, 3), 3), are_moments_rounded(moments, 3)
    (True, False)
    """
    again = round_moments(moments, digits)
    return (
        again.log_sum == moments.log_sum
        and np.array_equal(again.mean, moments.mean)
        and np.array_equal(again.variance, moments.variance)
    )


def pool(moments: Sequence[PowerMoments]) -> PowerMoments:
    """The moments of all centers' values together, eq. yj_data_log_likelihood.

    >>> pool([power_moments([0, 1], [1.0]), power_moments([5], [1.0])]).mean.round(4).tolist()
    [2.0]
    """
    if len({tuple(m.lambdas) for m in moments}) != 1:
        raise ValueError("moments must be of one or more centers, all at the same λ, got others")
    n, lambdas = sum(m.n for m in moments), moments[0].lambdas
    mean = np.sum([m.n / n * m.mean for m in moments], axis=0)
    variance = np.sum([m.n / n * (m.variance + (m.mean - mean) ** 2) for m in moments], axis=0)
    return PowerMoments(n, sum(m.log_sum for m in moments), lambdas, mean, variance)


def log_likelihood(pooled: PowerMoments) -> FloatArray:
    """At each λ, eq. yj_log_likelihood; concave in λ.

    >>> log_likelihood(power_moments([0, 1, 2], [1.0])).round(4).tolist()
    [0.6082]
    """
    if (pooled.variance <= 0).any():
        raise ValueError("values must differ by more than rounding, got a variance of 0")
    return -pooled.n / 2 * np.log(pooled.variance) + (pooled.lambdas - 1) * pooled.log_sum


@dataclass(frozen=True, slots=True)
class YeoJohnsonFit:
    """h_λ(x) is normal with mean and sd; `raw_mean` and `raw_sd` are those of x itself."""

    lam: float
    mean: float
    sd: float
    raw_mean: float
    raw_sd: float
    rounds: int
    at_bound: bool

    def quantile(self, p: npt.ArrayLike) -> FloatArray:
        """h_λ⁻¹(mean + sd Φ⁻¹(p)), eq. YJData; NaN where that cannot be a quantile of the data.

        It cannot where mean + sd Φ⁻¹(p) lies outside h_λ(ℝ), or where the value breaks Cantelli's
        inequality: at most 1 / (1 + k²) of the data lie k SD or more to one side of the mean.

        >>> YeoJohnsonFit(1.0, 5.0, 2.0, 5.0, 2.0, 1, False).quantile([0.5]).tolist()
        [5.0]
        """
        from scipy.special import ndtri

        from unpooled.maths.quantiles.quantile import (
            check_probabilities,  # that module imports this one
        )

        p = check_probabilities(p)
        value = inverse_or_nan(self.mean + self.sd * ndtri(p), self.lam)
        below = value < self.raw_mean - self.raw_sd * np.sqrt((1 - p) / p)
        above = value > self.raw_mean + self.raw_sd * np.sqrt(p / (1 - p))
        return np.where(below | above, np.nan, value)


def fit_likelihood(
    evaluate: Callable[[FloatArray], PowerMoments], bounds: tuple[float, float] = BOUNDS
) -> YeoJohnsonFit:
    """The maximum likelihood fit within bounds; a call of `evaluate` is a round over the centers.

    Round 1 asks seven λ over the bounds, which place the peak to about 1e-4 (see `fit_grid`), the
    next one three λ there for Newton's step, the last one the peak itself: three rounds as a rule.

    >>> fit = fit_likelihood(lambda lambdas: power_moments(np.arange(100.0), lambdas))
    >>> round(fit.lam, 4), fit.rounds
    (0.717, 3)
    """
    low, high = bounds
    if not low + 4 * _STEP <= high:
        raise ValueError(f"bounds must be two increasing values of λ, got {bounds}")
    sample = _sample_with(evaluate(np.linspace(low, high, 7)))
    lam, rounds = sample.peak(low, high), 1
    while rounds < _MAX_ROUNDS - 1:
        rounds += 1
        triple = np.clip(lam, low + _STEP, high - _STEP) + _STEP * np.array([-1.0, 0.0, 1.0])
        (slope, bend), expected = _parabola(evaluate(triple)), _parabola(sample.moments(triple))[1]
        if expected > -0.1 or abs(bend - expected) > -0.1 * expected:
            break  # too flat, or too roughly rounded, to see more from so close
        lam = float(np.clip(triple[1] - slope / bend, low, high))
        if triple[0] <= lam <= triple[-1]:
            break
    return sample.fit(evaluate(np.array([lam])), rounds + 1, bounds)


def fit_grid(pooled: PowerMoments, refine: bool = True) -> YeoJohnsonFit:
    """The fit from one pass over a grid: its best λ or, refined, the best between its ends.

    Refining finds a few weighted points with all the moments given, and takes the moments at every
    other λ from them: within .01 standard errors of the full likelihood on `DEFAULT_GRID`.

    >>> round(fit_grid(power_moments(np.arange(100.0), DEFAULT_GRID)).lam, 4)
    0.717
    """
    sample, ends = _sample_with(pooled), (float(pooled.lambdas.min()), float(pooled.lambdas.max()))
    lam = sample.peak(*ends) if refine else float(pooled.lambdas[np.argmax(log_likelihood(pooled))])
    return sample.fit(sample.moments([lam]), 1, ends)


def fit_points(x: npt.ArrayLike, weights: npt.ArrayLike) -> YeoJohnsonFit:
    """The maximum likelihood fit of points that stand for so many people each.

    >>> round(fit_points(np.arange(100.0), np.ones(100)).lam, 4)
    0.717
    """
    sample = _Sample.of(x, weights)
    return sample.fit(sample.moments([sample.peak(*BOUNDS)]), 1, BOUNDS)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Weighted points that stand for all the data."""

    x: FloatArray
    weight: FloatArray
    n: int
    log_sum: float

    @staticmethod
    def of(x: npt.ArrayLike, weights: npt.ArrayLike) -> "_Sample":
        x, weights = _finite(x, "x").ravel(), _finite(weights, "weights").ravel()
        if x.size == 0 or x.shape != weights.shape or (weights < 0).any() or not weights.any():
            raise ValueError("x must have at least one value, and a weight ≥ 0 for each")
        people = weights.sum()
        log_sum = float(np.copysign(np.log1p(np.abs(x)), x) @ weights)
        return _Sample(x, weights / people, round(float(people)), log_sum)

    def moments(self, lambdas: npt.ArrayLike) -> PowerMoments:
        lambdas = np.asarray(lambdas, dtype=np.float64)
        z = transform(self.x, lambdas[:, None])
        mean = z @ self.weight
        variance = (z - mean[:, None]) ** 2 @ self.weight
        return PowerMoments(self.n, self.log_sum, lambdas, mean, variance)

    def peak(self, low: float, high: float) -> float:
        """The maximiser of the log-likelihood between low and high."""
        from scipy.optimize import minimize_scalar

        def loss(lam: float) -> float:
            return -float(log_likelihood(self.moments([lam]))[0])

        best = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-8})
        return min((float(best.x), low, high), key=loss)

    def fit(self, at: PowerMoments, rounds: int, ends: tuple[float, float]) -> YeoJohnsonFit:
        (lam,), (mean,), (variance,) = at.lambdas.tolist(), at.mean.tolist(), at.variance.tolist()
        raw = self.moments([1.0])
        raw_mean, raw_sd = float(raw.mean[0]), float(raw.variance[0]) ** 0.5
        return YeoJohnsonFit(lam, mean, variance**0.5, raw_mean, raw_sd, rounds, lam in ends)


def _sample_with(pooled: PowerMoments) -> _Sample:
    """Points and weights with the moments given; a ValueError where these contradict each other.

    Every moment is linear in the weights, so matching all is a matter of non-negative least
    squares. At every λ all values lie within √n SD of the mean (Samuelson).
    """
    from scipy.optimize import nnls

    log_likelihood(pooled)  # refuses a constant
    mean, sd, root_n = pooled.mean[:, None], np.sqrt(pooled.variance)[:, None], np.sqrt(pooled.n)
    reach = mean + np.array([-1.0, 1.0]) * sd * root_n
    ends = inverse_or_nan(reach, pooled.lambdas[:, None])
    ends = np.copysign(np.log1p(np.abs(ends)), ends)
    low, high = np.nanmax([-50.0, *ends[:, 0]]), np.nanmin([50.0, *ends[:, 1]])
    logs, step = np.linspace(low, high, 200), (high - low) / 200
    target = np.repeat([1.0, 0.0, 0.0, 1.0], [1, 1, mean.size, mean.size])
    for _ in range(4):  # values may lie between the points: look closer around those in use
        x = np.copysign(np.expm1(np.abs(logs)), logs)
        score = (transform(x, pooled.lambdas[:, None]) - mean) / sd
        log_score = (logs - pooled.log_sum / pooled.n) * root_n / (high - low)
        rows = np.vstack([np.ones_like(x), log_score, score, score**2])
        weight, distance = nnls(rows, target, maxiter=100 * x.size)
        used = weight > 0
        if distance < 1e-9:
            break
        logs = np.unique(logs[used][:, None] + step * np.linspace(-1, 1, 21)).clip(low, high)
        step /= 10
    if distance > _CONTRADICT:
        raise ValueError("moments must belong together, got a contradiction. Hint: round_moments.")
    return _Sample(x[used], weight[used] / weight.sum(), pooled.n, pooled.log_sum)


def _parabola(triple: PowerMoments) -> tuple[float, float]:
    """First and second derivative of the log-likelihood in the middle of three λ a step apart."""
    left, middle, right = (float(value) for value in log_likelihood(triple))
    return (right - left) / (2 * _STEP), (left - 2 * middle + right) / _STEP**2
