"""Distribution families of simulated people: how to draw from them, and their cdf."""

from typing import Any

import msgspec
import numpy as np

from unpooled.maths.arrays import FloatArray

Random = np.random.Generator


class Family(msgspec.Struct, frozen=True, tag_field="name", tag=True, forbid_unknown_fields=True):
    """A distribution. A new one is a subclass with a tag, and an entry in `AnyFamily`."""

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        raise NotImplementedError

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        raise NotImplementedError


class Normal(Family, frozen=True, tag="normal"):
    """Normal, by its mean and SD."""

    mean: float = 0.0
    sd: float = 1.0

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return random.normal(self.mean, self.sd, n)

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        return _special("ndtr", (x - self.mean) / self.sd)


class Lognormal(Family, frozen=True, tag="lognormal"):
    """The logarithm is normal with mean mu and SD sigma."""

    mu: float = 0.0
    sigma: float = 1.0

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return random.lognormal(self.mu, self.sigma, n)

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        with np.errstate(divide="ignore"):
            return _special("ndtr", (np.log(np.maximum(x, 0.0)) - self.mu) / self.sigma)


class StudentT(Family, frozen=True, tag="t"):
    """Student's t with df degrees of freedom."""

    df: float = 3.0

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return random.standard_t(self.df, n)

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        return _special("stdtr", self.df, x)


class Weibull(Family, frozen=True, tag="weibull"):
    """Weibull, by its shape and scale."""

    shape: float = 1.5
    scale: float = 1.0

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return self.scale * random.weibull(self.shape, n)

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        return -np.expm1(-((np.maximum(x, 0.0) / self.scale) ** self.shape))


class Exponential(Family, frozen=True, tag="exponential"):
    """Exponential with the given mean."""

    scale: float = 1.0

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return random.exponential(self.scale, n)

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        return -np.expm1(-np.maximum(x, 0.0) / self.scale)


class Uniform(Family, frozen=True, tag="uniform"):
    """Uniform between low and high."""

    low: float = 0.0
    high: float = 1.0

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return random.uniform(self.low, self.high, n)

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        return np.clip((x - self.low) / (self.high - self.low), 0.0, 1.0)


class Gamma(Family, frozen=True, tag="gamma"):
    """Gamma, by its shape and scale."""

    shape: float = 4.0
    scale: float = 1.0

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return random.gamma(self.shape, self.scale, n)

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        return _special("gammainc", self.shape, np.maximum(x, 0.0) / self.scale)


class Mixture(Family, frozen=True, tag="mixture"):
    """Each person comes from one of the parts, by their weights."""

    parts: "tuple[AnyFamily, ...]"
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.weights) or not self.parts:
            raise ValueError("a mixture must have one weight per part")
        if min(self.weights) <= 0 or abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError(f"weights must be positive and sum to 1, got {list(self.weights)}")

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        part = random.choice(len(self.parts), size=n, p=self.weights)
        drawn = np.array([family.draw(random, n) for family in self.parts])
        return drawn[part, np.arange(n)]

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        shares = (w * f.cdf(x) for w, f in zip(self.weights, self.parts, strict=True))
        return sum(shares, np.zeros_like(x))


class Rounded(Family, frozen=True, tag="rounded"):
    """Another family, rounded to multiples of a step."""

    of: "AnyFamily"
    step: float = 1.0

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return np.round(self.of.draw(random, n) / self.step) * self.step

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        return self.of.cdf((np.floor(x / self.step + 1e-12) + 0.5) * self.step)


class ZeroInflated(Family, frozen=True, tag="zero-inflated"):
    """Another family in which a share of the people has the value 0 instead."""

    of: "AnyFamily"
    zeros: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.zeros < 1:
            raise ValueError(f"zeros must be a share in [0, 1), got {self.zeros}")

    def draw(self, random: Random, n: int) -> FloatArray:
        """n people."""
        return np.where(random.random(n) < self.zeros, 0.0, self.of.draw(random, n))

    def cdf(self, x: FloatArray) -> FloatArray:
        """The share of people at or below x."""
        return self.zeros * (x >= 0) + (1 - self.zeros) * self.of.cdf(x)


AnyFamily = (
    Normal
    | Lognormal
    | StudentT
    | Weibull
    | Exponential
    | Uniform
    | Gamma
    | Mixture
    | Rounded
    | ZeroInflated
)


def _special(function: str, *arguments: Any) -> FloatArray:
    import scipy.special

    return np.asarray(getattr(scipy.special, function)(*arguments), dtype=np.float64)


def label(family: AnyFamily) -> str:
    """A family in a word or two.

    Examples
    --------
    >>> label(Rounded(of=Normal(sd=10.0), step=5.0))
    'rounded(of normal(mean 0, sd 10), step 5)'
    """
    fields = (field.name for field in msgspec.structs.fields(family))
    settings = ", ".join(f"{field} {_told(getattr(family, field))}" for field in fields)
    return f"{type(family).__struct_config__.tag}({settings})"


def _told(value: object) -> str:
    if isinstance(value, Family):
        return label(value)  # type: ignore[arg-type]  # every subclass is in the union
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_told, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)
