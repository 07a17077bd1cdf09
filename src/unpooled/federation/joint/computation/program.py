"""What the keepers compute, from shares of counts: all that a joint center says.

First who belongs together in blocks; then of each variable tables, means and SDs, levels, statuses.
Nothing is opened but what is released, or what somebody who has the release can compute (the steps
of a search for a rounded number). The same program runs with one party and with three.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from unpooled.center.questions.joint import (
    JointCategory,
    JointNumber,
    JointOutcome,
    JointPlan,
    JointScale,
)
from unpooled.center.questions.message import Message
from unpooled.federation.joint.computation.secure import InconsistentError, Secure
from unpooled.federation.joint.computation.tables import Counted, cut_tables, first_reaching
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray
from unpooled.maths.joint.cutting import JointCells
from unpooled.maths.joint.levels import (
    Joined,
    cells_of_alone,
    cells_of_cuts,
    fine_blocks,
    middle,
    parted,
    with_levels,
)
from unpooled.maths.joint.moments import (
    CellScale,
    CellSteps,
    MeanSteps,
    SDSteps,
    Steps,
    Weights,
    next_step,
    next_steps,
    untold_points,
)
from unpooled.maths.joint.shares import PRIME, FieldArray
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS

T = TypeVar("T")
Below = Literal["events", "censored", "both"]

_QUARTILES_APART = 1.349  # standard deviations of a normal distribution

_BELOW: dict[tuple[int, ...], Below | None] = {
    (1, 1): None,
    (0, 1): "events",
    (1, 0): "censored",
    (0, 0): "both",
}


class JointMoments(Message, frozen=True):
    """A rounded mean and SD."""

    mean: float
    sd: float


class CellMoments(Message, frozen=True):
    """The rounded means and SDs of the cells of a table; None where one is not released."""

    means: tuple[float | None, ...]
    sds: tuple[float | None, ...]


class LevelCells(Message, frozen=True):
    """The levels of a block that are released together, and the people of each cell."""

    cells: tuple[Joined, ...]
    counts: tuple[int, ...]


class PartNumbers(Message, frozen=True):
    """What was opened of a variable or an outcome, block by block; None: too few have a value.

    Of an outcome `tables` are those of events, then those of the others. Where one of the two has
    fewer than K people, `below` says which, and `either` has the table of all. `cells` has the
    means and SDs of the cells of `tables`, `either_cells` those of `either`.
    """

    missing: tuple[int, ...]  # 0 where fewer than K people lack a value
    scale: float | None = None  # of a number, where the keepers agreed on it
    tables: tuple[JointCells | None, ...] = ()
    cells: tuple[CellMoments | None, ...] = ()
    either: tuple[JointCells | None, ...] = ()
    either_cells: tuple[CellMoments | None, ...] = ()
    below: tuple[Below | None, ...] = ()
    moments: tuple[JointMoments | None, ...] = ()
    levels: tuple[LevelCells | None, ...] = ()


class JointNumbers(Message, frozen=True):
    """All that was opened: the combinations of levels of each block, its people, the parts."""

    blocks: tuple[tuple[int, ...], ...]
    people: tuple[int, ...]
    parts: tuple[PartNumbers, ...]


async def joint_numbers(secure: Secure, plan: JointPlan, shares: FieldArray) -> JointNumbers | None:
    """The program; None where there are fewer than 2K people in all."""
    if len(shares) != plan.length:
        raise InconsistentError(f"there must be {plan.length} shares, got {len(shares)}")
    program = _Program(secure, plan)
    sizes, rest = shares[: plan.blocks], shares[plan.blocks : plan.counted]
    draws = shares[plan.counted :]
    if not await program.part_people(sizes):
        return None
    parts = []
    for part, size in plan.sections():
        section, rest = rest[:size], rest[size:]
        if part.is_cut:
            section, draws = np.concatenate((section, draws[:size])), draws[size:]
        match part:
            case JointNumber():
                parts.append(await program.number(part, section))
            case JointOutcome():
                parts.append(await program.outcome(part, section))
            case JointCategory():
                parts.append(await program.category(part, section))
    blocks = tuple(tuple(rows.tolist()) for rows in program.rows)
    return JointNumbers(blocks=blocks, people=tuple(program.people), parts=tuple(parts))


@dataclass(slots=True)
class _Present:
    """Those who count in a part: in the blocks that are kept, others have too few."""

    kept: list[int]
    counts: FieldArray  # shares, by block that is kept, table and point
    missing: IntArray  # of each block
    people: IntArray

    @property
    def missing_in_blocks(self) -> tuple[int, ...]:
        """How many lack a value in each block, 0 where they are fewer than K."""
        return tuple(self.missing.tolist())


@dataclass(frozen=True, slots=True)
class _Untold:
    """Of each table's points whose people its counts do not tell: secret numbers.

    `there` is how many of them have people, `rare` how many are at those that fewer than K share.
    """

    there: Any
    rare: Any


@dataclass(frozen=True, slots=True)
class _Beside:
    """What cells are beside: for each table whether it tells moments of all, and what is untold."""

    tells: BoolArray
    untold: _Untold


class _Program:
    """The steps, one after the other."""

    def __init__(self, secure: Secure, plan: JointPlan) -> None:
        self._secure, self._plan = secure, plan
        self.rows: list[IntArray] = []
        self.people: list[int] = []

    @property
    def _most(self) -> int:
        return sum(self.people)

    # --- blocks -----------------------------------------------------------------------------

    async def part_people(self, sizes: FieldArray) -> bool:
        """Part the people into blocks of 2K or more; False where all are fewer."""
        secure, plan = self._secure, self._plan
        least = 2 * plan.k
        total = secure.shared(np.array([sizes.sum() % PRIME], dtype=object))
        if not (await secure.open(secure.at_least(total, secure.public([least]))))[0]:
            return False
        fine = fine_blocks([len(names) for names in plan.names])
        used = [len(names) for names in plan.names]
        extra = [at for at, other in enumerate(plan.others) if other]
        if extra:
            sums = [sizes[fine[:, at] == used[at] - 1].sum() % PRIME for at in extra]
            for at, some in zip(extra, await self._has_some(sums), strict=True):
                used[at] -= 1 - int(some)
        self.rows = [with_levels(fine, used)]
        for at, grouping in enumerate(plan.groupings):
            counts = np.array(
                [
                    [
                        sizes[rows[fine[rows, at] == level]].sum() % PRIME
                        for level in range(used[at])
                    ]
                    for rows in self.rows
                ],
                dtype=object,
            )
            cells = await self._join(counts, least, ordered=grouping.rises)
            self.rows = list(parted(self.rows, cells, fine[:, at]))
        people = np.array([sizes[rows].sum() % PRIME for rows in self.rows], dtype=object)
        self.people = (await secure.open(secure.shared(people))).tolist()
        return True

    async def _has_some(self, sums: Sequence[int]) -> list[int]:
        """Whether anybody has a level: that nobody does tells of everybody."""
        secret = self._secure.shared(np.array(sums, dtype=object))
        bits = self._secure.at_least(secret, self._secure.public([1] * len(sums)))
        opened = await self._secure.open(bits)
        return [int(bit) for bit in opened]

    async def _join(self, shares: FieldArray, least: int, *, ordered: bool) -> list[list[Joined]]:
        """The rule of `maths.joint.levels`, for a block a row; only the cells are opened."""
        counts = self._secure.shared(shares)
        if shares.shape[1] == 1:
            return [[(0,)]] * len(shares)
        if ordered:
            cuts = await self._cuts(counts, least)
            return [cells_of_cuts(row) for row in cuts.tolist()]
        alone = await self._alone(counts, least)
        return [cells_of_alone(row) for row in alone.tolist()]

    async def _cuts(self, counts: Any, least: int) -> IntArray:
        rows, levels = counts.shape
        cuts = np.zeros((rows, levels - 1), dtype=np.int64)
        parts = [(row, 0, levels) for row in range(rows)]
        whole: list[tuple[int, int, int]] = []
        while parts:
            halved = await self._halved(counts, parts, least)
            whole += [part for part, half in zip(parts, halved, strict=True) if not half]
            split = [part for part, half in zip(parts, halved, strict=True) if half]
            parts = []
            for row, first, end in split:
                at = first + middle(end - first)
                cuts[row, at - 1] = 1
                parts += [(row, first, at), (row, at, end)]
        for width in sorted({end - first for _, first, end in whole} - {1}):
            some = [part for part in whole if part[2] - part[1] == width]
            inner = await self._cuts_of_whole(counts, some, width, least)
            for (row, first, end), here in zip(some, inner, strict=True):
                cuts[row, first : end - 1] = here
        return cuts

    async def _halved(
        self, counts: Any, parts: Sequence[tuple[int, int, int]], least: int
    ) -> list[int]:
        """Which parts of rising levels have enough people on both sides of their middle."""
        secure = self._secure
        wide = [place for place, (_, first, end) in enumerate(parts) if end - first > 1]
        halved = [0] * len(parts)
        if not wide:
            return halved
        below = secure.sums_from_left(counts)
        start = secure.joined([secure.public(np.zeros((counts.shape[0], 1), int)), below], axis=1)
        rows, firsts, ends = (np.array([parts[place][i] for place in wide]) for i in range(3))
        middles = np.array([f + middle(e - f) for f, e in zip(firsts, ends, strict=True)])
        left = start[rows, middles] - start[rows, firsts]
        right = start[rows, ends] - start[rows, middles]
        wanted = secure.public(np.full(2 * len(wide), least))
        enough = secure.at_least(secure.joined([left, right]), wanted)
        opened = await secure.open(enough[: len(wide)] * enough[len(wide) :])
        for place, bit in zip(wide, opened.tolist(), strict=True):
            halved[place] = bit
        return halved

    async def _cuts_of_whole(
        self, counts: Any, parts: Sequence[tuple[int, int, int]], width: int, least: int
    ) -> IntArray:
        """The cells of parts that have too few people on one side of their middle."""
        secure, n = self._secure, len(parts)
        rows = np.array([[row] for row, _, _ in parts])
        columns = np.array([range(first, end) for _, first, end in parts])
        some = counts[rows, columns]
        wanted = secure.public(np.full(n * width, least))
        alone = secure.at_least(some.reshape(-1), wanted).reshape(n, width)
        before, has_left = [], [secure.public([0] * n)]
        since = secure.public([0] * n)
        for level in range(width):
            since = (since + some[:, level]) * (1 - alone[:, level])
            before.append(since)
            here, left = alone[:, level], has_left[-1]
            has_left.append(left + here - left * here)
        behind, since = list[Any](), secure.public([0] * n)
        for level in reversed(range(width)):
            since = (since + some[:, level]) * (1 - alone[:, level])
            behind.append(since)
        behind.reverse()
        size = n * (width - 1)
        both = secure.joined([*before[:-1], *behind[1:]])
        enough = secure.at_least(both, secure.public(np.full(2 * size, least)))
        here = secure.joined([alone[:, level] for level in range(width - 1)])
        following = secure.joined([alone[:, level] for level in range(1, width)])
        left = secure.joined(has_left[1:width])
        ended = enough[:size] + left - enough[:size] * left
        cuts = here * following + (1 - here) * following * ended
        cuts = cuts + here * (1 - following) * enough[size:]
        return (await secure.open(cuts)).reshape(width - 1, n).T

    async def _alone(self, counts: Any, least: int) -> IntArray:
        secure, (rows, levels) = self._secure, counts.shape
        wanted = secure.public(np.full(rows * levels, least))
        alone = secure.at_least(counts.reshape(-1), wanted).reshape(rows, levels)
        few = secure.row_products(1 - alone, counts)
        single = secure.row_sums(alone, np.ones(levels, dtype=np.int64))
        short = secure.less(few, secure.public(np.full(rows, least)))
        some_few = secure.less(single, secure.public(np.full(rows, levels)), levels)
        takes = short * some_few  # the last of the others takes the few
        none_behind, kept = secure.public([1] * rows), []
        for level in reversed(range(levels)):
            here = alone[:, level]
            last = here * none_behind
            none_behind = none_behind - last
            kept.append(here - last * takes)
        opened = await secure.open(secure.joined(kept))
        return np.asarray(opened.reshape(levels, rows)[::-1].T)

    # --- those who have a value -------------------------------------------------------------

    async def _present(self, counts: FieldArray, lacking: FieldArray, least: int) -> _Present:
        """Leave out those who lack a value where K do; fewer count as they were drawn.

        Both are shares by fine block, table and point. Only which of the three it is is opened: few
        lack a value; K do, and the others are enough; or these are not: nothing is said of them.
        """
        secure, k, n = self._secure, self._plan.k, len(self.people)
        present, absent = self._by_block(counts), self._by_block(lacking)
        sums = [each.reshape(n, -1).sum(axis=1) % PRIME for each in (present, absent)]
        people, missing = secure.public(self.people), secure.shared(sums[1])
        await secure.check_zero(secure.shared(sums[0]) - people, "the people of a block")
        both = secure.joined([missing, people - missing])
        wanted = secure.public([k] * n + [least] * n)
        bits = secure.at_least(both, wanted, self._most)
        many = bits[:n]
        opened = await secure.open(secure.joined([many, many * bits[n:]]))
        without, enough = opened[:n], opened[n:]
        number = np.zeros(n, dtype=np.int64)
        left_out = np.flatnonzero(enough)
        if len(left_out):
            number[left_out] = await secure.open(missing[left_out])
        kept = np.flatnonzero(without == enough)
        counts = (present - enough[:, None, None] * absent)[kept] % PRIME
        return _Present(kept.tolist(), counts, number, np.array(self.people) - number)

    def _by_block(self, shares: FieldArray) -> FieldArray:
        return np.array([shares[rows].sum(axis=0) % PRIME for rows in self.rows], dtype=object)

    def _first_of_block(self, shares: FieldArray, kept: Sequence[int]) -> FieldArray:
        """Draws and coins: those of the first fine block of each."""
        return np.array([shares[self.rows[block][0]] for block in kept], dtype=object)

    def _each(self, kept: Sequence[int], some: Sequence[T]) -> tuple[T | None, ...]:
        """A value for each block, None where it has none."""
        by_block = dict(zip(kept, some, strict=True))
        return tuple(by_block.get(block) for block in range(len(self.people)))

    def _firsts(self, kept: Sequence[int], pairs: Sequence[Any]) -> tuple[Any, ...]:
        return self._each(kept, [first for first, _ in pairs])

    def _seconds(self, kept: Sequence[int], pairs: Sequence[Any]) -> tuple[Any, ...]:
        return self._each(kept, [second for _, second in pairs])

    # --- levels -----------------------------------------------------------------------------

    async def category(self, part: JointCategory, section: FieldArray) -> PartNumbers:
        """The levels of each block, those of fewer than K people merged."""
        k, shape = self._plan.k, (2, self._plan.blocks, 1, part.width)
        counts, lacking = section.reshape(shape)
        present = await self._present(counts, lacking, k)
        levels: list[LevelCells] = []
        if present.kept:
            shares = present.counts[:, 0]
            if part.has_others and not (await self._has_some([shares[:, -1].sum() % PRIME]))[0]:
                shares = shares[:, :-1]
            joined = await self._join(shares, k, ordered=part.ordered)
            sums = [
                row[list(cell)].sum()
                for row, cells in zip(shares, joined, strict=True)
                for cell in cells
            ]
            secret = self._secure.shared(np.array(sums, dtype=object) % PRIME)
            people = iter((await self._secure.open(secret)).tolist())
            for cells in joined:
                counted = tuple(next(people) for _ in cells)
                levels.append(LevelCells(cells=tuple(cells), counts=counted))
        return PartNumbers(
            missing=present.missing_in_blocks, levels=self._each(present.kept, levels)
        )

    # --- tables -----------------------------------------------------------------------------

    async def number(self, part: JointNumber, section: FieldArray) -> PartNumbers:
        """A table of each block; and mean and SD where no person and no value stand out."""
        k, shape = self._plan.k, (4, self._plan.blocks, 1, part.width)
        counts, lacking, draws, coins = section.reshape(shape)
        present = await self._present(counts, lacking, 2 * k)
        if not present.kept:
            none = self._each([], [])
            missing = present.missing_in_blocks
            return PartNumbers(missing=missing, tables=none, cells=none, moments=none)
        shares, agreed = present.counts[:, 0], None
        if part.rough:
            agreed = await self._agreed_scale(part, shares, int(present.people[present.kept].sum()))
            at = part.coarser(agreed)
            part = part.at_scale(agreed)
            draws, coins = (each[:, :, : part.width] for each in (draws, coins))
            columns = [shares[:, at == point].sum(axis=1) for point in range(part.width)]
            shares = np.column_stack(columns) % PRIME
        secret = self._secure.shared(shares)
        people = present.people[present.kept]
        table = Counted(
            secret,
            self._secure.public(people),
            self._secure.shared(self._first_of_block(draws[:, 0], present.kept)),
            self._secure.shared(self._first_of_block(coins[:, 0], present.kept)),
        )
        cells = await cut_tables(self._secure, table, k, [2 * k] * len(people), self._most)
        weights = part_weights(part)
        untold = self._untold(secret, cells)
        moments = await self._moments(secret, people.tolist(), weights, untold)
        beside = _Beside(np.array([m is not None for m in moments]), untold)
        of_cells = await self._of_cells(part, secret, cells, beside)
        return PartNumbers(
            missing=present.missing_in_blocks,
            tables=self._each(present.kept, cells),
            cells=self._each(present.kept, of_cells),
            moments=self._each(present.kept, moments),
            scale=agreed,
        )

    async def _agreed_scale(self, part: JointNumber, shares: FieldArray, people: int) -> float:
        """The scale that the quartiles of everybody say; nothing else of them is opened."""
        secure, width = self._secure, part.width
        everybody = secure.shared((shares.sum(axis=0) % PRIME)[None])
        below = secure.sums_from_left(everybody)
        full = 2 ** (width - 1).bit_length()
        rising = below[np.zeros((2, 1), int), np.minimum(np.arange(full), width - 1)[None]]
        wanted = secure.public(list(quartiles(people)))
        here = first_reaching(secure, rising, wanted, self._most)
        weights = part_weights(part)
        padded = np.append(weights.of, np.full(full - width, weights.most))
        places = secure.row_sums(here, padded)
        rises = scale_steps(part)
        apart = places[1:] - places[:1]
        (place,) = await self._rounded(apart, [rises], [(0, weights.most)], weights.most)
        return part.scales[int(place)]

    async def outcome(self, part: JointOutcome, section: FieldArray) -> PartNumbers:
        """Tables of events and of those without; of either where one of the two has too few."""
        k, shape, secure = self._plan.k, (4, self._plan.blocks, 2, part.width), self._secure
        counts, lacking, draws, coins = section.reshape(shape)
        present = await self._present(counts, lacking, k)
        if not present.kept:
            none = self._each([], [])
            missing = present.missing_in_blocks
            twice = (*none, *none)
            return PartNumbers(
                missing=missing,
                tables=twice,
                cells=twice,
                either=none,
                either_cells=none,
                below=none,
            )
        by_status, some = present.counts, len(present.kept)
        sums = np.concatenate((by_status[:, 0].sum(axis=1), by_status[:, 1].sum(axis=1))) % PRIME
        wanted = secure.public([k] * len(sums))
        enough = await secure.open(secure.at_least(secure.shared(sums), wanted, self._most))
        both = enough[:some] & enough[some:]
        draws, coins = (self._first_of_block(each, present.kept) for each in (draws, coins))

        async def cut(which: IntArray, counts: FieldArray, tables: IntArray) -> Any:
            """Tables of some blocks, one after the other."""
            shares = [np.concatenate([each[which, t] for t in tables]) for each in (draws, coins)]
            people = secure.shared(counts.sum(axis=1) % PRIME)
            secrets = map(secure.shared, shares)
            counted = Counted(secure.shared(counts), people, *secrets)
            cells = await cut_tables(secure, counted, k, [k] * len(counts), self._most)
            return zip(cells, await self._of_cells(part, counted.counts, cells), strict=True)

        nothing = None, None
        events, others, either = ([nothing] * some for _ in range(3))
        apart, alike = np.flatnonzero(both), np.flatnonzero(1 - both)
        if len(apart):
            stacked = np.concatenate([by_status[apart, t] for t in (0, 1)])
            cells = await cut(apart, stacked, np.arange(2))
            for table in (events, others):
                for block in apart:
                    table[block] = next(cells)
        if len(alike):
            cells = await cut(alike, by_status[alike].sum(axis=1) % PRIME, np.arange(1))
            for block in alike:
                either[block] = next(cells)
        below = [_BELOW[bits] for bits in zip(*(enough.reshape(2, some).tolist()), strict=True)]
        kept = present.kept
        return PartNumbers(
            missing=present.missing_in_blocks,
            tables=self._firsts(kept, events) + self._firsts(kept, others),
            cells=self._seconds(kept, events) + self._seconds(kept, others),
            either=self._firsts(kept, either),
            either_cells=self._seconds(kept, either),
            below=self._each(kept, below),
        )

    # --- means and SDs ----------------------------------------------------------------------

    async def _moments(
        self, counts: Any, people: list[int], weights: Weights, untold: _Untold
    ) -> list[JointMoments | None]:
        """The rule of `maths.joint.moments`, for a table a row."""
        secure, rows = self._secure, len(people)
        most, farthest = max(people), weights.most
        total = secure.row_sums(counts, weights.of)
        squares = secure.row_sums(counts, weights.of.astype(object) ** 2)
        n = secure.public(people)
        spread = squares * n - total * total
        may = self._may_tell(counts, n, total, spread, weights, (most, farthest))
        enough = self._enough(untold.there, untold.rare, [SD_NEEDS] * rows)
        tells = await secure.open(may * enough)
        moments: list[JointMoments | None] = [None] * rows
        some = np.flatnonzero(tells).tolist()
        if not some:
            return moments
        limit = (most * farthest) ** 2
        sds = [weights.sd(people[row]) for row in some]
        spreads = await self._rounded(spread[some], sds, [(1, limit)] * len(some), limit)
        means = [weights.mean(people[row], sd) for row, sd in zip(some, spreads, strict=True)]
        limits = [(0, people[row] * farthest) for row in some]
        totals = await self._rounded(total[some], means, limits, most * farthest)
        for row, mean, sd in zip(some, totals, spreads, strict=True):
            moments[row] = JointMoments(mean=mean, sd=sd)
        return moments

    def _untold(self, counts: Any, tables: Sequence[JointCells | None]) -> _Untold:
        """What the counts of cells leave untold."""
        secure, k, (rows, width) = self._secure, self._plan.k, counts.shape
        nowhere, size = np.zeros(width, dtype=bool), rows * width
        points = [nowhere if t is None else untold_points(t, width) for t in tables]
        mask, flat = np.concatenate(points).astype(np.int64), counts.reshape(-1)
        wanted = secure.public([1] * size + [k] * size)
        fewer = secure.less(secure.joined([flat, flat]), wanted, self._most)
        there, rare = 1 - fewer[:size], flat * fewer[size:]
        ones = np.ones(width, dtype=np.int64)
        sums = [secure.scaled(some, mask).reshape(rows, width) for some in (there, rare)]
        return _Untold(*(secure.row_sums(some, ones) for some in sums))

    def _enough(self, there: Any, rare: Any, needs: Sequence[int]) -> Any:
        """Bits: nobody is at points that fewer than K share, or K are, and people at so many."""
        secure, size, most = self._secure, len(needs), max(self._most, *needs)
        wanted = secure.public([1] * size + [self._plan.k] * size + list(needs))
        bits = secure.at_least(secure.joined([rare, rare, there]), wanted, most)
        return 1 - bits[:size] + bits[size : 2 * size] * bits[2 * size :]

    def _may_tell(
        self,
        counts: Any,
        n: Any,
        total: Any,
        spread: Any,
        weights: Weights,
        limits: tuple[int, int],
    ) -> Any:
        """Where people are at enough points, and no one of them is so far out; one bit a row."""
        secure, (rows, width), (most, farthest) = self._secure, counts.shape, limits
        flat = counts.reshape(-1)
        there = secure.at_least(flat, secure.public([1] * (rows * width)), most)
        points = secure.row_sums(there.reshape(rows, width), np.ones(width, dtype=np.int64))
        enough = secure.at_least(points, secure.public(np.full(rows, SD_NEEDS)), width)
        below = secure.sums_from_left(counts)
        full = 2 ** (width - 1).bit_length()
        rising = below[:, np.minimum(np.arange(full), width - 1)]
        twice = secure.joined([rising, rising])
        wanted = secure.joined([secure.public([1] * rows), n])
        ends = first_reaching(secure, twice, wanted, most)
        padded = np.append(weights.of, np.full(full - width, farthest))
        far = secure.row_sums(ends, padded) * secure.joined([n, n])
        off = far - secure.joined([total, total])
        squares, most_squares = off * off * 2, n * spread
        limit = 2 * most * (most * farthest) ** 2
        even = secure.at_least(secure.joined([most_squares, most_squares]), squares, limit)
        return enough * even[:rows] * even[rows:]

    async def _rounded(
        self,
        secret: Any,
        steps: Sequence[Steps],
        limits: Sequence[tuple[int, int]],
        most: int,
    ) -> list[float]:
        """Secret numbers, rounded: a search whose steps follow from where it ends."""
        within = [list(pair) for pair in limits]
        while True:
            open_rows = [
                row
                for row, (low, high) in enumerate(within)
                if low < high and steps[row](low) != steps[row](high)
            ]
            if not open_rows:
                return [steps[row](low) for row, (low, _) in enumerate(within)]
            asked = [next_step(steps[row], *within[row]) for row in open_rows]
            reached = self._secure.at_least(secret[open_rows], self._secure.public(asked), most)
            bits = await self._secure.open(reached)
            for row, at, bit in zip(open_rows, asked, bits.tolist(), strict=True):
                within[row] = [at, within[row][1]] if bit else [within[row][0], at - 1]

    # --- means and SDs of cells -------------------------------------------------------------

    async def _of_cells(
        self,
        part: JointScale,
        counts: Any,
        tables: Sequence[JointCells | None],
        whole: _Beside | None = None,
    ) -> list[CellMoments | None]:
        """The rule of `maths.joint.moments.CellScale`, for the cells of tables a row each."""
        moments = [None if table is None else _nothing_of(len(table.counts)) for table in tables]
        scale = cell_scale(part, tables)
        if len(scale):
            total, spread = self._sums(counts, scale)
            sums = total, spread
            tells_mean, tells_sd = await self._cells_that_tell(counts, scale, sums, whole)
            sds = np.full(len(scale), np.nan)
            sds[tells_sd] = await self._searched(spread[tells_sd], SDSteps(scale.at(tells_sd)))
            beside = sds[tells_mean]
            steps = MeanSteps(scale.at(tells_mean), beside)
            means = await self._searched(total[tells_mean], steps)
            for at, mean, sd in zip(tells_mean, means.tolist(), beside.tolist(), strict=True):
                of_table = moments[scale.table[at]]
                assert of_table is not None
                of_table[0][scale.cell[at]] = mean
                of_table[1][scale.cell[at]] = None if np.isnan(sd) else sd
        return [
            None if one is None else CellMoments(means=tuple(one[0]), sds=tuple(one[1]))
            for one in moments
        ]

    def _points(self, counts: Any, scale: CellScale) -> Any:
        """The people at the points of these cells, cell after cell."""
        sizes = scale.last - scale.first + 1
        rows = np.repeat(scale.table, sizes)
        spans = zip(scale.first, scale.last, strict=True)
        return counts[rows, np.concatenate([np.arange(a, b + 1) for a, b in spans])]

    def _by_cell(self, points: Any, scale: CellScale) -> Any:
        """The sum of each cell, of numbers as `_points` has them."""
        secure, ends = self._secure, np.cumsum(scale.last - scale.first + 1) - 1
        below = secure.sums_from_left(points.reshape(1, -1)).reshape(-1)[ends]
        return below - secure.joined([secure.public([0]), below[: len(ends) - 1]])

    def _sums(self, counts: Any, scale: CellScale) -> tuple[Any, Any]:
        """Of the weights of each cell's people the sum S, and V = nQ − S²."""
        secure, points = self._secure, self._points(counts, scale)
        weights = np.concatenate(scale.weights).astype(object)
        total = self._by_cell(secure.scaled(points, weights), scale)
        squares = self._by_cell(secure.scaled(points, weights**2), scale)
        return total, secure.scaled(squares, scale.n) - total * total

    async def _cells_that_tell(
        self, counts: Any, scale: CellScale, sums: tuple[Any, Any], beside: _Beside | None
    ) -> tuple[IntArray, IntArray]:
        """Which cells tell a mean, and which of them an SD; nothing else is opened."""
        secure, k, cells, (total, spread) = self._secure, self._plan.k, len(scale), sums
        points = self._points(counts, scale)
        size, most = points.shape[0], max(self._most, int(scale.last.max()) + 1)
        wanted = secure.public([1] * size + [k] * size)
        bits = secure.at_least(secure.joined([points, points]), wanted, most)
        there = self._by_cell(bits[:size], scale)
        rare = self._by_cell(points * (1 - bits[size:]), scale)
        wanted = secure.public([MEAN_NEEDS] * cells + [SD_NEEDS] * cells + [k] * cells)
        enough = secure.at_least(secure.joined([there, there, rare]), wanted, most)
        mean = enough[:cells] * enough[2 * cells :]
        may = scale.may_tell_sd
        bits = mean
        if len(may):
            even = self._even(counts, scale.at(may), total[may], spread[may])
            bits = secure.joined([mean, mean[may] * enough[cells : 2 * cells][may] * even])
        if beside is not None and beside.tells.any():
            bits = bits * self._leave_enough(scale, bits, there, rare, beside)
        opened = await secure.open(bits)
        return np.flatnonzero(opened[:cells]), may[np.flatnonzero(opened[cells:])]

    def _leave_enough(
        self, scale: CellScale, bits: Any, there: Any, rare: Any, beside: _Beside
    ) -> Any:
        """For each bit of a cell's mean or SD: may its table tell these beside those of all?"""
        secure, cells, tables = self._secure, len(scale), len(beside.tells)
        cell = np.concatenate([np.arange(cells), scale.may_tell_sd])
        kind = np.arange(len(cell)) >= cells
        place = scale.table[cell] + tables * kind
        member = (place[:, None] == np.arange(2 * tables)).astype(np.int64)

        def left(of_table: Any, of_cell: Any) -> Any:
            within = secure.row_sums((bits * of_cell[cell]).reshape(1, -1), member).reshape(-1)
            return secure.joined([of_table, of_table]) - within

        needs = [MEAN_NEEDS] * tables + [SD_NEEDS] * tables
        here = beside.untold
        enough = self._enough(left(here.there, there), left(here.rare, rare), needs)
        fails = 1 - enough[:tables] * enough[tables:]
        return (1 - secure.scaled(fails, beside.tells.astype(np.int64)))[scale.table[cell]]

    def _even(self, counts: Any, scale: CellScale, total: Any, spread: Any) -> Any:
        """Where no person of a cell carries more than half of its squares."""
        secure = self._secure
        below, sizes = secure.sums_from_left(counts), scale.last - scale.first + 1
        depths = np.array([(int(size) - 1).bit_length() for size in sizes])
        order, offs = list[int](), []
        for depth in np.unique(depths).tolist():
            some, width = np.flatnonzero(depths == depth), 2**depth
            part = scale.at(some)
            columns = np.minimum(part.first[:, None] + np.arange(width), part.last[:, None])
            rising = below[part.table[:, None], columns] - secure.public(
                np.repeat(part.before[:, None], width, axis=1)
            )
            wanted = secure.public([1] * len(some) + part.n.tolist())
            here = first_reaching(secure, secure.joined([rising, rising]), wanted, self._most)
            weights = np.array([np.pad(w, (0, width - len(w)), "edge") for w in part.weights])
            ends = secure.scaled(here, np.concatenate([weights, weights]))
            far = secure.row_sums(ends, np.ones(width, dtype=np.int64))
            offs.append(
                secure.scaled(far, np.tile(part.n, 2)) - secure.joined([total[some], total[some]])
            )
            order += [*some.tolist(), *(len(scale) + some).tolist()]
        back = np.argsort(np.array(order))
        off = secure.joined(offs)[back]
        squares = secure.scaled(off * off, np.full(2 * len(scale), 2))
        limit = secure.scaled(spread, scale.n)
        most = 2 * int((scale.most.astype(object) ** 2 * scale.n).max())
        bits = secure.at_least(secure.joined([limit, limit]), squares, most)
        return bits[: len(scale)] * bits[len(scale) :]

    async def _searched(self, secret: Any, steps: CellSteps) -> FloatArray:
        """As `_rounded`, for all cells at once."""
        low, high = np.zeros_like(steps.most), steps.most.copy()
        most = int(high.max(initial=1))
        while True:
            there = np.flatnonzero((low < high) & (steps(low) != steps(high)))
            if not len(there):
                return steps(low)
            asked = next_steps(steps.at(there), low[there], high[there])
            wanted = self._secure.public(asked)
            bits = await self._secure.open(self._secure.at_least(secret[there], wanted, most))
            low[there] = np.where(bits, asked, low[there])
            high[there] = np.where(bits, high[there], asked - 1)


def _nothing_of(cells: int) -> tuple[list[float | None], list[float | None]]:
    return [None] * cells, [None] * cells


def cell_scale(part: JointScale, tables: Sequence[JointCells | None]) -> CellScale:
    """The cells of tables of this number of which means may be released."""
    return CellScale.of(tables, part.edges, part.lattice, part_weights(part).values)


def quartiles(people: int) -> tuple[int, int]:
    """How many people are up to the first and the third quartile."""
    return (people + 3) // 4, (3 * people + 3) // 4


def scale_steps(part: JointNumber) -> Steps:
    """Which of the scales to choose from lies next to a spread between quartiles, in weights."""
    unit, logs = part_weights(part).unit / _QUARTILES_APART, np.log(part.scales)
    return lambda apart: float(np.argmin(np.abs(logs - np.log(max(apart * unit, 1e-300)))))


def part_weights(part: JointScale) -> Weights:
    """What the points of a number stand for; outer ones are closed by the window."""
    return Weights.between(part.edges, part.lattice.step, part.low, part.high)
