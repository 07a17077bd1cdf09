"""Planning a federation: the power of each test, the precision of quantiles, the people needed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from unpooled.errors import InputError
from unpooled.maths.ranks.mann_whitney import Alternative
from unpooled.results.report.text import columns_text, number
from unpooled_study.families import AnyFamily, Normal
from unpooled_study.methods import LIKELIHOOD_POWERS, people_for_powers
from unpooled_study.monte_carlo import Estimate, share, standard_deviation
from unpooled_study.runs import run
from unpooled_study.settings import QuantileSetting, TestSetting

if TYPE_CHECKING:
    import altair

TESTS = ("combined", "table", "fisher", "sum", "weighted")  # of `compare`, beside pooled data
ESTIMATORS = ("sample", "yj-table", "yj-likelihood", "interpolation")
STEP = math.sqrt(2)
NORMAL = Normal()
MOST, LEAST = 8, -8  # steps up and down from the planned sizes


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned federation: people per center and group, the effect in units of the variable."""

    n_x: tuple[int, ...]
    n_y: tuple[int, ...]
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
        if not self.n_x or len(self.n_x) != len(self.n_y):
            raise InputError("sizes must name at least one center, the same ones in both groups")
        if min(self.n_x + self.n_y) < 1:
            raise InputError("sizes must be at least 1")
        for name, value in (
            ("level", self.level),
            ("power", self.power),
            *(("p", p) for p in self.p),
        ):
            if value is not None and not 0 < value < 1:
                raise InputError(f"{name} must lie in (0, 1), got {value:g}")

    @property
    def people(self) -> int:
        """How many people there are."""
        return sum(self.n_x) + sum(self.n_y)

    def scaled(self, factor: float) -> "Plan":
        """The same federation with so many times the people in each center."""
        n_x, n_y = (
            tuple(max(round(n * factor), 1) for n in sizes) for sizes in (self.n_x, self.n_y)
        )
        return replace(self, n_x=n_x, n_y=n_y)

    def refusals(self) -> tuple[str, ...]:
        """What centers of these sizes refuse, and which method goes without them."""
        refusals = []
        pairs = list(zip(self.n_x, self.n_y, strict=True))
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

    def tests(self) -> TestSetting:
        """The testing setting."""
        effect = (self.effect, self.center_sd, self.effect_sd)
        return TestSetting(self.n_x, self.n_y, effect, TESTS, self.family, self.k, self.alternative)

    def quantiles(self) -> QuantileSetting:
        """The estimation setting, of group x."""
        return QuantileSetting(
            self.n_x, ESTIMATORS, self.family, shift=self.center_sd, p=self.p, k=self.k
        )


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a planned federation would reach; rows are plain values."""

    plan: Plan
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
            text += f"\n\nStandard error of quantiles of group x\n{_text(self.precisions)}"
        if self.needed:
            text += f"\n\nPeople needed for power {plan.power:g}\n{_text(self.needed)}"
        return "\n".join([text, *plan.refusals()])

    def chart(self) -> "altair.TopLevelMixin":
        """Power by the number of people."""
        from unpooled_study.figures import power_chart

        return power_chart(self.curve, self.plan.power)


def _text(rows: Sequence[dict[str, Any]]) -> str:
    header = [name.replace("_", " ") for name in rows[0]]
    cells = [
        [number(v, 3) if v is None or isinstance(v, float) else str(v) for v in row.values()]
        for row in rows
    ]
    return columns_text(header, cells)


def make_plan(plan: Plan, sims: int, seed: int, jobs: int, folder: Path) -> PlanResult:
    """Simulate the federation; with a target power also larger and smaller ones."""
    if sims < 20:
        raise InputError(f"sims must be at least 20, got {sims}")
    powers = {0: _powers(plan, sims, seed, jobs, folder)}
    if plan.power is not None:
        _search(plan, powers, (sims, seed, jobs, folder))
    else:
        for step in (-4, -2, 2, 4):
            powers[step] = _powers(plan.scaled(STEP**step), sims, seed, jobs, folder)
    combined = powers[0]["combined"].value
    return PlanResult(
        plan=plan,
        sims=sims,
        powers=tuple(
            {"method": m, "power": e.value, "error": e.error, "minus_pooled": e.value - combined}
            for m, e in powers[0].items()
        ),
        precisions=_precisions(plan, sims, seed, jobs, folder) if plan.p else (),
        needed=_needed(plan, powers) if plan.power is not None else (),
        curve=tuple(
            {"people": plan.scaled(STEP**step).people, "method": m, "power": e.value}
            for step in sorted(powers)
            for m, e in powers[step].items()
        ),
    )


def _powers(plan: Plan, sims: int, seed: int, jobs: int, folder: Path) -> dict[str, Estimate]:
    setting = plan.tests()
    logs = run([setting], sims, seed, jobs, folder)[setting]
    hits = (logs < math.log(plan.level)).astype(np.float64)
    return {method: share(hits[:, i]) for i, method in enumerate(setting.methods)}


def _search(
    plan: Plan, powers: dict[int, dict[str, Estimate]], how: tuple[int, int, int, Path]
) -> None:
    """Go up until every test reaches the target, and down until none does, in steps of √2."""
    target = plan.power or 0.0
    for direction, end in ((1, MOST), (-1, LEAST)):
        step = 0
        while step != end and any(
            (e.value < target) == (direction > 0) for e in powers[step].values()
        ):
            step += direction
            powers[step] = _powers(plan.scaled(STEP**step), *how)


def _needed(plan: Plan, powers: dict[int, dict[str, Estimate]]) -> tuple[dict[str, Any], ...]:
    combined = _factor(plan, powers, "combined")
    rows = []
    for method in powers[0]:
        factor = _factor(plan, powers, method)
        rows.append(
            {
                "method": method,
                "people": None if factor is None else plan.scaled(factor).people,
                "times_the_plan": factor,
                "times_pooled": None if factor is None or combined is None else factor / combined,
            }
        )
    return tuple(rows)


def _factor(plan: Plan, powers: dict[int, dict[str, Estimate]], method: str) -> float | None:
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


def _precisions(
    plan: Plan, sims: int, seed: int, jobs: int, folder: Path
) -> tuple[dict[str, Any], ...]:
    setting = plan.quantiles()
    rows = run([setting], sims, seed, jobs, folder)[setting]
    errors = rows.reshape(sims, len(setting.methods), len(setting.p))
    precisions = []
    for j, p in enumerate(setting.p):
        pooled = standard_deviation(errors[:, 0, j]).value
        for i, method in enumerate(setting.methods):
            valid = errors[:, i, j][~np.isnan(errors[:, i, j])]
            se = standard_deviation(valid).value if len(valid) > 1 else None
            bias = float(valid.mean()) if len(valid) > 1 else None
            precisions.append(
                {
                    "p": p,
                    "method": method,
                    "standard_error": se,
                    "bias": bias,
                    "times_pooled": None if se is None else se / pooled,
                }
            )
    return tuple(precisions)
