"""Reading what the command line says about a plan."""

import msgspec

from unpooled.errors import InputError
from unpooled_study.families import AnyFamily
from unpooled_study.planning import Plan


def read_plan(
    sizes: str,
    sizes_y: str | None,
    effect: float,
    center_sd: float,
    effect_sd: float,
    family: str,
    k: int,
    alternative: str,
    level: float,
    power: float | None,
    p: str | None,
) -> Plan:
    """A plan from text."""
    if alternative not in ("two-sided", "greater", "less"):
        raise InputError(f"alternative must be two-sided, greater or less, got {alternative!r}")
    for name, value in (("center-sd", center_sd), ("effect-sd", effect_sd)):
        if value < 0:
            raise InputError(f"{name} must not be negative, got {value:g}")
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    n_x = tuple(int(n) for n in numbers(sizes, "sizes"))
    return Plan(
        n_x=n_x,
        n_y=n_x if sizes_y is None else tuple(int(n) for n in numbers(sizes_y, "sizes-y")),
        effect=effect,
        center_sd=center_sd,
        effect_sd=effect_sd,
        family=read_family(family),
        k=k,
        alternative=alternative,  # type: ignore[arg-type]  # checked above
        level=level,
        power=power,
        p=() if p is None else tuple(numbers(p, "p")),
    )


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
