"""Curve, log-rank, Cox and restricted mean equal lifelines where each person has his own cell."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.maths.survival_data import lung, one_cell_each, pbc
from unpooled.maths.arrays import FloatArray
from unpooled.maths.survival.cox import (
    HazardRatio,
    center_ratios,
    hazard_ratio,
    proportional_hazards,
    ratio_heterogeneity,
)
from unpooled.maths.survival.follow_up import FollowUp, stack
from unpooled.maths.survival.kaplan_meier import kaplan_meier
from unpooled.maths.survival.log_rank import log_rank

pytestmark = pytest.mark.filterwarnings("ignore:Approximating using")


def drawn(seed: int, n: int = 200, gridded: bool = False) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    times, ends = random.exponential(10, n), random.exponential(14, n)
    observed = np.minimum(times, ends)
    return (np.ceil(observed) if gridded else observed), (times <= ends).astype(float)


@pytest.mark.parametrize("gridded", [False, True])
def test_the_curve_and_its_band_equal_lifelines(gridded: bool) -> None:
    import lifelines

    times, events = drawn(1, gridded=gridded)
    fitted = lifelines.KaplanMeierFitter().fit(times, events)
    curve = kaplan_meier(one_cell_each(times, events))
    oracle = fitted.survival_function_.loc[curve.times].to_numpy()[:, 0]
    np.testing.assert_allclose(curve.survival, oracle, rtol=0, atol=1e-6)
    band = fitted.confidence_interval_.loc[curve.times].to_numpy()
    inside = oracle > 0
    np.testing.assert_allclose(curve.low[inside], band[inside, 0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(curve.high[inside], band[inside, 1], rtol=0, atol=1e-6)
    risk = fitted.event_table["at_risk"].loc[curve.times].to_numpy()
    np.testing.assert_allclose(curve.at_risk, risk, rtol=0, atol=1e-6)


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.75])
def test_quantiles_and_their_intervals_equal_lifelines(p: float) -> None:
    import lifelines
    from lifelines.utils import qth_survival_times

    times, events = drawn(2)
    fitted = lifelines.KaplanMeierFitter().fit(times, events)
    estimate, low, high = kaplan_meier(one_cell_each(times, events)).quantile(p)
    assert estimate == pytest.approx(fitted.percentile(1 - p), abs=1e-6)
    ends = qth_survival_times(1 - p, fitted.confidence_interval_).to_numpy()[0]
    assert low == pytest.approx(float(ends[0]), abs=1e-6)
    assert (math.inf if high is None else high) == pytest.approx(float(ends[1]), abs=1e-6)


def test_a_quantile_that_is_not_reached_is_none() -> None:
    times, events = np.arange(1.0, 21.0), np.zeros(20)
    events[0] = 1
    assert kaplan_meier(one_cell_each(times, events)).quantile(0.5) == (None, None, None)


@pytest.mark.parametrize("until", [3.0, 12.5, 20.0])
def test_the_restricted_mean_equals_lifelines(until: float) -> None:
    import lifelines
    from lifelines.utils import restricted_mean_survival_time

    times, events = drawn(3)
    fitted = lifelines.KaplanMeierFitter().fit(times, events)
    mean, _ = kaplan_meier(one_cell_each(times, events)).restricted_mean(until)
    assert mean == pytest.approx(restricted_mean_survival_time(fitted, t=until), abs=1e-6)


@pytest.mark.parametrize(("arm", "mean", "error"), [(1, 7.146, 0.283), (2, 7.283, 0.295)])
def test_the_restricted_mean_and_its_error_are_the_published_ones(
    arm: int, mean: float, error: float
) -> None:
    """The example of R's survRM2: primary biliary cirrhosis, within ten years."""
    rows = pbc()
    part = rows[rows["trt"] == arm]
    curve = kaplan_meier(one_cell_each(part["years"].to_numpy(), part["death"].to_numpy()))
    result = curve.restricted_mean(10.0)
    assert result == pytest.approx((mean, error), abs=6e-4)


@pytest.mark.parametrize("gridded", [False, True])
@pytest.mark.parametrize("groups", [2, 3, 5])
def test_the_log_rank_test_equals_lifelines(groups: int, gridded: bool) -> None:
    from lifelines.statistics import multivariate_logrank_test

    arms = [drawn(10 + i, 60 + 20 * i, gridded) for i in range(groups)]
    label = np.repeat(np.arange(groups), [len(t) for t, _ in arms])
    times, events = (np.concatenate(part) for part in zip(*arms, strict=True))
    oracle = multivariate_logrank_test(times, label, events)
    result = log_rank([one_cell_each(*arm) for arm in arms])
    assert result.statistic == pytest.approx(oracle.test_statistic, abs=1e-6)
    assert result.p_value == pytest.approx(oracle.p_value, abs=1e-6)
    assert result.df == groups - 1


