"""A smooth distribution from released tables: empirical-Bayes smoothing of the QQ plot.

On a scale where the data are roughly normal (Yeo-Johnson [1]_), the pooled quantiles z at levels p
are plotted against the normal quantiles t. Their sampling error e is known; what they deviate from
a straight line is a smooth curve r, an integrated Wiener process [2]_ of unknown variance τ:

    z(t) = α + βt + r(t) + e(t),   cov(e_j, e_k) = p_j(1 − p_k)/(φ(t_j) φ(t_k) N),  p_j ≤ p_k.

The prior is flat in α, β and √τ [3]_, the curve the posterior mean over a grid of τ. One τ for the
whole plot rounds off sharp bends, beside a gap for instance. What the curve would lose by being
smoothed once more is about what the plot has lost, and is given back (twicing [5]_). Each tail
bends as the data ask: no single transformation is imposed.

References
----------
.. [1] Yeo, Johnson (2000), Biometrika 87, 954-959.
.. [2] Wahba (1978), Journal of the Royal Statistical Society B 40, 364-372.
.. [3] Gelman (2006), Bayesian Analysis 1, 515-534.
.. [4] Efron, Morris (1972), Journal of the American Statistical Association 67, 130-139.
.. [5] Tukey (1977), Exploratory Data Analysis, chapter 16.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.quantiles.yeo_johnson import inverse_or_nan, transform

_FEWEST = 10  # different values that can be smoothed
_FEWEST_LEVELS, _MOST_LEVELS = 10, 150  # of the QQ plot: soon done
_PEOPLE_PER_LEVEL = 10
_BOUND_UNIT = 1000.0  # medians are so many units above a declared limit: Yeo-Johnson is Box-Cox
_LAMBDAS = (-2.0, 4.0)
_TRANSLATION = 1.2816  # SDs of what smoothing may move a quantile: 80 % of the moves or more
_VARIANCES: FloatArray = 10.0 ** np.arange(
    -5, 2.01, 0.25
)  # τ: from a straight line to no smoothing


@dataclass(frozen=True, slots=True)
class WorkingScale:
    """z = (h_λ((x − location)/unit) − mean)/sd, roughly normal."""

    location: float
    unit: float
    lam: float
    mean: float
    sd: float

    @classmethod
    def of(cls, quantiles: FloatArray, lower: float) -> "WorkingScale":
        """The scale of quantiles at equal steps of probability, by the normal likelihood."""
        from scipy.optimize import minimize_scalar

        q25, median, q75 = np.quantile(quantiles, [0.25, 0.5, 0.75])
        if np.isfinite(lower) and median > lower:
            location, unit = lower, (median - lower) / _BOUND_UNIT
        else:
            spread = (q75 - q25) / 1.349
            location, unit = median, spread if spread > 0 else max(float(quantiles.std()), 1e-300)
        x = (quantiles - location) / unit
        logs = float(np.mean(np.copysign(np.log1p(np.abs(x)), x)))

        def misfit(lam: float) -> float:
            return float(np.log(transform(x, lam).std())) - (lam - 1) * logs

        best = minimize_scalar(misfit, bounds=_LAMBDAS, method="bounded", options={"xatol": 1e-6})
        z = transform(x, float(best.x))
        return cls(float(location), float(unit), float(best.x), float(z.mean()), float(z.std()))

    def forth(self, x: FloatArray) -> FloatArray:
        """x on the working scale."""
        return (transform((x - self.location) / self.unit, self.lam) - self.mean) / self.sd

    def back(self, z: FloatArray) -> FloatArray:
        """The x of this z; NaN where there is none."""
        return self.location + self.unit * inverse_or_nan(self.mean + self.sd * z, self.lam)


@dataclass(frozen=True, slots=True)
class Curve:
    """The smoothed QQ plot at its knots t, straight beyond them.

    `kept` is the mean squared error there as a share of the sampling variance.
    """

    scale: WorkingScale
    t: FloatArray
    z: FloatArray
    bend: FloatArray  # second derivatives at the knots
    kept: FloatArray

    def kept_at(self, p: FloatArray) -> FloatArray:
        """The share of the sampling variance that smoothing leaves at the levels p."""
        from scipy.special import ndtri

        return np.asarray(np.interp(ndtri(p), self.t, self.kept))

    def quantile(self, p: FloatArray) -> FloatArray:
        """x at the levels p, by the natural cubic spline: the Wiener process between knots."""
        from scipy.special import ndtri

        t = ndtri(p)
        at = np.clip(np.searchsorted(self.t, t) - 1, 0, len(self.t) - 2)
        inside = np.clip(t, self.t[0], self.t[-1])
        width = self.t[at + 1] - self.t[at]
        b = (inside - self.t[at]) / width
        a = 1 - b
        square = width**2 / 6
        bends = (a**3 - a) * self.bend[at] + (b**3 - b) * self.bend[at + 1]
        z = a * self.z[at] + b * self.z[at + 1] + bends * square
        rise = (3 * b**2 - 1) * self.bend[at + 1] - (3 * a**2 - 1) * self.bend[at]
        slope = (self.z[at + 1] - self.z[at]) / width + rise * width / 6
        return self.scale.back(z + (t - inside) * np.maximum(slope, 0.0))


def limited_translation(
    drawn: FloatArray,
    kept: FloatArray,
    error: FloatArray,
    p: FloatArray,
    values: FloatArray,
    levels: FloatArray,
) -> FloatArray:
    """The drawn quantiles at p, kept near those of ascending values at these levels [4]_.

    If the model holds, smoothing moves a quantile by √(1 − kept) standard errors at most. Where it
    says that it gains little, as at a hard edge, it may hence move little.
    """
    reach = _TRANSLATION * np.sqrt(1 - kept) * error
    low, here, high = (np.interp(p + sign * reach, levels, values) for sign in (-1, 0, 1))
    return np.clip(np.where(np.isnan(drawn), here, drawn), low, high)


def fit_curve(values: FloatArray, weights: FloatArray, levels: int, lower: float) -> Curve:
    """Smooth the QQ plot of weighted, ascending values at so many levels.

    Examples
    --------
    >>> x = np.arange(1.0, 301.0)
    >>> fit_curve(x, np.ones(300), 50, -np.inf).quantile(np.array([0.5])).round(1)
    array([150.5])
    """
    people = float(weights.sum())
    quantiles = even_quantiles(values, weights, levels)
    scale = WorkingScale.of(quantiles, lower)
    plot = _QQPlot.of(levels)
    z = scale.forth(quantiles)
    shares, kept = plot.smooth(z, people)
    smooth = z - plot.back @ (shares**2 * (plot.contrasts @ z))  # once would be the share itself
    return Curve(scale, plot.t, smooth, plot.bending @ smooth, kept)


def middles(weights: FloatArray) -> FloatArray:
    """The level of each weighted point: the middle of its share."""
    reached = np.cumsum(weights)
    return np.asarray((reached - weights / 2) / reached[-1])


@dataclass(frozen=True, slots=True)
class _QQPlot:
    """Matrices that depend on the levels alone.

    `contrasts` A take out straight lines and make the errors (times √N) uncorrelated with variance
    1 and r with variance τ·rough; `back` leads from there to errors.
    """

    t: FloatArray
    variance: FloatArray
    rough: FloatArray
    contrasts: FloatArray
    back: FloatArray
    bending: FloatArray

    @staticmethod
    @lru_cache(maxsize=16)
    def of(levels: int) -> "_QQPlot":
        from scipy.linalg import eigh, qr
        from scipy.special import ndtri

        p = (np.arange(levels) + 0.5) / levels
        t = ndtri(p)
        density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
        errors = (np.minimum.outer(p, p) - np.outer(p, p)) / np.outer(density, density)
        s = t - t[0]
        less, more = np.minimum.outer(s, s), np.maximum.outer(s, s)
        wiener = less**2 * (3 * more - less) / 6
        rest = qr(np.stack((np.ones(levels), t), axis=1))[0][:, 2:]
        rough, basis = eigh(rest.T @ wiener @ rest, rest.T @ errors @ rest)
        contrasts = (rest @ basis).T
        back = errors @ contrasts.T
        return _QQPlot(
            t, np.diag(errors).copy(), np.maximum(rough, 0.0), contrasts, back, _natural_bends(t)
        )

    def smooth(self, z: FloatArray, people: float) -> tuple[FloatArray, FloatArray]:
        """What share e of each contrast is error, and the share of variance that stays.

        Less e², a contrast of variance 1 has the mean squared error e − 2e³ + e⁴ about the truth.
        """
        total = 1 / people + _VARIANCES[:, None] * self.rough
        squares = (self.contrasts @ z) ** 2
        log = -(np.log(total).sum(axis=1) + (squares / total).sum(axis=1)) / 2
        log += np.log(_VARIANCES) / 2  # the grid is even in log τ, the prior in √τ
        weights = np.exp(log - log.max())
        error = weights @ (1 / (people * total)) / weights.sum()
        gained = error**2 * (2 - error)
        return error, np.clip(1 - (self.back**2 @ gained) / self.variance, 0.0, 1.0)


def _natural_bends(t: FloatArray) -> FloatArray:
    """The matrix that gives the second derivatives of the natural cubic spline at its knots."""
    h = np.diff(t)
    n = len(t)
    left = np.eye(n)
    right = np.zeros((n, n))
    for i in range(1, n - 1):
        left[i, i - 1 : i + 2] = h[i - 1] / 6, (h[i - 1] + h[i]) / 3, h[i] / 6
        right[i, i - 1 : i + 2] = 1 / h[i - 1], -1 / h[i - 1] - 1 / h[i], 1 / h[i]
    return np.asarray(np.linalg.solve(left, right))


def can_smooth(values: FloatArray) -> bool:
    """Whether ascending values are enough different ones for a curve, rounding errors aside."""
    least = 1e-12 * float(np.abs(values).max(initial=0.0))
    return bool(np.count_nonzero(np.diff(values) > least) + 1 >= _FEWEST)


def even_quantiles(values: FloatArray, weights: FloatArray, levels: int) -> FloatArray:
    """Quantiles of weighted, ascending values at so many equal steps of probability."""
    return np.interp((np.arange(levels) + 0.5) / levels, middles(weights), values)


def levels_for(people: float) -> int:
    """One level of the QQ plot for ten people, within limits."""
    return min(max(round(people / _PEOPLE_PER_LEVEL), _FEWEST_LEVELS), _MOST_LEVELS)
