"""Planning a federation: the power of each test, the precision of quantiles, the people needed."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import Alternative
from unpooled.results.report.text import columns_text, number
from unpooled_study.simulations.families import AnyFamily, Normal
from unpooled_study.simulations.methods import LIKELIHOOD_POWERS, people_for_powers
from unpooled_study.simulations.monte_carlo import Estimate, share, standard_deviation
from unpooled_study.simulations.outcomes import (
    OUTCOME_METHODS,
    ProportionSetting,
    SurvivalSetting,
)
from unpooled_study.simulations.runs import run
from unpooled_study.simulations.settings import QuantileSetting, TestSetting

if TYPE_CHECKING:
    import altair

TESTS = ("combined", "table", "fisher", "sum", "weighted")  # of `compare`, next to pooled data
ESTIMATORS = ("sample", "yj-table", "yj-likelihood", "interpolation")
PARALLEL_SIMS = 100  # a run of the parallel method takes a tenth of a second
STEP = math.sqrt(2)
NORMAL = Normal()
MOST, LEAST = 8, -8  # steps up and down from the planned sizes

Setting = TestSetting | QuantileSetting | SurvivalSetting | ProportionSetting
Errors = tuple[dict[str, Any], str, FloatArray]
"""What is estimated, by which method, and estimate − truth in each simulation (NaN: none)."""
Runs = Callable[[Setting], FloatArray]
"""The simulations of a setting, a row each."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """People per center and group."""

    n_x: tuple[int, ...]
    n_y: tuple[int, ...]

    def _check(self, shares: Mapping[str, float | None]) -> None:
        """Raise where there are no people, or a share is none."""
        if not self.n_x or len(self.n_x) != len(self.n_y):
            raise InputError("sizes must name at least one center, the same ones in both groups")
        if min(self.n_x + self.n_y) < 1:
            raise InputError("sizes must be at least 1")
        for name, value in shares.items():
            if value is not None and not 0 < value < 1:
                raise InputError(f"{name} must lie in (0, 1), got {value:g}")

    @property
    def people(self) -> int:
        """How many people there are."""
        return sum(self.n_x) + sum(self.n_y)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The two groups of each center."""
        return list(zip(self.n_x, self.n_y, strict=True))

    def scaled(self, factor: float) -> Self:
        """The same federation with this many times the people in each center."""
        n_x, n_y = (
            tuple(max(round(n * factor), 1) for n in sizes) for sizes in (self.n_x, self.n_y)
        )
        return replace(self, n_x=n_x, n_y=n_y)


@dataclass(frozen=True, slots=True)
class Plan(_Sizes):
    """A planned federation: people per center and group, the effect in units of the variable."""

    effect: float
    center_sd: float = 0.0
    effect_sd: float = 0.0
    family: AnyFamily = NORMAL
    k: int = 10
    alternative: Alternative = "two-sided"
    level: float = 0.05
    power: float | None = None
    p: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        self._check({"level": self.level, "power": self.power})
        for p in self.p:
            self._check({"p": p})

    @property
    def precision_title(self) -> str:
        """What the precisions are of."""
        return "Standard error of quantiles of group x"

    def refusals(self) -> tuple[str, ...]:
        """What centers of these sizes refuse, and which method goes without them."""
        refusals = []
        pairs = self.pairs
        nobody = sum(max(sizes) < self.k for sizes in pairs)
        if nobody:
            refusals.append(
                f"{nobody} of {len(pairs)} centers with both groups below K = {self.k}: they tell "
                "nothing."
            )
        small = sum(min(sizes) < self.k <= max(sizes) for sizes in pairs)
        if small:
            refusals.append(
                f"{small} of {len(pairs)} centers with one group below K = {self.k}: fisher, sum "
                "and weighted go without them, table counts their other group alone."
            )
        needed = people_for_powers(self.k, LIKELIHOOD_POWERS)
        few = sum(n < needed for n in self.n_x) if self.p else 0
        if few:
            refusals.append(
                f"{few} of {len(self.n_x)} centers with fewer than {needed} people in group x: "
                "yj-likelihood goes without them."
            )
        return tuple(refusals)

    def tests(self) -> tuple[TestSetting, ...]:
        """The testing settings: the same people, those of slow methods in a setting apart."""
        effect = (self.effect, self.center_sd, self.effect_sd)
        return tuple(
            TestSetting(self.n_x, self.n_y, effect, methods, self.family, self.k, self.alternative)
            for methods in (TESTS, ("parallel",))
        )

    def errors(self, runs: Runs) -> Iterator[Errors]:
        """Of quantiles of group x."""
        if not self.p:
            return
        settings = [
            QuantileSetting(
                self.n_x, methods, self.family, shift=self.center_sd, p=self.p, k=self.k
            )
            for methods in (ESTIMATORS, ("parallel",))
        ]
        parts = [(one, runs(one).reshape(-1, len(one.methods), len(self.p))) for one in settings]
        for j, p in enumerate(self.p):
            for setting, errors in parts:
                for i, method in enumerate(setting.methods):
                    yield {"p": p}, method, errors[:, i, j]


