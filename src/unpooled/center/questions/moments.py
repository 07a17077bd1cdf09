"""Count, missing values, mean and standard deviation of each group."""

from collections.abc import Iterable, Sequence
from math import isfinite

from unpooled.center.questions.message import (
    Aggregate,
    CohortQuestion,
    Disclosure,
    Message,
    OutcomeQuestion,
    People,
    Terms,
    check_mean,
    in_words,
    numbers_in,
    whole,
)
from unpooled.errors import GateError
from unpooled.maths.precision import is_mean_rounded, is_mean_sd_rounded


class MomentsQuestion(CohortQuestion, frozen=True, tag="moments", tag_field="ask"):
    """Count, missing values, mean and standard deviation of each group."""


class FollowUpQuestion(OutcomeQuestion, frozen=True, tag="follow-up", tag_field="ask"):
    """How long are people followed up? Count, missing values, mean and SD of each group's times."""


class GroupMoments(Message, frozen=True):
    """One group's count, mean and SD; None is what may not leave.

    Where fewer than K people have no value, `missing` is None and `n` counts them too; mean and
    SD are of those who have one. Without `sd`, `unit` is what the mean is a multiple of.
    """

    group: str
    n: int
    missing: int | None
    mean: float | None
    sd: float | None
    unit: float | None = None


class Moments(Aggregate, frozen=True, tag="moments", tag_field="say"):
    """Count, missing, mean and SD, group by group."""

    moments: tuple[GroupMoments, ...]

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [group.group for group in self.moments]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """Up to three numbers of each group."""
        for group in self.moments:
            if group.mean is not None:
                check_mean(people, group.group)
            numbers = 1 + (group.mean is not None) + (group.sd is not None)
            yield from whole(
                people, group.group, question.variable, group.n, group.missing, numbers
            )

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Each group has K people; mean and SD are no more precise than they are certain."""
        for group in self.moments:
            terms.check_people(group.n, *(() if group.missing is None else (group.missing,)))
            if not all(isfinite(x) for x in (group.mean, group.sd) if x is not None):
                raise GateError("moments must be finite")
            if not _is_rounded(group):
                raise GateError("mean and SD must be rounded to a part of their own error")
        return numbers_in(*((group.mean, group.sd, group.unit) for group in self.moments))

    def sentence(self) -> str:
        """What a steward reads."""
        return ", ".join(
            f"{m.group} n {m.n} mean {in_words(m.mean)} SD {in_words(m.sd)}" for m in self.moments
        )


def _is_rounded(group: GroupMoments) -> bool:
    if group.mean is None:
        return group.sd is None and group.unit is None
    if group.sd is None:
        return group.unit is not None and is_mean_rounded(group.mean, group.unit)
    return group.unit is None and is_mean_sd_rounded(group.n, group.mean, group.sd)
