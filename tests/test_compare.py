"""Comparisons over centers: pooled SciPy as the oracle, and what goes wrong."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from unpooled import Federation, Policy
from unpooled.center.questions import Ranks, decode_answer
from unpooled.errors import InputError, RefusedError
from unpooled.maths.ranks.mann_whitney import table_test
from unpooled.maths.tables.binning import Rule, cut
from unpooled.results.numbers.many_variables import ManyComparisons
from unpooled.results.provenance.refusals import BIASED

ALTERNATIVES = ("two-sided", "greater", "less")


def frame(x: Any, y: Any) -> pl.DataFrame:
    values = np.concatenate([x, y]).astype(float)
    return pl.DataFrame({"v": values, "g": ["x"] * len(x) + ["y"] * len(y)})


def hospitals(seed: int = 1, ties: bool = False) -> dict[str, tuple[Any, Any]]:
    random = np.random.default_rng(seed)
    made = {}
    for name, n, m in (("A", 120, 90), ("B", 60, 75), ("C", 30, 24)):
        x, y = random.normal(0, 1, n), random.normal(0.4, 1, m)
        made[name] = (np.round(x * 3), np.round(y * 3)) if ties else (x, y)
    return made


def federation(people: dict[str, tuple[Any, Any]], **kwargs: Any) -> Federation:
    return Federation.local({name: frame(*groups) for name, groups in people.items()}, **kwargs)


def pooled_p(x: Any, y: Any, alternative: str) -> float:
    return float(
        stats.mannwhitneyu(
            y, x, alternative=alternative, method="asymptotic", use_continuity=False
        ).pvalue
    )


def errors_out(p: float, alternative: str = "greater") -> float:
    """How far out a p-value is, in standard errors."""
    return float(stats.norm.isf(p / 2 if alternative == "two-sided" else p))


ROUNDED = 1 / 8  # standard errors: units are at most 1/8, so each of four centers is 1/16 off


def by_method(result: Any) -> dict[str, Any]:
    return {test.method: test for test in result.methods}


# --- oracles -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_with_one_center_every_center_method_is_the_pooled_test(
    alternative: Any, ties: bool
) -> None:
    x, y = hospitals(ties=ties)["A"]
    result = federation({"A": (x, y)}).compare("v", by="g", alternative=alternative, method="all")
    for method in ("weighted", "sum"):
        computed = by_method(result)[method].p_value
        exact = pooled_p(x, y, alternative)
        assert errors_out(computed, alternative) == pytest.approx(
            errors_out(exact, alternative), abs=ROUNDED / 2
        )
    if alternative != "two-sided":
        assert by_method(result)["fisher"].p_value == pytest.approx(
            by_method(result)["weighted"].p_value, rel=1e-10
        )


@pytest.mark.parametrize("centers", ["A", "ABCD"], ids=["one center", "four centers"])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("seed", range(5))
def test_with_every_value_in_a_bin_of_its_own_the_table_is_the_pooled_test(
    centers: str, alternative: Any, seed: int
) -> None:
    """Each group has K people or more on a value at every center, or nobody anywhere."""
    random = np.random.default_rng(seed)
    values = np.array([-2.5, 0.0, 0.1, 3.0, 7.0, 7.5, 100.0])
    taken = random.random((2, 7)) < 0.7
    taken[:, random.integers(7)] = taken[0, 0] = True  # the groups meet, and 7 bins are 7 values
    taken[1, ~taken[0]] = True

    def people() -> tuple[Any, Any]:
        x, y = (np.repeat(values, random.integers(10, 40, 7) * group) for group in taken)
        return x, y

    drawn = {name: people() for name in centers}
    result = federation(drawn).compare("v", by="g", alternative=alternative, method="table")
    assert result.table is not None
    assert result.table.table.bins == 7
    x, y = (np.concatenate([groups[i] for groups in drawn.values()]) for i in (0, 1))
    assert result.p_value == pytest.approx(pooled_p(x, y, alternative), rel=1e-10)


def test_one_center_whose_bins_hold_several_values_is_near_the_pooled_test_and_not_equal() -> None:
    x, y = hospitals()["A"]
    result = federation({"A": (x, y)}).compare("v", by="g", method="table").p_value
    pooled = pooled_p(x, y, "two-sided")
    assert result != pytest.approx(pooled, rel=1e-6)
    assert np.log10(result) == pytest.approx(np.log10(pooled), abs=0.5)


@pytest.mark.parametrize("ties", [False, True])
def test_sum_weighted_and_fisher_equal_independent_recomputations(ties: bool) -> None:
    centers = hospitals(seed=4, ties=ties)
    result = federation(centers).compare("v", by="g", alternative="greater", method="all")
    u, variance, p = [], [], []
    for x, y in centers.values():
        signs = np.sign(y[None, :] - x[:, None]).sum()
        n, m = len(x), len(y)
        _, t = np.unique(np.concatenate([x, y]), return_counts=True)
        total = n + m
        correction = 1 - ((t**3 - t).sum()) / (total * (total**2 - 1))
        u.append(signs)
        variance.append(n * m * (total + 1) / 3 * correction)
        p.append(pooled_p(x, y, "greater"))
    pairs = np.array([len(x) * len(y) for x, y in centers.values()])
    weights = pairs / np.sqrt(variance)
    z = np.array(u) / np.sqrt(variance)
    expected = {
        "sum": stats.norm.sf(sum(u) / np.sqrt(sum(variance))),
        "weighted": stats.norm.sf((weights * z).sum() / np.sqrt((weights**2).sum())),
        "fisher": stats.combine_pvalues(p, method="fisher").pvalue,
    }
    for method, value in expected.items():
        assert errors_out(by_method(result)[method].p_value) == pytest.approx(
            errors_out(value), abs=ROUNDED
        )


def test_tiny_p_values_stay_finite_and_ordered() -> None:
    logs = []
    for shift in (1, 2, 4, 8):
        random = np.random.default_rng(2)
        centers = {name: (random.normal(0, 1, 800), random.normal(shift, 1, 800)) for name in "ABC"}
        result = federation(centers).compare("v", by="g", method="all")
        assert all(np.isfinite(test.log10_p) for test in result.methods)
        logs.append(result.log10_p)
    assert logs == sorted(logs, reverse=True)
    assert logs[-1] < -300
    assert result.p_value == 0.0 or result.p_value < 1e-300


# --- the result --------------------------------------------------------------------------------


def test_each_center_says_only_five_numbers_and_how_many_values() -> None:
    fed = federation(hospitals())
    fed.compare("v", by="g", groups=("x", "y"))
    assert len(fed.releases) == 3  # one parallel round
    for release in fed.releases:
        aggregate = decode_answer(release.payload).aggregate
        assert isinstance(aggregate, Ranks)


def test_the_result_has_the_shape_of_the_contract() -> None:
    answer = federation(hospitals()).compare("v", by="g", method="all").to_dict()
    assert {"value", "by", "groups", "alternative", "recommended", "methods", "effect"} <= set(
        answer
    )
    assert {"shift", "heterogeneity", "centers", "refusals"} <= set(answer)
    methods = ["weighted", "sum", "fisher", "table", "parallel"]
    assert [row["method"] for row in answer["methods"]] == methods
    assert set(answer["methods"][0]) >= {"method", "statistic", "p_value", "log10_p"}
    assert set(answer["effect"]) == set(answer["shift"]) == {"estimate", "low", "high"}
    assert set(answer["heterogeneity"]) == {"q", "df", "p_value", "i2"}
    assert answer["recommended"] == "weighted"


def test_the_effect_and_the_shift_point_the_same_way_and_swap_with_the_groups() -> None:
    fed = federation(hospitals(), seed=3)
    one = fed.compare("v", by="g", groups=("x", "y"), method="all")
    fed = federation(hospitals(), seed=3)  # each from nothing, so that tables are the same
    two = fed.compare("v", by="g", groups=("y", "x"), method="all")
    assert one.effect is not None
    assert two.effect is not None
    assert one.shift is not None
    assert two.shift is not None
    assert one.effect.estimate > 0.5
    assert one.effect.estimate + two.effect.estimate == pytest.approx(1)
    assert one.shift.low < 0.4 < one.shift.high
    assert one.shift.estimate == pytest.approx(-two.shift.estimate, abs=1e-6)
    assert one.p_value == pytest.approx(two.p_value)


def test_a_center_without_one_of_the_groups_is_left_out_and_named() -> None:
    centers = hospitals()
    centers["D"] = (np.arange(30.0), np.arange(4.0))
    result = federation(centers).compare("v", by="g")
    assert [c.center for c in result.centers] == ["A", "B", "C"]
    assert [(r.center, r.group, r.reason) for r in result.refusals] == [("D", "y", "too-small")]


def test_the_table_says_where_a_center_lacks_a_group() -> None:
    """Centers that differ, and no group that does: the table takes the one for the other."""
    random = np.random.default_rng(5)
    people = {
        "A": (random.normal(1, 1, 200), random.normal(1, 1, 200)),
        "B": (random.normal(-1, 1, 200), random.normal(-1, 1, 9)),
    }
    tests = {t.method: t for t in federation(people).compare("v", by="g", method="all").methods}
    assert tests["table"].p_value < 1e-6 < tests["weighted"].p_value
    assert tests["table"].note == "1 of 2 centers lack a group: their differences count as well"
    even = federation(hospitals()).compare("v", by="g", method="table")
    assert "lack" not in (even.test.note or "")


def ones(n: int, few: int) -> Any:
    return np.repeat([0.0, 1.0], [n - few, few])


def test_a_center_with_few_ones_in_one_group_makes_no_effect() -> None:
    """9 of 150 are too few to tell and 11 are not: 60 invented ones made p = .0001."""
    people = {"A": (ones(200, 80), ones(200, 80)), "B": (ones(150, 9), ones(150, 11))}
    result = federation(people).compare("v", by="g", method="all")
    x, y = (np.concatenate([part[i] for part in people.values()]) for i in (0, 1))
    assert pooled_p(x, y, "two-sided") > 0.8
    assert by_method(result)["table"].p_value > 0.5
    assert by_method(result)["table"].note.startswith("groups are small, with ")
    assert "the test is conservative" in by_method(result)["table"].note


def test_centers_that_answer_because_of_their_values_are_a_biased_sample() -> None:
    """Without an effect: a center answers if 60 people of y happen to have ten ones."""
    random = np.random.default_rng(1)
    rejected, held, answer = 0, 0, 0
    for seed in range(40):
        draws = [(random.binomial(200, 0.12), random.binomial(60, 0.12)) for _ in range(6)]
        people = {str(i): (ones(200, a), ones(60, b)) for i, (a, b) in enumerate(draws)}
        try:
            result = federation(people, seed=seed).compare("v", by="g")
        except RefusedError:
            continue
        assert result.test.note == BIASED
        assert "Rely on method='table'" in str(result)
        whole = federation(people, seed=seed).compare("v", by="g", method="all")
        assert whole.recommended == "table"
        answer += 1
        rejected += result.p_value < 0.05
        held += whole.p_value < 0.05
    assert held < 0.1 * answer
    assert rejected > 0.15 * answer  # the trap that the note tells of


def test_several_variables_keep_the_warning_of_a_biased_sample_each_its_own() -> None:
    random = np.random.default_rng(4)
    rows = {}
    for name, rare in (("A", 12), ("B", 5)):  # B refuses the ranks of five ones
        group = np.repeat(["x", "y"], [200, 60])
        both = np.concatenate([ones(200, 24), ones(60, rare)])
        rows[name] = pl.DataFrame({"g": group, "rare": both, "v": random.normal(0, 1, 260)})
    for groups, ordered in ((("x", "y"), False), (("x", "y"), True)):
        fed = Federation.local(rows, seed=1)
        result = fed.compare(["v", "rare"], "g", groups=groups, ordered=ordered)
        assert len(result.notes()) == 1
        assert result.notes()[0].startswith("rare: Centers are left out because of their values")
        assert "the remaining centers are a biased sample" in str(result)
        assert "a biased sample" in result._repr_html_()


def test_groups_that_no_center_has_both_of_can_be_compared_by_the_table_alone() -> None:
    random = np.random.default_rng(3)
    fed = Federation.local(
        {
            "A": frame(random.normal(0, 1, 300), []),
            "B": frame([], random.normal(1, 1, 300)),
        },
        seed=1,
    )
    with pytest.raises(RefusedError, match="Hint: method='table'"):
        fed.compare("v", by="g", groups=("x", "y"))
    result = fed.compare("v", by="g", groups=("x", "y"), method="all")
    assert [test.method for test in result.methods] == ["table", "parallel"]
    assert result.recommended == "table"
    assert result.effect is not None
    assert result.effect.estimate > 0.6
    assert result.p_value < 1e-6


# --- several variables -------------------------------------------------------------------------


def test_several_variables_give_one_row_each_with_adjusted_p_values() -> None:
    random = np.random.default_rng(6)
    rows = {"g": ["x"] * 80 + ["y"] * 80, "name": ["Smith"] * 160}
    for i, shift in enumerate((0.0, 0.6, 1.0)):
        rows[f"v{i}"] = np.concatenate(  # type: ignore[assignment]
            [random.normal(0, 1, 80), random.normal(shift, 1, 80)]
        )
    fed = Federation.local({"A": pl.DataFrame(rows)}, seed=1)
    several = fed.compare(["v0", "v1", "v2", "name"], by="g")
    assert isinstance(several, ManyComparisons)
    answer = several.to_dict()
    p = [row["p_value"] for row in answer["rows"]]
    bh = stats.false_discovery_control(p)
    assert [row["benjamini_hochberg"] for row in answer["rows"]] == pytest.approx(bh)
    order = np.argsort(p)
    holm = np.maximum.accumulate(np.minimum(1, np.array(p)[order] * np.array([3, 2, 1])))
    assert np.array([row["holm"] for row in answer["rows"]])[order] == pytest.approx(holm)
    assert [problem["value"] for problem in answer["problems"]] == ["name"]
    assert "left out: name" in str(several)


# --- bad input ---------------------------------------------------------------------------------


def test_a_group_that_earlier_answers_withhold_is_not_said_to_be_missing() -> None:
    """It was: "compare needs two groups", as if nobody were in the other one."""
    random, n = np.random.default_rng(7), 60
    rows = pl.DataFrame({"v": random.normal(size=n)}).with_columns(
        pl.Series(name, random.choice(levels, n)) for name, levels in WORDS.items()
    )
    fed = Federation.local({"A": rows}, seed=1)
    fed.describe("v", where="arm == 'a' and sex == 'F'")
    fed.describe("v", where="arm == 'b' and ward == 'x'")
    fed.describe("v", by="sex")
    fed.describe("v", where="sex == 'M' and ward == 'y'")
    with pytest.raises(RefusedError, match="could reveal") as caught:
        fed.compare("v", by="arm")
    assert {refusal.reason for refusal in caught.value.refusals} == {"would-isolate"}


WORDS = {"arm": ["a", "b"], "sex": ["F", "M"], "ward": ["x", "y"]}


def test_bands_of_a_number_have_an_order_of_their_own() -> None:
    random = np.random.default_rng(1)
    age = random.integers(20, 100, 400)
    rows = pl.DataFrame({"v": random.normal(size=400) + age / 20, "age": age})
    fed = Federation.local({"A": rows}, seed=1)
    result = fed.compare("v", by="age", cuts=(50, 65.5, 80), ordered=True)
    assert list(result.groups) == [
        "under 50",
        "50 to under 65.5",
        "65.5 to under 80",
        "80 and over",
    ]
    assert result.p_value < 1e-6


def test_one_group_or_none_is_an_error_and_of_three_two_can_be_named() -> None:
    rows = pl.DataFrame({"v": np.arange(90.0), "g": ["a", "b", "c"] * 30, "one": ["a"] * 90})
    fed = Federation.local({"A": rows}, seed=1)
    with pytest.raises(InputError, match="needs two groups of 'one', got only 'a'"):
        fed.compare("v", by="one")
    with pytest.raises(InputError, match="compare needs by"):
        fed.compare("v")
    assert fed.compare("v", by="g", groups=("a", "c")).p_value > 0.5


def test_unknown_methods_and_alternatives() -> None:
    fed = federation(hospitals())
    with pytest.raises(InputError, match="table, parallel or all, got 'welch'"):
        fed.compare("v", by="g", method="welch")
    with pytest.raises(InputError, match="two-sided, greater or less, got 'larger'"):
        fed.compare("v", by="g", alternative="larger")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="at least one variable"):
        fed.compare([], by="g")
    with pytest.raises(InputError, match="variables must differ"):
        fed.compare(["v", "v"], by="g")


def test_identical_groups_have_p_of_about_one() -> None:
    x = np.random.default_rng(1).normal(size=60)
    result = federation({"A": (x, x), "B": (x, x)}).compare("v", by="g", method="all")
    for test in result.methods:
        if test.method != "fisher":
            assert test.p_value == pytest.approx(1)
    assert result.effect is not None
    assert result.effect.estimate == 0.5


def test_all_ties_give_one_with_a_note_and_never_nan() -> None:
    centers = {name: (np.ones(30), np.ones(40)) for name in "AB"}
    result = federation(centers).compare("v", by="g", method="all")
    for test in result.methods:
        assert test.p_value == 1.0
        assert test.note is not None
    assert result.effect is not None
    assert result.effect.estimate == 0.5
    assert result.shift is None
    assert "nan" not in str(result).lower()


def test_no_usable_center_is_a_refusal_with_names() -> None:
    fed = federation({"A": (np.arange(5.0), np.arange(30.0)), "B": (np.arange(4.0), [])})
    with pytest.raises(InputError, match="no center has enough people in 'x'"):
        fed.compare("v", by="g", groups=("x", "y"), method="all")


def test_few_values_of_few_people_are_refused_and_the_table_goes_on() -> None:
    """Ten people with two values: U and its variance would give the split away."""
    centers = {
        "A": (np.repeat([0.0, 1.0], [40, 30]), np.repeat([0.0, 1.0], [20, 50])),
        "B": (np.repeat([0.0, 1.0], [9, 1]), np.repeat([0.0, 1.0], [4, 6])),
    }
    result = federation(centers).compare("v", by="g", method="all")
    assert [c.center for c in result.centers] == ["A"]
    assert ("B", "few-values") in {(r.center, r.reason) for r in result.refusals}
    assert result.table is not None
    assert result.table.counts.sum() == 160


def test_a_policys_k_holds_for_ranks() -> None:
    fed = federation({"A": (np.arange(15.0), np.arange(30.0))}, policy=Policy(ad_hoc="free", k=20))
    with pytest.raises(InputError, match="no center has enough people in 'x'"):
        fed.compare("v", by="g", groups=("x", "y"))


def test_several_variables_compare_the_same_groups() -> None:
    """v is missing in c and w in b: w must not compare c with a under the header of b."""
    random = np.random.default_rng(2)
    g = ["a"] * 40 + ["b"] * 40 + ["c"] * 40
    v = [*random.normal(0, 1, 80), *[None] * 40]
    w = [*random.normal(0, 1, 40), *[None] * 40, *random.normal(5, 1, 40)]
    fed = Federation.local({"A": pl.DataFrame({"g": g, "v": v, "w": w})}, seed=1)
    several = fed.compare(["v", "w"], by="g")
    assert {result.groups for result in several.results} == {("a", "b")}
    assert [problem["value"] for problem in several.to_dict()["problems"]] == ["w"]


def test_one_center_with_a_bin_for_every_value_is_scipys_test() -> None:
    """The maths of the table alone, with K = 1, which no policy allows."""
    random = np.random.default_rng(7)
    x, y = (
        np.sort(random.poisson(4, 80).astype(float)),
        np.sort(random.poisson(5, 60).astype(float)),
    )
    cuts = cut([x, y], Rule(k=1))
    result = table_test(cuts.counts[0], cuts.counts[1], "two-sided")
    assert result.p_value == pytest.approx(pooled_p(x, y, "two-sided"), rel=1e-10)
