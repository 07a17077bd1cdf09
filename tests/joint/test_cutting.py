"""Joint tables: cells of at least K people, the same on shares as on pooled rows."""

from itertools import pairwise

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.joint.tables import Members, cut_alone, drawn, keeper_inputs, members, output, start
from unpooled.federation.joint.program import Opened
from unpooled.maths.joint.cutting import JointCells, joint_cells

K = st.integers(3, 20)


@given(members(1), K)
def test_each_cell_of_the_rule_has_k_people_and_all_are_counted(own: Members, k: int) -> None:
    counts = own.pooled[0]
    if counts.sum() < k:
        return
    cells = joint_cells(counts, k, own.draws[0], own.coins[0])
    assert min(cells.counts) >= k
    below = np.cumsum(counts)
    assert cells.counts == tuple(np.diff([0, *below[list(cells.edges)], below[-1]]))


@given(members(1), K)
def test_a_cell_stays_whole_only_where_no_edge_leaves_k_on_both_sides_of_its_aim(
    own: Members, k: int
) -> None:
    counts = own.pooled[0]
    if counts.sum() < k:
        return
    cells = joint_cells(counts, k, own.draws[0], own.coins[0])
    ends = [-1, *cells.edges, len(counts) - 1]
    for left, right in pairwise(ends):
        inside = counts[left + 1 : right + 1]
        below = np.cumsum(inside)[:-1]
        could = (below >= k) & (inside.sum() - below >= k)
        # only a heap that holds the aim, with fewer than K beside it, keeps a splittable cell whole
        assert not could.any() or inside.max() > inside.sum() - 2 * k


@settings(max_examples=25, deadline=None)
@given(members(), K)
def test_the_program_on_shares_gives_the_cells_of_the_rule_on_pooled_rows(
    own: Members, k: int
) -> None:
    least = [2 * k, k]
    assert cut_alone(own, k, least) == own.cells(k, least)


@settings(max_examples=25, deadline=None)
@given(members(), K)
def test_what_is_opened_follows_from_what_is_released(own: Members, k: int) -> None:
    least, opened = [2 * k, k], Opened([])
    tables = cut_alone(own, k, least, opened)
    assert opened.numbers == simulated(tables, own.counts.shape[2], k)


def simulated(tables: list[JointCells | None], points: int, k: int) -> list[int]:
    """The opened numbers, computed by somebody who has the release and nothing else."""
    said = [int(table is not None) for table in tables]
    some = [table for table in tables if table is not None]
    if not some:
        return said
    said += [table.people for table in some]
    levels = [[(-1, points - 1, 0, table.people)] for table in some]
    while any(levels := [[node for node in level if _may(node, k)] for level in levels]):
        edges = []
        for table, level in zip(some, levels, strict=True):
            edges.append([_next(table, left, right) for left, right, *_ in level])
        flat = [
            (n, e)
            for ns, es in zip(levels, edges, strict=True)
            for n, e in zip(ns, es, strict=True)
        ]
        flat.sort(key=lambda one: (one[0][1] - one[0][0] - 1).bit_length())
        said += [0 if e is None else e[0] - n[0] for n, e in flat]
        said += [0 if e is None else e[1] for _, e in flat]
        levels = [
            [
                side
                for (left, right, low, high), e in zip(level, own, strict=True)
                if e is not None
                for side in ((left, e[0], low, e[1]), (e[0], right, e[1], high))
            ]
            for level, own in zip(levels, edges, strict=True)
        ]
    return said


def _may(node: tuple[int, int, int, int], k: int) -> bool:
    left, right, low, high = node
    return high - low >= 2 * k and right - left >= 2


def _next(table: JointCells, left: int, right: int) -> tuple[int, int] | None:
    """The first edge that was opened inside a cell, with the people below."""
    inside = (split for split in table.splits if left < split.point < right)
    return next(((split.point, split.below) for split in inside), None)


def test_three_keepers_in_processes_of_their_own_find_the_same_cells() -> None:
    rng = np.random.default_rng(5)
    own = drawn(rng, rng.poisson(1, (4, 3, 40)))
    own.counts[:, 2] = 0
    inputs = keeper_inputs(own, 10, [20] * 3)
    outputs = [output(process) for process in [start(each) for each in inputs]]
    opened = Opened([])
    assert cut_alone(own, 10, [20] * 3, opened) == own.cells(10, [20] * 3)
    for each in outputs:
        assert each.problem is None
        assert each.tables == tuple(own.cells(10, [20] * 3))
        assert each.opened == tuple(opened.numbers)
    assert outputs[0].tables is not None
    assert outputs[0].tables[2] is None


def test_a_keeper_that_does_not_come_is_named_and_nothing_is_opened() -> None:
    rng = np.random.default_rng(5)
    inputs = keeper_inputs(drawn(rng, rng.poisson(1, (3, 1, 20))), 5, [10], patience=3.0)
    for each in [output(process) for process in [start(one) for one in inputs[:2]]]:
        assert each.tables is None
        assert each.opened == ()
        assert each.problem == "not reached in 3 s: keeper Oslo"


def test_counts_that_do_not_add_up_open_nothing() -> None:
    rng = np.random.default_rng(5)
    own = drawn(rng, rng.poisson(2, (3, 1, 20)))
    inputs = keeper_inputs(own, 5, [10])
    wrong = [msgspec.structs.replace(one, shares=_more(one.shares)) for one in inputs]
    for each in [output(process) for process in [start(one) for one in wrong]]:
        assert each.tables is None
        assert each.opened == ()
        assert each.problem == "the counts of a table do not add up"


def _more(shares: bytes) -> bytes:
    """One person more in the first cell, in every share alike."""
    first = int.from_bytes(shares[:16], "little") + 1
    return first.to_bytes(16, "little") + shares[16:]
