"""A plan from what is asked of it: of which kind it is, and its family by name."""

from collections.abc import Sequence
from typing import Any

import msgspec

from unpooled.errors import InputError
from unpooled_study.families import AnyFamily
from unpooled_study.planning import AnyPlan, Plan, ProportionPlan, SurvivalPlan


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
