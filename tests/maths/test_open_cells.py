"""The scale of open cells: it rises, ends, and depends on edges alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.draws import evenly
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, OpenScale

SCALE = st.builds(
    lambda limit, unit: OpenScale(np.array(limit), np.array(unit)),
    st.floats(-1e3, 1e3),
    st.floats(0.01, 100),
)


@given(SCALE, st.floats(-50, 50))
def test_values_come_back(scale: OpenScale, units: float) -> None:
    x = scale.limit + units * scale.unit
    assert scale.back(scale.forth(x)) == pytest.approx(x, rel=1e-6, abs=1e-6)


@given(SCALE, st.floats(0, 20), st.floats(0.001, 5))
def test_it_rises_and_ends(scale: OpenScale, units: float, more: float) -> None:
    near, far = (scale.forth(scale.limit + z * scale.unit) for z in (units, units + more))
    assert 0 <= near < far < 1
    assert scale.forth(scale.limit - units * scale.unit) == pytest.approx(-near, abs=1e-9)


@given(SCALE, st.floats(-10, 10))
def test_its_slope_is_the_derivative(scale: OpenScale, units: float) -> None:
    x = scale.limit + units * scale.unit
    little = 1e-5 * scale.unit
    numeric = (scale.forth(x + little) - scale.forth(x - little)) / (2 * little)
    assert scale.slope(x) == pytest.approx(numeric, rel=1e-4)


def test_other_cells_are_left_as_they_are() -> None:
    scale = OpenScale.of(np.array([0.0, 1.0, 3.0, np.inf]), 0.1)
    x = np.array([0.5, 2.0, 3.0])
    np.testing.assert_array_equal(scale.forth(x), [0.5, 2.0, 0.0])
    np.testing.assert_array_equal(scale.slope(x), [1.0, 1.0, 1 / 10])
    assert scale.open.tolist() == [2]


def test_an_atom_is_no_neighbour() -> None:
    """Else everybody would be as far outside as the scale reaches."""
    below = np.nextafter(100.0, -np.inf)
    scale = OpenScale.of(np.array([-np.inf, below, 100.0]), 0.2)
    assert scale.width[0] == 2.0


def test_without_a_neighbour_the_step_gives_the_width() -> None:
    two = OpenScale.of(np.array([-np.inf, 5.0, np.inf]), 0.1)
    assert two.width.tolist() == [1.0, 1.0]
    one = OpenScale.of(np.array([-np.inf, np.inf]), 0.1)
    assert one.open.tolist() == []


@pytest.mark.parametrize("far", [20.0, 2000.0, 1e300])
def test_where_one_person_is_far_outside_hardly_matters(far: float) -> None:
    """The mean of an open cell would move by a hundred widths; its v by a hundredth."""
    x = np.sort(np.random.default_rng(1).normal(size=300))
    means = []
    for farthest in (10.0, far):
        x[-1] = farthest
        means.append(lattice_table(x, Lattice(0.1), 10, evenly).means[-1])
    assert abs(means[1] - means[0]) < 0.03
