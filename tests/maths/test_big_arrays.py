"""Working piece by piece gives what NumPy gives at once."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpooled.maths import big_arrays
from unpooled.maths.moments import MeanSD, Rare, telling_values
from unpooled.maths.tables.binning import Rule, cut

numbers = st.lists(st.integers(0, 9), min_size=1, max_size=40)


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unpooled.maths.big_arrays._PIECE", 8)
        yield


@given(numbers, st.randoms())
def test_pieces_add_up(drawn: list[int], random: Random) -> None:
    places = np.array(drawn, dtype=np.int32)
    among = np.array([random.random() < 0.5 for _ in drawn])
    assert np.array_equal(big_arrays.mapped(bool, np.less, places, among), places < among)
    assert big_arrays.count(np.greater, places, among) == np.count_nonzero(places > among)
    assert np.array_equal(big_arrays.chosen(places, among), places[among])
    assert np.array_equal(big_arrays.frequencies(places), np.bincount(places))
    few = big_arrays.frequencies(places, 4, among)
    assert np.array_equal(few, np.bincount(places[among], minlength=4))
    assert np.array_equal(big_arrays.distinct(places, among), np.unique(places[among]))


@given(st.lists(numbers, max_size=6), st.integers(0, 50))
def test_an_array_grows_whatever_room_it_was_given(parts: list[list[int]], room: int) -> None:
    growing = big_arrays.Growing(np.int32, room)
    for part in parts:
        growing.append(np.array(part, dtype=np.int32))
    assert growing.array.tolist() == [number for part in parts for number in part]


@given(numbers, st.integers(1, 12))
def test_shared_values_are_counted_across_pieces(drawn: list[int], k: int) -> None:
    values = np.sort(np.array(drawn, dtype=np.float64))
    sharing = np.unique(values, return_counts=True)[1]
    rare = Rare.of(values, k)
    assert rare == Rare(int(sharing[sharing < k].sum()), int((sharing < k).sum()))
    if rare.people >= k:
        assert telling_values(values, k) == min(len(sharing), 8)


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=400))
def test_moments_are_numpys_to_the_last_bit(drawn: list[float]) -> None:
    values = np.sort(np.array(drawn))
    moments = MeanSD.of(values)
    alike = values[0] == values[-1]  # then NumPy's last bit is wrong
    exact = (values[0], 0.0) if alike else (values.mean(), values.std(ddof=1))
    assert (moments.mean, moments.sd) == exact


@given(st.lists(st.integers(0, 60), min_size=1, max_size=20), st.integers(1, 12))
def test_twice_k_people_in_a_cell_are_as_good_as_more(counts: list[int], k: int) -> None:
    """So runs of cells (memory/tables.py) need no entry for every pair of twins."""
    if sum(counts) < k:
        return
    cells = np.arange(len(counts), dtype=np.float64)
    exact, capped = (np.repeat(cells, np.minimum(counts, most)) for most in (10**9, 2 * k))
    assert cut([exact], Rule(k)).below.tolist() == cut([capped], Rule(k)).below.tolist()


@given(numbers)
def test_sorting_in_two_halves_is_sorting(values: list[int]) -> None:
    some = np.array(values, dtype=np.float64)
    expected = np.sort(some)
    big_arrays.sort(some)
    np.testing.assert_array_equal(some, expected)
