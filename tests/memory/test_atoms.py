"""The table of people with the same history, kept in order while sets come in anywhere."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unpooled.center.memory.atoms import Atoms
from unpooled.maths.arrays import BoolArray


@given(st.integers(0, 10**6), st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_columns_stay_ordered_and_know_how_far_they_agree(seed: int, places: list[int]) -> None:
    random = np.random.default_rng(seed)
    cell = random.integers(0, 3, 40).astype(np.int32)
    atoms = Atoms.by_cell(cell)
    rows: list[BoolArray] = []
    for number, place in enumerate(places):
        people = random.random(40) < random.random()
        place = min(place, number)
        atoms = atoms.with_set(people, atoms.inside(people), place)
        rows.insert(place, people)
    history = np.vstack((cell, *rows))
    columns, of, count = np.unique(history, axis=1, return_inverse=True, return_counts=True)
    assert np.array_equal(np.vstack((atoms.cell, atoms.sets)), columns)
    assert np.array_equal(atoms.of, of.ravel())
    assert np.array_equal(atoms.count, count)
    alike = np.cumprod(columns[:, 1:] == columns[:, :-1], axis=0).sum(axis=0) - 1
    assert np.array_equal(atoms.agrees, np.append(-1, alike))
