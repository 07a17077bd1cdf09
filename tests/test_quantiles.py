"""Quantiles over centers: pooled SciPy and NumPy as oracles, and what goes wrong."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.golden import cases
from unpooled import Federation, Policy, Variable
from unpooled.errors import InputError, RefusedError
from unpooled.maths.quantiles.yeo_johnson import fit_likelihood, power_moments
from unpooled.results.numbers.many_variables import ManyQuantiles
from unpooled.results.numbers.quantiles import QuantilesResult, QuantileSummary

P = [0.02, 0.25, 0.5, 0.75, 0.98]
ITERATION = Policy(ad_hoc="free", paper_iteration=True)


def people(seed: int = 1) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.gamma(4, 1, n) for name, n in (("A", 307), ("B", 250), ("C", 143))}


def federation(values: dict[str, Any], **kwargs: Any) -> Federation:
    return Federation.local({k: pl.DataFrame({"v": v}) for k, v in values.items()}, **kwargs)


def estimates(result: Any) -> list[float | None]:
    return [q.estimate for q in result.quantiles]


# --- oracles -----------------------------------------------------------------------------------


def test_the_papers_iteration_is_near_scipys_pooled_fit_where_every_policy_allows_it() -> None:
    """The likelihood itself is exact; what centers tell of it has four digits, on one grid."""
    centers = people()
    expected, lam = scipy_fit(np.concatenate(list(centers.values())))
    fit = fit_likelihood(
        lambda lambdas: power_moments(np.concatenate(list(centers.values())), lambdas)
    )
    assert fit.lam == pytest.approx(lam, abs=1e-6)
    result = federation(centers, policy=ITERATION).quantiles("v", P, method="paper-grid")
    assert estimates(result) == pytest.approx(expected, rel=2e-3)
    assert isinstance(result, QuantilesResult)
    assert result.rounds == 1


@pytest.mark.parametrize("method", ["yj-likelihood", "yj-grid"])
@pytest.mark.parametrize("moments", ["tails", "all"])
def test_the_fit_to_cells_is_near_scipys_pooled_fit_in_one_round(method: str, moments: Any) -> None:
    """Within half a standard error of the exact fit of 700 people (its SD in 58 samples)."""
    centers = people()
    expected, _ = scipy_fit(np.concatenate(list(centers.values())))
    fed = federation(centers, policy=Policy(ad_hoc="free", moments=moments), seed=1)
    result = fed.quantiles("v", P, method=method)
    assert isinstance(result, QuantilesResult)
    off = np.array([q.estimate for q in result.quantiles]) - expected
    assert np.all(np.abs(off) < 0.5 * np.array([0.066, 0.076, 0.095, 0.118, 0.268]))
    assert result.rounds == 1


def scipy_fit(pooled: Any) -> tuple[Any, float]:
    z, lam = stats.yeojohnson(pooled)
    return np.expm1(np.log1p((z.mean() + z.std() * stats.norm.ppf(P)) * lam) / lam), lam


def test_methods_of_the_parallel_round_share_it() -> None:
    random = np.random.default_rng(6)
    rows = pl.DataFrame({"v": random.gamma(4, 1, 400), "g": ["a", "b"] * 200})
    fed = Federation.local({"A": rows, "B": rows}, seed=1)
    methods = ["parallel", "yj-likelihood", "yj-grid"]
    result = fed.quantiles("v", [0.5, 0.98], by="g", method=methods)
    assert isinstance(result, QuantileSummary)
    assert [r.rounds for r in result.results] == [1, 1, 1]
    assert len(fed.releases.to_dict()) == 2  # one of each center
    for one in result.results:
        assert [(q.group, q.p) for q in one.quantiles] == [
            ("a", 0.5),
            ("a", 0.98),
            ("b", 0.5),
            ("b", 0.98),
        ]


def test_no_method_asks_for_powers_unless_it_is_named() -> None:
    fed = federation(people(), policy=ITERATION, seed=1)
    result = fed.quantiles("v", P, method="all")
    assert isinstance(result, QuantileSummary)
    assert "paper-grid" not in {r.method for r in result.results}
    assert "powers" not in str(fed.releases.to_dict())


def test_the_papers_iteration_is_refused_by_default() -> None:
    with pytest.raises(RefusedError, match="does not allow it") as caught:
        federation(people()).quantiles("v", method="paper-grid")
    assert {r.reason for r in caught.value.refusals} == {"not-allowed"}


@pytest.mark.parametrize("case", cases("quantiles"), ids=lambda case: case["id"])
def test_golden_quantiles_come_out(case: dict[str, Any]) -> None:
    given = case["inputs"]
    # the reference places boundaries in the middle; only what does not depend on them is compared
    fed = federation({f"c{i}": v for i, v in enumerate(given["centers"])}, policy=ITERATION)
    result = estimates(fed.quantiles("v", given["q"], method="paper-grid"))
    assert result == pytest.approx(case["reference"]["normal_quantile"], rel=1e-3)  # four digits


def test_one_pass_methods_are_close_to_the_truth() -> None:
    truth = stats.gamma(4).ppf(P)
    for method in ("yj-table", "interpolation", "yj-grid", "yj-likelihood"):
        result = np.array(estimates(federation(people()).quantiles("v", P, method=method)))
        assert result[1:4] == pytest.approx(truth[1:4], rel=0.1)
        assert result[[0, 4]] == pytest.approx(truth[[0, 4]], rel=0.35)


# --- the result --------------------------------------------------------------------------------


def test_quantiles_per_group_and_side_by_side() -> None:
    random = np.random.default_rng(5)
    rows = pl.DataFrame({"v": random.gamma(4, 1, 400), "g": ["a", "b"] * 200})
    fed = Federation.local({"A": rows, "B": rows}, seed=1)
    result = fed.quantiles("v", [0.5, 0.9], by="g", method=["yj-table", "interpolation"])
    assert isinstance(result, QuantileSummary)
    answer = result.to_dict()
    assert [m["method"] for m in answer["methods"]] == ["yj-table", "interpolation"]
    one = answer["methods"][0]
    assert {"method", "rounds", "quantiles", "refusals"} <= set(one)
    assert [(q["group"], q["p"]) for q in one["quantiles"]] == [
        ("a", 0.5),
        ("a", 0.9),
        ("b", 0.5),
        ("b", 0.9),
    ]
    assert one["quantiles"][0]["low"] is None
    text = str(result)
    assert "yj-table" in text
    assert "interpolation" in text


def test_a_single_p_and_several_variables() -> None:
    rows = pl.DataFrame({"v": np.arange(200.0), "w": np.arange(200.0) ** 2, "s": ["x"] * 200})
    fed = Federation.local({"A": rows}, seed=1)
    median = fed.quantiles("v", 0.5)
    assert estimates(median) == pytest.approx([99.5], abs=2)
    several = fed.quantiles(["v", "w", "s"], 0.5)
    assert isinstance(several, ManyQuantiles)
    assert len(several.results) == 2
    assert several.to_dict()["problems"][0]["value"] == "s"


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0, 1, -0.1, float("nan"), [0.5, 2]])
def test_p_outside_the_open_interval(p: Any) -> None:
    with pytest.raises(InputError, match=r"must lie in \(0, 1\)"):
        federation(people()).quantiles("v", p)


def test_p_given_as_percent_has_a_hint() -> None:
    with pytest.raises(InputError, match=r"got 25\. Hint: for the 25th percentile use 0\.25"):
        federation(people()).quantiles("v", 25)


def test_fewer_than_three_inner_limits_give_no_number_but_a_reason() -> None:
    result = federation({"A": np.arange(35.0)}).quantiles("v", method="yj-table")
    for quantile in result.quantiles:  # type: ignore[union-attr]
        assert quantile.estimate is None
        assert "3" in str(quantile.note)


def test_identical_values_give_no_number_but_a_reason() -> None:
    fed = federation({"A": np.ones(200)})
    for method in ("yj-table", "interpolation", "yj-grid", "yj-likelihood"):
        result = fed.quantiles("v", method=method)
        for quantile in result.quantiles:  # type: ignore[union-attr]
            assert quantile.estimate is None
            assert quantile.note


def test_a_declared_limit_that_the_data_break_is_refused() -> None:
    fed = federation({"A": np.arange(-50.0, 50.0)}, variables={"v": Variable(lower=0)})
    with pytest.raises(RefusedError, match="outside the limits"):
        fed.quantiles("v")


@pytest.mark.parametrize(
    "method",
    ["parallel", "yj-table", "yj-likelihood", "yj-grid", "interpolation", "paper-grid"],
)
def test_an_unknown_variable_names_those_that_are_there(method: str) -> None:
    with pytest.raises(InputError, match=r"no center has a variable 'w'\. There are: v"):
        federation(people(), policy=ITERATION).quantiles("w", method=method)


def test_unknown_methods() -> None:
    with pytest.raises(InputError, match=r"method must be one of parallel, .* got 'median'"):
        federation(people()).quantiles("v", method="median")


def test_small_groups_do_not_tell_their_powers() -> None:
    fed = federation({**people(), "D": np.arange(25.0)}, policy=ITERATION)
    result = fed.quantiles("v", method="paper-grid")
    assert [(r.center, r.reason) for r in result.refusals] == [("D", "too-small")]


def test_a_group_that_is_refused_does_not_stop_the_others() -> None:
    random = np.random.default_rng(3)
    rows = pl.DataFrame({"v": random.gamma(4, 1, 300), "g": ["x"] * 280 + ["y"] * 20})
    fed = Federation.local({"A": rows}, policy=ITERATION, seed=1)
    result = fed.quantiles("v", 0.5, by="g", method=["all", "paper-grid"])
    assert isinstance(result, QuantileSummary)
    computed = {(r.method, q.group): q for r in result.results for q in r.quantiles}
    assert computed["yj-table", "x"].estimate is not None
    for method in ("yj-likelihood", "paper-grid"):
        assert computed[method, "x"].estimate is not None
        assert computed[method, "y"].estimate is None
    assert "at least 2 boundaries" in str(computed["yj-likelihood", "y"].note)
    assert computed["paper-grid", "y"].note == "no center could answer"
    assert ("A", "too-small") in {(r.center, r.reason) for r in result.refusals}


def test_declared_limits_bound_the_estimates() -> None:
    values = np.round(np.random.default_rng(4).exponential(2, 400))
    for variables, lowest in (({"v": Variable(lower=0)}, 0.0), ({}, -np.inf)):
        fed = federation({"A": values}, variables=variables)
        result = fed.quantiles("v", [0.001, 0.5], method="yj-table")
        assert isinstance(result, QuantilesResult)
        assert result.tables[0].edges[0] == lowest
        if variables:
            estimate = result.quantiles[0].estimate
            assert estimate is None or estimate >= 0
