"""Where all people together contradict the effect within centers, a sentence says so."""

import numpy as np
import polars as pl
import pytest

from unpooled import Federation
from unpooled.maths.ranks.effect import Interval
from unpooled.maths.ranks.mann_whitney import rank_statistics
from unpooled.maths.ranks.simpson import CenterPairs, odd_centers, table_effect
from unpooled.results.numbers.compare import CompareResult


def compare(
    sizes: dict[str, tuple[int, int, float]], effect: float, method: str, seed: int = 1
) -> CompareResult:
    """Centers with so many of x and of y, at a level of their own; y is higher by the effect."""
    random, frames = np.random.default_rng(seed), {}
    for name, (n, m, level) in sizes.items():
        values = random.normal(level, 1, n + m)
        values[n:] += effect
        frames[name] = pl.DataFrame({"v": values.round(3), "g": ["x"] * n + ["y"] * m})
    return Federation.local(frames, seed=seed).compare("v", "g", groups=("x", "y"), method=method)


ALIKE = {"A": (300, 250, 0.0), "B": (320, 240, 0.0), "C": (260, 220, 0.0)}
ODD = {**ALIKE, "Odd": (250, 900, -1.5)}


@pytest.mark.parametrize("method", ["parallel", "table", "all"])
def test_an_effect_that_pooling_turns_round_is_said_with_the_center_that_does_it(
    method: str,
) -> None:
    result = compare(ODD, 0.3, method)
    assert result.paradox is not None
    assert result.paradox.within.estimate > 0.55
    assert result.paradox.pooled.estimate < 0.47
    assert result.paradox.centers == ("Odd",)
    assert result.paradox.without == pytest.approx(0.58, abs=0.03)
    assert "Simpson's paradox" in str(result)
    assert "Odd moves it most; without this center" in str(result)
    assert "turn the effect round" in result._repr_html_()


def test_several_variables_say_it_each_for_itself() -> None:
    random, frames = np.random.default_rng(3), {}
    for name, (n, m, level) in ODD.items():
        v = random.normal(level, 1, n + m)
        v[n:] += 0.3
        rows = {"v": v, "w": random.normal(0, 1, n + m), "g": ["x"] * n + ["y"] * m}
        frames[name] = pl.DataFrame(rows)
    fed = Federation.local(frames, seed=1)
    result = fed.compare(["v", "w"], "g", groups=("x", "y"), method="parallel")
    assert [note.split("(")[0] for note in result.notes()] == ["v: Simpson's paradox: P"]


def test_two_odd_centers_are_both_named() -> None:
    result = compare({**ODD, "Even odder": (200, 800, -1.8)}, 0.3, "parallel")
    assert result.paradox is not None
    assert set(result.paradox.centers) == {"Odd", "Even odder"}
    assert "move it most; without these centers" in str(result)


@pytest.mark.parametrize("method", ["parallel", "table"])
def test_an_effect_that_is_there_between_centers_only_is_said_too(method: str) -> None:
    result = compare({**ALIKE, "Odd": (250, 900, 1.5)}, 0.0, method)
    assert result.paradox is not None
    assert result.paradox.centers == ("Odd",)
    assert "look like an effect" in str(result)


def test_a_coarse_table_that_draws_effects_towards_a_half_is_no_contradiction() -> None:
    """The first center's values are far away: all others lie in one bin of the chain."""
    result = compare({**ALIKE, "Odd": (560, 500, -5.0)}, 0.5, "table")
    assert "the test is conservative" in (result.test.note or "")
    assert result.paradox is None


@pytest.mark.parametrize("effect", [0.0, 0.4])
@pytest.mark.parametrize("method", ["parallel", "table"])
def test_where_centers_are_alike_nothing_is_said(method: str, effect: float) -> None:
    results = [compare(ALIKE, effect, method, seed) for seed in range(6)]
    assert [result.paradox for result in results] == [None] * 6


def test_the_weighted_test_alone_has_nothing_to_contradict_it() -> None:
    assert compare(ODD, 0.4, "weighted").paradox is None


def test_pairs_of_centers_add_up_to_the_pooled_effect() -> None:
    random = np.random.default_rng(2)
    x, y = random.integers(0, 30, (2, 4, 12)).astype(np.float64)
    pairs = CenterPairs.of_counts(x, y)
    bins = np.arange(12.0)
    for left_out in ((), (0,), (1, 3)):
        kept = [i for i in range(4) if i not in left_out]
        people = [np.repeat(bins, part[kept].sum(axis=0).astype(int)) for part in (x, y)]
        assert pairs.effect(left_out) == pytest.approx(rank_statistics(*people).effect)
    whole = table_effect(np.array([x.sum(axis=0), y.sum(axis=0)]))
    assert whole.estimate == pytest.approx(pairs.effect())
    null = rank_statistics(*(np.repeat(bins, part.sum(axis=0).astype(int)) for part in (x, y)))
    reach = 1.96 * np.sqrt(null.variance) / (2 * null.n_x * null.n_y)
    assert whole.high - whole.estimate == pytest.approx(reach)


def test_no_center_is_named_where_all_are_odd() -> None:
    x = np.array([[0.0, 0, 0, 90], [0, 0, 60, 0], [0, 30, 0, 0], [9, 1, 0, 0]])
    y = np.array([[0.0, 0, 0, 10], [0, 0, 40, 0], [0, 70, 0, 0], [80, 20, 0, 0]])
    assert odd_centers(CenterPairs.of_counts(x, y), Interval(0.6, 0.55, 0.65)) == ()
