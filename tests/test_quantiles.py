"""Quantiles over centers: pooled SciPy and NumPy as oracles, and what goes wrong."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.golden import cases
from unpooled import Federation, Policy, Variable
from unpooled.errors import InputError, RefusedError
from unpooled.maths.yeo_johnson import fit_likelihood, power_moments
from unpooled.results.quantiles import QuantilesResult, QuantileSummary
from unpooled.results.several import SeveralQuantiles

P = [0.02, 0.25, 0.5, 0.75, 0.98]


def people(seed: int = 1) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.gamma(4, 1, n) for name, n in (("A", 307), ("B", 250), ("C", 143))}


def federation(values: dict[str, Any], **kwargs: Any) -> Federation:
    return Federation.local({k: pl.DataFrame({"v": v}) for k, v in values.items()}, **kwargs)


def estimates(result: Any) -> list[float | None]:
    return [q.estimate for q in result.quantiles]


# --- oracles -----------------------------------------------------------------------------------


def test_the_likelihood_equals_scipys_pooled_fit() -> None:
    centers = people()
    pooled = np.concatenate(list(centers.values()))
    z, lam = stats.yeojohnson(pooled)
    fit = fit_likelihood(lambda lambdas: power_moments(pooled, lambdas))
    assert fit.lam == pytest.approx(lam, abs=1e-6)
    result = federation(centers).quantiles("v", P, method="yj-likelihood")
    expected = z.mean() + z.std() * stats.norm.ppf(P)
    assert estimates(result) == pytest.approx(np.expm1(np.log1p(expected * lam) / lam), rel=1e-6)
    assert isinstance(result, QuantilesResult)
    assert result.rounds <= 4


def test_the_grid_is_close_to_the_likelihood_in_one_pass() -> None:
    fed = federation(people())
    likelihood = estimates(fed.quantiles("v", P, method="yj-likelihood"))
    grid = fed.quantiles("v", P, method="yj-grid")
    assert estimates(grid) == pytest.approx(likelihood, rel=1e-4)
    assert isinstance(grid, QuantilesResult)
    assert grid.rounds == 1


def test_the_loss_finds_a_minimiser_of_the_pooled_loss_where_the_policy_allows_it() -> None:
    centers = people()
    pooled = np.concatenate(list(centers.values()))
    result = federation(centers, policy=Policy(quantile_loss=True)).quantiles("v", P, method="loss")

    def loss(q: float, p: float) -> float:
        return float(np.where(pooled < q, (1 - p) * (q - pooled), p * (pooled - q)).sum())

    for p, estimate in zip(P, estimates(result), strict=True):
        assert estimate is not None
        best = min(loss(value, p) for value in pooled)
        assert loss(estimate, p) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("case", cases("quantiles"), ids=lambda case: case["id"])
def test_golden_quantiles_come_out(case: dict[str, Any]) -> None:
    given = case["inputs"]
    # the reference places boundaries in the middle; only what does not depend on them is compared
    fed = federation({f"c{i}": v for i, v in enumerate(given["centers"])})
    found = estimates(fed.quantiles("v", given["q"], method="yj-likelihood"))
    assert found == pytest.approx(case["reference"]["normal_quantile"], rel=1e-4)


def test_one_pass_methods_are_close_to_the_truth() -> None:
    truth = stats.gamma(4).ppf(P)
    for method in ("yj-table", "interpolation", "yj-grid"):
        found = np.array(estimates(federation(people()).quantiles("v", P, method=method)))
        assert found[1:4] == pytest.approx(truth[1:4], rel=0.1)
        assert found[[0, 4]] == pytest.approx(truth[[0, 4]], rel=0.35)


# --- the result --------------------------------------------------------------------------------


def test_quantiles_per_group_and_side_by_side() -> None:
    random = np.random.default_rng(5)
    rows = pl.DataFrame({"v": random.gamma(4, 1, 400), "g": ["a", "b"] * 200})
    fed = Federation.local({"A": rows, "B": rows}, seed=1)
    result = fed.quantiles("v", [0.5, 0.9], by="g", method=["yj-table", "interpolation"])
    assert isinstance(result, QuantileSummary)
    told = result.to_dict()
    assert [m["method"] for m in told["methods"]] == ["yj-table", "interpolation"]
    one = told["methods"][0]
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
    assert isinstance(several, SeveralQuantiles)
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


def test_the_loss_is_refused_with_the_reason() -> None:
    with pytest.raises(RefusedError, match="gives every single value away") as caught:
        federation(people()).quantiles("v", method="loss")
    assert {r.reason for r in caught.value.refusals} == {"loss-off"}


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
    "method", ["parallel", "yj-table", "yj-likelihood", "yj-grid", "interpolation", "loss"]
)
def test_an_unknown_variable_names_those_that_are_there(method: str) -> None:
    with pytest.raises(InputError, match=r"no center has a variable 'w'\. There are: v"):
        federation(people(), policy=Policy(quantile_loss=True)).quantiles("w", method=method)


def test_unknown_methods() -> None:
    with pytest.raises(InputError, match=r"method must be one of parallel, .* got 'median'"):
        federation(people()).quantiles("v", method="median")


def test_small_groups_do_not_tell_their_powers() -> None:
    result = federation({**people(), "D": np.arange(25.0)}).quantiles("v", method="yj-grid")
    assert [(r.center, r.reason) for r in result.refusals] == [("D", "too-many-powers")]


def test_rounded_powers_still_give_good_quantiles() -> None:
    exact = estimates(federation(people()).quantiles("v", P, method="yj-likelihood"))
    policy = Policy(power_digits=5)
    rounded = estimates(
        federation(people(), policy=policy).quantiles("v", P, method="yj-likelihood")
    )
    assert rounded == pytest.approx(exact, rel=2e-3)


def test_a_group_that_is_refused_does_not_stop_the_others() -> None:
    random = np.random.default_rng(3)
    rows = pl.DataFrame({"v": random.gamma(4, 1, 300), "g": ["x"] * 280 + ["y"] * 20})
    result = Federation.local({"A": rows}, seed=1).quantiles("v", 0.5, by="g", method="all")
    assert isinstance(result, QuantileSummary)
    found = {(r.method, q.group): q for r in result.results for q in r.quantiles}
    assert found["yj-table", "x"].estimate is not None
    assert found["yj-likelihood", "x"].estimate is not None
    assert found["yj-likelihood", "y"].estimate is None
    assert found["yj-likelihood", "y"].note == "no center could answer"
    assert ("A", "too-many-powers") in {(r.center, r.reason) for r in result.refusals}


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