def test_the_stratified_log_rank_test_is_the_published_one() -> None:
    """R's own example, survdiff(Surv(time, status) ~ pat.karno + strata(inst), data = lung)."""
    rows = lung().dropna(subset=["inst", "pat.karno"])
    arms = [
        one_cell_each(part["time"].to_numpy(float), part["status"].to_numpy() - 1.0, part["inst"])
        for _, part in rows.groupby("pat.karno")
    ]
    result = log_rank(arms, stratified=True)
    assert (round(result.statistic, 1), result.df) == (21.4, 7)
    assert result.p_value == pytest.approx(0.00326, abs=1e-5)


def test_stratified_by_one_center_is_pooled() -> None:
    x, y = (one_cell_each(*drawn(seed)) for seed in (1, 2))
    assert log_rank([x, y], True).statistic == pytest.approx(log_rank([x, y]).statistic)
    assert hazard_ratio(x, y, True) == hazard_ratio(x, y)


def test_arms_without_events_give_p_one() -> None:
    arms = [one_cell_each(np.arange(1.0, 9.0), np.zeros(8)) for _ in range(2)]
    assert (log_rank(arms).p_value, log_rank(arms).df) == (1.0, 0)


@pytest.mark.parametrize("gridded", [False, True])
@pytest.mark.parametrize("stratified", [False, True])
def test_the_hazard_ratio_equals_lifelines(stratified: bool, gridded: bool) -> None:
    import lifelines
    import pandas

    (tx, ex), (ty, ey) = drawn(5, 150, gridded), drawn(6, 180, gridded)
    ty = ty * (2 if gridded else 1.3)
    cx, cy = np.arange(150) % 3, np.arange(180) % 3
    x, y = one_cell_each(tx, ex, cx), one_cell_each(ty, ey, cy)
    rows = pandas.DataFrame(
        {
            "time": np.concatenate((tx, ty)),
            "event": np.concatenate((ex, ey)),
            "arm": np.repeat([0.0, 1.0], [150, 180]),
            "center": np.concatenate((cx, cy)),
        }
    )
    model = lifelines.CoxPHFitter()
    strata = ["center"] if stratified else None
    used = rows if stratified else rows.drop(columns="center")
    options = {"precision": 1e-12}
    model.fit(used, "time", "event", strata=strata, fit_options=options)
    result = hazard_ratio(x, y, stratified)
    assert result is not None
    assert result.log == pytest.approx(float(model.params_["arm"]), abs=1e-6)
    assert result.error == pytest.approx(float(model.standard_errors_["arm"]), abs=1e-6)


def lung_blocks(*names: str) -> tuple[Any, list[tuple[Any, FollowUp]]]:
    """The people with lung cancer who are alike in these columns, and all of them."""
    rows = lung().dropna(subset=["inst", "ph.ecog"])
    rows["ecog"] = np.minimum(rows["ph.ecog"].to_numpy(), 2)
    rows["old"] = (rows["age"] > 65).astype(int)
    blocks = [
        (key, one_cell_each(part["time"].to_numpy(float), part["status"].to_numpy() - 1.0))
        for key, part in rows.groupby(list(names))
    ]
    return rows, blocks


def test_hazard_ratios_with_covariates_and_strata_equal_lifelines() -> None:
    """Blocks by sex, ECOG status and age, as a book has them: the first two in the model."""
    import lifelines

    rows, blocks = lung_blocks("sex", "ecog", "old")
    keys = [key for key, _ in blocks]
    groups = [part.in_strata(np.full(len(part.times), key[2])) for key, part in blocks]
    design = np.array([[key[0] == 2, key[1] == 1, key[1] == 2] for key in keys], dtype=float)
    used = rows.assign(female=rows["sex"] == 2, one=rows["ecog"] == 1, two=rows["ecog"] == 2)
    columns = ["time", "status", "female", "one", "two", "old"]
    used = used[columns].astype(float).assign(status=used["status"] - 1.0)
    model = lifelines.CoxPHFitter()
    model.fit(used, "time", "status", strata=["old"], fit_options={"precision": 1e-12})
    result = proportional_hazards(groups, design, stratified=True)
    for name, ratio in zip(("female", "one", "two"), result, strict=True):
        assert ratio is not None
        assert ratio.log == pytest.approx(float(model.params_[name]), abs=1e-6)
        assert ratio.error == pytest.approx(float(model.standard_errors_[name]), abs=1e-6)


def test_a_column_that_says_the_same_as_others_has_no_ratio() -> None:
    x, y = (one_cell_each(*drawn(seed)) for seed in (1, 2))
    result = proportional_hazards([x, y], np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]))
    assert result[0] == hazard_ratio(x, y)
    assert result[1:] == [None, None]


