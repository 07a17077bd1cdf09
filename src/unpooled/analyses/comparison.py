"""Compare two groups or more: which analysis answers depends on how many groups there are."""

from collections.abc import Sequence

from unpooled.analyses.asking import Request
from unpooled.analyses.compare import (
    METHODS,
    check_alternative,
    check_methods,
    name_groups,
    run_compare,
)
from unpooled.analyses.groups import run_groups
from unpooled.coordinator import Conversation
from unpooled.data.variables import Variable
from unpooled.errors import InputError
from unpooled.maths.mann_whitney import Alternative
from unpooled.questions import Limits
from unpooled.results.compare import CompareResult
from unpooled.results.groups import GroupsResult


def run_comparison(
    conversation: Conversation,
    request: Request,
    ordered: bool,
    alternative: Alternative,
    method: str | Sequence[str],
    shape: tuple[int | None, Limits],
    declared: Variable,
) -> CompareResult | GroupsResult:
    """Two groups by Mann-Whitney; more, or ordered ones, by tests of several groups."""
    check_methods(method, METHODS)
    check_alternative(alternative)
    _check_ordered(ordered, request)
    request = name_groups(conversation, request)
    if ordered or len(request.groups or ()) > 2:
        return run_groups(conversation, request, ordered, alternative, method, shape)
    return run_compare(conversation, request, alternative, method, shape, declared)


def _check_ordered(ordered: bool, request: Request) -> None:
    if not isinstance(ordered, bool):
        raise InputError(f"ordered must be True or False, got {ordered!r}")
    if ordered and request.groups is None:
        raise InputError(
            "ordered needs groups, from the lowest to the highest. "
            "Hint: groups=('none', 'low', 'high'), ordered=True"
        )
