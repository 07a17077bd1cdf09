"""Quantiles from tables and by the quantile loss: golden cases, brute force, invariants."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from unpooled.maths.arrays import FloatArray
from unpooled.maths.quantiles.quantile import (
    PinballLoss,
    check_probabilities,
    interior_cdf,
    interpolation_quantiles,
    minimise_loss,
    pinball,
    pool_losses,
    yj_table_quantiles,
)
from unpooled.maths.quantiles.yeo_johnson import inverse, transform

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "golden.json").read_text("utf-8"))
INF = np.inf
P = [0.02, 0.25, 0.5, 0.75, 0.98]


def golden(kind: str) -> list[Any]:
    return [pytest.param(c, id=c["id"]) for c in GOLDEN["cases"] if c["kind"] == kind]


def edges_of(bins: list[Any], low: float = -INF, high: float = INF) -> list[float]:
    return [low, *bins[:-1], high]


@st.composite
def tables(draw: st.DrawFn, empty: bool = True) -> tuple[FloatArray, FloatArray]:
    """Open tables of at least four bins that hold somebody, with empty ones between them."""
    lists = st.lists(st.integers(-200, 200), min_size=4, max_size=12, unique=True)
    limits = draw(lists.map(sorted))
    some = st.integers(10, 60) if not empty else st.one_of(st.just(0), st.integers(10, 60))
    inner = draw(st.lists(some, min_size=len(limits) - 1, max_size=len(limits) - 1))
    counts = [draw(st.integers(10, 60)), *inner, draw(st.integers(10, 60))]
    return np.array([-INF, *(v / 10 for v in limits), INF]), np.array(counts, dtype=np.float64)


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (25, r"got 25\. Hint: for the 25th percentile use 0\.25\.$"),
        ([0.5, 2], r"got 2\. Hint: for the 2nd percentile use 0\.02\.$"),
        (12, "12th"),
        (97.5, r"97\.5th percentile use 0\.975"),
        (1, r"got 1\. Hint: for the median use 0\.5\.$"),
        (0.0, r"got 0\. Hint: for the median use 0\.5\.$"),
        (-0.5, r"got -0\.5\. Hint: for the median use 0\.5\.$"),
        (np.nan, r"got nan\. Hint: for the median use 0\.5\.$"),
        ([], "a number or a list of numbers"),
    ],
)
def test_probabilities_lie_between_0_and_1(p: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"quantile must.*{message}"):
        check_probabilities(p)


@pytest.mark.parametrize(
    ("edges", "counts", "rule"),
    [
        ([-INF, 1, 2, INF], [10, 10], "one fewer than edges"),
        ([-INF, 2, 1, INF], [10, 10, 10], "edges must increase"),
        ([-INF, 1, INF, INF], [10, 10, 10], "edges must increase"),
        ([0, 1, 2], [10, -1], "≥ 0"),
        ([0, 1, 2], [0, 0], "not all 0"),
    ],
)
def test_a_table_must_be_one(edges: list[float], counts: list[float], rule: str) -> None:
    for method in (yj_table_quantiles, interpolation_quantiles):
        with pytest.raises(ValueError, match=rule):
            method(edges, counts, 0.5)


# --- Yeo-Johnson table -------------------------------------------------------------------------


@pytest.mark.parametrize("case", golden("quantiles"))
def test_golden_tables(case: dict[str, Any]) -> None:
    reference = case["reference"]
    table, p = reference["table"], case["inputs"]["q"]
    result = yj_table_quantiles(edges_of(table["bins"]), table["f"], p)
    assert result.estimate == pytest.approx(reference["yj_quantile"], rel=1e-4)
    fit = reference["yj_table_fit"]
    assert (result.lam, result.correlation) == pytest.approx((fit["lam"], fit["cor"]), abs=1e-4)
    assert (result.a0, result.a1) == pytest.approx((fit["a0"], fit["a1"]), abs=1e-3)
    assert result.extrapolated.tolist() == [True, False, False, False, True]
    assert not (result.clamped | result.unsupported).any()
    assert interior_cdf(edges_of(table["bins"]), table["f"]) == pytest.approx(table["cdf"][:-1])


@pytest.mark.parametrize("case", golden("yj_table"))
def test_golden_normal_scores(case: dict[str, Any]) -> None:
    """The best λ lies below 0: the bound is flagged, the reference stopped 4e-6 before it."""
    inputs, reference = case["inputs"], case["reference"]
    result = yj_table_quantiles(edges_of(inputs["bins"]), inputs["f"], inputs["q"])
    assert result.estimate == pytest.approx(reference["q_hat"], rel=1e-4)
    assert (result.lam, result.at_bound) == (0.0, True)
    assert result.correlation == pytest.approx(reference["fit"]["cor"], abs=1e-6)


@settings(max_examples=50)
@given(tables(empty=False))
def test_lambda_has_the_highest_correlation(table: tuple[FloatArray, FloatArray]) -> None:
    edges, counts = table
    scores = ndtri(interior_cdf(edges, counts))

    def correlation(lam: float) -> float:
        return float(np.corrcoef(transform(edges[1:-1], lam), scores)[0, 1])

    result = yj_table_quantiles(edges, counts, 0.5)
    assert result.correlation >= max(map(correlation, np.linspace(0, 2, 101))) - 1e-12
    assert result.correlation == pytest.approx(correlation(result.lam), abs=1e-9)


@settings(max_examples=100)
@given(tables())
def test_yj_quantiles_rise_with_p_and_mirror(table: tuple[FloatArray, FloatArray]) -> None:
    edges, counts = table
    if np.count_nonzero(counts) < 4:
        return
    p = np.linspace(0.01, 0.99, 25)
    result = yj_table_quantiles(edges, counts, p)
    assert np.all(np.diff(result.estimate[~result.unsupported]) >= 0)
    mirrored = yj_table_quantiles(-edges[::-1], counts[::-1], 1 - p[::-1])
    assert mirrored.correlation == pytest.approx(result.correlation, abs=1e-9)
    if abs(mirrored.lam + result.lam - 2) < 1e-6:  # else two λ are as good as each other
        tolerance = 1e-4 * float(np.ptp(edges[1:-1]))
        given = ~(result.extrapolated | result.unsupported)
        assert mirrored.estimate[::-1][given] == pytest.approx(
            -result.estimate[given], abs=tolerance
        )


@pytest.mark.parametrize(
    ("counts", "result"),
    [([10, 10, 10], 2), ([30, 0, 0, 30], 1), ([0, 10, 10, 10, 0], 2), ([9], 0)],
)
def test_three_interior_limits_are_needed(counts: list[float], result: int) -> None:
    edges = [-INF, *range(1, len(counts)), INF]
    with pytest.raises(ValueError, match=f"at least 3 interior limits.*got {result}"):
        yj_table_quantiles(edges, counts, 0.5)


def test_estimates_stay_in_the_tables_range() -> None:
    edges, counts = [0.3, 1.0, 2.0, 3.5, 5.0, 6.0], [10, 12, 9, 11, 10]
    result = yj_table_quantiles(edges, counts, [0.001, 0.5, 0.999])
    assert result.estimate[[0, 2]].tolist() == [0.3, 6.0]
    assert result.clamped.tolist() == [True, False, True]
    one_sided = yj_table_quantiles([0.3, *edges[1:-1], INF], counts, [0.001, 0.999])
    assert (one_sided.clamped.tolist(), one_sided.estimate[1] > 6) == ([True, False], True)


def test_near_lambda_2_a_runaway_tail_is_nan_with_a_flag() -> None:
    """Left-skewed positive values: by the formula the 2nd percentile is −3,861, or −1e11."""
    for first in (4.0, 3.2):
        edges, counts = [-INF, first, 6.0, 8.0, 9.3, INF], [13, 12, 12, 12, 12]
        result = yj_table_quantiles(edges, counts, P)
        assert result.lam > 1.8
        assert inverse(result.a0 + result.a1 * ndtri(0.02), result.lam) < -3800
        assert result.unsupported.tolist() == [True, False, False, False, False]
        assert np.isnan(result.estimate).tolist() == result.unsupported.tolist()
        bounded = yj_table_quantiles([0.0, *edges[1:]], counts, P)
        assert (bounded.estimate[0], bounded.clamped[0]) == (0.0, True)


def test_honest_heavy_tails_are_not_called_unsupported() -> None:
    random = np.random.default_rng(1)
    for n in (60, 120, 400):
        for sigma in (0.5, 1.0, 1.5):
            x = np.sort(random.lognormal(1, sigma, n))
            cuts = np.arange(12, n - 11, 12)
            edges = np.concatenate([[-INF], (x[cuts - 1] + x[cuts]) / 2, [INF]])
            result = yj_table_quantiles(edges, np.diff([0, *cuts, n]), P)
            assert not result.unsupported.any()


# --- interpolation -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", golden("interpolation"))
def test_golden_interpolation(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    result = interpolation_quantiles(edges_of(inputs["bins"]), inputs["f"], inputs["q"])
    assert result.estimate == pytest.approx(case["reference"]["q_hat"], rel=1e-12)
    assert result.extrapolated.tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("case", golden("quantiles"))
def test_golden_interpolation_of_tables(case: dict[str, Any]) -> None:
    reference, p = case["reference"], case["inputs"]["q"]
    table = reference["table"]
    opened = interpolation_quantiles(edges_of(table["bins"]), table["f"], p)
    assert opened.estimate == pytest.approx(reference["interpolation_extrapolation_quantile"])
    edges = edges_of(table["bins"], table["first_bin_min"], table["last_bin_max"])
    closed = interpolation_quantiles(edges, table["f"], p)
    assert closed.estimate == pytest.approx(reference["interpolation_quantile"])
    assert not closed.extrapolated.any()


def test_nobody_is_placed_in_an_empty_bin() -> None:
    result = interpolation_quantiles([0, 1, 9, 10], [10, 0, 10], [0.25, 0.5, 0.75])
    assert result.estimate.tolist() == [0.5, 1.0, 9.5]
    outer = interpolation_quantiles([-INF, 0, 1, 2, INF], [0, 10, 10, 0], [0.01, 0.99])
    assert not outer.extrapolated.any()
    with pytest.raises(ValueError, match="a bounded bin that holds somebody"):
        interpolation_quantiles([-INF, 0, 1, INF], [10, 0, 10], 0.5)


@given(tables(empty=False), st.floats(0.1, 10), st.floats(-50, 50))
def test_interpolation_inverts_the_cdf_and_moves_with_the_values(
    table: tuple[FloatArray, FloatArray], scale: float, shift: float
) -> None:
    edges, counts = table
    p = np.linspace(0.01, 0.99, 25)
    result = interpolation_quantiles(edges, counts, p)
    assert np.all(np.diff(result.estimate) >= 0)
    at_limits = interpolation_quantiles(edges, counts, interior_cdf(edges, counts))
    assert at_limits.estimate == pytest.approx(edges[1:-1], abs=1e-9)
    moved = interpolation_quantiles(scale * edges + shift, counts, p)
    assert moved.estimate == pytest.approx(scale * result.estimate + shift, abs=1e-7)


# --- quantile loss -----------------------------------------------------------------------------

samples = st.lists(
    st.one_of(st.integers(-5, 9).map(float), st.floats(-1e4, 1e4), st.floats(-1e-9, 1e-9)),
    min_size=1,
    max_size=60,
)


@given(samples, st.floats(-1e4, 1e4), st.floats(0.01, 0.99))
def test_the_loss_is_the_papers(values: list[float], q: float, p: float) -> None:
    x = np.sort(values)
    answer = pinball(x, [q], [p])
    below, above = x[x < q], x[x >= q]
    expected = (p - 1) * (below - q).sum() + p * (above - q).sum()
    assert answer.loss == pytest.approx([expected], rel=1e-12, abs=1e-12)
    assert (answer.below, answer.at_most) == ((x < q).sum(), (x <= q).sum())


@settings(max_examples=200)
@given(samples, st.lists(st.floats(0.01, 0.99), min_size=1, max_size=5))
@example([0.0, 1.0, 2.0, 3.0], [0.25, 0.5, 0.75])
@example([7.0] * 30, [0.02, 0.98])
def test_the_minimiser_is_one(values: list[float], p: list[float]) -> None:
    x = np.sort(values)
    centers = [np.sort(part) for part in np.array_split(np.array(values), 3)]

    def evaluate(q: FloatArray, at: FloatArray) -> PinballLoss:
        return pool_losses([pinball(center, q, at) for center in centers])

    result = minimise_loss(evaluate, p, -3e4, 2e4)
    reached = pinball(x, result.estimate, p).loss
    best = [pinball(x, x, np.full(x.size, one)).loss.min() for one in p]
    assert reached == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert result.rounds <= 40


@pytest.mark.parametrize("case", golden("quantiles"))
def test_golden_losses(case: dict[str, Any]) -> None:
    x = np.sort(np.concatenate(case["inputs"]["centers"]))
    p = np.array(case["inputs"]["q"])
    result = minimise_loss(lambda q, at: pinball(x, q, at), p, -100, 100)
    theirs = np.array(case["reference"]["reg_quantile"])
    assert np.all(pinball(x, result.estimate, p).loss <= pinball(x, theirs, p).loss + 1e-9)
    unique = x.size * p % 1 > 1e-9
    assert result.estimate[unique] == pytest.approx(theirs[unique], rel=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_fifteen_hundred_people_take_few_rounds(scale: float) -> None:
    x = np.sort(np.random.default_rng(1).gamma(4, scale, 1501))
    result = minimise_loss(lambda q, at: pinball(x, q, at), P, -1e6 * scale, 1e6 * scale)
    assert result.estimate == pytest.approx(np.quantile(x, P, method="inverted_cdf"), rel=1e-9)
    assert result.rounds <= 12


def test_the_search_needs_ends_around_the_quantile() -> None:
    x = np.arange(10.0)
    for low, high in ((5.0, 20.0), (-5.0, 2.0)):
        with pytest.raises(ValueError, match=r"enclose the 0\.42 quantile"):
            minimise_loss(lambda q, at: pinball(x, q, at), 0.42, low, high)
    with pytest.raises(ValueError, match="finite and increase"):
        minimise_loss(lambda q, at: pinball(x, q, at), 0.5, -INF, 2)
    with pytest.raises(ValueError, match="at least one center"):
        pool_losses([])
