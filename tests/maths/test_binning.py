"""Binning one center, against the rule read literally and the golden cases."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.golden import cases
from tests.maths.strategies import centers
from unpooled.maths.arrays import FloatArray
from unpooled.maths.tables.binning import Rule, buffer, cut, place_boundaries


def half(_a: float, _v: float) -> float:
    return 0.5


def boundaries_by_the_rule(groups: list[FloatArray], rule: Rule) -> list[float]:
    """The rule of the module's docstring, tried on every data value in turn."""
    result: list[float] = []
    previous = -np.inf
    candidates = np.unique(np.concatenate(groups))
    for a in candidates:
        inside = [int(((x > previous) & (x <= a)).sum()) for x in groups]
        left = [int((x > a).sum()) for x in groups]
        if (
            not any(rule.illegal(n) for n in inside + left)
            and max(inside) >= rule.k
            and sum(inside) >= rule.bin
            and sum(left) >= rule.bin
        ):
            result.append(float(a))
            previous = a
    return result


@pytest.mark.parametrize("case", cases("bin2d"), ids=lambda case: case["id"])
def test_golden_tables_come_out(case: dict[str, Any]) -> None:
    groups = [np.sort(np.array(case["inputs"][g], dtype=np.float64)) for g in "xy"]
    expected = case["recommended"]["table"]
    cuts = cut(groups, Rule(k=case["K"]))
    edges = place_boundaries(cuts.below, cuts.above, half)
    assert edges == pytest.approx([float(b) for b in expected["bins"][:-1]], abs=1e-9)
    assert cuts.counts.tolist() == [expected["fx"], expected["fy"]]
    if expected["same_as_reference"]:
        assert cuts.counts.tolist() == [case["reference"]["fx"], case["reference"]["fy"]]


@settings(max_examples=1500)
@given(centers())
def test_boundaries_are_the_smallest_legal_values_and_cells_are_legal(
    drawn: tuple[list[list[FloatArray]], Rule],
) -> None:
    (groups,), rule = drawn
    cuts = cut(groups, rule)
    assert cuts.below.tolist() == boundaries_by_the_rule(groups, rule)
    assert cuts.counts.sum(axis=1).tolist() == [len(x) for x in groups]
    assert not rule.illegal_cells(cuts.counts).any()
    if len(cuts.below):
        assert cuts.counts.sum(axis=0).min() >= rule.bin
    for x, counts in zip(groups, cuts.counts, strict=True):
        edges = [-np.inf, *cuts.below, np.inf]
        assert [int(((x > a) & (x <= b)).sum()) for a, b in pairwise(edges)] == counts.tolist()


@settings(max_examples=500)
@given(centers())
def test_boundaries_lie_between_the_values_around_them_after_rounding(
    drawn: tuple[list[list[FloatArray]], Rule],
) -> None:
    (groups,), rule = drawn
    cuts = cut(groups, rule)
    for w in (1e-16, 0.3, 1 - 1e-16):
        edges = place_boundaries(cuts.below, cuts.above, lambda _a, _v, w=w: w)  # type: ignore[misc]
        assert np.all(cuts.below <= edges)
        assert np.all(edges < cuts.above)


def test_neighbouring_floats_have_a_boundary_too() -> None:
    a = np.array([1.0])
    v = np.nextafter(a, 2)
    assert place_boundaries(a, v, half)[0] == 1.0


def test_a_group_below_k_is_not_binned() -> None:
    with pytest.raises(ValueError, match="0 or at least k=10 people, got 9"):
        cut([np.arange(9.0)], Rule(k=10))


def test_without_zero_cells_every_group_is_in_every_bin() -> None:
    groups = [np.arange(40.0), np.arange(20.0, 60.0)]
    cuts = cut(groups, Rule(k=10, zeros=False))
    assert cuts.counts.min() >= 10
    assert cut(groups, Rule(k=10)).counts.min() == 0


def test_a_bound_on_the_bins_holds_and_is_nearly_reached() -> None:
    random = np.random.default_rng(5)
    groups = [np.sort(random.normal(size=5000)), np.sort(random.normal(1, 1, 5000))]
    bins = cut(groups, Rule(k=10, bin=10_000 // 50)).counts.shape[1]
    assert 45 <= bins <= 50


def test_the_buffer_is_the_mean_gap() -> None:
    assert buffer(np.array([1.0, 2.0, 5.0])) == 2.0
    assert buffer(np.array([7.0, 7.0])) == 0.0
