"""Standardised differences against tableone and their own formulas."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tableone.statistics import Statistics

from unpooled.maths.arrays import FloatArray
from unpooled.maths.categories.standardised import (
    category_difference,
    category_differences,
    mean_difference,
    mean_differences,
    share_difference,
)

means = st.floats(-1e3, 1e3)
sds = st.floats(0.01, 1e3)


@given(means, sds, means, sds)
def test_means_are_those_of_tableone(
    mean_x: float, sd_x: float, mean_y: float, sd_y: float
) -> None:
    theirs, _ = Statistics()._cont_smd(
        mean1=mean_x, mean2=mean_y, sd1=sd_x, sd2=sd_y, n1=100, n2=100
    )
    assert mean_difference(mean_x, sd_x, mean_y, sd_y) == pytest.approx(theirs, rel=1e-10)


@st.composite
def counts(draw: st.DrawFn) -> FloatArray:
    levels, groups = draw(st.integers(2, 6)), draw(st.integers(2, 4))
    cells = st.lists(st.integers(1, 50), min_size=levels * groups, max_size=levels * groups)
    return np.array(draw(cells), dtype=float).reshape(groups, levels)


@given(counts())
def test_categories_are_those_of_tableone(table: FloatArray) -> None:
    shares = table / table.sum(axis=1, keepdims=True)
    result = category_differences(table)
    for (x, y), value in zip(result.pairs, result.values, strict=True):
        theirs, _ = Statistics()._cat_smd(prop1=shares[x], prop2=shares[y], n1=50, n2=50)
        assert value == pytest.approx(theirs, rel=1e-9, abs=1e-10)
    assert result.largest == max(value for value in result.values if value is not None)


def test_a_whole_table_of_tableone() -> None:
    """Three groups: every pair's column of tableone's own table."""
    from tableone import TableOne

    rng = np.random.default_rng(7)
    group = rng.choice(["a", "b", "c"], 300)
    frame = pd.DataFrame(
        {
            "group": group,
            "age": rng.normal(60, 10, 300) + (group == "b") * 4,
            "stage": rng.choice(["I", "II", "III"], 300),
        }
    )
    theirs = TableOne(
        frame, columns=["age", "stage"], categorical=["stage"], groupby="group", smd=True
    ).smd_table
    by_group = frame.groupby("group")
    ages = mean_differences(by_group["age"].mean().tolist(), by_group["age"].std().tolist())
    stages = category_differences(pd.crosstab(frame["group"], frame["stage"]).to_numpy())
    names = "abc"
    for number, (x, y) in enumerate(ages.pairs):
        column = theirs[f"SMD ({names[x]},{names[y]})"]
        assert ages.values[number] == pytest.approx(column["age"], rel=1e-10)
        assert stages.values[number] == pytest.approx(column["stage"], rel=1e-10)


@given(st.integers(1, 49), st.integers(1, 49))
def test_two_levels_are_a_share(x: int, y: int) -> None:
    share = share_difference(x / 50, y / 50)
    assert share is not None
    assert category_difference([x, 50 - x], [y, 50 - y]) == pytest.approx(abs(share), abs=1e-10)
    indicator = [np.repeat([1.0, 0.0], [n, 50 - n]) for n in (x, y)]
    (mean_x, sd_x), (mean_y, sd_y) = ((values.mean(), values.std()) for values in indicator)
    assert mean_difference(mean_x, sd_x, mean_y, sd_y) == pytest.approx(share, abs=1e-10)


@given(counts())
def test_the_order_of_levels_and_empty_ones_change_nothing(table: FloatArray) -> None:
    x, y = table[:2]
    value = category_difference(x, y)
    order = np.random.default_rng(len(x)).permutation(len(x))
    assert category_difference(x[order], y[order]) == pytest.approx(value, rel=1e-9, abs=1e-10)
    assert category_difference([0, *x], [0, *y]) == pytest.approx(value, rel=1e-9, abs=1e-10)
    assert category_difference(y, x) == pytest.approx(value, rel=1e-9, abs=1e-10)


def test_a_rare_level_counts() -> None:
    """One person in a million against a hundred, beside two large levels."""
    many, few = [500_000, 499_999, 1], [500_000, 499_900, 100]
    shares = np.array([many, few]) / 1e6
    theirs, _ = Statistics()._cat_smd(prop1=shares[0], prop2=shares[1], n1=1e6, n2=1e6)
    assert category_difference(many, few) == pytest.approx(theirs, rel=1e-8)


def test_differences_without_a_unit() -> None:
    assert mean_difference(1.0, 0.0, 2.0, 0.0) is None
    assert mean_difference(2.0, 0.0, 2.0, 0.0) == 0
    assert share_difference(0.0, 1.0) is None
    assert category_difference([5, 0], [0, 5]) is None
    assert category_difference([5, 5, 0, 0], [0, 0, 5, 5]) is None
    assert category_difference([5, 0], [7, 0]) == 0
    assert category_difference([0, 0], [3, 4]) is None
    some = category_differences([[5, 0], [0, 5], [5, 5]])
    assert some.largest is None
    assert some.values[1] == pytest.approx(0.5 / math.sqrt(0.125))
    assert mean_differences([1.0], [1.0]).largest is None


def test_a_large_difference_of_either_sign_is_the_largest() -> None:
    assert mean_differences([0.0, 1.0, -3.0], [1.0, 1.0, 1.0]).largest == 4


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match=r"share_x and share_y must lie in \[0, 1\], got 25"):
        share_difference(25, 0.5)
    with pytest.raises(ValueError, match="sd_x and sd_y must be finite and not negative"):
        mean_difference(1.0, -1.0, 2.0, 1.0)
    with pytest.raises(ValueError, match="means must be finite"):
        mean_difference(math.nan, 1.0, 2.0, 1.0)
    with pytest.raises(ValueError, match="same levels"):
        category_difference([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="every mean needs an SD, got 2 and 1"):
        mean_differences([1.0, 2.0], [1.0])
