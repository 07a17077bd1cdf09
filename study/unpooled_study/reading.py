"""Reading what the command line says about a plan."""

from typing import Any

import msgspec

from unpooled.errors import InputError
from unpooled_study.families import AnyFamily
from unpooled_study.planning import AnyPlan, Plan, ProportionPlan, SurvivalPlan


def read_plan(
    sizes: str,
    sizes_y: str | None = None,
    *,
    effect: float | None = None,
    hazard_ratio: float | None = None,
    proportions: str | None = None,
    center_sd: float = 0.0,
    effect_sd: float = 0.0,
    k: int = 10,
    level: float = 0.05,
    power: float | None = None,
    **other: Any,
) -> AnyPlan:
    """A plan from text; `other` goes with one of the three kinds, and is None where not given."""
    kinds = {"effect": effect, "hazard-ratio": hazard_ratio, "proportions": proportions}
    given = [name for name, value in kinds.items() if value is not None]
    if len(given) != 1:
        raise InputError(
            "say what differs: --effect (of a number), --hazard-ratio (of times to an event) or "
            f"--proportions, got {' and '.join(given) or 'none'}"
        )
    for name, value in (("center-sd", center_sd), ("effect-sd", effect_sd)):
        if value < 0:
            raise InputError(f"{name} must not be negative, got {value:g}")
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    rest = {name: value for name, value in other.items() if value is not None}
    wrong = next((name for name in rest if name not in _GO_WITH[given[0]]), None)
    if wrong is not None:
        kind = next(kind for kind, names in _GO_WITH.items() if wrong in names)
        raise InputError(f"{wrong.replace('_', '-')} goes with {kind}, not with {given[0]}")
    n_x = tuple(int(n) for n in numbers(sizes, "sizes"))
    n_y = n_x if sizes_y is None else tuple(int(n) for n in numbers(sizes_y, "sizes-y"))
    about: dict[str, Any] = {
        "center_sd": center_sd,
        "effect_sd": effect_sd,
        "k": k,
        "level": level,
        "power": power,
    }
    if hazard_ratio is not None:
        lacking = [name for name in ("median", "follow_up") if name not in rest]
        if lacking:
            raise InputError(f"hazard-ratio needs {lacking[0].replace('_', '-')}")
        return SurvivalPlan(n_x, n_y, hazard_ratio, **about, **rest)
    if proportions is not None:
        shares = numbers(proportions, "proportions")
        if len(shares) != 2:
            raise InputError(f"proportions must be those of group x and y, got {proportions!r}")
        return ProportionPlan(n_x, n_y, shares[0], shares[1], **about)
    alternative = rest.get("alternative", "two-sided")
    if alternative not in ("two-sided", "greater", "less"):
        raise InputError(f"alternative must be two-sided, greater or less, got {alternative!r}")
    assert effect is not None  # one of the three is given
    return Plan(
        n_x=n_x,
        n_y=n_y,
        effect=effect,
        family=read_family(rest.get("family", "normal")),
        alternative=alternative,
        p=tuple(numbers(rest["p"], "p")) if "p" in rest else (),
        **about,
    )


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