def test_before_the_first_whole_event_the_band_is_no_wider_than_after_one() -> None:
    """A twentieth of an event on each of the first days: the lower limit was 0 there."""
    early = FollowUp.of(np.arange(1.0, 9.0), np.full(8, 0.05), np.full(8, 0.05))
    rest = FollowUp.of(np.arange(10.0, 50.0), np.ones(40))
    curve = kaplan_meier(stack([early, rest]))
    assert curve.low[0] > 0.98
    assert np.all(np.diff(curve.low[:8]) < 0)
    _, low, _ = curve.quantile(0.5)
    assert low is not None
    assert low > 20


@given(st.integers(0, 10_000), st.integers(3, 60), st.floats(0.02, 1))
def test_no_interval_of_a_median_begins_before_whole_people_could_make_it(
    seed: int, n: int, share: float
) -> None:
    """At its low end as many events as have begun must be enough, were they whole and just then."""
    random = np.random.default_rng(seed)
    times = np.sort(random.exponential(size=n).round(random.integers(0, 4)))
    events = np.where(random.random(n) < 0.5, share * random.random(n), 1.0)
    curve = kaplan_meier(FollowUp.of(times, events))
    _, low, _ = curve.quantile(0.5)
    if low is None:
        return
    arm = FollowUp.of(times, events)
    happened = math.ceil(arm.events[arm.times <= low].sum() - 1e-9)
    left = int(arm.at_risk(np.array([low]))[0])
    had = np.arange(left) < happened
    whole = kaplan_meier(FollowUp.of(np.where(had, low, low + 1), had.astype(float)))
    assert happened >= left or whole.low[0] <= 0.5 + 1e-9


@given(st.integers(0, 10_000), st.integers(5, 120), st.sampled_from([0.2, 1.0, 4.0]))
def test_a_median_s_interval_begins_no_earlier_than_if_all_who_left_had_the_event(
    seed: int, n: int, power: float
) -> None:
    """Whoever of them had it: the pooled lower band reaches a half no earlier than that."""
    random = np.random.default_rng(seed)
    times = np.sort(random.exponential(size=n).round(random.integers(1, 4)))
    some = kaplan_meier(FollowUp.of(times, random.random(n) ** power)).quantile(0.5)[1]
    first = kaplan_meier(FollowUp.of(times, np.ones(n))).quantile(0.5)[1]
    assert first is not None
    assert some is None or some >= first


def test_lung_by_sex_is_as_published() -> None:
    rows = lung()
    men, women = (
        one_cell_each(part["time"].to_numpy(float), part["status"].to_numpy() - 1.0)
        for _, part in rows.groupby("sex")
    )
    assert log_rank([men, women]).statistic == pytest.approx(10.32674, abs=1e-5)
    result = hazard_ratio(men, women)
    assert result is not None
    assert math.exp(result.log) == pytest.approx(0.588, abs=5e-4)  # Therneau's vignette


def test_events_in_one_arm_alone_have_no_hazard_ratio() -> None:
    x = one_cell_each(np.arange(1.0, 31.0), np.ones(30))
    y = one_cell_each(np.arange(1.0, 31.0), np.zeros(30))
    assert hazard_ratio(x, y) is None


def test_alike_centers_are_not_heterogeneous() -> None:
    times, events = drawn(1, 120)
    centers = np.repeat([0, 1], 60)
    x = one_cell_each(np.tile(times[:60], 2), np.tile(events[:60], 2), centers)
    y = one_cell_each(np.tile(times[60:], 2), np.tile(events[60:], 2), centers)
    ratios = center_ratios(x, y)
    assert ratio_heterogeneity(list(ratios.values())).q == pytest.approx(0, abs=1e-12)
    assert ratio_heterogeneity([HazardRatio(0.0, 1.0)]).df == 0


@given(st.integers(0, 1000), st.floats(0.1, 10))
def test_the_unit_of_time_does_not_matter(seed: int, unit: float) -> None:
    (tx, ex), (ty, ey) = drawn(seed, 30), drawn(seed + 1, 30)

    def in_unit(scale: float) -> Any:
        arms = FollowUp.of(tx * scale, ex), FollowUp.of(ty * scale, ey)
        return log_rank(arms).statistic, kaplan_meier(arms[0]).restricted_mean(5 * scale)[0] / scale

    assert in_unit(unit) == pytest.approx(in_unit(1.0))


@given(st.integers(0, 1000))
def test_half_people_twice_are_whole_people(seed: int) -> None:
    times, events = drawn(seed, 40)
    whole = FollowUp.of(times, events)
    halves = stack([FollowUp.of(times, events / 2, np.full(40, 0.5))] * 2)
    np.testing.assert_allclose(
        kaplan_meier(halves).at(times), kaplan_meier(whole).at(times), atol=1e-12
    )


def test_negative_times_are_an_error() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        FollowUp.of(np.array([-1.0, 2.0]), np.ones(2))
