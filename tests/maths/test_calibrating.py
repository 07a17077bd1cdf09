"""Exact ranks within centers correct the ranks between centers."""

import numpy as np
import pytest
from scipy import stats

from tests.draws import evenly
from unpooled.maths.density.placing import Placed, place
from unpooled.maths.lattice.cells import Moments
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice
from unpooled.maths.ranks.cross_center import correction, cross_center, hodges_lehmann
from unpooled.maths.ranks.mann_whitney import RankStatistics, rank_statistics

SIZES = (200, 120, 80, 60, 50)
LATTICE = Lattice(0.1)


def _federation(seed: int, moments: Moments) -> tuple[Placed, Placed, list[RankStatistics], float]:
    """Both groups' pseudo-people, what centers say of their own, and SciPy's U of everybody."""
    random = np.random.default_rng(seed)
    x, y = ([np.sort(random.normal(shift, 1, n)) for n in SIZES] for shift in (0.0, 0.1))
    placed = [
        place([lattice_table(v, LATTICE, 10, evenly, moments) for v in g], LATTICE) for g in (x, y)
    ]
    part = [rank_statistics(a, b) for a, b in zip(x, y, strict=True)]
    u = stats.mannwhitneyu(np.concatenate(y), np.concatenate(x)).statistic
    return placed[0], placed[1], part, 2 * u - sum(SIZES) ** 2


def _uncorrected(x: Placed, y: Placed, part: list[RankStatistics]) -> float:
    bare = [Placed(p.values, p.weights, p.centers, p.shared) for p in (x, y)]
    return cross_center(bare[0], bare[1], part).statistics.u


@pytest.mark.parametrize(("moments", "gain"), [("tails", 0.4), ("all", 1.05)])
def test_the_correction_brings_u_nearer_to_that_of_the_people(
    moments: Moments, gain: float
) -> None:
    """With all moments of a light tail there is little to correct, and nothing must be lost."""
    errors = []
    for seed in range(30):
        x, y, part, u = _federation(seed, moments)
        errors.append([cross_center(x, y, part).statistics.u - u, _uncorrected(x, y, part) - u])
    corrected, plain = np.abs(errors).mean(axis=0)
    assert corrected < gain * plain


def test_centers_that_are_not_missed_correct_nothing() -> None:
    x, y, _, _ = _federation(1, "all")
    assert correction(x, y, dict.fromkeys(range(len(SIZES)), 0.0)) == 0


def test_exact_values_need_no_correction() -> None:
    x, y, _, _ = _federation(1, "all")
    bare = [Placed(p.values, p.weights, p.centers, p.shared) for p in (x, y)]
    assert correction(bare[0], bare[1], {0: 100.0}) == 0


def test_a_center_away_from_all_others_says_nothing_about_them() -> None:
    near, far = (np.sort(np.random.default_rng(3).normal(m, 1, 100)) for m in (0.0, 50.0))
    tables = [lattice_table(v, LATTICE, 10, evenly, "tails") for v in (near, far)]
    placed = place(tables, LATTICE)
    assert abs(correction(placed, placed, {1: 500.0})) < 1


def test_a_better_u_moves_the_shift() -> None:
    x, y, _, u = _federation(1, "tails")
    assert hodges_lehmann(x, y, u=u + 1000).estimate > hodges_lehmann(x, y, u=u).estimate
