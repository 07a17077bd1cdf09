"""What is simulated: the people of a testing or estimation setting, and the paper's settings."""

import math

import msgspec
import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import Alternative
from unpooled_study.parallel.settings import ParallelQuantiles, ParallelTests
from unpooled_study.simulations.families import AnyFamily, Gamma, Normal, Random, label
from unpooled_study.simulations.outcomes import ProportionSetting, SurvivalSetting

ALLOCATIONS = {
    3: (698, 476, 326),
    5: (492, 368, 276, 208, 156),
    10: (307, 250, 208, 172, 143, 118, 98, 81, 67, 56),
}
"""Table 1: people in each group, per center."""

PROBABILITIES = (0.02, 0.25, 0.5, 0.75, 0.98)
SHAPES = (4, 10)
PHI = 0.1

Effect = tuple[float, float, float]
"""(δ, σ_α, σ_β): the difference, and how centers and their differences vary."""

NULL_EFFECTS: tuple[Effect, ...] = ((0.0, 0.1, 0.0), (0.0, 0.1, 0.05))
PLAIN_NULL = NULL_EFFECTS[0]
"""The groups are alike at every center: here a test must keep its level."""
NULL_TIMES = 5
"""How many times the simulations of other settings it gets: all claims rest on the level."""
METHOD_EFFECTS: tuple[Effect, ...] = (
    *NULL_EFFECTS,
    (0.05, 0.0, 0.0),
    (0.05, 0.0, 0.05),
    (0.05, 0.1, 0.0),
    (0.05, 0.2, 0.0),
    (0.05, 0.1, 0.05),
    (0.05, 0.1, 0.1),
)
POWER_EFFECTS: tuple[Effect, ...] = tuple(
    (delta, 0.1, 0.05) for delta in (0.05, 0.0625, 0.075, 0.0875, 0.1)
)
S1_EFFECTS: tuple[Effect, ...] = ((0.0625, 0.2, 0.0), (0.0625, 0.1, 0.1))

Center = list[FloatArray]
"""One center's people: an ascending array per group."""


class TestSetting(msgspec.Struct, frozen=True, tag="tests", forbid_unknown_fields=True):
    """Two groups: x = ε + α_l and y = ε + α_l + β_l with β_l ~ N(δ, σ_β²)."""

    __test__ = False  # not a test case, whatever its name

    n_x: tuple[int, ...]
    n_y: tuple[int, ...]
    effect: Effect
    methods: tuple[str, ...]
    family: AnyFamily = Normal()
    k: int = 10
    alternative: Alternative = "greater"

    @property
    def columns(self) -> int:
        """How many numbers a simulation gives: the log p-value of each method."""
        return len(self.methods)

    @property
    def name(self) -> str:
        """The setting in a line; simulations are seeded by it."""
        delta, sigma_alpha, sigma_beta = self.effect
        sizes = f"n_x {_sizes(self.n_x)} n_y {_sizes(self.n_y)}"
        return (
            f"tests {label(self.family)} {sizes} "
            f"delta {delta:g} alpha {sigma_alpha:g} beta {sigma_beta:g}"
        )

    def draw(self, random: Random) -> list[Center]:
        """The sorted people of every center."""
        delta, sigma_alpha, sigma_beta = self.effect
        shifts = random.normal(0.0, 1.0, (2, len(self.n_x)))
        alpha = sigma_alpha * shifts[0]
        beta = delta + sigma_beta * shifts[1]
        x = _by_center(self.family.draw(random, sum(self.n_x)), self.n_x)
        y = _by_center(self.family.draw(random, sum(self.n_y)), self.n_y)
        centers = []
        for own_x, own_y, a, b in zip(x, y, alpha.tolist(), beta.tolist(), strict=True):
            own_x += a
            own_y += a + b
            own_x.sort()
            own_y.sort()
            centers.append([own_x, own_y])
        return centers


class QuantileSetting(msgspec.Struct, frozen=True, tag="quantiles", forbid_unknown_fields=True):
    """One group: x = ε exp(α_l) + γ_l, with SDs `scale` of α and `shift` of γ over centers."""

    sizes: tuple[int, ...]
    methods: tuple[str, ...]
    family: AnyFamily
    scale: float = 0.0
    shift: float = 0.0
    p: tuple[float, ...] = PROBABILITIES
    k: int = 10

    @property
    def columns(self) -> int:
        """How many numbers a simulation gives: for each method and p the error."""
        return len(self.methods) * len(self.p)

    @property
    def name(self) -> str:
        """The setting in a line; simulations are seeded by it."""
        spread = f"scale {self.scale:.6g} shift {self.shift:g}"
        return f"quantiles {label(self.family)} n {_sizes(self.sizes)} {spread}"

    def draw(self, random: Random) -> tuple[list[Center], FloatArray, FloatArray]:
        """The sorted people of every center, and the scale and shift of each center."""
        drawn = random.normal(0.0, 1.0, (2, len(self.sizes)))
        scale, shift = np.exp(self.scale * drawn[0]), self.shift * drawn[1]
        people = _by_center(self.family.draw(random, sum(self.sizes)), self.sizes)
        for values, a, b in zip(people, scale.tolist(), shift.tolist(), strict=True):
            values *= a
            values += b
            values.sort()
        return [[values] for values in people], scale, shift


AnySetting = TestSetting | QuantileSetting
Outcomes = SurvivalSetting | ProportionSetting
Simulated = AnySetting | ParallelQuantiles | ParallelTests | Outcomes


def _sizes(sizes: tuple[int, ...]) -> str:
    return "+".join(map(str, sizes))


def _by_center(values: FloatArray, sizes: tuple[int, ...]) -> list[FloatArray]:
    """Views of consecutive runs."""
    ends = np.cumsum(sizes).tolist()
    return [values[end - n : end] for end, n in zip(ends, sizes, strict=True)]


PAPER_TESTS = ("combined", "paper-table", "fisher", "sum", "weighted")
QUANTILES = ("loss", "yj-likelihood", "yj-table")


def paper_test(centers: int, effect: Effect) -> TestSetting:
    """A testing setting of the paper.

    Examples
    --------
    >>> paper_test(3, (0.0625, 0.2, 0.0)).name
    'tests normal(mean 0, sd 1) n_x 698+476+326 n_y 698+476+326 delta 0.0625 alpha 0.2 beta 0'
    """
    sizes = ALLOCATIONS[centers]
    return TestSetting(n_x=sizes, n_y=sizes, effect=effect, methods=PAPER_TESTS)


def paper_quantiles(shape: int, centers: int) -> QuantileSetting:
    """An estimation setting of the paper, with σ_α = log((Q.5 + φ√r)/Q.5)."""
    from scipy.special import gammaincinv

    median = float(gammaincinv(shape, 0.5))
    return QuantileSetting(
        sizes=ALLOCATIONS[centers],
        methods=QUANTILES,
        family=Gamma(shape=float(shape)),
        scale=math.log((median + PHI * math.sqrt(shape)) / median),
    )
