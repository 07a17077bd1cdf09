"""What every analysis asks first: which groups are there, and how many people has each center?"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import inf, isfinite, isnan
from typing import Any, NoReturn

from unpooled.analyses.conversation import Conversation, Round
from unpooled.center.data import where as conditions
from unpooled.center.questions import (
    Catalogue,
    CatalogueQuestion,
    Reason,
    Refusal,
    Sizes,
    SizesQuestion,
)
from unpooled.errors import InputError, MissingError, RefusedError, nearest, unknown
from unpooled.results.provenance.refusals import (
    CenterRefusal,
    center_refusals,
    refusal_sentence,
    why_nothing,
)


@dataclass(frozen=True, slots=True)
class Request:
    """What the analyst asked for, checked."""

    variable: str
    by: str | None = None
    groups: tuple[str, ...] | None = None
    where: str | None = None
    cuts: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        variable: str,
        by: str | None,
        groups: Sequence[object] | None,
        where: str | None,
        cuts: Sequence[float] | float | None = None,
    ) -> "Request":
        """Check what goes together before any center is asked; kinds are checked already."""
        if by == variable and cuts is None:
            raise InputError(f"by and variable must differ, got {by!r} for both")
        if groups is not None and by is None:
            raise InputError("groups needs by, the variable that says who belongs to which group")
        names = None if groups is None else tuple(group_label(group) for group in groups)
        if names == ():
            raise InputError("groups must name at least one group, got none")
        if names is not None and len(set(names)) != len(names):
            raise InputError(f"groups must differ, got {', '.join(names)}")
        condition = None if where is None else str(conditions.parse(where))
        return cls(variable, by, names, condition, _cut_points(cuts, by))

    @property
    def fields(self) -> dict[str, Any]:
        """What every question about it says."""
        return {
            "variable": self.variable,
            "by": self.by,
            "groups": self.groups,
            "where": self.where,
            "cuts": self.cuts,
        }


def _cut_points(cuts: object, by: str | None) -> tuple[float, ...] | None:
    """Where a grouping number is cut: finite, in their order."""
    if cuts is None:
        return None
    if by is None:
        raise InputError("cuts needs by, the number that is cut into bands")
    several = cuts if isinstance(cuts, Iterable) and not isinstance(cuts, str) else (cuts,)
    points = tuple(several)
    if not points or not all(
        isinstance(point, int | float) and not isinstance(point, bool) and isfinite(point)
        for point in points
    ):
        raise InputError(f"cuts must be numbers, such as cuts=(65,), got {cuts!r}")
    if any(low >= high for low, high in pairwise(points)):
        raise InputError(f"cuts must rise, got {', '.join(f'{point:g}' for point in points)}")
    return tuple(map(float, points))


def group_label(group: object) -> str:
    """A group's name as the centers write it: 1, 1.0 and '1' are one group."""
    if isinstance(group, float) and group.is_integer():
        return str(int(group))
    return str(group)


def in_order(groups: Iterable[str]) -> list[str]:
    """Groups that nobody put in an order: numbers and bands of a number by value, then words.

    Examples
    --------
    >>> in_order({"10", "unknown", "2", "-1", "1.5"})
    ['-1', '1.5', '2', '10', 'unknown']
    >>> in_order({"65 and over", "9 to under 65", "under 9"})
    ['under 9', '9 to under 65', '65 and over']
    """
    return sorted(groups, key=lambda group: (_number(group), group))


def _number(group: str) -> float:
    """Its value, of a band where it begins; infinite where it has none."""
    if group.startswith("under "):
        return -inf if isfinite(_number(group.removeprefix("under "))) else inf
    try:
        value = float(group.removesuffix(" and over").split(" to under ")[0])
    except ValueError:
        return inf
    return inf if isnan(value) else value


@dataclass(frozen=True, slots=True)
class Attendance:
    """Who can take part: the groups, and each center's people, the largest center first."""

    request: Request  # with its groups named
    groups: tuple[str, ...]
    people: dict[str, dict[str, int]]  # center → group → how many
    refusals: tuple[tuple[str, Refusal], ...]

    @property
    def centers(self) -> tuple[str, ...]:
        """The centers that have at least one group, by size."""
        return tuple(self.people)


def take_attendance(conversation: Conversation, request: Request) -> Attendance:
    """Ask every center how many people it has in each group."""
    round_ = conversation.ask(SizesQuestion(**request.fields), Sizes)
    people = {
        center: {size.group: size.n for size in sizes.sizes}
        for center, sizes in round_.aggregates.items()
        if sizes.sizes
    }
    every_group = in_order({group for sizes in people.values() for group in sizes})
    check_answered(conversation, request, round_, every_group)
    by_size = sorted(people, key=lambda center: (-sum(people[center].values()), center))
    groups = request.groups if request.groups is not None else tuple(every_group)
    named = request if request.by is None else replace(request, groups=groups)
    return Attendance(named, groups, {c: people[c] for c in by_size}, round_.refusals)


