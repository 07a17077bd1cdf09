"""What the keepers compute: the cells of joint tables, from shares of counts.

It follows `maths.joint.cutting` on shares. A search for an edge opens nothing; then it is opened
whether a cell is split, and where, and how many people are below. These stay, so they are released
anyway. The same program runs with one party and with three.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled.federation.joint.runtime import integers
from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.cutting import PARTS, JointCells, Node, Split, aim, next_level
from unpooled.maths.joint.shares import FieldArray

MOST_PEOPLE = 2**24  # of a block: bounds the numbers that are compared


@dataclass(frozen=True, slots=True)
class CountShares:
    """One keeper's shares, summed over members, of tables in rows and points in columns.

    `people` has the people of each table, counted apart; `draws` and `coins` are the members'
    secrets of which splits are aimed where.
    """

    counts: FieldArray
    people: FieldArray
    draws: FieldArray
    coins: FieldArray


@dataclass(slots=True)
class Opened:
    """All numbers that were opened, in their order: what a keeper learns."""

    numbers: list[int]


async def cut_tables(
    runtime: Any, shares: CountShares, k: int, least: Sequence[int], opened: Opened | None = None
) -> list[JointCells | None]:
    """The cells of each table; None where it has fewer than `least` people."""
    secure = _Secure(runtime, _bits(MOST_PEOPLE), opened)
    counts, people = secure.shared(shares.counts), secure.shared(shares.people)
    draws, coins = secure.shared(shares.draws), secure.shared(shares.coins)
    below = runtime.np_cumsum(counts, axis=1)
    await secure.check_zero(below[:, -1] - people, "the counts of a table")
    enough = await secure.open(secure.at_least(people, secure.public(least)))
    enough_rows = np.flatnonzero(enough)
    if not len(enough_rows):
        return [None] * len(least)
    totals = dict(
        zip(enough_rows.tolist(), (await secure.open(people[enough_rows])).tolist(), strict=True)
    )
    secure.bits = _bits(max(totals.values()))  # fewer are quicker
    last, used = shares.counts.shape[1] - 1, np.zeros(len(least), dtype=np.int64)
    levels = {table: [Node(-1, last, 0, total)] for table, total in totals.items()}
    splits: dict[int, list[Split]] = {table: [] for table in totals}
    while levels := _large(levels, k):
        at = [(table, node) for table, nodes in levels.items() for node in nodes]
        entry = [used[t] + i for t, nodes in levels.items() for i in range(len(nodes))]
        rows = np.array([table for table, _ in at]), np.array(entry)
        nodes = [node for _, node in at]
        all_splits = await _split(secure, below, rows[0], nodes, draws[rows], coins[rows], k)
        for table, level in levels.items():
            mine, all_splits = all_splits[: len(level)], all_splits[len(level) :]
            used[table] += len(level)
            splits[table] += [split for split in mine if split is not None]
            levels[table] = next_level(level, mine)
    return [
        JointCells(totals[t], tuple(splits[t])) if t in totals else None for t in range(len(least))
    ]


def _bits(people: int) -> int:
    """Of the numbers that are compared, with their sign."""
    return (PARTS * people).bit_length() + 1


def _large(levels: dict[int, list[Node]], k: int) -> dict[int, list[Node]]:
    """Those that may be split, of tables that have some."""
    some = ((table, [n for n in nodes if n.may_split(k)]) for table, nodes in levels.items())
    return {table: nodes for table, nodes in some if nodes}


async def _split(
    secure: "_Secure",
    below: Any,
    tables: IntArray,
    nodes: Sequence[Node],
    draws: Any,
    coins: Any,
    k: int,
) -> list[Split | None]:
    """Where each node is split, if it is; nodes of alike widths are searched together."""
    depth = np.array([(node.right - node.left - 1).bit_length() for node in nodes])
    order, parts = [], []
    for size in np.unique(depth).tolist():
        some = np.flatnonzero(depth == size).tolist()
        chosen = [nodes[i] for i in some]
        parts.append(_search(secure, below, tables[some], chosen, draws[some], size, k))
        order += some
    place, before, behind = (secure.joined([part[i] for part in parts]) for i in range(3))
    ordered = [nodes[i] for i in order]
    coin = coins[np.array(order)]
    left, right = (np.array([n[i] for n in ordered]) for i in (2, 3))
    at_least = secure.at_least(
        secure.joined([secure.public(right) - behind, before - secure.public(left)]),
        secure.public(np.full(2 * len(ordered), k)),
    )
    at_point, just_before = at_least[: len(ordered)], at_least[len(ordered) :]
    either = at_point * just_before
    legal = at_point + just_before - either
    back = just_before - either + either * coin
    where = legal * (place + 1) - back
    people = (legal - back) * behind + back * before
    both = await secure.open(secure.joined([where, people]))
    splits: list[Split | None] = [None] * len(nodes)
    for i, point, count in zip(order, both[: len(ordered)], both[len(ordered) :], strict=True):
        if point:
            splits[i] = Split(nodes[i].left + int(point), int(count))
    return splits


def _search(
    secure: "_Secure",
    below: Any,
    tables: IntArray,
    nodes: Sequence[Node],
    draws: Any,
    depth: int,
    k: int,
) -> tuple[Any, Any, Any]:
    """The first point of each node that reaches its aim, and the people below it, before and at.

    A binary search whose steps stay shared: `here` says in which of 1, 2, 4, ... stretches the
    point lies, by a 1 among zeros.
    """
    width, count = 2**depth, len(nodes)
    column = np.array([np.minimum(n.left + 1 + np.arange(width), n.right) for n in nodes])
    points = below[tables[:, None], column]
    aims = [aim(node.people, k) for node in nodes]
    start = secure.public([n.below_left + a.least for n, a in zip(nodes, aims, strict=True)])
    wanted = start * PARTS + draws * secure.public([a.dealt for a in aims])
    here = secure.public(np.ones((count, 1), dtype=np.int64))
    for step in range(depth):
        stretch = width >> step
        middles = np.arange(stretch // 2 - 1, width, stretch)
        people = secure.row_products(here, points[:, middles])
        behind = secure.less(people * PARTS, wanted)
        right = here * behind.reshape(count, 1)
        both = secure.joined([(here - right).reshape(-1, 1), right.reshape(-1, 1)], axis=1)
        here = both.reshape(count, 2 ** (step + 1))
    place = secure.row_sums(here, np.arange(width))
    first = secure.public(np.array([[node.below_left] for node in nodes]))
    earlier = secure.joined([first, points[:, : width - 1]], axis=1)
    return place, secure.row_products(here, earlier), secure.row_products(here, points)


class InconsistentError(Exception):
    """Shares that do not fit together: somebody sent what no honest member sends."""


class _Secure:
    """Arithmetic on shares that the steps are written in."""

    def __init__(self, runtime: Any, bits: int, opened: Opened | None) -> None:
        self._runtime = runtime
        self.bits = bits
        self._array = integers(runtime, bits).array
        self._field = self._array.sectype.field
        self._opened = opened

    def shared(self, shares: FieldArray) -> Any:
        """A secret of which these are this keeper's shares."""
        return self._array(self._field.array(shares, check=False))

    def public(self, numbers: Any) -> Any:
        """Numbers that everybody knows, in the form of secrets."""
        return self._array(np.asarray(numbers, dtype=object))

    def joined(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """Arrays behind each other."""
        return self._runtime.np_concatenate(list(arrays), axis=axis)

    def less(self, a: Any, b: Any) -> Any:
        """Secret bits: a < b."""
        return self._runtime.np_sgn(a - b, l=self.bits, LT=True)

    def at_least(self, a: Any, b: Any) -> Any:
        """Secret bits: a >= b."""
        return 1 - self.less(a, b)

    def row_products(self, a: Any, b: Any) -> Any:
        """The inner product of each row of a with that of b."""
        runtime, field, kind = self._runtime, self._field, self._array

        @runtime.coroutine
        async def products(a, b):  # type: ignore[no-untyped-def] # MPyC reads annotations
            await runtime.returnType((kind, True, (a.shape[0],)))
            a, b = await runtime.gather(a, b)
            sums = (a.value * b.value).sum(axis=1)
            return await runtime._reshare(field.array(sums % field.modulus, check=False))

        return products(a, b)

    def row_sums(self, a: Any, weights: IntArray) -> Any:
        """The sum of each row with public weights."""
        return a @ self._field.array(weights.astype(object))

    async def open(self, secret: Any) -> IntArray:
        """The numbers, for every keeper."""
        opened = np.array([int(x) for x in await self._runtime.output(secret)], dtype=np.int64)
        if self._opened is not None:
            self._opened.numbers += opened.tolist()
        return opened

    async def check_zero(self, secret: Any, of: str) -> None:
        """Raise unless all are zero; nothing more is learned of them."""
        factor = self._runtime._np_randoms(self._field, int(np.prod(secret.shape)))
        wrong = await self._runtime.output(secret * self._array(factor))
        if any(int(x) for x in wrong):
            raise InconsistentError(f"{of} do not add up")
