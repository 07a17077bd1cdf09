"""What the keepers compute: the cells of joint tables, from shares of counts.

It follows `maths.joint.cutting` on shares. A search for an edge opens nothing; then it is opened
whether a cell is split, and where, and how many people are below. These stay, so they are released
anyway. The same program runs with one party and with three.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled.federation.joint.computation.secure import MOST_PEOPLE, Secure
from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.cutting import PARTS, JointCells, Node, Split, aim, next_level


@dataclass(frozen=True, slots=True)
class Counted:
    """Secret counts of tables in rows and points in columns.

    `people` has the people of each table, counted apart; `draws` and `coins` are the members'
    secrets of which splits are aimed where.
    """

    counts: Any
    people: Any
    draws: Any
    coins: Any


async def cut_tables(
    secure: Secure, tables: Counted, k: int, least: Sequence[int], most: int = MOST_PEOPLE
) -> list[JointCells | None]:
    """The cells of each table; None where it has fewer than `least` people, of at most `most`."""
    below = secure.sums_from_left(tables.counts)
    await secure.check_zero(below[:, -1] - tables.people, "the counts of a table")
    enough = await secure.open(secure.at_least(tables.people, secure.public(least), most))
    enough_rows = np.flatnonzero(enough)
    if not len(enough_rows):
        return [None] * len(least)
    totals = dict(
        zip(
            enough_rows.tolist(),
            (await secure.open(tables.people[enough_rows])).tolist(),
            strict=True,
        )
    )
    most = max(totals.values())  # fewer are quicker
    last, used = tables.counts.shape[1] - 1, np.zeros(len(least), dtype=np.int64)
    levels = {table: [Node(-1, last, 0, total)] for table, total in totals.items()}
    splits: dict[int, list[Split]] = {table: [] for table in totals}
    while levels := _large(levels, k):
        at = [(table, node) for table, nodes in levels.items() for node in nodes]
        entry = [used[t] + i for t, nodes in levels.items() for i in range(len(nodes))]
        rows = np.array([table for table, _ in at]), np.array(entry)
        nodes = [node for _, node in at]
        secrets = tables.draws[rows], tables.coins[rows]
        all_splits = await _split(secure, below, rows[0], nodes, *secrets, k, most)
        for table, level in levels.items():
            mine, all_splits = all_splits[: len(level)], all_splits[len(level) :]
            used[table] += len(level)
            splits[table] += [split for split in mine if split is not None]
            levels[table] = next_level(level, mine)
    return [
        JointCells(totals[t], tuple(splits[t])) if t in totals else None for t in range(len(least))
    ]


def _large(levels: dict[int, list[Node]], k: int) -> dict[int, list[Node]]:
    """Those that may be split, of tables that have some."""
    some = ((table, [n for n in nodes if n.may_split(k)]) for table, nodes in levels.items())
    return {table: nodes for table, nodes in some if nodes}


async def _split(
    secure: Secure,
    below: Any,
    tables: IntArray,
    nodes: Sequence[Node],
    draws: Any,
    coins: Any,
    k: int,
    most: int,
) -> list[Split | None]:
    """Where each node is split, if it is; nodes of alike widths are searched together."""
    depth = np.array([(node.right - node.left - 1).bit_length() for node in nodes])
    order, parts = [], []
    for size in np.unique(depth).tolist():
        some = np.flatnonzero(depth == size).tolist()
        chosen = [nodes[i] for i in some]
        parts.append(_search(secure, below, tables[some], chosen, draws[some], size, k, most))
        order += some
    place, before, behind = (secure.joined([part[i] for part in parts]) for i in range(3))
    ordered = [nodes[i] for i in order]
    coin = coins[np.array(order)]
    left, right = (np.array([n[i] for n in ordered]) for i in (2, 3))
    at_least = secure.at_least(
        secure.joined([secure.public(right) - behind, before - secure.public(left)]),
        secure.public(np.full(2 * len(ordered), k)),
        most,
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
    secure: Secure,
    below: Any,
    tables: IntArray,
    nodes: Sequence[Node],
    draws: Any,
    depth: int,
    k: int,
    most: int,
) -> tuple[Any, Any, Any]:
    """The first point of each node that reaches its aim, and the people below it, before and at."""
    width = 2**depth
    column = np.array([np.minimum(n.left + 1 + np.arange(width), n.right) for n in nodes])
    points = below[tables[:, None], column]
    aims = [aim(node.people, k) for node in nodes]
    start = secure.public([n.below_left + a.least for n, a in zip(nodes, aims, strict=True)])
    wanted = start * PARTS + draws * secure.public([a.dealt for a in aims])
    here = first_reaching(secure, points * PARTS, wanted, PARTS * most)
    place = secure.row_sums(here, np.arange(width))
    first = secure.public(np.array([[node.below_left] for node in nodes]))
    earlier = secure.joined([first, points[:, : width - 1]], axis=1)
    return place, secure.row_products(here, earlier), secure.row_products(here, points)


def first_reaching(secure: Secure, rising: Any, wanted: Any, most: int) -> Any:
    """Where each row of rising numbers, 2, 4, 8 ... of them, reaches what is wanted.

    A 1 among zeros. A binary search whose steps stay shared: `here` says in which of 1, 2, 4, ...
    stretches the place lies.
    """
    count, width = rising.shape
    here = secure.public(np.ones((count, 1), dtype=np.int64))
    for step in range(width.bit_length() - 1):
        stretch = width >> step
        middles = np.arange(stretch // 2 - 1, width, stretch)
        behind = secure.less(secure.row_products(here, rising[:, middles]), wanted, most)
        right = here * behind.reshape(count, 1)
        both = secure.joined([(here - right).reshape(-1, 1), right.reshape(-1, 1)], axis=1)
        here = both.reshape(count, 2 ** (step + 1))
    return here
