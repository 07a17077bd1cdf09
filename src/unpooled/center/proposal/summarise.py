"""What a center answers, question by question.

Nothing here needs to be trusted: what is proposed here is judged at the gate. Each answer is made
as rich as the rule allows together with earlier ones: a table is tried with the edges that were
released before, with its own, then with fewer and fewer; moments with and without the standard
deviation.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from unpooled.center.cohort.blocks import join_levels
from unpooled.center.cohort.people import Cohort, RefusedQuestion
from unpooled.center.proposal.keyed_boundaries import keyed_draws, keyed_weight
from unpooled.center.questions import (
    OTHER,
    Aggregate,
    Categories,
    CategoryQuestion,
    CellMoments,
    CellTable,
    CenterJoin,
    CenterTable,
    Disclosure,
    FollowUpQuestion,
    GroupCounts,
    GroupLevels,
    GroupMoments,
    GroupPools,
    GroupPowers,
    GroupRanks,
    GroupRanksQuestion,
    GroupStatuses,
    GroupTable,
    JoinQuestion,
    LatticeQuestion,
    LatticeTables,
    LevelCount,
    Limits,
    Moments,
    MomentsQuestion,
    PairRanks,
    Powers,
    PowersQuestion,
    RankedGroup,
    Ranks,
    RanksQuestion,
    Reason,
    Size,
    Sizes,
    SizesQuestion,
    SurvivalQuestion,
    SurvivalTables,
    TableQuestion,
    Terms,
    decode_answer,
)
from unpooled.center.questions.message import in_cells
from unpooled.center.questions.powers import DIGITS, NUMBERS
from unpooled.center.questions.ranks import overlap
from unpooled.center.questions.survival import by_status
from unpooled.center.rule.disclosure import TooClose
from unpooled.center.rule.memory import Draft
from unpooled.errors import GateError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.cells import dominated, rounded
from unpooled.maths.lattice.cutting import lattice_table, status_table, table_at
from unpooled.maths.lattice.lattice import (
    Lattice,
    LatticeTable,
    is_multiple,
    nice_number,
    usual_resolutions,
)
from unpooled.maths.moments import MeanSD
from unpooled.maths.precision import round_mean, round_mean_sd, round_ranks, round_variance
from unpooled.maths.quantiles.yeo_johnson import power_moments, round_moments
from unpooled.maths.ranks.group_ranks import rank_variance, tied_people, trend_variance
from unpooled.maths.ranks.mann_whitney import rank_statistics
from unpooled.maths.tables.binning import Rule, buffer, coarsen, cut, place_boundaries
from unpooled.maths.tables.chain import join, join_again

_COARSER = (1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0, 256.0)  # times K people a cell
_TIMES = 10  # that blocks say less, until they are released one after the other
_LATER, _AT_LEAST = 3.0, 5  # of a table that is not the first; and at least this many cells
_JOINING = 3  # cells that a table has at least once an outer one joined its neighbour
_MANY = 5  # K people: of 50, 41 are even by chance in three of a million columns
_NORMAL = 1.349  # the middle half of a normal distribution, in standard deviations

T = TypeVar("T")
Said = TypeVar("Said", bound=Aggregate)
Tells = Callable[[T], Iterable[Disclosure]]
Thinner = Callable[[T, frozenset[int]], T | None]


def _lacking(
    disclosures: Mapping[str, Sequence[Disclosure]], lacking: frozenset[int]
) -> dict[str, frozenset[int]]:
    """Which parts of each group lack witnesses, where groups are judged as one disclosure."""
    of_group: dict[str, frozenset[int]] = {}
    first = 0
    for group, some in disclosures.items():
        if len(some) != 1:
            return {}
        parts = len(some[0].counts)
        these = frozenset(part - first for part in lacking if 0 < part - first <= parts)
        if these:
            of_group[group] = these
        first += parts
    return of_group


def _different(tries: Iterable[T]) -> Iterator[T]:
    """Each of them once; a way is made when it is tried."""
    seen = set[T]()
    for one in tries:
        if one not in seen:
            seen.add(one)
            yield one


def _no_thinner(_said: object, _lacking: frozenset[int]) -> None:
    return None


@dataclass(slots=True)
class Summary:
    """An answer in the making; `draft` has what it tells so far."""

    question: Any
    cohort: Cohort
    terms: Terms
    draft: Draft
    number: int  # of the answer, in the ledger
    secret: bytes

    def aggregate(self) -> Aggregate:
        """The numbers; raises TooClose where earlier answers allow none."""
        match self.question:
            case SizesQuestion():
                return self._sizes()
            case MomentsQuestion() | FollowUpQuestion():
                return self._moments()
            case TableQuestion():
                return self._table()
            case JoinQuestion():
                return self._join()
            case RanksQuestion():
                return self._ranks()
            case GroupRanksQuestion():
                return self._group_ranks()
            case LatticeQuestion():
                return self._lattice()
            case SurvivalQuestion():
                return self._survival()
            case PowersQuestion():
                return self._powers()
            case CategoryQuestion():
                return self._categories()
            case _:
                raise TypeError(f"nobody summarises {type(self.question).__name__}")

    def again(self, payload: bytes | None) -> Aggregate | None:
        """The numbers that the same question had before, where they still may be released."""
        aggregate: Aggregate | None = None if payload is None else decode_answer(payload).aggregate
        if aggregate is None or list(aggregate.labels()) != list(self.cohort.groups):
            return None
        with suppress(GateError, TooClose):
            aggregate.limits(self.question, self.terms)
            for disclosure in aggregate.tells(self.question, self.cohort):
                disclosure.check()
            return self._all([aggregate])
        return None

    # --- one after the other, as the rule allows --------------------------------------------

    def _tell(self, disclosures: Iterable[Disclosure]) -> None:
        """All of these, or none."""
        blocks = self.question.blocks is not None
        self.draft = self.draft.tell_all(disclosures, self.number, self.cohort.value, blocks=blocks)

    def _by_group(
        self,
        tries: Callable[[str], Iterator[T]],
        tells: Callable[[str, T], Iterable[Disclosure]],
        thinner: Callable[[str], Thinner[T]] = lambda _: _no_thinner,
    ) -> dict[str, T]:
        """What is said of each group.

        Blocks are released together where the rule allows it; else one after the other, each as
        rich as it may be, and without those of which nothing may be released.
        """
        groups = list(self.cohort.groups)
        if self.question.blocks is None:
            return {g: self._first(tries(g), partial(tells, g), thinner(g)) for g in groups}
        richest = self._together(groups, tries, tells, thinner)
        if richest is None:
            richest = {}
            for group in groups:
                with suppress(RefusedQuestion, TooClose):
                    richest[group] = self._first(
                        tries(group), partial(tells, group), thinner(group)
                    )
        if not richest:
            raise TooClose
        self.cohort.only(list(richest))
        return richest

    def _together(
        self,
        groups: Sequence[str],
        tries: Callable[[str], Iterator[T]],
        tells: Callable[[str, T], Iterable[Disclosure]],
        thinner: Callable[[str], Thinner[T]],
    ) -> dict[str, T] | None:
        """All groups at once, each as rich as the others; None where the rule allows none of it."""
        ways: dict[str, Iterator[T]] = {}
        each: dict[str, T] = {}
        for group in groups:
            with suppress(RefusedQuestion):
                ways[group] = _different(tries(group))
                each[group] = next(ways[group])
        for _ in range(_TIMES):
            disclosures = {group: list(tells(group, one)) for group, one in each.items()}
            flat = [one for some in disclosures.values() for one in some]
            try:
                self.draft = self.draft.tell_blocks(flat, self.number, self.cohort.value)
                return each
            except TooClose as close:
                lacking = _lacking(disclosures, close.lacking)
            for group in lacking or list(each):
                less = thinner(group)(each[group], lacking[group]) if lacking else None
                less = next(ways[group], None) if less is None else less
                if less is None:
                    return None
                each[group] = less
        return None

    def _first(self, tries: Iterable[T], tells: Tells[T], thinner: Thinner[T] = _no_thinner) -> T:
        """The first of several ways to say something that the rule allows.

        Where it forbids some parts, `thinner` says less of these.
        """
        closest = TooClose()
        for answer in tries:
            left: T | None = answer
            while left is not None:
                try:
                    self._tell(tells(left))
                except TooClose as close:
                    closest, left = close, thinner(left, close.lacking)
                else:
                    return left
        raise closest

    def _all(self, tries: Iterable[Said]) -> Said:
        """The first aggregate of which the rule allows everything."""
        closest = TooClose()
        for answer in tries:
            try:
                self._tell(answer.tells(self.question, self.cohort))
            except TooClose as close:
                closest = close
                continue
            return answer
        raise closest

    # --- counts and moments -----------------------------------------------------------------

    def _sizes(self) -> Sizes:
        groups = self.cohort.groups
        sizes = tuple(Size(group=group, n=self.cohort.n(group)) for group in groups)
        return Sizes(sizes=sizes)

    def _moments(self) -> Moments:
        def tells(_group: str, moments: GroupMoments) -> Iterable[Disclosure]:
            return Moments(moments=(moments,)).tells(self.question, self.cohort)

        moments = self._by_group(self._said_moments, tells)
        return Moments(moments=tuple(moments.values()))

    def _said_moments(self, group: str) -> Iterator[GroupMoments]:
        """With mean and SD, with the mean alone, with neither."""
        values, cohort = self.cohort.values(group), self.cohort
        plain = GroupMoments(
            group=group, n=cohort.n(group), missing=cohort.missing(group), mean=None, sd=None
        )
        if not dominated(values):
            exact = MeanSD.of(values)
            rounded = round_mean_sd(exact)
            yield msgspec.structs.replace(plain, mean=rounded.mean, sd=rounded.sd)
            if exact.sd > 0:
                mean, unit = round_mean(exact)
                yield msgspec.structs.replace(plain, mean=mean, unit=unit)
        yield plain

    # --- ranks ------------------------------------------------------------------------------

    def _ranks(self) -> Ranks:
        x, y = self.question.groups
        pair = self._pair(x, y)
        n = {group: self.cohort.n(group) for group in (x, y)}
        ranks = Ranks(
            x=x,
            y=y,
            n_x=n[x],
            n_y=n[y],
            u=pair.u,
            variance=pair.variance,
            effect_variance=pair.effect_variance,
        )
        return self._all_or_few([ranks])

    def _group_ranks(self) -> GroupRanks:
        """Of as many groups as may be ranked; those of too few different values are left out."""
        ranked = []
        for group in self.cohort.groups:
            alone = GroupRanks(
                groups=(RankedGroup(group=group, n=self.cohort.n(group)),),
                pairs=(),
                rank_variance=0.0,
                trend_variance=None,
            )
            with suppress(RefusedQuestion):
                self._all_or_few([alone])
                ranked.append(group)
        if len(ranked) < 2:
            raise RefusedQuestion(Reason.FEW_VALUES)
        self.cohort.only(ranked)
        values = {group: self.cohort.values(group) for group in ranked}
        tied, k = tied_people(list(values.values())), self.terms.k
        sizes = np.array([self.cohort.n(group) for group in ranked], dtype=np.float64)
        n = int(sizes.sum())
        trend = trend_variance(sizes, tied, k=k) if self.question.ordered else None
        return GroupRanks(
            groups=tuple(RankedGroup(group=g, n=self.cohort.n(g)) for g in ranked),
            pairs=tuple(self._pair(x, y) for x, y in combinations(ranked, 2)),
            rank_variance=round_variance(rank_variance(tied, k=k), n),
            trend_variance=None if trend is None else round_variance(trend, n),
        )

    def _pair(self, x: str, y: str) -> PairRanks:
        one, other = self.cohort.values(x), self.cohort.values(y)
        if self.question.where is not None and not overlap(one, other, self.terms.k):
            raise RefusedQuestion(Reason.APART)
        rounded = round_ranks(rank_statistics(one, other, k=self.terms.k))
        return PairRanks(
            x=x,
            y=y,
            u=rounded.u,
            variance=rounded.variance,
            effect_variance=rounded.effect_variance,
        )

    def _all_or_few(self, tries: Sequence[Said]) -> Said:
        """The first that is allowed; where nothing earlier forbids it, values are too few."""
        try:
            return self._all(tries)
        except TooClose as close:
            self.draft = self.draft.fresh()
            try:
                self._all(tries)
            except TooClose:
                raise RefusedQuestion(Reason.FEW_VALUES) from None
            raise close from None

    # --- the paper's chain ------------------------------------------------------------------

    def _table(self) -> CenterTable:
        question, groups = self.question, list(self.cohort.groups)
        self._check_limits()
        values = [self.cohort.values(group) for group in groups]
        weight = keyed_weight(self.secret, question.variable)

        def table(edges: FloatArray) -> CenterTable:
            ends = [v.searchsorted(edges, "right") for v in values]
            counts = [
                np.diff(end, prepend=0, append=len(v)) for end, v in zip(ends, values, strict=True)
            ]
            lower, upper = self._outer(question.limits, values, edges)
            return CenterTable(
                lower=lower,
                edges=tuple(edges.tolist()),
                upper=upper,
                groups=tuple(
                    GroupCounts(group=group, counts=tuple(people.tolist()))
                    for group, people in zip(groups, counts, strict=True)
                ),
            )

        def tries() -> Iterator[CenterTable]:
            for rule in self._rules(values):
                for earlier in self._told_edges(groups):
                    yield table(coarsen(values, earlier, rule))
                cuts = cut(values, rule)
                yield table(place_boundaries(cuts.below, cuts.above, weight))
            yield table(np.zeros(0))

        return self._one_of(tries())

    def _join(self) -> CenterJoin:
        question, groups = self.question, list(self.cohort.groups)
        self._check_limits()
        interior = np.array(question.edges, dtype=np.float64)
        if not np.all(np.isfinite(interior)) or np.any(np.diff(interior) <= 0):
            raise RefusedQuestion(Reason.UNREADABLE_QUESTION)
        values = [self.cohort.values(group) for group in groups]
        weight = keyed_weight(self.secret, question.variable)

        def joined(made: Any) -> CenterJoin:
            edges = np.union1d(interior, made.splits)
            lower, upper = self._outer(question.limits, values, edges)
            return CenterJoin(
                lower=_wider(lower, question.lower, min),
                splits=tuple(made.splits.tolist()),
                upper=_wider(upper, question.upper, max),
                groups=tuple(
                    GroupPools(
                        group=group,
                        spans=tuple(pools.spans.tolist()),
                        counts=tuple(pools.counts.tolist()),
                    )
                    for group, pools in zip(groups, made.pools, strict=True)
                ),
            )

        def tries() -> Iterator[CenterJoin]:
            for rule in self._rules(values):
                for earlier in self._told_edges(groups):
                    fixed = [earlier] * len(groups)
                    yield joined(join_again(values, interior, fixed, rule, weight, question.room))
                yield joined(join(values, interior, rule, weight))

        return self._one_of(tries())

    def _one_of(self, tries: Iterator[Said]) -> Said:
        """The first that is allowed, each tried once."""
        seen: list[Said] = []

        def new() -> Iterator[Said]:
            for one in tries:
                if one not in seen:
                    seen.append(one)
                    yield one

        return self._all(new())

    def _rules(self, values: Sequence[FloatArray]) -> Iterator[Rule]:
        """Bins of K people, then of more and more; at most `room` bins."""
        people, room, k = sum(map(len, values)), self.question.room, self.terms.k
        least = 1 if room is None else -(-people // room) if room > 0 else people + 1
        for coarser in _COARSER:
            wanted = least if coarser == 1 else max(least, math.ceil(coarser * k))
            yield Rule(k=k, bin=wanted, zeros=self.terms.zeros)
            if wanted > people:
                return

    def _told_edges(self, groups: Sequence[str]) -> list[FloatArray]:
        """Edges of earlier tables of these people."""
        members = np.any([self.cohort.members(group) for group in groups], axis=0)
        return self.draft.edges(self.question.variable, members)

    def _check_limits(self) -> None:
        if self.question.limits not in self.terms.limits:
            raise RefusedQuestion(Reason.NOT_ALLOWED)

    def _outer(
        self, asked: Limits, values: Sequence[FloatArray], edges: FloatArray
    ) -> tuple[float | None, float | None]:
        declared = self.terms.declared
        if asked == "open":
            return None, None
        if asked == "natural":
            if declared.lower is None and declared.upper is None:
                raise RefusedQuestion(Reason.NO_LIMITS)
            return declared.lower, declared.upper
        together, k = np.sort(np.concatenate(values)), self.terms.k
        first = max(int(np.searchsorted(together, edges[:1], "right").sum()), k)
        last = min(int(np.searchsorted(together, edges[-1:], "right").sum()), len(together) - k)
        return (
            float(together[0]) - buffer(together[:first]),
            float(together[-1]) + buffer(together[last:]),
        )

    # --- tables on the lattice --------------------------------------------------------------

    def _lattice(self) -> LatticeTables:
        declared, terms = self.terms.declared, self.terms
        facts = self._facts()
        lattice = declared.lattice(*facts)

        def tells(group: str, table: CellTable) -> Iterable[Disclosure]:
            cells = table.edges, table.counts, table.numbers()
            return [in_cells(self.cohort, group, self.question.variable, *cells)]

        def thinner(group: str) -> Thinner[CellTable]:
            values, blocks = self.cohort.values(group), self.question.blocks
            return partial(
                _thinner if blocks is None else _thinner_at_once,
                values=values,
                lattice=lattice,
                k=terms.k,
                moments=terms.moments,
            )

        tables = self._by_group(partial(self._cell_tables, lattice=lattice), tells, thinner)
        return LatticeTables(
            scale=facts.scale,
            moments=terms.moments,
            groups=tuple(GroupTable(group=g, table=table) for g, table in tables.items()),
            resolution=facts.resolution,
            lower=declared.lower,
            upper=declared.upper,
        )

    def _cell_tables(self, group: str, lattice: Lattice) -> Iterator[CellTable]:
        """A group's table, ever coarser."""
        values = self.cohort.values(group)
        draws = keyed_draws(self.secret, self.question.variable)
        k, moments = self.terms.k, self.terms.moments
        earlier = self._lattice_edges(group, values, lattice)
        rest = self.draft.rest(self.question.variable, self.cohort.members(group))
        for edges in self._at_points([] if rest is None else [rest], values, lattice):
            yield cell_table(table_at(edges, values, lattice, k, moments))
        for edges in earlier:
            if self._follows(group, cell_table(table_at(edges, values, lattice, k, "none"))):
                yield cell_table(table_at(edges, values, lattice, k, moments))
        for coarser in self._steps(earlier, len(values)):
            least = math.ceil(coarser * k)
            tables = [table_at(edges, values, lattice, least, moments) for edges in earlier]
            if coarser == 1:
                tables.append(lattice_table(values, lattice, k, draws, moments))
            elif 2 * least <= len(values):
                wide = lattice_table(values, lattice, least, draws, "none")
                tables.append(table_at(wide.edges, values, lattice, k, moments))
            yield from map(cell_table, tables)
            if least > len(values):
                break
        yield cell_table(_plain(table_at(np.zeros(0), values, lattice, k, "none")))

    def _follows(self, group: str, table: CellTable) -> bool:
        """Whether the counts of a table follow from what was released."""
        variable = self.question.variable
        counts = in_cells(self.cohort, group, variable, table.edges, table.counts)
        with suppress(TooClose):
            after = self.draft.tell(counts, self.number, self.cohort.value)
            return after.variables.get(variable) is self.draft.variables.get(variable)
        return False

    def _lattice_edges(self, group: str, values: FloatArray, lattice: Lattice) -> list[FloatArray]:
        """Edges of earlier tables."""
        earlier = self.draft.edges(self.question.variable, self.cohort.members(group))
        return self._at_points(earlier, values, lattice)

    @staticmethod
    def _at_points(
        earlier: Iterable[FloatArray], values: FloatArray, lattice: Lattice
    ) -> list[FloatArray]:
        """Edges on the lattice; those of the chain at the next point that parts people alike."""
        on_lattice = []
        for edges in earlier:
            points = np.where(np.isin(edges, lattice.atom_sides), edges, lattice.snap(edges))
            below = values.searchsorted(points, "right"), values.searchsorted(edges, "right")
            kept = points[(below[0] == below[1]) & (points >= lattice.lower)]
            kept = np.unique(kept[kept < lattice.upper])
            on_lattice += [kept] if len(kept) else []
        return on_lattice

    def _steps(self, earlier: Sequence[FloatArray], people: int) -> list[float]:
        """How many times K people a cell has: more where people were released in cells before.

        n people carry at most n/K numbers; so some are left for questions to come.
        """
        first = min(_LATER, people / (_AT_LEAST * self.terms.k)) if earlier else 1.0
        return [max(first, 1.0), *(step for step in _COARSER if step > max(first, 1.0))]

    def _survival(self) -> SurvivalTables:
        question, declared = self.question, self.terms.declared
        facts = self._facts(question.horizon)
        lattice = declared.follow_up_lattice(facts.scale, question.horizon, facts.resolution)

        def tells(_group: str, statuses: GroupStatuses) -> Iterable[Disclosure]:
            return by_status(statuses, question, self.cohort)[:1]  # the rest follows

        def thinner(group: str) -> Thinner[GroupStatuses]:
            events, censored, followed = self._times(group)
            early = np.sort(np.concatenate((events, censored)))
            return partial(
                _thinner_statuses,
                thinner=_thinner if self.question.blocks is None else _thinner_at_once,
                times={
                    "events": events,
                    "censored": np.concatenate((censored, followed)),
                    "either": np.concatenate((early, followed)),
                    "early": early,
                },
                lattice=lattice,
                k=self.terms.k,
                moments=self.terms.moments,
            )

        groups = tuple(
            self._by_group(partial(self._statuses, lattice=lattice), tells, thinner).values()
        )
        return SurvivalTables(scale=facts.scale, groups=groups, resolution=facts.resolution)

    def _statuses(self, group: str, lattice: Lattice) -> Iterator[GroupStatuses]:
        """All or nothing: n and one of the two would give the other away.

        Where they are not released, who is followed to the horizon is: these had no event.
        """
        events, before, followed = self._times(group)
        k, censored = self.terms.k, np.concatenate((before, followed))
        if len(events) + len(censored) < k:
            raise RefusedQuestion(Reason.TOO_SMALL, limit=k)
        early = np.sort(np.concatenate((events, before)))
        everybody = np.concatenate((early, followed))
        earlier = self._lattice_edges(group, everybody, lattice)
        if self._below(events, censored) is None:
            pairs = zip(
                self._time_tables(earlier, events, lattice),
                self._time_tables(earlier, censored, lattice),
                strict=False,
            )
            for had, had_not in pairs:
                yield GroupStatuses(
                    group=group, events=had, censored=had_not, either=None, below=None
                )
            return
        if min(len(early), len(followed)) >= k and (below := self._below(events, before)):
            nobody = GroupStatuses(
                group=group, events=None, censored=None, either=None, below=below
            )
            for table in self._time_tables(earlier, early, lattice):
                yield msgspec.structs.replace(nobody, either=table, followed=len(followed))
        below = self._below(events, censored)
        for table in self._time_tables(earlier, everybody, lattice):
            yield GroupStatuses(group=group, events=None, censored=None, either=table, below=below)

    def _below(self, events: FloatArray, censored: FloatArray) -> Any:
        """Which status has too few people to be released; None: neither."""
        k, zeros = self.terms.k, self.terms.zeros and self.question.where is None
        few = [len(times) < k and (len(times) > 0 or not zeros) for times in (events, censored)]
        if not any(few):
            return None
        return "both" if all(few) else "events" if few[0] else "censored"

    def _time_tables(
        self, earlier: Sequence[FloatArray], times: FloatArray, lattice: Lattice
    ) -> Iterator[CellTable | None]:
        """A table of times, ever coarser; None where there is nobody."""
        k, moments = self.terms.k, self.terms.moments
        draws = keyed_draws(self.secret, self.question.variable)
        for coarser in self._steps(earlier, len(times)):
            least = math.ceil(coarser * k)
            for edges in [*earlier, None]:
                if not len(times):
                    yield None
                elif edges is not None:
                    yield cell_table(table_at(edges, times, lattice, least, moments))
                elif coarser == 1:
                    yield cell_table(status_table(times, lattice, k, draws, moments))
                else:
                    wide = status_table(times, lattice, min(least, len(times)), draws, "none")
                    yield cell_table(table_at(wide.edges, times, lattice, k, moments))

    def _times(self, group: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sorted times of events, and of those censored before the horizon; and who is left there.

        These are censored at the horizon.
        """
        members, status = self.cohort.members(group), self.cohort.status()
        times, horizon = self.cohort.value(), self.question.horizon
        seen = members & (status > 0) & ~np.isnan(times)
        had = seen & (status == 1) & (times <= horizon)
        rest = np.minimum(times[seen & ~had], horizon)
        return np.sort(times[had]), np.sort(rest[rest < horizon]), rest[rest >= horizon]

    def _facts(self, horizon: float | None = None) -> "LatticeFacts":
        return center_facts(self.cohort, self.question.variable, horizon)

    # --- categories -------------------------------------------------------------------------

    def _categories(self) -> Categories:
        """Each group by its levels, levels of too few people merged; more of them where the rule
        forbids that.
        """

        def tells(_group: str, levels: GroupLevels) -> Iterable[Disclosure]:
            return Categories(groups=(levels,)).tells(self.question, self.cohort)

        groups = self._by_group(self._level_cells, tells)
        return Categories(groups=tuple(groups.values()))

    def _level_cells(self, group: str) -> Iterator[GroupLevels]:
        question, cohort, k = self.question, self.cohort, self.terms.k
        names = tuple(dict.fromkeys((*cohort.level_names(), OTHER)))
        each = cohort.levels(group, [(name,) for name in names])
        counts = np.bincount(each, minlength=len(names)).tolist()
        empty = cohort.may_be_empty() if question.where is None else (False,) * len(names)
        for coarser in _COARSER:
            least = math.ceil(coarser * k)
            joined = join_levels(counts, least, ordered=question.ordered, empty=empty)
            nobody = [(level,) for level, n in enumerate(counts) if n == 0 and empty[level]]
            cells = [
                LevelCount(
                    levels=tuple(names[level] for level in levels),
                    count=sum(counts[level] for level in levels),
                )
                for levels in sorted([*joined, *nobody])
                if names[levels[0]] != OTHER or sum(counts[level] for level in levels)
            ]
            yield GroupLevels(group=group, cells=tuple(cells), missing=cohort.missing(group))
            if least > sum(counts):
                break

    # --- the paper's iteration --------------------------------------------------------------

    def _powers(self) -> Powers:
        question = self.question
        if not question.lambdas or not set(question.lambdas) <= set(self.terms.lambdas):
            raise RefusedQuestion(Reason.NOT_ALLOWED)
        groups = []
        for group in self.cohort.groups:
            values = self.cohort.values(group)
            if len(np.unique(values)) < 2 * NUMBERS or dominated(values):
                raise RefusedQuestion(Reason.FEW_VALUES)
            moments = round_moments(power_moments(values, question.lambdas), DIGITS)
            groups.append(
                GroupPowers(
                    group=group,
                    n=self.cohort.n(group),
                    log_sum=moments.log_sum,
                    means=tuple(moments.mean.tolist()),
                    variances=tuple(moments.variance.tolist()),
                )
            )
        return self._all_or_few([Powers(groups=tuple(groups))])


# --- a table as it is said ----------------------------------------------------------------------


def cell_table(table: LatticeTable) -> CellTable:
    """A table as it leaves."""

    def or_none(moments: FloatArray) -> tuple[float | None, ...]:
        return tuple(None if math.isnan(moment) else moment for moment in moments.tolist())

    return CellTable(
        edges=tuple(table.edges.tolist()),
        counts=tuple(table.counts.tolist()),
        means=or_none(table.means),
        sds=or_none(table.sds),
    )


def _plain(table: LatticeTable) -> LatticeTable:
    nothing = np.full(len(table.counts), np.nan)
    return replace(table, means=nothing, sds=nothing)


def _thinner(
    table: CellTable,
    lacking: frozenset[int],
    values: FloatArray,
    lattice: Lattice,
    k: int,
    moments: CellMoments,
) -> CellTable | None:
    """The table with less of these cells; None where that is no help.

    They lose their SD, then their mean; but an outer cell joins its neighbour, as nothing else
    says where its people are. Where all lack witnesses, one loses both at first: the others may
    have theirs in it.
    """
    numbers, last = table.numbers(), len(table.counts) - 1
    cells = sorted(cell - 1 for cell in lacking if cell <= len(numbers) and numbers[cell - 1] > 1)
    if not cells or len(cells) < sum(cell <= len(numbers) for cell in lacking):
        return None
    rich = [cell for cell, each in enumerate(numbers) if each > 1]
    if len(rich) > 2 and cells == rich:
        return _without_moments(table, [cells[len(cells) // 2]], lattice, both=True)
    bare = [cell for cell in (0, last) if cell in cells and table.sds[cell] is None]
    if bare and _may_join(table, bare[0]):
        edges = np.array(table.edges[1:] if bare[0] == 0 else table.edges[:-1])
        return cell_table(table_at(edges, values, lattice, k, moments))
    return _without_moments(table, cells, lattice)


def _thinner_at_once(
    table: CellTable,
    lacking: frozenset[int],
    values: FloatArray,
    lattice: Lattice,
    k: int,
    moments: CellMoments,
) -> CellTable | None:
    """The same in one step: outer cells join their neighbours, others lose mean and SD."""
    numbers, last = table.numbers(), len(table.counts) - 1
    cells = {cell - 1 for cell in lacking if cell <= len(numbers) and numbers[cell - 1] > 1}
    if not cells or len(cells) < sum(cell <= len(numbers) for cell in lacking):
        return None
    bare = {cell for cell, each in enumerate(numbers) if each == 1} | cells
    first = 1 if 0 in cells and _may_join(table, 0) else 0
    edges = table.edges[first:]
    if last in cells and _may_join(table, last):
        edges = edges[:-1]
    if len(edges) == len(table.edges):
        return _without_moments(table, sorted(cells), lattice, both=True)
    joined = cell_table(table_at(np.array(edges), values, lattice, k, moments))
    same = [cell for cell in bare if 0 < cell < last and table.edges[cell - 1] in joined.edges]
    shifted = [joined.edges.index(table.edges[cell - 1]) + 1 for cell in same]
    rich = [
        cell for cell in shifted if cell < len(joined.counts) - 1 and joined.numbers()[cell] > 1
    ]
    return _without_moments(joined, rich, lattice, both=True)


def _may_join(table: CellTable, outer: int) -> bool:
    """Whether an outer cell may join its neighbour: three cells stay, it has a quarter at most."""
    if len(table.counts) <= _JOINING:
        return False
    together = sum(table.counts[:2] if outer == 0 else table.counts[-2:])
    return 4 * together <= sum(table.counts)


def _without_moments(
    table: CellTable, cells: Sequence[int], lattice: Lattice, *, both: bool = False
) -> CellTable:
    """The table without the SD of these cells; without the mean where there is none, or both."""
    if both:  # numbers of the others are rounded already
        gone = set(cells)

        def kept(some: Sequence[float | None]) -> tuple[float | None, ...]:
            return tuple(None if cell in gone else one for cell, one in enumerate(some))

        return msgspec.structs.replace(table, means=kept(table.means), sds=kept(table.sds))
    means, sds = (
        np.array([math.nan if x is None else x for x in some]) for some in (table.means, table.sds)
    )
    for cell in cells:
        if math.isnan(sds[cell]):
            means[cell] = math.nan
        sds[cell] = math.nan
    edges, counts = np.array(table.edges), np.array(table.counts)
    return cell_table(LatticeTable(edges, counts, *rounded(edges, lattice, counts, means, sds)))


def _thinner_statuses(
    statuses: GroupStatuses,
    lacking: frozenset[int],
    thinner: Callable[..., CellTable | None],
    times: Mapping[str, FloatArray],
    lattice: Lattice,
    k: int,
    moments: CellMoments,
) -> GroupStatuses | None:
    """The same for tables by status, whose cells are numbered one after the other."""
    first, changed = 0, False
    tables: dict[str, CellTable | None] = {}
    last = "censored" if statuses.censored is not None else "either"
    at_end: CellTable | None = getattr(statuses, last)
    beyond = sum(len(table.counts) for _, table in statuses.tables()) + 1
    if beyond in lacking and statuses.followed is None and at_end is not None:
        if at_end.numbers()[-1] == 1:
            return None
        cells = [len(at_end.counts) - 1]  # counts alone, where a few are beyond the horizon
        return msgspec.structs.replace(
            statuses, **{last: _without_moments(at_end, cells, lattice, both=True)}
        )
    for name in ("events", "censored", "either"):
        table: CellTable | None = getattr(statuses, name)
        tables[name] = table
        if table is None:
            continue
        parts = frozenset(part - first for part in lacking if 0 < part - first <= len(table.counts))
        first += len(table.counts)
        if parts:
            whose = "early" if name == "either" and statuses.followed is not None else name
            tables[name] = thinner(table, parts, times[whose], lattice, k, moments)
            if tables[name] is None:
                return None
            changed = True
    return msgspec.structs.replace(statuses, **tables) if changed else None


def _wider(limit: float | None, so_far: float | None, pick: Any) -> float | None:
    """An outer limit that holds both; open where either is."""
    return None if limit is None or so_far is None else float(pick(limit, so_far))


# --- what fixes a lattice -----------------------------------------------------------------------


class LatticeFacts(NamedTuple):
    """A variable's scale, and the number of which its values are multiples, if there is one."""

    scale: float
    resolution: float | None


def center_facts(cohort: Cohort, variable: str, horizon: float | None = None) -> LatticeFacts:
    """What is declared or, where it is not, found in the center's whole column.

    Fewer than K people may have other values than multiples of the resolution; means of several
    rows have none. Of few people half may be even by chance, so theirs is a power of ten. A
    horizon, where all stand who are followed up longer, must be a multiple too.
    """
    declared, source, policy = cohort.declared, cohort.rows.source, cohort.rows.policy
    spread = source.spread(variable, 2 * policy.k)
    scale = declared.scale or (nice_number(spread / _NORMAL) if spread > 0 else 1.0)
    if declared.resolution is not None or policy.per_person == "mean":
        return LatticeFacts(scale, declared.resolution)
    usual = [number for number in usual_resolutions(scale) if declared.may_have(number, horizon)]
    resolution = source.resolution(variable, usual, policy.k, policy.person)
    if resolution is not None and source.filled(variable) < _MANY * policy.k:
        usual = [number for number in usual if is_multiple(math.log10(number), 1.0)]
        resolution = source.resolution(variable, usual, policy.k, policy.person)
    return LatticeFacts(scale, resolution)
