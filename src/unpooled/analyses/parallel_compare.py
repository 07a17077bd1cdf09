"""The Mann-Whitney test of everybody, as if pooled: the centers' ranks, and a parallel round."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial

import numpy as np

from unpooled.analyses.asking import Request, explain, refuse
from unpooled.analyses.distribution import combine_distribution
from unpooled.analyses.paradox import find_paradox
from unpooled.analyses.parallel import Tables, ask_tables
from unpooled.analyses.table import lacking_note
from unpooled.coordinator import Conversation
from unpooled.data.variables import Variable
from unpooled.errors import RefusedError
from unpooled.maths.cross_center import cross_center, hodges_lehmann
from unpooled.maths.effect import Interval, center_effect
from unpooled.maths.lattice import nearest_multiples
from unpooled.maths.mann_whitney import Alternative, RankStatistics
from unpooled.maths.placing import Placed, place
from unpooled.maths.simpson import CenterPairs
from unpooled.questions import Reason, Refusal
from unpooled.results.distribution import DistributionResult
from unpooled.results.pooled import PooledComparison
from unpooled.results.selection_bias import BIASED, refused_for_values

_MOST_HIDDEN = 0.05  # share of a group that may be anywhere in a wide cell
_MOST_UNPLACED = 0.25  # and anywhere beyond an edge: of scores from 1 to 5 it is a half or more


class PooledRound:
    """One round for the tables of both groups, and what follows from it with the centers' ranks."""

    def __init__(
        self,
        conversation: Conversation,
        request: Request,
        alternative: Alternative,
        declared: Variable,
    ) -> None:
        self._conversation, self._request = conversation, request
        self._alternative, self._declared = alternative, declared
        self._tables: Tables | RefusedError | None = None

    def ask(self) -> None:
        """Ask for the tables; that nobody answers is said when they are combined."""
        try:
            self._tables = ask_tables(self._conversation, self._request, self._declared)
        except RefusedError as refused:
            self._tables = refused

    def combine(self, ranks: Mapping[str, RankStatistics]) -> PooledComparison:
        """The comparison; raises where one of the groups has no table."""
        if self._tables is None:
            self.ask()
        if isinstance(self._tables, RefusedError):
            raise self._tables
        assert self._tables is not None
        groups = self._request.groups or ("", "")
        if not all(map(self._tables.of, groups)):
            explain(self._conversation, self._request, self._tables.refusals)
        return combine_pooled(self._request, self._tables, ranks, self._alternative)


def combine_pooled(
    request: Request,
    tables: Tables,
    ranks: Mapping[str, RankStatistics],
    alternative: Alternative,
) -> PooledComparison:
    """Everybody of two groups, placed by all tables; within a center by its own ranks."""
    smooth = combine_distribution(request, tables)
    x, y = request.groups or ("", "")
    centers = list(dict.fromkeys((*tables.groups[x], *tables.groups[y])))
    own = [_own(ranks.get(center), tables, center, (x, y)) for center in centers]
    ranked = {center for center, told in zip(centers, own, strict=True) if told is not None}
    _refuse_hidden(tables, (x, y), ranked)
    placed = [_placed(tables, group, centers) for group in (x, y)]
    together = cross_center(placed[0], placed[1], own)
    differ = together.statistics.variance > 0  # not everybody has the same value
    test = together.test(alternative)
    effect = center_effect(together.statistics)
    parts = partial(_pairs, placed, own)
    return PooledComparison(
        paradox=find_paradox(list(ranks.values()), effect, "parallel", centers, parts),
        test=replace(test, note=test.note or _note(smooth)),
        effect=effect,
        shift=_shift(placed, together.statistics.u, tables.lattice.resolution) if differ else None,
        distribution=smooth,
    )


def _pairs(placed: Sequence[Placed], own: Sequence[RankStatistics | None]) -> CenterPairs:
    """Each center's x against each one's y; within a center as it says itself."""
    pairs = CenterPairs.of_placed(*(group.by_center(len(own)) for group in placed))
    for i, center in enumerate(own):
        if center is not None:
            pairs.u[i, i] = center.u
    return pairs


def _note(smooth: DistributionResult) -> str | None:
    """What to know about the test."""
    biased = BIASED if refused_for_values(smooth.refusals) else None
    lacking = lacking_note(smooth.people, smooth.groups)
    return "; ".join(filter(None, (smooth.rests_on(), biased, lacking))) or None


def _refuse_hidden(tables: Tables, groups: tuple[str, str], ranked: Set[str]) -> None:
    """Raise where tables do not say where many people of a group are.

    Whether few values are told depends on the values: what is withheld would look like an effect.
    At centers whose ranks are exact, these say what outer cells do not.
    """
    for group in groups:
        people = sum(table.people for table in tables.of(group))
        unplaced = {c: n for c, n in tables.unplaced[group].items() if c not in ranked}
        for found, most in ((tables.hidden[group], _MOST_HIDDEN), (unplaced, _MOST_UNPLACED)):
            if sum(found.values()) > most * people:
                reason = Refusal(reason=Reason.HIDDEN_PEOPLE, name=group)
                refuse((center, reason) for center, people in found.items() if people)


def _placed(tables: Tables, group: str, centers: Sequence[str]) -> Placed:
    """A group's pseudo-people, each with the number of its center."""
    found = place(tables.of(group), tables.lattice)
    number = {center: i for i, center in enumerate(centers)}
    own = [number[center] for center, told in tables.groups[group].items() for _ in told]
    found = replace(found, centers=np.array(own, dtype=np.int64)[found.centers])
    resolution = tables.lattice.resolution
    return found if resolution is None else found.on_grid(resolution)


def _shift(placed: Sequence[Placed], u: float, resolution: float | None) -> Interval:
    """Hodges and Lehmann's; of rounded data with no more digits than their differences have."""
    found = hodges_lehmann(placed[0], placed[1], u=u)
    if resolution is None:
        return found
    ends = np.array([found.estimate, found.low, found.high])
    return Interval(*nearest_multiples(ends, resolution / 2).tolist())


def _own(
    ranks: RankStatistics | None, tables: Tables, center: str, groups: tuple[str, str]
) -> RankStatistics | None:
    """A center's own comparison, where it is of the very people that its tables tell of."""
    people = [sum(t.people for t in tables.groups[g].get(center, ())) for g in groups]
    return ranks if ranks is not None and people == [ranks.n_x, ranks.n_y] else None
