"""The paper's own iteration: moments of the Yeo-Johnson transform at several λ.

Exact moments of whole numbers can be decoded to every single value. So a center answers only where
its policy turns `paper_iteration` on, and then for everybody, on one public grid, to four digits,
of groups with enough different values.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from unpooled.center.questions.message import (
    Aggregate,
    CohortQuestion,
    Disclosure,
    Message,
    People,
    Terms,
    check_mean,
    whole,
)
from unpooled.errors import GateError
from unpooled.maths.quantiles.yeo_johnson import DEFAULT_GRID, PowerMoments, are_moments_rounded

GRID = tuple(float(lam) for lam in DEFAULT_GRID)
DIGITS = 4
NUMBERS = 2 * len(GRID) + 1  # however few of them a question names: the others may follow


class PowersQuestion(CohortQuestion, frozen=True, tag="powers", tag_field="ask", kw_only=True):
    """The moments of the Yeo-Johnson transform of each group at these λ."""

    lambdas: tuple[float, ...]

    def needs(self, k: int) -> int:
        """Two people for each number."""
        return max(k, 2 * NUMBERS)


class GroupPowers(Message, frozen=True):
    """One group: Σ sign(x) log(1+|x|), and per λ the transform's mean and variance (÷ n)."""

    group: str
    n: int
    log_sum: float
    means: tuple[float, ...]
    variances: tuple[float, ...]


class Powers(Aggregate, frozen=True, tag="powers", tag_field="say"):
    """The moments of the Yeo-Johnson transform, group by group."""

    groups: tuple[GroupPowers, ...]

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [group.group for group in self.groups]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """As many numbers of each group as the whole grid has."""
        for group in self.groups:
            check_mean(people, group.group)
            yield from whole(people, group.group, question.variable, group.n, None, NUMBERS)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """The policy allows it, for everybody, at points of the grid, to four digits."""
        assert isinstance(question, PowersQuestion)  # the gate looked
        if question.where is not None:
            raise GateError("moments at several λ are not given under a condition")
        if not question.lambdas or not set(question.lambdas) <= set(terms.lambdas):
            raise GateError("the policy does not allow moments at these λ")
        for group in self.groups:
            terms.check_people(group.n)
            if group.n < NUMBERS * 2:
                raise GateError(f"moments at several λ need {NUMBERS * 2} people")
            if not len(group.means) == len(group.variances) == len(question.lambdas):
                raise GateError("each λ must have one mean and one variance")
            if not _is_rounded(group, question.lambdas):
                raise GateError(f"moments at several λ must be finite, of {DIGITS} digits")
        return [
            number
            for group in self.groups
            for number in (group.log_sum, *group.means, *group.variances)
        ]

    def sentence(self) -> str:
        """What a steward reads."""
        groups = ", ".join(f"{group.group} n {group.n}" for group in self.groups)
        return f"moments at {len(self.groups[0].means)} powers: {groups}"


def _is_rounded(group: GroupPowers, lambdas: Sequence[float]) -> bool:
    means, variances = np.array(group.means), np.array(group.variances)
    try:
        moments = PowerMoments(group.n, group.log_sum, np.array(lambdas), means, variances)
    except ValueError:  # not finite, or a negative variance
        return False
    return are_moments_rounded(moments, DIGITS)
