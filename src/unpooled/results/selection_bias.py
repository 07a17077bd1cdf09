"""Centers that are left out because of their values: the remaining ones are a biased sample."""

from collections.abc import Iterable, Sequence

from unpooled.center.questions import Reason
from unpooled.results.refusals import CenterRefusal

BIASED = "centers refused because of their values: the remaining centers are a biased sample"
DECLARE = "declare common values (atoms) or limits of the variable"
LEFT_OUT = f"{BIASED}; {DECLARE}"


def refused_for_values(refusals: Iterable[CenterRefusal]) -> bool:
    """Whether centers refused because of their values, so that the others are a biased sample.

    Of zeros and ones in small groups, those centers answer that happen to have K ones: where the
    larger group has them anyway, the smaller one seems to have more. 29 % of samples without an
    effect were then rejected by the weighted test (six centers of 200 and 60 people, 12 % ones).
    Tables on a lattice are left out where zeros are many: 8 of 44 such samples were rejected by
    the parallel test, 2 by the pooled one (six centers of 60 and 40 people, 30 % zeros).
    """
    return any(refusal.reason in (Reason.FEW_VALUES, Reason.FEW_CELLS) for refusal in refusals)


def why_biased(methods: Sequence[str], rely_on: str) -> str:
    """Why these methods are not to be relied on, and what is."""
    *others, last = methods
    named = f"{', '.join(others)} and {last}" if others else last
    hint = f", or {DECLARE}" if "parallel" in methods else ""
    return (
        "Centers are left out because of their values, and which of them are depends on the "
        f"outcome: the remaining centers are a biased sample, and {named} may find effects that "
        f"are not there. Rely on method='{rely_on}'{hint}."
    )
