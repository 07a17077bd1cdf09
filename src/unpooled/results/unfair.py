"""Centers that are left out because of their values: the others are no fair sample."""

from collections.abc import Iterable, Sequence

from unpooled.questions import Reason
from unpooled.results.refusals import CenterRefusal

UNFAIR = "centers refused because of their values: the others are no fair sample"
DECLARE = "declare atoms (values that many people share) or limits of the variable"
LEFT_OUT = f"{UNFAIR}; {DECLARE}"


def refused_for_values(refusals: Iterable[CenterRefusal]) -> bool:
    """Whether centers were refused because of their values, so that the others are no fair sample.

    Of zeros and ones in small groups, those centers answer that happen to have K ones: where the
    larger group has them anyway, the smaller one seems to have more. 29 % of samples without an
    effect were then rejected by the weighted test (six centers of 200 and 60 people, 12 % ones).
    Tables on a lattice are left out where zeros are many: 8 of 44 such samples were rejected by
    the parallel test, 2 by the pooled one (six centers of 60 and 40 people, 30 % zeros).
    """
    return any(refusal.reason in (Reason.FEW_VALUES, Reason.FEW_CELLS) for refusal in refusals)


def why_unfair(methods: Sequence[str], rely_on: str) -> str:
    """Why these methods are not to be relied on, and what is."""
    *others, last = methods
    named = f"{', '.join(others)} and {last}" if others else last
    hint = f", or {DECLARE}" if "parallel" in methods else ""
    return (
        "Centers are left out because of their values, and which of them are depends on the "
        f"outcome: the others are no fair sample, and {named} may find effects that are not "
        f"there. Rely on method='{rely_on}'{hint}."
    )
