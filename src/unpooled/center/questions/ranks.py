"""How two groups, or several, compare person by person within a center."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import inf

import numpy as np

from unpooled.center.questions.message import (
    Aggregate,
    CohortQuestion,
    Disclosure,
    Message,
    People,
    Terms,
    in_words,
    numbers_in,
    whole,
)
from unpooled.errors import GateError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.precision import are_ranks_rounded, is_variance_rounded

NUMBERS = 3  # of a group's values: its count, and the sum and the squares of its placements


class RanksQuestion(CohortQuestion, frozen=True, tag="ranks", tag_field="ask"):
    """How do two groups compare, person by person? `groups` are x and y, in this order."""

    @property
    def has_meaning(self) -> bool:
        """It names two groups."""
        return super().has_meaning and self.by is not None and len(self.groups or ()) == 2


class GroupRanksQuestion(CohortQuestion, frozen=True, tag="group-ranks", tag_field="ask"):
    """How do several groups compare, person by person? `ordered` asks for their trend as well."""

    ordered: bool = False

    @property
    def has_meaning(self) -> bool:
        """It names two groups or more, or all."""
        several = self.groups is None or len(self.groups) >= 2
        return super().has_meaning and self.by is not None and several


class Ranks(Aggregate, frozen=True, tag="ranks", tag_field="say"):
    """How two groups of a center compare: U around 0, and its variances."""

    x: str
    y: str
    n_x: int
    n_y: int
    u: float
    variance: float
    effect_variance: float

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return self.x, self.y

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """Three numbers of each group."""
        check_overlap(question, people, [(self.x, self.y)])
        for group, n in ((self.x, self.n_x), (self.y, self.n_y)):
            yield from whole(people, group, question.variable, n, None, NUMBERS)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Groups of K people; U and variances that can be, rounded to a part of their error."""
        if (self.x, self.y) != question.groups:
            raise GateError("ranks must be of the two groups that were asked for")
        terms.check_people(self.n_x, self.n_y)
        _check_pair(self.n_x, self.n_y, self.u, self.variance, self.effect_variance)
        return (self.u, self.variance, self.effect_variance)

    def sentence(self) -> str:
        """What a steward reads."""
        return f"{self.x} {self.n_x}, {self.y} {self.n_y}, U {in_words(self.u)}"


class RankedGroup(Message, frozen=True):
    """A group that is ranked among others."""

    group: str
    n: int


class PairRanks(Message, frozen=True):
    """How two of the groups compare, as in `Ranks`."""

    x: str
    y: str
    u: float
    variance: float
    effect_variance: float


class GroupRanks(Aggregate, frozen=True, tag="group-ranks", tag_field="say"):
    """How several groups of a center compare: a pair for each two of them.

    `rank_variance` is that of the ranks of everybody in these groups; `trend_variance` is that of
    the sum of all u if no group differs, None unless a trend was asked for.
    """

    groups: tuple[RankedGroup, ...]
    pairs: tuple[PairRanks, ...]
    rank_variance: float
    trend_variance: float | None

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [group.group for group in self.groups]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """Three numbers of each group."""
        check_overlap(question, people, [(pair.x, pair.y) for pair in self.pairs])
        for group in self.groups:
            yield from whole(people, group.group, question.variable, group.n, None, NUMBERS)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Groups of K people, a pair for each two; rounded to a part of their error."""
        assert isinstance(question, GroupRanksQuestion)  # the gate looked
        sizes = {group.group: group.n for group in self.groups}
        terms.check_people(*sizes.values())
        if len(sizes) < 2:
            raise GateError("ranks must be of at least two groups")
        if [(pair.x, pair.y) for pair in self.pairs] != list(combinations(sizes, 2)):
            raise GateError("there must be one pair for each two groups")
        for pair in self.pairs:
            n_x, n_y = sizes[pair.x], sizes[pair.y]
            _check_pair(n_x, n_y, pair.u, pair.variance, pair.effect_variance)
        if self.trend_variance is not None and not question.ordered:
            raise GateError("the variance of a trend was not asked for")
        n = sum(sizes.values())
        for variance in (self.rank_variance, self.trend_variance or 0.0):
            if not 0 <= variance < inf:
                raise GateError("variances must be finite and not negative")
            if not is_variance_rounded(variance, n):
                raise GateError("variances must be rounded to a part of their own error")
        pairs = ((pair.u, pair.variance, pair.effect_variance) for pair in self.pairs)
        return numbers_in(*pairs, self.rank_variance, self.trend_variance)

    def sentence(self) -> str:
        """What a steward reads."""
        sizes = ", ".join(f"{group.group} {group.n}" for group in self.groups)
        return f"{sizes}, U of {len(self.pairs)} pairs"


def overlap(one: FloatArray, other: FloatArray, k: int) -> bool:
    """Whether K people of each group lie between the extremes of the other.

    Under a condition groups may be chosen by the variable in another unit, and one that is cut to a
    window that holds nobody of the other would tell how many of these lie below it.

    Examples
    --------
    >>> ages, window = np.arange(60.0), np.linspace(30, 31, 20)
    >>> overlap(ages, ages + 5, k=10), overlap(ages, window, k=10)
    (True, False)
    """
    pairs = ((one, other), (other, one))
    inside = (np.count_nonzero((a >= b.min()) & (a <= b.max())) for a, b in pairs)
    return bool(min(inside) >= k)


def check_overlap(
    question: CohortQuestion, people: People, pairs: Sequence[tuple[str, str]]
) -> None:
    """Raise GateError where groups that a condition chose hardly overlap."""
    if question.where is None:
        return
    for pair in pairs:
        one, other = (people.value()[people.counted(group)] for group in pair)
        if not overlap(one, other, people.k):
            raise GateError("under a condition ranks must be of groups that overlap")


def _check_pair(n_x: int, n_y: int, u: float, variance: float, effect_variance: float) -> None:
    if not abs(u) <= n_x * n_y:
        raise GateError("u must not exceed the number of pairs")
    if not (0 <= variance < inf and 0 <= effect_variance < inf):
        raise GateError("variances must be finite and not negative")
    if not are_ranks_rounded(n_x, n_y, u, variance, effect_variance):
        raise GateError("ranks must be rounded to a part of their own error")
