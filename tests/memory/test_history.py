"""Whatever is told, no number that follows from it speaks for fewer than K people."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.linear_attack import fewest_people
from unpooled.center.memory.history import History, WouldDiffer
from unpooled.maths.arrays import BoolArray

K = 3


def people(*members: int, of: int = 20) -> BoolArray:
    mask = np.zeros(of, dtype=bool)
    mask[list(members)] = True
    return mask


def tell(history: History, some: BoolArray, condition: bool = False) -> History:
    first = not (history.blocks or history.crossings)
    return history.tell(some, K, open_base=not condition or first, repeats=not condition)


@st.composite
def sets(draw: st.DrawFn) -> list[BoolArray]:
    size = draw(st.integers(6, 16))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    columns = [random.integers(0, draw(st.integers(2, 3)), size) for _ in range(3)]
    found = []
    for _ in range(draw(st.integers(2, 9))):
        mask = np.ones(size, dtype=bool)
        for column in draw(st.sets(st.integers(0, 2), max_size=2)):
            mask &= columns[column] == draw(st.integers(0, 2))
        if draw(st.booleans()):
            mask[draw(st.integers(0, size - 1))] ^= True
        found.append(mask)
    return found


@settings(max_examples=300)
@given(sets(), st.booleans())
def test_no_sequence_of_sets_singles_out_fewer_than_k_people(
    asked: list[BoolArray], condition: bool
) -> None:
    history = History.empty(len(asked[0]), K)
    told = []
    for some in asked:
        if some.sum() < K:
            continue
        try:
            history = tell(history, some, condition)
            told.append(some)
        except WouldDiffer:
            continue
    if told:
        assert fewest_people(told, K) == K


def test_the_attacker_finds_a_refused_group() -> None:
    everybody = people(*range(12))
    assert fewest_people([everybody, people(*range(10))], K) == 2
    assert fewest_people([everybody, people(*range(9))], K) == K


def test_the_first_sets_become_blocks_and_their_sum_is_known() -> None:
    history = tell(History.empty(20, K), people(*range(12)))
    history = tell(history, people(*range(12, 20)))
    assert len(history.blocks) == 2
    assert tell(history, people(*range(20))) is history


def test_a_set_that_differs_by_few_is_refused_either_way() -> None:
    history = tell(History.empty(20, K), people(*range(12)))
    for other in (range(11), range(13), range(1, 13)):
        with pytest.raises(WouldDiffer):
            tell(history, people(*other))


def test_two_groupings_and_their_crossing_may_be_told_in_any_order() -> None:
    sex, arm = people(*range(10)), people(*range(0, 20, 2))
    for order in ([sex, arm, sex & arm], [sex & arm, arm, sex], [sex, sex & arm, arm]):
        history = tell(History.empty(20, K), people(*range(20)))
        for some in order:
            history = tell(history, some, condition=True)
        assert len(history.crossings) == 3


def test_what_follows_is_not_told_where_words_could_be_chosen_to_find_out() -> None:
    history = tell(History.empty(20, K), people(*range(20)))
    with pytest.raises(WouldDiffer):
        tell(history, people(*range(20)), condition=True)
