"""Which center differs, and where, against SciPy's two-sample test on the raw people."""

import numpy as np
import pytest
from scipy import stats

from tests.draws import evenly
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.deviation import Deviation, deviations
from unpooled.maths.density.placing import place
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import public_lattice

LATTICE = public_lattice(1.0)


def all_deviations(centers: list[FloatArray]) -> list[Deviation | None]:
    tables = [lattice_table(np.sort(x), LATTICE, 10, evenly, "tails") for x in centers]
    return deviations([[table] for table in tables], place(tables, LATTICE))


def normal(seed: int, sizes: list[int], moved: float = 0.0) -> list[FloatArray]:
    random = np.random.default_rng(seed)
    centers = [random.normal(size=n) for n in sizes]
    centers[0] += moved
    return centers


def test_the_largest_difference_is_near_that_of_the_raw_people() -> None:
    centers = normal(1, [300, 400, 500], moved=0.5)
    part = all_deviations(centers)[0]
    assert part is not None
    raw = stats.ks_2samp(centers[0], np.concatenate(centers[1:]), method="asymp")
    assert abs(part.difference) == pytest.approx(raw.statistic, abs=0.03)
    assert part.difference < 0  # values are larger, so fewer people lie below
    assert part.at == pytest.approx(raw.statistic_location, abs=0.6)
    assert part.adjusted < 0.001


def test_centers_alike_are_rarely_said_to_differ() -> None:
    wrong = 0
    for seed in range(60):
        answer = [d for d in all_deviations(normal(seed, [80, 120, 200, 300])) if d is not None]
        wrong += min(d.adjusted for d in answer) < 0.05
    assert wrong <= 6  # 3 expected, at most


def test_adjusted_p_values_are_never_smaller() -> None:
    answer = [d for d in all_deviations(normal(3, [80, 120, 200], moved=0.3)) if d is not None]
    assert all(d.adjusted >= d.p_value for d in answer)


def test_one_center_alone_differs_from_nobody() -> None:
    assert all_deviations(normal(4, [100])) == [None]


def test_a_center_without_a_boundary_cannot_be_told_apart() -> None:
    assert all_deviations([np.full(30, 3.0), *normal(5, [100, 100])])[0] is None
