"""Levels and blocks of a joint center: enough people each, and nobody is lost."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unpooled.maths.joint.levels import fine_blocks, join_levels, joint_blocks

COUNTS = st.lists(st.integers(0, 40), min_size=1, max_size=7)


@given(COUNTS, st.integers(3, 20), st.booleans())
def test_each_cell_has_enough_people_and_each_level_is_in_one(
    counts: list[int], least: int, ordered: bool
) -> None:
    if sum(counts) < least:
        return
    cells = join_levels(counts, least, ordered=ordered)
    assert sorted(level for cell in cells for level in cell) == list(range(len(counts)))
    assert all(sum(counts[level] for level in cell) >= least for cell in cells)
    if ordered:
        assert [level for cell in cells for level in cell] == list(range(len(counts)))


@given(COUNTS, st.integers(3, 20))
def test_levels_with_enough_people_each_stand_alone(counts: list[int], least: int) -> None:
    each = [count + least for count in counts]
    alone = [(level,) for level in range(len(counts))]
    for ordered in (False, True):
        assert join_levels(each, least, ordered=ordered) == alone


def test_where_a_cell_of_rising_levels_ends_does_not_say_where_the_tenth_person_is() -> None:
    """Twelve people under 40, in bands of ten years: who asks chooses the bands."""
    worlds = [9, 3, 0, 0, 30, 0, 0, 30], [3, 0, 0, 9, 30, 0, 0, 30]

    def reached(counts: list[int]) -> int:
        """Where people counted from below become ten: what a cut there would tell."""
        return int(np.argmax(np.cumsum(counts) >= 10))

    assert [reached(counts) for counts in worlds] == [1, 3]
    cells = [join_levels(counts, 10, ordered=True) for counts in worlds]
    assert cells[0] == cells[1] == [(0, 1, 2, 3), (4, 5), (6, 7)]


@given(
    st.lists(st.integers(1, 4), max_size=3),
    st.integers(0, 2**32 - 1),
    st.integers(3, 20),
    st.booleans(),
)
def test_blocks_hold_everybody_once_and_enough_of_them(
    sizes: list[int], seed: int, least: int, ordered: bool
) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(1, least), int(np.prod(sizes, dtype=int)))
    if counts.sum() < least:
        return
    blocks = joint_blocks(counts, sizes, [ordered] * len(sizes), least)
    assert sorted(row for block in blocks for row in block) == list(range(len(fine_blocks(sizes))))
    assert all(counts[block].sum() >= least for block in blocks)
