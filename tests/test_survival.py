"""Survival over centers: beside the pooled data, with honest refusals and clear errors."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.survival_data import cgd, lung, trial
from unpooled import Federation, Policy, Variable
from unpooled.apps.cli import main
from unpooled.apps.demo import write_hospitals
from unpooled.errors import InputError, RefusedError
from unpooled.maths.survival.cox import hazard_ratio
from unpooled.maths.survival.follow_up import FollowUp
from unpooled.maths.survival.kaplan_meier import kaplan_meier
from unpooled.maths.survival.log_rank import log_rank

ALL = Policy(ad_hoc="free", moments="all")


@pytest.fixture
def frames() -> dict[str, pl.DataFrame]:
    return {"Haifa": trial(1, 240), "Bern": trial(2, 160), "Porto": trial(3, 90)}


@pytest.fixture
def fed(frames: dict[str, pl.DataFrame]) -> Federation:
    return Federation.local(frames, policy=ALL, seed=1)


def pooled(rows: Any, time: str, event: str, by: str) -> dict[str, FollowUp]:
    frame = rows.to_pandas() if isinstance(rows, pl.DataFrame) else rows
    groups = {str(label): part for label, part in frame.groupby(by)}
    return {
        label: FollowUp.of(part[time].to_numpy(float), part[event].to_numpy(float))
        for label, part in groups.items()
    }


def test_whole_months_are_found(frames: dict[str, pl.DataFrame]) -> None:
    """A horizon that is no whole number leaves a finer grid, on which both stand."""
    months = {name: f.with_columns(pl.col("months").ceil()) for name, f in frames.items()}
    declared = {"months": Variable(resolution=1)}
    fed, truth = (
        Federation.local(months, policy=ALL, variables=facts, seed=1) for facts in ({}, declared)
    )
    answer, same = (
        f.survival("months", "died", by="arm", groups=("old", "new"), horizon=36)
        for f in (fed, truth)
    )
    assert answer.to_dict()["medians"] == same.to_dict()["medians"]
    assert all(m["estimate"] == round(m["estimate"]) for m in answer.to_dict()["medians"])
    fed = Federation.local(months, policy=ALL, seed=1)
    odd = fed.survival("months", "died", by="arm", groups=("old", "new"), horizon=36.5)
    for one, other in zip(odd.to_dict()["medians"], answer.to_dict()["medians"], strict=True):
        assert one["estimate"] == pytest.approx(other["estimate"], abs=1)
        assert one["estimate"] * 2 == round(one["estimate"] * 2)


def test_curves_and_tests_are_near_those_of_the_pooled_people(
    fed: Federation, frames: dict[str, pl.DataFrame]
) -> None:
    result = fed.survival("months", "died", by="arm", groups=("old", "new"))
    full = pooled(pl.concat(frames.values()), "months", "died", "arm")
    exact = log_rank([full["old"], full["new"]])
    assert result.log_rank is not None
    assert result.log_rank.z == pytest.approx(exact.z, abs=0.2)
    for arm in result.arms:
        curve = kaplan_meier(full[arm.group])
        at = np.arange(2.0, 40.0, 2.0)
        low, high = curve.band_at(at)
        assert np.all((low <= arm.curve.at(at)) & (arm.curve.at(at) <= high))
        assert arm.followed.total == full[arm.group].total
        assert arm.median.estimate == pytest.approx(curve.quantile(0.5)[0], rel=0.1)
    assert result.p_value == result.stratified.p_value  # type: ignore[union-attr]
    assert [ratio.group for ratio in result.ratios] == ["new"]
    assert {curve.center for curve in result.centers} == {"Haifa", "Bern", "Porto"}


def test_the_shape_for_json_is_as_promised(fed: Federation) -> None:
    answer = fed.survival("months", "died", by="arm", horizon=24).to_dict()
    json.dumps(answer, allow_nan=False)
    (new, old) = answer["curves"]
    assert (new["group"], old["group"]) == ("new", "old")
    for name in ("time", "survival", "low", "high", "at_risk"):
        assert len(new[name]) == len(new["time"]) > 20
    assert set(answer["medians"][0]) == {"group", "p", "estimate", "low", "high"}
    assert {"statistic", "df", "p_value"} <= set(answer["logrank"])
    assert answer["hazard_ratio"]["group"] == "old"
    assert answer["hazard_ratio"]["low"] < answer["hazard_ratio"]["estimate"]
    assert answer["restricted_means"][0]["until"] == new["end"] == 24
    assert answer["refusals"] == []
    assert answer["notes"] == []


def test_one_round_is_enough_where_groups_and_horizon_are_known(
    frames: dict[str, pl.DataFrame],
) -> None:
    declared = {"months": Variable(unit="months", lower=0, upper=60)}
    fed = Federation.local(frames, variables=declared, seed=1)
    assert fed.survival("months", "died", by="arm", groups=("old", "new")).rounds == 1
    fed = Federation.local(frames, seed=1)
    result = fed.survival("months", "died", by="arm", groups=("old", "new"))
    assert result.rounds == 2
    assert result.horizon == 100.0
    assert "agreed on the horizon 100" in result.notes[0]


def test_the_overall_curve_is_the_arms_told_before_and_nothing_new_leaves(fed: Federation) -> None:
    arms = fed.survival("months", "died", by="arm")
    before = {release.payload for release in fed.releases if "survival" in str(release.payload)}
    overall = fed.survival("months", "died")
    after = {release.payload for release in fed.releases if "survival" in str(release.payload)}
    assert after == before
    assert [arm.group for arm in overall.arms] == ["all"]
    assert overall.arms[0].followed.total == sum(arm.followed.total for arm in arms.arms)
    assert any("added up" in note for note in overall.notes)
    assert overall.log_rank is None


def test_counts_alone_are_called_imprecise(frames: dict[str, pl.DataFrame]) -> None:
    fed = Federation.local(frames, policy=Policy(ad_hoc="free", moments="none"), seed=1)
    result = fed.survival("months", "died", by="arm", horizon=60)
    assert any("precision is poor" in note for note in result.notes)
    assert "precision is poor" in str(result)
    fed = Federation.local(frames, seed=1)
    assert not any("poor" in n for n in fed.survival("months", "died", horizon=60).notes)


@pytest.mark.parametrize(
    ("codes", "event_is"),
    [
        ((0, 1), None),
        ((1, 2), None),
        ((False, True), None),
        ((0.0, 1.0), None),
        (("no", "yes"), None),
        (("F", "T"), None),
        (("alive", "dead"), "dead"),
        ((3, 7), 7),
    ],
)
def test_the_event_may_be_coded_in_many_ways(codes: tuple[Any, Any], event_is: Any) -> None:
    rows = trial(1, 200)
    recoded = rows.with_columns(died=pl.Series([codes[d] for d in rows["died"]]))
    plain, other = (
        Federation.local({"Haifa": frame}, seed=1).survival(
            "months", "died", by="arm", horizon=60, event_is=meant
        )
        for frame, meant in ((rows, None), (recoded, event_is))
    )
    assert other.to_dict()["curves"] == plain.to_dict()["curves"]


@pytest.mark.parametrize("word", ["", "NA", "N/A", "null", "."])
def test_a_status_that_is_not_known_is_no_censoring(tmp_path: Path, word: str) -> None:
    rows = [f"{i % 50 + 1},{('yes', 'no', word)[i % 3]}\n" for i in range(180)]
    (tmp_path / "a.csv").write_text(f"months,status\n{''.join(rows)}")
    truth = "".join(row for row in rows if row.endswith(("yes\n", "no\n")))
    (tmp_path / "b.csv").write_text(f"months,status\n{truth}")
    one, two, three = (
        Federation.local({"A": tmp_path / name}, seed=1)
        .survival("months", "status", event_is=meant, horizon=60)
        .to_dict()["curves"]
        for name, meant in (("b.csv", "yes"), ("a.csv", "yes"), ("a.csv", None))
    )
    assert one == two == three


@pytest.mark.parametrize("codes", [("alive", "dead"), (0, 2), (1, 1), (0, 3)])
def test_an_unclear_event_is_refused_with_a_hint(codes: tuple[Any, Any]) -> None:
    rows = trial(1, 200)
    recoded = rows.with_columns(died=pl.Series([codes[d] for d in rows["died"]]))
    with pytest.raises(RefusedError, match=r"event_is can say(.|\n)*unclear-event"):
        Federation.local({"Haifa": recoded}, seed=1).survival("months", "died", horizon=60)


def test_a_value_that_nobody_has_is_an_error(fed: Federation) -> None:
    with pytest.raises(InputError, match="nobody at any center has 'died' = 'dead'"):
        fed.survival("months", "died", event_is="dead", horizon=60)
    with pytest.raises(InputError, match=r"event_is must be one value, got \['1'\]"):
        fed.survival("months", "died", event_is=["1"], horizon=60)


def test_negative_times_and_delayed_entry_are_errors_with_a_hint(fed: Federation) -> None:
    rows = trial(1, 100).with_columns(months=pl.col("months") - 1)
    with pytest.raises(RefusedError, match=r"start of each person's follow-up \(negative-time\)"):
        Federation.local({"Haifa": rows}, seed=1).survival("months", "died", horizon=60)
    with pytest.raises(InputError, match=r"delayed entry is not possible, got 'entry'\. Hint"):
        fed.survival("months", "died", entry="entry")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"event": "months"}, "another variable than time"),
        ({"event": 3}, "name of a variable"),
        ({"horizon": 0}, "horizon must be positive"),
        ({"horizon": float("inf")}, "positive and finite"),
        ({"horizon": "60"}, "horizon must be a number"),
        ({"at": 12}, "at must be a list of times, got 12"),
        ({"at": ["x"]}, "at must be a list of times, got 'x' in it"),
        ({"at": [0]}, "times must be positive"),
        ({"at": [12, 61], "horizon": 60}, "61 is beyond the horizon, 60"),
        ({"groups": ["old"]}, "groups needs by"),
        ({"event": "dies"}, "no center has a variable 'dies'. There are"),
        ({"by": "arms"}, "no center has a variable 'arms'"),
        ({"by": "arm", "groups": ["odd"]}, "enough people in 'odd'"),
    ],
)
def test_wrong_arguments_are_explained(
    fed: Federation, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fed.survival("months", **{"event": "died", **arguments})


def test_a_group_that_is_mistyped_is_an_error_and_can_be_put_right(
    frames: dict[str, pl.DataFrame],
) -> None:
    """The hint asks about the outcome itself: other words would shut the way to it."""
    fed = Federation.local(frames, seed=1)
    with pytest.raises(InputError, match=r"in 'nobody' of 'arm'\. Groups with enough people"):
        fed.survival("months", "died", by="arm", groups=("old", "nobody"))
    answer = fed.survival("months", "died", by="arm", groups=("old", "new"), horizon=60)
    again = fed.survival("months", "died", by="arm", groups=("old", "new"), horizon=60)
    assert again.to_dict()["curves"] == answer.to_dict()["curves"]


def test_people_without_a_time_or_a_status_are_left_out() -> None:
    rows = trial(1, 200)
    some = pl.Series([None if i < 20 else d for i, d in enumerate(rows["died"])])
    late = pl.Series([None if i >= 180 else m for i, m in enumerate(rows["months"])])
    fed = Federation.local({"Haifa": rows.with_columns(died=some, months=late)}, seed=1)
    assert fed.survival("months", "died", horizon=60).arms[0].followed.total == 160


def test_follow_up_beyond_the_horizon_is_cut(fed: Federation) -> None:
    result = fed.survival("months", "died", horizon=12)
    assert result.arms[0].curve.end == 12
    assert result.arms[0].curve.times[-1] <= 12


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_told_beyond_a_follow_up_that_nobody_declared(tmp_path: Path, seed: int) -> None:
    """The hospitals' study ends at 60 months; the centers agree on a horizon of 200."""
    from lifelines import KaplanMeierFitter
    from lifelines.utils import restricted_mean_survival_time

    files = write_hospitals(tmp_path)
    fed = Federation.local(files, seed=seed)
    result = fed.survival("months", "died", by="arm", groups=("control", "patient"))
    assert result.horizon == 200
    frames = [pl.read_csv(file, columns=["arm", "months", "died"]) for file in files.values()]
    full = pooled(pl.concat(frames), "months", "died", "arm")
    for arm in result.arms:
        people = full[arm.group]
        assert 55 <= arm.curve.end <= 60
        assert arm.curve.times[-1] <= arm.curve.end
        truth = KaplanMeierFitter().fit(people.times, people.events)
        assert arm.restricted_mean is not None
        assert arm.restricted_mean.until == 55
        mean = restricted_mean_survival_time(truth, 55)
        assert arm.restricted_mean.mean == pytest.approx(mean, abs=0.3)
    median = result.arms[0].median.estimate  # pooled: 58
    assert median is None or 56 < median <= 60
    assert any("declare it, as in horizon=60" in note for note in result.notes)
    counted = str(result.chart().to_dict())
    assert "'time': 50.0, 'people'" in counted
    assert "'time': 60.0, 'people'" not in counted


