"""U across centers: exact on the people themselves, close on released tables."""

import numpy as np
import pytest
from scipy import stats

from tests.draws import evenly
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.placing import Placed, place
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice
from unpooled.maths.ranks.cross_center import cross_center, hodges_lehmann
from unpooled.maths.ranks.mann_whitney import rank_statistics

SIZES = (120, 80, 40)


def _people(shift: float, seed: int = 1) -> list[FloatArray]:
    random = np.random.default_rng(seed)
    return [np.sort(random.normal(shift, 1, n)) for n in SIZES]


def _exact(groups: list[FloatArray], tied: bool = False) -> Placed:
    values = np.concatenate(groups)
    order = np.argsort(values, kind="stable")
    centers = np.repeat(np.arange(len(groups)), [len(g) for g in groups])[order]
    n = len(values)
    return Placed(values[order], np.ones(n), centers, np.full(n, tied))


@pytest.mark.parametrize("digits", [None, 0])
def test_the_people_themselves_give_scipys_test(digits: int | None) -> None:
    x, y = _people(0.0), _people(0.3, seed=2)
    if digits is not None:
        x, y = ([np.round(v, digits) for v in group] for group in (x, y))
    part = [rank_statistics(a, b) for a, b in zip(x, y, strict=True)]
    ours = cross_center(_exact(x, digits == 0), _exact(y, digits == 0), part)
    full = stats.mannwhitneyu(
        np.concatenate(y), np.concatenate(x), use_continuity=False, method="asymptotic"
    )
    assert ours.test("two-sided").p_value == pytest.approx(full.pvalue, rel=1e-9)
    pooled = rank_statistics(np.sort(np.concatenate(x)), np.sort(np.concatenate(y)))
    assert ours.statistics.effect_variance == pytest.approx(pooled.effect_variance)


@pytest.mark.parametrize("seed", range(4))
def test_released_tables_come_close(seed: int) -> None:
    x, y = _people(0.0, seed), _people(0.25, seed + 100)
    lattice = Lattice(0.1)
    placed = [place([lattice_table(v, lattice, 10, evenly) for v in g], lattice) for g in (x, y)]
    part = [rank_statistics(a, b) for a, b in zip(x, y, strict=True)]
    ours = cross_center(placed[0], placed[1], part).statistics
    full = rank_statistics(np.sort(np.concatenate(x)), np.sort(np.concatenate(y)))
    assert abs(ours.effect - full.effect) < 0.15 * np.sqrt(full.effect_variance)
    shift = hodges_lehmann(placed[0], placed[1])
    direct = np.median(np.subtract.outer(np.concatenate(y), np.concatenate(x)))
    assert shift.estimate == pytest.approx(direct, abs=0.03)
    assert shift.low < direct < shift.high


def test_the_shift_is_the_median_difference() -> None:
    x, y = _people(0.0), _people(1.0, seed=2)
    direct = np.median(np.subtract.outer(np.concatenate(y), np.concatenate(x)))
    assert hodges_lehmann(_exact(x), _exact(y)).estimate == pytest.approx(direct, abs=1e-6)


def test_whole_numbers_are_shifted_by_whole_ones_or_halves() -> None:
    """Its interval ended at -0.9999999999999998, where halving an interval stopped."""
    random = np.random.default_rng(1)
    for _ in range(20):
        x, y = (_exact([np.sort(random.integers(0, 40, 60).astype(float))]) for _ in "xy")
        result = hodges_lehmann(x, y)
        assert all(float(2 * v).is_integer() for v in (result.estimate, result.low, result.high))


def test_a_center_with_one_group_counts_across_centers() -> None:
    x, y = _people(0.0), _people(0.5, seed=2)[:2]
    part = [rank_statistics(a, b) for a, b in zip(x[:2], y, strict=True)]
    ours = cross_center(_exact(x), _exact(y), [*part, None])
    full = rank_statistics(np.sort(np.concatenate(x)), np.sort(np.concatenate(y)))
    assert ours.statistics.u == full.u


def test_too_few_people_have_an_endless_interval() -> None:
    x, y = _exact([np.array([1.0, 2.0])]), _exact([np.array([3.0, 4.0])])
    assert np.isinf(hodges_lehmann(x, y, 0.99).high)
    with pytest.raises(ValueError, match="level"):
        hodges_lehmann(x, y, 95)
