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


def found(centers: list[FloatArray]) -> list[Deviation | None]:
    tables = [lattice_table(np.sort(x), LATTICE, 10, evenly, "tails") for x in centers]
    return deviations([[table] for table in tables], place(tables, LATTICE))


def normal(seed: int, sizes: list[int], moved: float = 0.0) -> list[FloatArray]:
    random = np.random.default_rng(seed)
    centers = [random.normal(size=n) for n in sizes]
    centers[0] += moved
    return centers


def test_the_largest_difference_is_near_that_of_the_raw_people() -> None:
    centers = normal(1, [300, 400, 500], moved=0.5)
    own = found(centers)[0]
    assert own is not None
    raw = stats.ks_2samp(centers[0], np.concatenate(centers[1:]), method="asymp")
    assert abs(own.difference) == pytest.approx(raw.statistic, abs=0.03)
    assert own.difference < 0  # values are larger, so fewer people lie below
    assert own.at == pytest.approx(raw.statistic_location, abs=0.6)
    assert own.adjusted < 0.001


def test_centers_alike_are_rarely_said_to_differ() -> None:
    wrong = 0
    for seed in range(60):
        told = [d for d in found(normal(seed, [80, 120, 200, 300])) if d is not None]
        wrong += min(d.adjusted for d in told) < 0.05
    assert wrong <= 6  # 3 expected, at most


def test_adjusted_p_values_are_never_smaller() -> None:
    told = [d for d in found(normal(3, [80, 120, 200], moved=0.3)) if d is not None]
    assert all(d.adjusted >= d.p_value for d in told)


def test_one_center_alone_differs_from_nobody() -> None:
    assert found(normal(4, [100])) == [None]


def test_a_center_without_a_boundary_cannot_be_told_apart() -> None:
    assert found([np.full(30, 3.0), *normal(5, [100, 100])])[0] is None