def ask_groups(conversation: Conversation, request: Request) -> tuple[Request, int]:
    """The request with its groups named, and how many rounds that took."""
    if request.by is None or request.groups is not None:
        return request, 0
    return take_attendance(conversation, request).request, 1


def check_answered(
    conversation: Conversation,
    request: Request,
    round_: Round[Any],
    answered: Sequence[str],
    every_group: Callable[[], Iterable[str]] | None = None,
) -> None:
    """Raise, with what the analyst can do, when nobody can answer or a group is nowhere.

    `every_group` asks for all groups in words that centers answer here; by itself, for sizes.
    """
    if not answered:
        _raise_unknown_variable(conversation, request, round_)
    unknown = [group for group in request.groups or () if group not in answered]
    if unknown:
        ask = every_group or partial(_every_group, conversation, request)
        _raise_unknown_groups(request, round_, unknown, ask)
    if not answered:
        refuse(round_.refusals)


def _raise_unknown_variable(
    conversation: Conversation, request: Request, round_: Round[Any]
) -> None:
    named = {r.name for _, r in round_.refusals if r.reason is Reason.UNKNOWN_VARIABLE}
    if not named or {r.reason for _, r in round_.refusals} != {Reason.UNKNOWN_VARIABLE}:
        return
    names = _ask_names(conversation)
    missing = sorted(filter(None, named))
    quoted = ", ".join(map(repr, missing))
    hint = _quotes_hint(request, missing, names)
    raise InputError(f"no center has a variable {quoted}. There are: {', '.join(names)}{hint}")


def _ask_names(conversation: Conversation) -> list[str]:
    catalogues = conversation.ask(CatalogueQuestion(), Catalogue).aggregates.values()
    return sorted({variable.name for c in catalogues for variable in c.variables})


def check_codebook_name(conversation: Conversation, variable: str, declared: Iterable[str]) -> None:
    """Raise where a codebook does not declare a variable, but one much alike that nobody has.

    Centers are asked for their variables only where there is such a one.
    """
    variables = set(declared)
    alike = None if variable in variables else nearest(variable, variables)
    if alike is None:
        return
    names = _ask_names(conversation)
    if variable in names and alike not in names:
        raise InputError(f"codebook: {unknown('variable', alike, names)}")


def _quotes_hint(request: Request, unknown: Sequence[str], variables: Sequence[str]) -> str:
    """Where a condition compares a variable with an unknown name: text goes in quotes."""
    if request.where is None:
        return ""
    condition = conditions.parse(request.where)
    meant = (conditions.meant_as_text(condition, name, variables) for name in unknown)
    comparison = next(filter(None, meant), None)
    return "" if comparison is None else f". Hint: text goes in quotes, as in {comparison}"


def _every_group(conversation: Conversation, request: Request) -> set[str]:
    any_group = replace(request, groups=None)
    answers = conversation.ask(SizesQuestion(**any_group.fields), Sizes).aggregates.values()
    return {size.group for sizes in answers for size in sizes.sizes}


def _raise_unknown_groups(
    request: Request,
    round_: Round[Any],
    unknown: list[str],
    every_group: Callable[[], Iterable[str]],
) -> None:
    small = (Reason.TOO_SMALL, Reason.ABSENT)
    if any(
        r.name not in (request.groups or ()) or r.reason not in small for _, r in round_.refusals
    ):
        return  # centers refused for another reason; that one is shown
    names = in_order(set(every_group()))
    if not names:
        return
    asked = ", ".join(repr(group) for group in unknown)
    raise InputError(
        f"groups: no center has enough people in {asked} of {request.by!r}. "
        f"Groups with enough people: {', '.join(names)}"
    )


def explain(
    conversation: Conversation,
    request: Request,
    refusals: Iterable[tuple[str, Refusal]],
    hint: str = "",
) -> NoReturn:
    """Raise: no center can answer, and what the analyst can do about it."""
    take_attendance(conversation, request)  # raises where a name is unknown
    refuse(refusals, hint)


def stop_at_missing(missing: Iterable[tuple[str, Refusal]]) -> NoReturn:
    """Raise: a center is missing, and the result would be another one without it."""
    refusals = center_refusals(missing)
    lines = [f"  {refusal_sentence(refusal)}" for refusal in refusals]
    hint = "Hint: on_missing='exclude' (--on-missing exclude) goes on without it."
    raise MissingError("\n".join(["a center is missing:", *lines, hint]), refusals)


def refuse(refusals: Iterable[tuple[str, Refusal]], hint: str = "") -> NoReturn:
    """Raise: no center can answer."""
    refuse_told(center_refusals(refusals), hint)


def refuse_told(refusals: tuple[CenterRefusal, ...], hint: str = "") -> NoReturn:
    """Raise: no center can answer, or not enough, for reasons that are there already."""
    lines = [f"  {refusal_sentence(refusal)}" for refusal in refusals]
    raise RefusedError("\n".join([f"{why_nothing(refusals)}:", *lines, hint]).rstrip(), refusals)
