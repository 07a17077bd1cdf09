"""The paper's chain: a center's own K-anonymous table, and what the others add to it."""

from collections.abc import Iterable, Sequence

import numpy as np

from unpooled.center.questions.message import (
    Aggregate,
    CohortQuestion,
    Disclosure,
    Limits,
    Message,
    People,
    Terms,
    ascending,
    in_cells,
    numbers_in,
)
from unpooled.errors import GateError


class TableQuestion(CohortQuestion, frozen=True, tag="table", tag_field="ask"):
    """The center's own K-anonymous table; begins a chain."""

    room: int | None = None  # how many bins there may be; None: as many as K allows
    limits: Limits = "open"


class JoinQuestion(CohortQuestion, frozen=True, tag="join", tag_field="ask", kw_only=True):
    """What the center adds to a table with these edges."""

    edges: tuple[float, ...]  # interior edges, ascending
    lower: float | None = None  # outer limits so far, None where open
    upper: float | None = None
    room: int | None = None  # how many bins may be added
    limits: Limits = "open"


class GroupCounts(Message, frozen=True):
    """One group's people, bin by bin."""

    group: str
    counts: tuple[int, ...]


class CenterTable(Aggregate, frozen=True, tag="table", tag_field="say"):
    """The center's own table; bin b is (edges[b-1], edges[b]], the outer limits None where open."""

    lower: float | None
    edges: tuple[float, ...]  # interior
    upper: float | None
    groups: tuple[GroupCounts, ...]

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [group.group for group in self.groups]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """A count of each bin and group."""
        for group in self.groups:
            yield in_cells(people, group.group, question.variable, self.edges, group.counts)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Bins of 0 or K people between public or open limits."""
        assert isinstance(question, TableQuestion)  # the gate looked
        declared = terms.declared
        _check_limits(
            question.limits, terms, (self.lower, declared.lower), (self.upper, declared.upper)
        )
        ascending(self.edges)
        for group in self.groups:
            if len(group.counts) != len(self.edges) + 1:
                raise GateError("a table must have one count per bin")
            terms.check_cells(*group.counts, sum(group.counts))
        return numbers_in(self.lower, self.edges, self.upper)

    def sentence(self) -> str:
        """What a steward reads."""
        groups = ", ".join(f"{group.group} {sum(group.counts)}" for group in self.groups)
        return f"{len(self.edges) + 1} bins: {groups}"


class GroupPools(Message, frozen=True):
    """One group's people over runs of neighbouring bins."""

    group: str
    spans: tuple[int, ...]
    counts: tuple[int, ...]


class CenterJoin(Aggregate, frozen=True, tag="join", tag_field="say"):
    """What a center adds to a table: new edges, and pools over the bins of the finer table."""

    lower: float | None
    splits: tuple[float, ...]
    upper: float | None
    groups: tuple[GroupPools, ...]

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [group.group for group in self.groups]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """A count of each pool and group."""
        assert isinstance(question, JoinQuestion)  # the gate looked
        edges = np.union1d(question.edges, self.splits)
        for group in self.groups:
            ends = edges[np.cumsum(group.spans[:-1]).astype(np.int64) - 1].tolist()
            yield in_cells(people, group.group, question.variable, ends, group.counts)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Pools of 0 or K people that cover every bin once, between public or open limits."""
        assert isinstance(question, JoinQuestion)  # the gate looked
        declared = terms.declared
        lower = self.lower, declared.lower, question.lower
        _check_limits(question.limits, terms, lower, (self.upper, declared.upper, question.upper))
        ascending(self.splits)
        edges = {*question.edges, *self.splits}
        if len(edges) != len(question.edges) + len(self.splits):
            raise GateError("a split must not repeat an edge")
        for group in self.groups:
            terms.check_cells(*group.counts, sum(group.counts))
            if sum(group.spans) != len(edges) + 1 or min(group.spans, default=1) < 1:
                raise GateError("pools must cover every bin once")
            if len(group.spans) != len(group.counts):
                raise GateError("each pool must have one count")
            if 0 in group.counts[1:-1]:
                raise GateError("empty bins inside must not be separated")
        return numbers_in(self.lower, self.splits, self.upper)

    def sentence(self) -> str:
        """What a steward reads."""
        groups = ", ".join(
            f"{group.group} {sum(group.counts)} in {len(group.counts)} pools"
            for group in self.groups
        )
        return f"{len(self.splits)} new edges: {groups}"


def _check_limits(
    asked: Limits, terms: Terms, lower: tuple[float | None, ...], upper: tuple[float | None, ...]
) -> None:
    """Each tuple: the limit that is released, then those that are public already."""
    if asked not in terms.limits:
        raise GateError(f"the policy does not allow {asked} outer limits")
    for limit, *public in (lower, upper):
        if limit is None or asked == "buffer":
            continue
        if asked == "open":
            raise GateError("open outer limits must stay open")
        if limit not in public:
            raise GateError("natural outer limits must be the declared ones")
