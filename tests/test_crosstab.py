"""Tables of two categories: as if pooled where all is counted, and bounds that hold where not."""

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, fisher_exact
from statsmodels.stats.contingency_tables import StratifiedTable

from unpooled import Federation
from unpooled.apps.cli import main
from unpooled.errors import InputError, RefusedError


def people(center: str, n: int, levels: str = "yn", shift: float = 0.0) -> polars.DataFrame:
    rng = np.random.default_rng([n, 3])
    arm = rng.choice(["a", "b"], n)
    chance = np.linspace(1, 2 + shift, len(levels))
    ill = [
        rng.choice(list(levels), p=(c := chance if part == "a" else chance[::-1]) / c.sum())
        for part in arm
    ]
    return polars.DataFrame({"center": center, "arm": arm, "ill": ill})


def counts(frame: polars.DataFrame, levels: str) -> Any:
    return np.array(
        [
            [
                len(frame.filter(polars.col("arm") == arm, polars.col("ill") == level))
                for level in levels
            ]
            for arm in "ab"
        ]
    )


FRAME = polars.concat([people("Bern", 300), people("Haifa", 200, shift=1), people("Oslo", 150)])


def test_two_by_two_tables_equal_those_of_the_pooled_people() -> None:
    result = Federation.split(FRAME, center="center").crosstab("ill", by="arm", levels=["n", "y"])
    pooled = counts(FRAME, "ny")
    assert (result.bounds.low == pooled).all()
    assert (result.bounds.high == pooled).all()
    strata = [counts(FRAME.filter(center=c), "ny") for c in ("Bern", "Haifa", "Oslo")]
    oracle = StratifiedTable([t.astype(float) for t in strata])
    chi2, exact, cmh, two = result.chi2, result.exact, result.cmh, result.two_by_two
    assert chi2 is not None
    assert exact is not None
    assert cmh is not None
    assert two is not None
    assert two.odds_ratio is not None
    assert two.risk_ratio is not None
    statistic, p, *_ = chi2_contingency(pooled, correction=False)
    assert (chi2.statistic, chi2.p_value) == pytest.approx((statistic, p), rel=1e-10)
    assert exact.p_value == pytest.approx(fisher_exact(pooled).pvalue, rel=1e-10)
    null = oracle.test_null_odds(correction=False)
    assert (cmh.statistic, cmh.p_value) == pytest.approx((null.statistic, null.pvalue), rel=1e-10)
    assert two.odds_ratio.estimate == pytest.approx(oracle.oddsratio_pooled, rel=1e-10)
    low, high = oracle.oddsratio_pooled_confint()
    assert (two.odds_ratio.low, two.odds_ratio.high) == pytest.approx((low, high), rel=1e-10)
    equal = oracle.test_equal_odds(adjust=True)
    assert two.breslow_day.statistic == pytest.approx(equal.statistic, rel=1e-8)
    # of the second level, in the second group against the first
    turned = StratifiedTable([t[::-1, ::-1].astype(float) for t in strata])
    assert two.risk_ratio.estimate == pytest.approx(turned.riskratio_pooled, rel=1e-10)
    assert two.level == "y"
    assert result.to_dict()["odds_ratio"]["estimate"] == two.odds_ratio.estimate


def test_several_levels_and_a_trend_equal_the_pooled_ones() -> None:
    frame = polars.concat([people("Bern", 300, "123"), people("Haifa", 240, "123")])
    result = Federation.split(frame, center="center").crosstab("ill", by="arm", ordered=True)
    pooled = counts(frame, "123")
    assert result.chi2
    assert result.chi2.statistic == pytest.approx(chi2_contingency(pooled)[0], rel=1e-10)
    assert result.chi2.df == 2
    assert result.two_by_two is None
    assert result.trend is not None
    assert result.test is result.trend


def test_a_small_center_has_bounds_and_is_left_out_of_tests() -> None:
    frame = polars.concat([FRAME, people("Porto", 36)])
    result = Federation.split(frame, center="center").crosstab("ill", by="arm", levels=["n", "y"])
    pooled = counts(frame, "ny")
    assert (result.bounds.low[:, :2] <= pooled).all()
    assert (pooled <= result.bounds.high[:, :2]).all()
    assert result.two_by_two is not None  # of those who are counted
    assert (result.bounds.low < result.bounds.high).any()
    assert [center for center, _ in result.left_out] == ["Porto"]
    assert result.chi2
    assert result.chi2.statistic == pytest.approx(
        chi2_contingency(counts(FRAME, "ny"), correction=False)[0]
    )
    assert "tests leave out people of Porto" in str(result)
    assert " to " in str(result)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 25), min_size=6, max_size=6), min_size=1, max_size=3).filter(
        lambda centers: all(sum(c) >= 40 for c in centers)
    )
)
def test_bounds_hold_the_truth_whatever_is_merged(centers: list[list[int]]) -> None:
    rows = [
        {"center": f"c{number}", "arm": arm, "ill": level}
        for number, cells in enumerate(centers)
        for (arm, level), n in zip([(a, v) for a in "ab" for v in "123"], cells, strict=True)
        for _ in range(n)
    ]
    frame = polars.DataFrame(rows)
    try:
        result = Federation.split(frame, center="center").crosstab(
            "ill", by="arm", levels=["1", "2", "3"], groups=["a", "b"]
        )
    except (RefusedError, InputError):
        return  # a group of fewer than K people at all centers
    answered = {c.center: {group for group, _ in c.cells} for c in result.centers}
    there = [row for row in rows if row["arm"] in answered.get(row["center"], ())]
    for i, arm in enumerate(result.groups):
        for j, level in enumerate(result.levels):
            truth = sum(row["arm"] == arm and row["ill"] == level for row in there)
            assert result.bounds.low[i, j] <= truth <= result.bounds.high[i, j]


def test_levels_that_differ_between_centers_are_others_where_nobody_names_them() -> None:
    rare = polars.DataFrame({"center": "Oslo", "arm": ["a", "b"] * 20, "ill": ["z"] * 40})
    result = Federation.split(polars.concat([people("Bern", 200), rare]), center="center").crosstab(
        "ill", by="arm"
    )
    assert result.levels == ("n", "y", "z")
    assert result.to_dict()["counts"][0][2] == 20


def test_bad_input_is_said() -> None:
    fed = Federation.split(FRAME, center="center")
    with pytest.raises(InputError, match="levels must differ, got y, y"):
        fed.crosstab("ill", by="arm", levels=["y", "y"])
    with pytest.raises(InputError, match="There are: arm, center, ill"):
        fed.crosstab("il", by="arm")
    with pytest.raises(InputError, match="crosstab needs by"):
        fed.crosstab("ill")


def test_the_command_prints_a_table_and_draws(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "all.csv"
    FRAME.write_csv(path)
    shared = ["crosstab", "ill", "--by", "arm", "--centers", str(path), "--center-column", "center"]
    with pytest.raises(SystemExit, match="0"):
        main([*shared, "--levels", "n", "y", "--chart", str(tmp_path / "c.svg")])
    printed = capsys.readouterr().out
    assert "Odds ratio of y, b against a" in printed
    assert (tmp_path / "c.svg").read_text().startswith("<svg")
