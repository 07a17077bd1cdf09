"""The shift from a table, against what the people themselves say."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.shift import shift
from unpooled.maths.tables.binning import Rule
from unpooled_study.simulations.methods import grow

INF = math.inf


def laplace_table(edges: list[float], moved: float) -> tuple[FloatArray, FloatArray]:
    """A thousand people either side, exactly as a Laplace distribution and a shifted one expect."""
    x = 1000 * np.diff(stats.laplace.cdf(edges))
    y = 1000 * np.diff(stats.laplace.cdf(edges, loc=moved))
    return x, y


def test_open_bins_go_on_like_their_neighbours() -> None:
    edges = [-INF, *np.arange(-1.2, 1.3, 0.1), INF]
    assert shift(edges, *laplace_table(edges, 0.4)).estimate == pytest.approx(0.4, abs=0.002)


def test_a_sliver_beside_an_open_bin_hardly_matters() -> None:
    edges = [-INF, -1.0, 0.0, 1.0, 2.0, INF]
    x, y = [250.0, 300, 250, 120, 80], [150.0, 250, 250, 150, 200]
    whole = shift(edges, x, y)
    sliver = shift([*edges[:-2], 1.99, 2.0, INF], [*x[:-1], 0.01, x[-1]], [*y[:-1], 0, y[-1]])
    assert sliver.estimate == pytest.approx(whole.estimate, abs=0.01)
    assert (sliver.low, sliver.high) == pytest.approx((whole.low, whole.high), abs=0.02)


def test_heavy_open_bins_hardly_mislead() -> None:
    edges = [-INF, -0.7, -0.3, 0.0, 0.3, 0.7, INF]
    fine = [-INF, *np.arange(-6, 7, 0.1), INF]
    coarse, people = (shift(e, *laplace_table(e, 0.4)) for e in (edges, fine))
    assert coarse.estimate == pytest.approx(0.4, abs=0.002)
    assert 1 < (coarse.high - coarse.low) / (people.high - people.low) < 1.2


def quantile_table(
    x: FloatArray, y: FloatArray, bins: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    interior = np.quantile(np.concatenate((x, y)), np.arange(1, bins) / bins)
    counts = [np.bincount(np.searchsorted(interior, g), minlength=bins) for g in (x, y)]
    return (
        np.concatenate(([-INF], interior, [INF])),
        counts[0].astype(float),
        counts[1].astype(float),
    )


def of_people(x: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """Low, estimate and high from all differences between people."""
    differences = np.sort((y[:, None] - x).ravel())
    n, m = len(x), len(y)
    outside = 0.5 - 1.959964 * math.sqrt((n + m + 1) / (12 * n * m))
    low, middle, high = np.quantile(differences, [outside, 0.5, 1 - outside]).tolist()
    return low, middle, high


@pytest.mark.parametrize("family", ["normal", "lognormal", "standard_cauchy", "exponential"])
@pytest.mark.parametrize("moved", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_shift_of_a_table_is_near_that_of_the_people(
    family: str, moved: float, scale: float
) -> None:
    rng = np.random.default_rng(9)
    x, y = getattr(rng, family)(size=400), scale * getattr(rng, family)(size=300) + moved
    low, middle, high = of_people(x, y)
    result = shift(*quantile_table(x, y, 40))
    error = (high - low) / 4
    assert result.estimate == pytest.approx(middle, abs=(0.15 if scale == 1 else 0.25) * error)
    assert result.low == pytest.approx(low, abs=0.3 * error)
    assert result.high == pytest.approx(high, abs=0.3 * error)


@pytest.mark.parametrize(("family", "sd"), [("normal", 1.0), ("lognormal", 0.5)])
@pytest.mark.parametrize("sizes", [(300,), (400, 250, 150)], ids=["one center", "three centers"])
def test_a_large_shift_is_read_off_a_coarse_federated_table(
    family: str, sd: float, sizes: tuple[int, ...]
) -> None:
    """One group's bins are wide where the other's people end; even people inside would mislead."""
    rng = np.random.default_rng(11)
    off = []
    for _ in range(25):
        centers = [[np.sort(getattr(rng, family)(0, sd, n) + s) for s in (0.0, 0.8)] for n in sizes]
        table = grow(centers, Rule(k=10), lambda _below, _above: float(rng.random())).table
        assert table is not None
        x, y = (np.concatenate(part) for part in zip(*centers, strict=True))
        low, middle, high = of_people(x, y)
        off.append((shift(table.edges, *table.counts).estimate - middle) / ((high - low) / 4))
    assert abs(np.mean(off)) < 0.2
    assert np.std(off) < 0.6


def test_a_natural_limit_holds_its_people() -> None:
    rng = np.random.default_rng(12)
    x, y = rng.exponential(size=400), rng.exponential(size=400) + 0.2
    edges, counts_x, counts_y = quantile_table(x, y, 12)
    edges[0] = 0.0
    low, middle, high = of_people(x, y)
    result = shift(edges, counts_x, counts_y)
    assert result.estimate == pytest.approx(middle, abs=0.3 * (high - low) / 4)


def test_groups_that_are_alike_are_not_shifted() -> None:
    edges = [-INF, 0.0, 1.0, 1.5, 4.0, INF]
    result = shift(edges, [10, 20, 30, 20, 10], [20, 40, 60, 40, 20])
    assert result.estimate == pytest.approx(0, abs=1e-9)
    assert result.low < 0 < result.high


def test_the_shift_covers() -> None:
    rng = np.random.default_rng(10)
    result = [
        shift(*quantile_table(rng.lognormal(size=300), rng.lognormal(size=300) + 0.5, 30))
        for _ in range(200)
    ]
    covered = np.mean([interval.low <= 0.5 <= interval.high for interval in result])
    assert 0.91 <= covered <= 0.99


tables = st.integers(4, 12).flatmap(
    lambda bins: st.tuples(
        st.lists(st.floats(0.01, 5), min_size=bins - 2, max_size=bins - 2),
        *[st.lists(st.floats(0, 30), min_size=bins, max_size=bins)] * 2,
    )
)


@settings(max_examples=50)
@given(tables, st.booleans(), st.floats(0.01, 100), st.floats(-50, 50))
def test_the_shift_follows_scale_and_location_and_turns_with_the_groups(
    table: tuple[list[float], list[float], list[float]], bounded: bool, scale: float, move: float
) -> None:
    widths, x, y = table
    interior = np.concatenate(([0.0], np.cumsum(widths)))
    outer = (-3.0, interior[-1] + 2) if bounded else (-INF, INF)
    edges = np.concatenate(([outer[0]], interior, [outer[1]]))
    inner_x, inner_y = [0, *np.add(x[1:-1], 1), 0], [0, *np.add(y[1:-1], 1), 0]
    if not bounded:  # medians must lie inside
        x, y = inner_x, inner_y
    if sum(x) < 1 or sum(y) < 1:
        return
    result = shift(edges, x, y)
    turned = shift(edges, y, x)
    mirrored = (-result.high, -result.estimate, -result.low)
    assert (turned.low, turned.estimate, turned.high) == pytest.approx(mirrored, rel=1e-6, abs=1e-6)
    scaled = shift(edges * scale + move, x, y)
    assert scaled.estimate == pytest.approx(result.estimate * scale, rel=1e-6, abs=1e-6 * scale)


def test_narrow_bins_do_not_upset_the_shift() -> None:
    edges = [-INF, 0.3, np.nextafter(0.3, 1), 0.5, 1.0, 1000.0, INF]
    result = shift(edges, [10, 40, 10, 30, 10, 10], [10, 10, 10, 30, 40, 10])
    assert 0 < result.estimate < 1000
    same = shift(edges, [10, 40, 10, 30, 10, 10], [10, 40, 10, 30, 10, 10])
    assert same.estimate == pytest.approx(0, abs=1e-9)
    assert same.low < 0 < same.high


def test_separated_groups_have_a_shift_and_few_people_no_limits() -> None:
    edges = [-INF, 0.0, 1.0, 2.0, 10.0, 11.0, INF]
    result = shift(edges, [0, 30, 0, 0, 0, 0], [0, 0, 0, 0, 30, 0])
    assert result.estimate == pytest.approx(10, abs=1e-6)
    assert 9 <= result.low < 10 < result.high <= 11
    few = shift(edges, [0, 2, 0, 0, 0, 0], [0, 0, 0, 2, 0, 0])
    assert (few.low, few.high) == (-INF, INF)
    assert 1 < few.estimate < 10


@pytest.mark.parametrize(
    ("edges", "x", "y", "message"),
    [
        ([-INF, 0, 1, INF], [10, 10, 10], [10, 10, 10], "at least 3 interior ones, got 2"),
        ([-INF, 0, 2, 1, INF], [10] * 4, [10] * 4, "edges must ascend strictly"),
        ([-INF, 0, math.nan, 1, INF], [10] * 4, [10] * 4, "edges must ascend strictly"),
        ([-INF, 0, 1, 2, INF], [10] * 5, [10] * 5, "one more than the 5 bins"),
        (
            [-INF, 0, 1, 2, INF],
            [40, 10, 10, 10],
            [10] * 4,
            "counts_x .* bounded bin, got 57% outside",
        ),
        ([0, 1, 2, 3, INF], [40, 10, 10, 10], [0, 0, 10, 20], "counts_y .* bounded bin, got 67%"),
        ([-INF, 0, 1, 2, INF], [0] * 4, [10] * 4, "counts_x must sum to at least 1 person"),
    ],
)
def test_tables_without_a_shift_are_refused_with_the_reason(
    edges: list[float], x: list[int], y: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        shift(edges, x, y)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_levels_outside_the_unit_interval_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\)"):
        shift([0, 1, 2, 3, 4], [1] * 4, [1] * 4, level)
