"""What centers refused, as the analyst sees it, and whether the others are a biased sample."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from unpooled.center.questions import MISSING, Reason, Refusal

NOBODY = "no center could answer"
TOO_LITTLE = "the centers' tables do not say where enough people are"


@dataclass(frozen=True, slots=True)
class CenterRefusal:
    """What a center refused, as the analyst sees it."""

    center: str
    group: str | None
    reason: str
    rule: str
    variable: str | None = None  # of several: the one that is meant, where not all are

    def to_dict(self) -> dict[str, str | None]:
        """The refusal as plain values."""
        fields = {
            "center": self.center,
            "group": self.group,
            "reason": self.reason,
            "rule": self.rule,
        }
        return fields if self.variable is None else {"variable": self.variable, **fields}


def center_refusals(refusals: Iterable[tuple[str, Refusal]]) -> tuple[CenterRefusal, ...]:
    """Refusals as the analyst sees them, each once."""
    listed = (CenterRefusal(c, r.name, r.reason.value, r.rule) for c, r in refusals)
    return tuple(dict.fromkeys(listed))


def why_nothing(refusals: Iterable[CenterRefusal]) -> str:
    """Why there is no result: nobody answered, or the coordinator cannot use what was answered."""
    declined = any(r.reason in (Reason.FEW_CELLS, Reason.HIDDEN_PEOPLE) for r in refusals)
    return TOO_LITTLE if declined else NOBODY


def refusal_sentence(refusal: CenterRefusal) -> str:
    """A refusal in words."""
    about = f", {refusal.group}" if refusal.group is not None else ""
    variable = f"{refusal.variable}, " if refusal.variable is not None else ""
    return f"{variable}{refusal.center}{about}: {refusal.rule} ({refusal.reason})"


def refusals_of(
    variables: Iterable[tuple[str, Sequence[CenterRefusal]]],
) -> tuple[CenterRefusal, ...]:
    """What was refused of several variables, each once; with the variable, unless it is of all."""
    by_variable = [(name, dict.fromkeys(refusals)) for name, refusals in variables]
    return tuple(
        dict.fromkeys(
            refusal
            if all(refusal in others for _, others in by_variable)
            else replace(refusal, variable=name)
            for name, refusals_here in by_variable
            for refusal in refusals_here
        )
    )


def refusal_remark(refusal: CenterRefusal) -> tuple[str, str]:
    """What became of a center, and the refusal in words."""
    word = "left out" if Reason(refusal.reason) in MISSING else "refused"
    return word, refusal_sentence(refusal)


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