def test_a_declared_horizon_does_not_lengthen_follow_up(fed: Federation) -> None:
    result = fed.survival("months", "died", by="arm", horizon=150)
    for arm in result.arms:
        assert 35 <= arm.curve.end <= 48
    assert result.notes[0].startswith("people are known up to ")
    assert "Hint" not in result.notes[0]


def test_one_wide_cell_without_moments_says_nothing() -> None:
    policy = Policy(ad_hoc="free", k=40, moments="none")
    fed = Federation.local({"Haifa": trial(1, 120)}, policy=policy, seed=1)  # 79 die
    result = fed.survival("months", "died", horizon=500)
    (arm,) = result.arms
    assert arm.curve.end == 0
    assert arm.median.estimate is None
    assert arm.restricted_mean is None
    assert "known up to 0 (all)" in str(result)
    result.chart().to_dict()


def test_a_person_is_one_row(frames: dict[str, pl.DataFrame]) -> None:
    rows = frames["Haifa"].with_columns(id=pl.Series(np.arange(240) // 2))
    for rule in (None, "first"):
        policy = Policy(ad_hoc="free", person="id", per_person=rule)
        fed = Federation.local({"Haifa": rows}, policy=policy, seed=1)
        with pytest.raises(RefusedError, match="repeated-person"):
            fed.survival("months", "died", horizon=60)


def inside_the_pooled_band(result: Any, pooled: dict[str, FollowUp]) -> bool:
    """Whether each arm's curve is drawn until few are left, and inside the pooled band.

    The very first steps do not count.
    """
    inside = []
    for arm in result.arms:
        curve = kaplan_meier(pooled[arm.group])
        drawn = curve.times <= arm.curve.end
        at = curve.times[drawn & (curve.at_risk >= 5) & (curve.survival <= 0.95)]
        low, high = curve.band_at(at)
        left = pooled[arm.group].at_risk(np.array([arm.curve.end]))[0]
        inside.append(left <= 0.15 * pooled[arm.group].total)
        inside.append(np.all((low <= arm.curve.at(at)) & (arm.curve.at(at) <= high)))
    return len(inside) == 2 * len(pooled) and all(inside)


@pytest.mark.parametrize("policy", [ALL, Policy(ad_hoc="free")], ids=["all moments", "default"])
def test_lung_in_two_groups_of_institutions_is_near_the_pooled_test(policy: Policy) -> None:
    rows = lung()
    days = {"time": Variable(resolution=1, lower=0)}
    fed = Federation.split(rows, center="half", policy=policy, variables=days, seed=1)
    result = fed.survival("time", "status", by="sex", groups=("men", "women"))
    assert result.log_rank is not None
    assert 9 < result.log_rank.statistic < 11.5  # pooled, over all 228 people: 10.327
    assert inside_the_pooled_band(
        result, pooled(rows.assign(died=rows["status"] - 1), "time", "died", "sex")
    )


def test_lung_with_all_institutions_is_told_and_says_how_little_is_known() -> None:
    """Most arms are too small, and most others tell no statuses: the interval says so."""
    fed = Federation.split(lung(), center="inst", seed=1)
    result = fed.survival("time", "status", by="sex", groups=("men", "women"))
    assert ("I33", "men", "too-small") in {(r.center, r.group, r.reason) for r in result.refusals}
    few = "women: precision is poor: the status is known for fewer than half"
    assert any(few in note for note in result.notes)
    ratio = result.ratios[0].ratio
    assert ratio is not None
    assert ratio.low < 0.588 < ratio.high  # pooled
    assert ratio.high / ratio.low > 4  # pooled: 1.9
    assert "about " in str(result)


def test_granulomatous_disease_in_two_groups_of_hospitals_is_near_the_pooled_test() -> None:
    rows = cgd()
    policy = Policy(
        ad_hoc="free", k=5, moments="all"
    )  # 44 infections in four arms are too few for a K of 10
    fed = Federation.split(rows, center="half", policy=policy, seed=1)
    result = fed.survival("days", "infected", by="arm", groups=("placebo", "interferon"))
    assert result.log_rank is not None
    assert 8.5 < result.log_rank.statistic < 13.5  # pooled: 11.74
    assert inside_the_pooled_band(result, pooled(rows, "days", "infected", "arm"))


@pytest.mark.parametrize("centers", ["half", "center"])
def test_granulomatous_disease_is_told_honestly(centers: str) -> None:
    """At K = 10 a half or more tells no statuses; the pooled ratio is .33."""
    fed = Federation.split(cgd(), center=centers, policy=ALL, seed=1)
    result = fed.survival("days", "infected", by="arm", groups=("placebo", "interferon"))
    ratio = result.ratios[0].ratio
    assert ratio is not None
    assert ratio.low < 0.33 < ratio.high
    assert result.log_rank is not None
    assert result.log_rank.z < 0  # pooled: -3.43
    assert result.to_dict()["curves"][1]["events_exact"] is False


def test_an_arm_of_unknown_status_is_estimated_from_the_other() -> None:
    """Few events in one arm, at one center: between 1 and 9, and its interval says so."""
    rows = trial(1, 200).with_columns(
        died=pl.when((pl.col("arm") == "new") & (pl.col("months") > 3)).then(0).otherwise("died")
    )
    result = Federation.local({"Haifa": rows}, seed=1).survival(
        "months", "died", by="arm", groups=("old", "new"), horizon=60
    )
    exact = rows.filter((pl.col("arm") == "new") & (pl.col("died") == 1)).height
    new = result.arms[1]
    assert 1 <= exact <= 9
    assert 1 <= new.followed.event_total <= 9
    assert new.events.startswith("about ")
    assert any(note.startswith("new: precision is poor") for note in result.notes)
    ratio = result.ratios[0].ratio
    full = pooled(rows, "months", "died", "arm")
    truth = hazard_ratio(full["old"], full["new"])
    assert ratio is not None
    assert truth is not None
    assert ratio.low < math.exp(truth.log) < ratio.high
    assert ratio.high / ratio.low > truth.interval().high / truth.interval().low


def fixed_follow_up(seed: int, n: int) -> pl.DataFrame:
    """A trial that ends for all after 60 months; of each arm two or three are lost before."""
    random = np.random.default_rng(seed)
    arm = np.arange(n) % 2
    times = random.exponential(np.where(arm == 1, 49.0, 35.0))
    lost = np.where(random.random(n) < 0.04, random.uniform(0, 60, n), 60.0)
    return pl.DataFrame(
        {
            "months": np.minimum(times, lost),
            "died": (times <= lost).astype(int),
            "arm": np.where(arm == 1, "new", "old"),
        }
    )


def test_who_stands_at_the_end_of_a_study_is_not_spread_over_it() -> None:
    """All but a few censored people share one value, so that no mean of their cell is given."""
    frames = {f"center {seed}": fixed_follow_up(seed, n) for seed, n in enumerate((240, 160, 120))}
    fed = Federation.local(frames, policy=Policy(ad_hoc="free"), seed=1)
    result = fed.survival("months", "died", by="arm", groups=("old", "new"), horizon=60)
    full = pooled(pl.concat(frames.values()), "months", "died", "arm")
    assert result.log_rank is not None
    assert result.log_rank.z == pytest.approx(log_rank(list(full.values())[::-1]).z, abs=0.6)
    for arm in result.arms:
        at = np.array([12.0, 36.0, 54.0])
        np.testing.assert_allclose(
            arm.curve.at(at), kaplan_meier(full[arm.group]).at(at), atol=0.03
        )


@pytest.mark.parametrize("order", [("arm", "sex"), ("sex", "arm"), (None, "arm", "sex")])
def test_a_second_grouping_is_judged_by_the_rule_like_any_other_question(
    fed: Federation, order: tuple[str | None, ...]
) -> None:
    """Large centers have people enough for both; a small one is refused for what it would tell."""
    results = [fed.survival("months", "died", by=by, horizon=60) for by in order]
    assert {"Haifa", "Bern"} <= set(results[-1].answered)
    assert {r.reason for result in results for r in result.refusals} <= {"would-isolate"}


def test_three_arms_are_compared_with_the_first() -> None:
    rows = pl.concat([trial(s, 150).with_columns(arm=pl.lit(f"a{s}")) for s in (1, 2, 3)])
    result = Federation.local({"Haifa": rows}, policy=ALL, seed=1).survival(
        "months", "died", by="arm", horizon=60
    )
    assert result.log_rank is not None
    assert result.log_rank.df == 2
    assert [(r.versus, r.group) for r in result.ratios] == [("a1", "a2"), ("a1", "a3")]


def test_arms_that_nobody_named_come_by_number() -> None:
    random = np.random.default_rng(4)
    doses = ["2", "10", "100"]
    rows = {"months": random.exponential(20, 300), "died": [0, 1] * 150, "dose": doses[::-1] * 100}
    fed = Federation.local({"A": pl.DataFrame(rows)}, seed=1)
    result = fed.survival("months", event="died", by="dose")
    assert [arm.group for arm in result.arms] == doses


def test_survival_at_times_is_that_of_the_curve(fed: Federation) -> None:
    result = fed.survival("months", "died", by="arm", horizon=48, at=[36, 12])
    shown = result.to_dict()["at"]
    assert [(row["group"], row["time"]) for row in shown] == [
        (arm, time) for arm in ("new", "old") for time in (12, 36)
    ]
    for arm in result.arms:
        for row in arm.at:
            assert row.survival is not None
            assert row.survival.estimate == arm.curve.at(np.array([row.time]))[0]
    beyond = fed.survival("months", "died", by="arm", horizon=150, at=[149])
    assert {row["survival"] for row in beyond.to_dict()["at"]} == {None}
    assert "not known so long" in str(beyond)


def test_the_life_table_adds_up(fed: Federation) -> None:
    result = fed.survival("months", "died", by="arm", horizon=60, at=[12, 24])
    for arm in result.arms:
        for row in (row for row in result.life_table() if row.group == arm.group):
            still = float(arm.followed.people[arm.followed.times > row.time].sum())
            assert row.events + row.censored + still == pytest.approx(arm.followed.total)
    assert [row["time"] for row in result.to_dict()["life_table"]] == [12, 24] * 2


def test_restricted_means_differ_as_in_the_pooled_people(
    fed: Federation, frames: dict[str, pl.DataFrame]
) -> None:
    from lifelines import KaplanMeierFitter
    from lifelines.utils import restricted_mean_survival_time

    (apart,) = fed.survival(
        "months", "died", by="arm", groups=("old", "new"), horizon=60
    ).mean_differences
    full = pooled(pl.concat(frames.values()), "months", "died", "arm")
    fits = {g: KaplanMeierFitter().fit(part.times, part.events) for g, part in full.items()}
    means = {g: restricted_mean_survival_time(fit, apart.until) for g, fit in fits.items()}
    assert (apart.versus, apart.group) == ("old", "new")
    assert apart.difference == pytest.approx(means["new"] - means["old"], abs=0.3 * apart.error)
    assert apart.interval.low < apart.difference < apart.interval.high


def test_text_chart_and_report(fed: Federation, tmp_path: Path) -> None:
    result = fed.survival("months", "died", by="arm")
    assert "log-rank by center: χ²" in str(result)
    assert "hazard ratio, old to new" in result._repr_html_()
    chart = result.chart().to_dict()
    marks = str(chart)
    assert "step-after" in marks
    assert "at risk" in marks
    assert "'format': '%'" in marks
    assert "log-rank by center: p = " in marks
    assert "hazard ratio, old to new: " in marks
    few = [row for row in result.life_table() if 0 < row.at_risk < result.k]
    assert ("'~" in marks) == bool(few)
    page = result.report(tmp_path / "survival.html").read_text()
    assert "Kaplan-Meier curves with 95 % bands" in page
    assert "Center by center" in page
    assert page.count("<svg") == 1


def test_what_the_picture_says_stands_above_its_axis(fed: Federation) -> None:
    """The second line lay upon the axis: its place is that of the first."""
    result = fed.survival("months", "died", by="arm", horizon=12)
    picture = result.chart().to_dict()["vconcat"][0]
    words = next(layer for layer in picture["layer"] if layer["mark"]["type"] == "text")
    place, mark = words["encoding"]["y"]["value"], words["mark"]
    lines = result.headline()
    assert mark["baseline"] == "top"
    assert len(lines) == 2
    assert 0 < place <= picture["height"] - mark["lineHeight"] * len(lines)


def test_the_command_prints_json_and_writes_a_report(
    tmp_path: Path, frames: dict[str, pl.DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, frame in frames.items():
        frame.write_csv(tmp_path / f"{name}.csv")
        files.append(str(tmp_path / f"{name}.csv"))
    report, chart = tmp_path / "out.html", tmp_path / "km.svg"
    command = ["survival", "months", "--event", "died", "--by", "arm", "--centers", *files]
    extra = ["--json", "--event-is", "1", "--horizon", "60", "--report", str(report)]
    with pytest.raises(SystemExit) as stopped:
        main([*command, *extra, "--chart", str(chart)])
    assert not stopped.value.code
    answer = json.loads(capsys.readouterr().out)
    assert answer["horizon"] == 60
    assert len(answer["curves"]) == 2
    assert "<svg" in report.read_text()
    assert "<svg" in chart.read_text()