@dataclass(frozen=True, slots=True)
class SurvivalPlan(_Sizes):
    """A planned trial with times to an event, exponential with this median in group x.

    `ratio` is the hazard of group y over that of x. Everybody is followed up to `follow_up`, but a
    share `dropout` that is lost before, evenly. SDs are of the centers' log hazards and log ratios.
    """

    ratio: float
    median: float
    follow_up: float
    dropout: float = 0.0
    center_sd: float = 0.0
    effect_sd: float = 0.0
    k: int = 10
    level: float = 0.05
    power: float | None = None

    def __post_init__(self) -> None:
        self._check({"level": self.level, "power": self.power})
        for name in ("ratio", "median", "follow_up"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                shown = "hazard-ratio" if name == "ratio" else name.replace("_", "-")
                raise InputError(f"{shown} must be positive and finite, got {value:g}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must lie in [0, 1), got {self.dropout:g}")

    @property
    def alternative(self) -> Alternative:
        """That of the log-rank test."""
        return "two-sided"

    @property
    def precision_title(self) -> str:
        """What the precisions are of."""
        return "Standard error of medians"

    @property
    def events(self) -> tuple[float, float]:
        """The share of each group that has the event before anybody can lose sight of it.

        Examples
        --------
        >>> SurvivalPlan((50,), (50,), 0.5, 12.0, 24.0).events
        (0.75, 0.5)
        """
        shares = []
        for ratio in (1.0, self.ratio):
            until = math.log(2) * ratio * self.follow_up / self.median  # the cumulative hazard
            had = -math.expm1(-until)
            shares.append((1 - self.dropout) * had + self.dropout * (1 - had / until))
        return shares[0], shares[1]

    def refusals(self) -> tuple[str, ...]:
        """What centers of these sizes cannot tell alone."""
        likely = [
            [(n * share, n * (1 - share)) for n, share in zip(sizes, self.events, strict=True)]
            for sizes in self.pairs
        ]
        few = sum(any(min(counts) < self.k for counts in center) for center in likely)
        return (*_small(self.pairs, self.k), *_few(few, len(self.pairs), self.k, "status", "times"))

    def tests(self) -> tuple[SurvivalSetting, ...]:
        """The setting."""
        return (
            SurvivalSetting(
                self.n_x,
                self.n_y,
                self.ratio,
                self.median,
                self.follow_up,
                self.dropout,
                self.center_sd,
                self.effect_sd,
                self.k,
            ),
        )

    def errors(self, runs: Runs) -> Iterator[Errors]:
        """Of the medians of both groups."""
        (setting,) = self.tests()
        errors = runs(setting)[:, len(OUTCOME_METHODS) :].reshape(-1, len(OUTCOME_METHODS), 2)
        for j, group in enumerate(("x", "y")):
            for i, method in enumerate(OUTCOME_METHODS):
                yield {"group": group}, method, errors[:, i, j]


@dataclass(frozen=True, slots=True)
class ProportionPlan(_Sizes):
    """A planned comparison of two proportions; SDs are of log odds and log odds ratios."""

    p_x: float
    p_y: float
    center_sd: float = 0.0
    effect_sd: float = 0.0
    k: int = 10
    level: float = 0.05
    power: float | None = None

    def __post_init__(self) -> None:
        self._check({"level": self.level, "power": self.power})
        for p in (self.p_x, self.p_y):
            self._check({"proportions": p})

    @property
    def alternative(self) -> Alternative:
        """That of the Cochran-Mantel-Haenszel test."""
        return "two-sided"

    @property
    def precision_title(self) -> str:
        """What the precisions are of."""
        return "Standard error of the difference of risks"

    def refusals(self) -> tuple[str, ...]:
        """What centers of these sizes cannot tell alone."""
        p = self.p_x, self.p_y
        few = sum(
            any(min(n * one, n * (1 - one)) < self.k for n, one in zip(sizes, p, strict=True))
            for sizes in self.pairs
        )
        return (*_small(self.pairs, self.k), *_few(few, len(self.pairs), self.k, "answer", "sums"))

    def tests(self) -> tuple[ProportionSetting, ...]:
        """The setting."""
        spreads = self.center_sd, self.effect_sd, self.k
        return (ProportionSetting(self.n_x, self.n_y, self.p_x, self.p_y, *spreads),)

    def errors(self, runs: Runs) -> Iterator[Errors]:
        """Of the difference of risks within centers."""
        (setting,) = self.tests()
        errors = runs(setting)[:, len(OUTCOME_METHODS) :]
        for i, method in enumerate(OUTCOME_METHODS):
            yield {"of": "risk difference"}, method, errors[:, i]


AnyPlan = Plan | SurvivalPlan | ProportionPlan


def _small(pairs: Sequence[tuple[int, int]], k: int) -> Iterator[str]:
    small = sum(min(sizes) < k for sizes in pairs)
    if small:
        yield (
            f"{small} of {len(pairs)} centers with a group below K = {k}: alone they tell nothing "
            "of it."
        )


def _few(few: int, centers: int, k: int, what: str, instead: str) -> Iterator[str]:
    if few:
        yield (
            f"{few} of {centers} centers expect fewer than K = {k} people of a group with one "
            f"{what}: alone they tell {instead} without it."
        )


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a planned federation would reach; rows are plain values."""

    plan: AnyPlan
    sims: int
    powers: tuple[dict[str, Any], ...]
    precisions: tuple[dict[str, Any], ...]
    needed: tuple[dict[str, Any], ...]
    curve: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        plan = msgspec.to_builtins(self.plan)
        rows = {
            name: list(getattr(self, name)) for name in ("powers", "precisions", "needed", "curve")
        }
        return {"plan": plan, "sims": self.sims, **rows, "refusals": list(self.plan.refusals())}

    def __str__(self) -> str:
        plan = self.plan
        text = (
            f"Power at {plan.level:g}, {plan.alternative}: {plan.people} people in "
            f"{len(plan.n_x)} centers, K = {plan.k}, {self.sims} simulations\n{_text(self.powers)}"
        )
        if self.precisions:
            text += f"\n\n{plan.precision_title}\n{_text(self.precisions)}"
        if self.needed:
            text += f"\n\nPeople needed for power {plan.power:g}\n{_text(self.needed)}"
        return "\n".join([text, *plan.refusals()])

    def chart(self) -> "altair.TopLevelMixin":
        """Power by the number of people."""
        from unpooled_study.paper.figures import power_chart

        return power_chart(self.curve, self.plan.power)


def _text(rows: Sequence[dict[str, Any]]) -> str:
    header = [name.replace("_", " ") for name in rows[0]]
    cells = [
        [number(v, 3) if v is None or isinstance(v, float) else str(v) for v in row.values()]
        for row in rows
    ]
    return columns_text(header, cells)


def make_plan(plan: AnyPlan, sims: int, seed: int, jobs: int, folder: Path) -> PlanResult:
    """Simulate the federation; with a target power also larger and smaller ones."""
    if sims < 20:
        raise InputError(f"sims must be at least 20, got {sims}")

    def runs(setting: Setting) -> FloatArray:
        slow = "parallel" in setting.methods
        return run([setting], min(sims, PARALLEL_SIMS) if slow else sims, seed, jobs, folder)[
            setting
        ]

    powers = {0: _powers(plan, runs)}
    if plan.power is not None:
        _search(plan, powers, runs)
    else:
        for step in (-4, -2, 2, 4):
            powers[step] = _powers(plan.scaled(STEP**step), runs, slow=False)
    pooled = next(iter(powers[0].values())).value
    return PlanResult(
        plan=plan,
        sims=sims,
        powers=tuple(
            {"method": m, "power": e.value, "error": e.error, "minus_pooled": e.value - pooled}
            for m, e in powers[0].items()
        ),
        precisions=_precisions(plan, runs),
        needed=_needed(plan, powers) if plan.power is not None else (),
        curve=tuple(
            {"people": plan.scaled(STEP**step).people, "method": m, "power": e.value}
            for step in sorted(powers)
            for m, e in powers[step].items()
        ),
    )


def _powers(plan: AnyPlan, runs: Runs, *, slow: bool = True) -> dict[str, Estimate]:
    powers: dict[str, Estimate] = {}
    for setting in plan.tests() if slow else plan.tests()[:1]:
        hits = (runs(setting)[:, : len(setting.methods)] < math.log(plan.level)).astype(np.float64)
        powers |= {method: share(hits[:, i]) for i, method in enumerate(setting.methods)}
    return powers


def _search(plan: AnyPlan, powers: dict[int, dict[str, Estimate]], runs: Runs) -> None:
    """Go up until every test reaches the target, and down until none does, in steps of √2."""
    target = plan.power or 0.0
    for direction, end in ((1, MOST), (-1, LEAST)):
        step = 0
        while step != end and any(
            (e.value < target) == (direction > 0) for e in powers[step].values()
        ):
            step += direction
            powers[step] = _powers(plan.scaled(STEP**step), runs)


def _needed(plan: AnyPlan, powers: dict[int, dict[str, Estimate]]) -> tuple[dict[str, Any], ...]:
    pooled = _factor(plan, powers, next(iter(powers[0])))
    rows = []
    for method in powers[0]:
        factor = _factor(plan, powers, method)
        rows.append(
            {
                "method": method,
                "people": None if factor is None else plan.scaled(factor).people,
                "times_the_plan": factor,
                "times_pooled": None if factor is None or pooled is None else factor / pooled,
            }
        )
    return tuple(rows)


def _factor(plan: AnyPlan, powers: dict[int, dict[str, Estimate]], method: str) -> float | None:
    """How many times the planned people reach the target; None where that is out of reach.

    Between two steps the normal quantile of the power is taken to be linear in √people, as it
    is for every test of this kind where the effect is the same everywhere.
    """
    from scipy.special import ndtri

    steps = sorted(powers)
    reached = np.maximum.accumulate([powers[step][method].value for step in steps])
    target = plan.power or 0.0
    above = int(np.searchsorted(reached, target))
    if above == len(steps) or above == 0:
        return None
    roots = [STEP ** (steps[i] / 2) for i in (above - 1, above)]
    scores = ndtri(np.clip(reached[above - 1 : above + 1], 1e-4, 1 - 1e-4))
    share_ = (float(ndtri(target)) - scores[0]) / (scores[1] - scores[0])
    return float((roots[0] + share_ * (roots[1] - roots[0])) ** 2)


def _precisions(plan: AnyPlan, runs: Runs) -> tuple[dict[str, Any], ...]:
    """The first method of each estimate is that of pooled data."""
    precisions: list[dict[str, Any]] = []
    pooled: dict[str, float | None] = {}
    for what, method, errors in plan.errors(runs):
        valid = errors[~np.isnan(errors)]
        se = standard_deviation(valid).value if len(valid) > 1 else None
        reference = pooled.setdefault(str(what), se)
        precisions.append(
            {
                **what,
                "method": method,
                "standard_error": se,
                "bias": float(valid.mean()) if len(valid) > 1 else None,
                "times_pooled": se / reference if se is not None and reference else None,
                "answered": len(valid) / len(errors),
            }
        )
    return tuple(precisions)


def read_plan(
    sizes: Sequence[float],
    sizes_y: Sequence[float] | None = None,
    *,
    effect: float | None = None,
    hazard_ratio: float | None = None,
    proportions: Sequence[float] | None = None,
    power: float | None = None,
    **other: Any,
) -> AnyPlan:
    """A plan from what is declared; some of `other` goes with one of the three kinds."""
    kinds = {"effect": effect, "hazard-ratio": hazard_ratio, "proportions": proportions}
    given = [name for name, value in kinds.items() if value is not None]
    if len(given) != 1:
        raise InputError(
            "say what differs: --effect (of a number), --hazard-ratio (of times to an event) or "
            f"--proportions, got {' and '.join(given) or 'none'}"
        )
    rest = {name: value for name, value in other.items() if value is not None}
    about = {name: rest.pop(name) for name in _OF_ALL if name in rest}
    for name in ("center_sd", "effect_sd"):
        if about.get(name, 0) < 0:
            raise InputError(f"{name.replace('_', '-')} must not be negative, got {about[name]:g}")
    wrong = next((name for name in rest if name not in _GO_WITH[given[0]]), None)
    if wrong is not None:
        kind = next(kind for kind, names in _GO_WITH.items() if wrong in names)
        raise InputError(f"{wrong.replace('_', '-')} goes with {kind}, not with {given[0]}")
    n_x = tuple(map(int, sizes))
    n_y = n_x if sizes_y is None else tuple(map(int, sizes_y))
    if hazard_ratio is not None:
        lacking = [name for name in ("median", "follow_up") if name not in rest]
        if lacking:
            raise InputError(f"hazard-ratio needs {lacking[0].replace('_', '-')}")
        return SurvivalPlan(n_x, n_y, hazard_ratio, power=power, **about, **rest)
    if proportions is not None:
        if len(proportions) != 2:
            typed = ",".join(f"{share:g}" for share in proportions)
            raise InputError(f"proportions must be those of group x and y, got {typed!r}")
        return ProportionPlan(n_x, n_y, proportions[0], proportions[1], power=power, **about)
    assert effect is not None  # one of the three is given
    family = read_family(rest.pop("family", "normal"))
    p = tuple(rest.pop("p", ()))
    return Plan(n_x, n_y, effect, family=family, power=power, p=p, **about, **rest)


_OF_ALL = ("center_sd", "effect_sd", "k", "level")
_GO_WITH = {
    "effect": ("family", "alternative", "p"),
    "hazard-ratio": ("median", "follow_up", "dropout"),
    "proportions": (),
}


def numbers(text: str, name: str) -> list[float]:
    """Numbers separated by commas.

    Examples
    --------
    >>> numbers("300, 200,100", "sizes")
    [300.0, 200.0, 100.0]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{name} must be numbers separated by commas, got {text!r}") from None


def read_family(text: str) -> AnyFamily:
    """A family by its name, and what else is said after a colon.

    Examples
    --------
    >>> read_family("gamma:shape=4,scale=2")
    Gamma(shape=4.0, scale=2.0)
    """
    name, _, rest = text.partition(":")
    fields: dict[str, object] = {"name": name}
    for part in filter(None, rest.split(",")):
        field, _, value = part.partition("=")
        fields[field.strip()] = numbers(value, f"family: {field.strip()}")[0]
    try:
        read: AnyFamily = msgspec.convert(fields, AnyFamily)
    except (msgspec.ValidationError, ValueError) as error:
        raise InputError(
            f"family must be such as normal, t:df=3 or gamma:shape=4, got {text!r}: {error}"
        ) from None
    return read
