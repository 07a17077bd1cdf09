"""The rule by which tables are cut: cells of at least K people."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.cutting import DRAW, joint_cells

K = st.integers(3, 20)


@st.composite
def tables(draw: st.DrawFn) -> tuple[IntArray, IntArray, IntArray]:
    """Few points or many, heaps, nobody; with draws and coins."""
    points = draw(st.integers(2, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = rng.poisson(draw(st.floats(0, 20)), points)
    counts[rng.integers(points)] += rng.integers(0, draw(st.integers(1, 120)))
    draws = rng.integers(0, DRAW + 1, (2, points)).sum(axis=0)
    return counts, draws, rng.integers(0, 2, points)


@given(tables(), K)
def test_each_cell_of_the_rule_has_k_people_and_all_are_counted(
    table: tuple[IntArray, IntArray, IntArray], k: int
) -> None:
    counts, draws, coins = table
    if counts.sum() < k:
        return
    cells = joint_cells(counts, k, draws, coins)
    assert min(cells.counts) >= k
    below = np.cumsum(counts)
    assert cells.counts == tuple(np.diff([0, *below[list(cells.edges)], below[-1]]))


@given(tables(), K)
def test_a_cell_stays_whole_only_where_no_edge_leaves_k_on_both_sides_of_its_aim(
    table: tuple[IntArray, IntArray, IntArray], k: int
) -> None:
    counts, draws, coins = table
    if counts.sum() < k:
        return
    cells = joint_cells(counts, k, draws, coins)
    ends = [-1, *cells.edges, len(counts) - 1]
    for left, right in pairwise(ends):
        inside = counts[left + 1 : right + 1]
        below = np.cumsum(inside)[:-1]
        could = (below >= k) & (inside.sum() - below >= k)
        # only a heap that holds the aim, with fewer than K beside it, keeps a splittable cell whole
        assert not could.any() or inside.max() > inside.sum() - 2 * k
