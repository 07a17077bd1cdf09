"""Quantiles and distributions from one parallel round, against the pooled people."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from unpooled import Federation, Policy, Variable
from unpooled.errors import InputError, RefusedError
from unpooled.maths.arrays import FloatArray
from unpooled.results.numbers.distribution import DistributionResult
from unpooled.results.numbers.quantiles import QuantilesResult
from unpooled.results.provenance.refusals import TOO_LITTLE

P = [0.02, 0.25, 0.5, 0.75, 0.98]


def rows(seed: int = 1, n: int = 1500) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "v": random.gamma(4, 1, n),
            "w": random.normal(0, 1, n),
            "g": random.choice(["x", "y"], n),
            "h": random.choice(list("ABCDE"), n),
        }
    )


def federation(frame: pl.DataFrame | None = None, **settings: object) -> Federation:
    data = rows() if frame is None else frame
    return Federation.split(data, center="h", seed=1, **settings)  # type: ignore[arg-type]


def quantiles(fed: Federation, *args: object, **settings: object) -> QuantilesResult:
    result = fed.quantiles(*args, **settings)  # type: ignore[arg-type]
    assert isinstance(result, QuantilesResult)
    return result


def test_it_is_the_default_in_one_round_and_near_the_pooled_quantiles() -> None:
    """Within two standard errors of the pooled estimate, whose density SciPy gives."""
    result = quantiles(federation(), "v", P)
    assert (result.method, result.rounds) == ("parallel", 1)
    pooled = np.quantile(rows()["v"].to_numpy(), P)
    error = np.sqrt(np.array(P) * (1 - np.array(P)) / 1500) / stats.gamma(4).pdf(pooled)
    computed = np.array([q.estimate for q in result.quantiles])
    assert np.all(np.abs(computed - pooled) < 2 * error)
    for q in result.quantiles:
        assert q.low is not None
        assert q.high is not None
        assert q.low < stats.gamma(4).ppf(q.p) < q.high


def test_groups_need_no_round_of_their_own() -> None:
    result = quantiles(federation(), "v", [0.5], by="g")
    assert result.rounds == 1
    assert [q.group for q in result.quantiles] == ["x", "y"]
    pooled = {g: d["v"].median() for (g,), d in rows().group_by("g")}
    for q in result.quantiles:
        assert q.estimate == pytest.approx(pooled[q.group], abs=0.1)


def test_a_quantile_beyond_all_boundaries_is_flagged() -> None:
    notes = [q.note for q in quantiles(federation(), "v", [0.001, 0.5, 0.999]).quantiles]
    assert [note is not None and "outside all boundaries" in note for note in notes] == [
        True,
        False,
        True,
    ]


def test_a_quantile_beyond_which_nobody_is_expected_has_no_estimate() -> None:
    """Of 700 people 0.7 lie beyond .999. The others have intervals; at .02 they hold the truth."""
    p = [0.0001, 0.001, 0.002, 0.02, 0.98, 0.998, 0.999, 0.9999]
    far = [q in (0.0001, 0.001, 0.999, 0.9999) for q in p]
    result = quantiles(federation(rows(n=700)), "v", p).quantiles
    assert [q.estimate is None for q in result] == far
    for q in result:
        if q.estimate is None:
            assert q.note == "fewer than one person is expected beyond it"
        else:
            assert q.low is not None
            assert q.high is not None
            assert q.low < q.high
            assert q.p not in P or q.low < stats.gamma(4).ppf(q.p) < q.high


@pytest.mark.parametrize("resolution", [None, 1.0])
def test_a_value_that_many_share_is_known_however_far_out(resolution: float | None) -> None:
    random = np.random.default_rng(1)
    score = np.where(random.random(400) < 0.2, 5.0, random.uniform(1, 5, 400))
    score = score if resolution is None else np.round(score)
    facts = {"v": Variable(resolution=resolution, lower=0, upper=5)}
    fed = Federation.local({"A": pl.DataFrame({"v": score})}, variables=facts, seed=1)
    (top,) = quantiles(fed, "v", [0.9999]).quantiles
    assert (top.estimate, top.low, top.high) == (5.0, 5.0, 5.0)


def test_a_cell_that_holds_many_people_is_flagged() -> None:
    """Heavily skewed people: the lattice of the middle half has no points among the low ones."""
    skewed = pl.DataFrame({"v": np.exp(np.random.default_rng(2).normal(0, 4, 600))})
    result = quantiles(Federation.local({"A": skewed}, seed=1), "v", [0.1, 0.25])
    assert all(q.note is not None for q in result.quantiles)


@pytest.mark.parametrize("away", [1e6, 1e9, -1e9])
def test_people_far_from_zero_are_answered_for(away: float) -> None:
    """Numbers of their size have few digits left for the rounding of moments."""
    random = np.random.default_rng(1)
    for _ in range(5):
        x = away + 1e-9 * abs(away) * random.normal(size=100)
        (q,) = quantiles(
            Federation.local({"A": pl.DataFrame({"v": x})}, seed=1), "v", [0.5]
        ).quantiles
        assert q.estimate == pytest.approx(np.median(x), abs=0.5e-9 * abs(away), rel=0)


def test_people_closer_than_cells_can_tell_are_flagged() -> None:
    """Half of a chi-square with one degree of freedom: its density has a pole at 0."""
    crowded = pl.DataFrame({"v": np.random.default_rng(3).gamma(0.5, size=1500)})
    facts = {"v": Variable(lower=0.0)}
    low, middle = quantiles(
        Federation.local({"A": crowded}, variables=facts, seed=1), "v", [0.02, 0.5]
    ).quantiles
    assert low.note == "its cells tell less than their people would"
    assert middle.note is None
    assert low.low is not None
    assert low.high is not None
    assert low.low < stats.gamma(0.5).ppf(0.02) < low.high


def test_an_open_tail_of_few_values_has_no_estimate_unless_its_limits_are_known() -> None:
    """A score from 1 to 5: nothing told says that it ends there."""
    score = pl.DataFrame({"v": np.random.default_rng(1).integers(1, 6, 64)})
    open_, bounded = (
        quantiles(Federation.local({"A": score}, variables=facts, seed=1), "v", [0.5, 0.98])
        for facts in ({}, {"v": Variable(resolution=1, lower=1, upper=5)})
    )
    assert [q.estimate is None for q in open_.quantiles] == [False, True]
    assert "declare the variable's limits" in str(open_.quantiles[1].note)
    assert bounded.quantiles[1].estimate == 5.0


def test_possible_values_stay_possible() -> None:
    random = np.random.default_rng(5)
    days = pl.DataFrame({"v": random.poisson(6, 900), "h": random.choice(list("AB"), 900)})
    fed = federation(days, variables={"v": Variable(resolution=1, lower=0)})
    answer = np.array([q.estimate for q in quantiles(fed, "v", P).quantiles])
    exact = np.quantile(days["v"].to_numpy(), P, method="inverted_cdf")
    assert np.all(answer == np.round(answer))
    assert np.all(np.abs(answer - exact) <= [1, 0, 0, 0, 1])


def test_zeros_that_many_share_stay_zeros() -> None:
    random = np.random.default_rng(6)
    values = np.where(random.random(900) < 0.4, 0.0, random.gamma(2, 1, 900))
    costs = pl.DataFrame({"v": values, "h": random.choice(list("AB"), 900)})
    fed = federation(costs, variables={"v": Variable(lower=0, atoms=(0,))})
    low, high = quantiles(fed, "v", [0.2, 0.7]).quantiles
    assert (low.estimate, low.low, low.high) == (0.0, 0.0, 0.0)
    assert high.estimate == pytest.approx(np.quantile(values, 0.7), abs=0.15)


def test_zeros_of_rounded_data_have_a_cell_and_make_no_center_differ() -> None:
    """Told at 0 and placed around it, every center seemed to have more of them than all others."""
    random, n = np.random.default_rng(3), 900
    amounts = np.round(random.gamma(2, 3, n), 1)
    frame = pl.DataFrame(
        {"v": np.where(random.random(n) < 0.4, 0.0, amounts), "h": ["A", "B", "C"] * 300}
    )
    declared = Variable(atoms=(0.0,), resolution=0.1, lower=0.0)
    result = quantiles(federation(frame, variables={"v": declared}), "v", [0.02, 0.25, 0.5])
    assert [(q.estimate, q.low, q.high, q.note) for q in result.quantiles[:2]] == [
        (0, 0, 0, None)
    ] * 2
    assert "differs" not in str(result)


def ages(seed: int) -> dict[str, pl.DataFrame]:
    random = np.random.default_rng(seed)
    return {name: pl.DataFrame({"v": np.round(random.normal(55, 15, 700))}) for name in "ABC"}


def test_rounding_that_nobody_declared_is_found() -> None:
    """On whole years lattice points fell on possible values: half a year too low, .4 covered."""
    fed = Federation.local(ages(1), seed=1)
    declared = Federation.local(ages(1), variables={"v": Variable(resolution=1)}, seed=1)
    result = quantiles(fed, "v", P).quantiles
    assert result == quantiles(declared, "v", P).quantiles
    assert all(q.estimate == round(q.estimate or 0.5) for q in result)


def test_rounded_data_have_no_bias() -> None:
    errors = []
    for seed in range(12):
        pooled = np.concatenate([frame["v"].to_numpy() for frame in ages(seed).values()])
        result = quantiles(Federation.local(ages(seed), seed=1), "v", [0.25, 0.5, 0.75]).quantiles
        full = np.quantile(pooled, [0.25, 0.5, 0.75], method="inverted_cdf")
        errors.append([(q.estimate or np.nan) - x for q, x in zip(result, full, strict=True)])
    assert np.abs(np.mean(errors, axis=0)).max() < 0.3


@pytest.mark.parametrize(
    ("other", "possible"), [(np.arange(400) / 10, 0.1), (np.sqrt(np.arange(400.0)), None)]
)
def test_centers_that_round_differently_have_the_finest_resolution(
    other: FloatArray, possible: float | None
) -> None:
    frames = ages(1) | {"D": pl.DataFrame({"v": other})}
    fed = Federation.local(frames, seed=1)
    estimates = np.array([q.estimate for q in quantiles(fed, "v", P).quantiles], dtype=float)
    tenths = np.array_equal(estimates, np.round(estimates, 1))
    assert tenths == (possible is not None)


def test_after_a_table_of_the_chain_rounded_data_are_as_they_were() -> None:
    random = np.random.default_rng(3)
    frames = {
        name: pl.DataFrame({"v": np.clip(np.round(random.normal(3, 1, 300)), 1, 5)})
        for name in "ABC"
    }
    fresh, used = (Federation.local(frames, seed=1) for _ in range(2))
    used.table("v")
    quartiles = [0.25, 0.5, 0.75]
    answer = [
        [q.estimate for q in quantiles(fed, "v", quartiles).quantiles] for fed in (fresh, used)
    ]
    assert answer[0] == answer[1]


def test_multiples_of_two_and_of_five_are_whole_numbers() -> None:
    random = np.random.default_rng(4)
    pressure = random.normal(125, 15, 600)
    frames = {
        "A": pl.DataFrame({"v": 2 * np.round(pressure[:300] / 2)}),
        "B": pl.DataFrame({"v": 5 * np.round(pressure[300:] / 5)}),
    }
    result = quantiles(Federation.local(frames, seed=1), "v", P[1:4]).quantiles
    assert all(q.estimate == round(q.estimate or 0.5) for q in result)


def test_a_center_where_most_share_a_value_takes_no_grid_away() -> None:
    random = np.random.default_rng(5)
    frames = {name: pl.DataFrame({"v": random.poisson(5, 300).astype(float)}) for name in "AB"}
    frames["C"] = pl.DataFrame({"v": [3.0] * 100 + [4.0] * 15})
    result = quantiles(Federation.local(frames, seed=1), "v", P).quantiles
    assert all(q.estimate == round(q.estimate or 0.5) for q in result)


@pytest.mark.parametrize("lower", [0.5, 1 / 3])
def test_a_limit_need_not_be_a_possible_value(lower: float) -> None:
    random = np.random.default_rng(6)
    frames = {name: pl.DataFrame({"v": 1.0 + random.poisson(9, 300)}) for name in "AB"}
    fed = Federation.local(frames, variables={"v": Variable(lower=lower)}, seed=1)
    result = quantiles(fed, "v", P).quantiles
    assert all(q.estimate == round(q.estimate or 0.5) for q in result)


def test_there_is_no_negative_zero() -> None:
    random = np.random.default_rng(7)
    frames = {name: pl.DataFrame({"v": random.integers(0, 2, 300)}) for name in "AB"}
    low = quantiles(Federation.local(frames, seed=1), "v", [0.1]).quantiles[0]
    assert str(low.estimate) == str(low.low) == "0.0"


@pytest.mark.parametrize(
    "analyst", [Variable(resolution=5), Variable(lower=-50), Variable(upper=500)]
)
def test_tables_are_read_as_their_center_means_them(analyst: Variable) -> None:
    """An analyst with another codebook got 200 for the .98 quantile of ages, and 0 as median."""
    random = np.random.default_rng(8)
    frames = {name: pl.DataFrame({"v": np.round(random.normal(55, 15, 32))}) for name in "ABC"}
    fed = Federation.local(frames, seed=1)
    same = [q.estimate for q in quantiles(fed, "v", P).quantiles]
    fed._variables = {"v": analyst}
    assert [q.estimate for q in quantiles(fed, "v", P).quantiles] == same


def spread(values: FloatArray, declared: Variable) -> Federation:
    frames = {name: pl.DataFrame({"v": part}) for name, part in zip("AB", values, strict=True)}
    return Federation.local(frames, variables={"v": declared}, seed=1)


def test_a_false_resolution_is_refused_and_a_fine_one_is_not() -> None:
    """Of continuous values the median was 4 (4 to 4); of whole numbers quartiles were 7.7, 15.4."""
    exact = np.random.default_rng(3).gamma(4, 1, (2, 200))
    whole = np.round(3 * exact)
    for values, false in ((exact, 1.0), (exact, 0.01), (whole, 0.7), (whole, 2.0)):
        with pytest.raises(RefusedError, match="between the multiples of the resolution"):
            quantiles(spread(values, Variable(resolution=false)), "v", P)
    few = whole.copy()
    few[:, :9] += 0.5  # fewer than K at each center
    for values, true in ((whole, 1.0), (whole, 0.1), (whole / 7, 1 / 7), (few, 1.0)):
        assert quantiles(spread(values, Variable(resolution=true)), "v", P).quantiles


@pytest.mark.parametrize("declared", [Variable(), Variable(resolution=1e7)])
def test_a_resolution_may_be_large(declared: Variable) -> None:
    """Cells per liter, in tens of millions: 1 was taken for a multiple, and divided by 0."""
    cells = 1e7 * np.round(np.random.default_rng(3).normal(700, 20, (2, 200)))
    result = quantiles(spread(cells, declared), "v", P).quantiles
    median = np.quantile(cells, 0.5, method="inverted_cdf")
    assert abs((result[2].estimate or 0) - median) <= 3e7
    assert all((q.estimate or 1) % 1e7 == 0 for q in result)


def test_a_resolution_that_an_analyst_alone_declares_is_not_believed() -> None:
    """No center checked it: the median of continuous values was 4 (4 to 4)."""
    fed = spread(np.random.default_rng(3).gamma(4, 1, (2, 200)), Variable())
    same = quantiles(fed, "v", P).quantiles
    fed._variables = {"v": Variable(resolution=1)}
    assert quantiles(fed, "v", P).quantiles == same


@pytest.mark.parametrize("values", [(3.0, 3.0), (3.0, 4.0)])
def test_a_column_of_one_value_has_quantiles(values: tuple[float, float]) -> None:
    frame = pl.DataFrame({"v": np.repeat(values, 60), "h": np.repeat(["A", "B"], 60)})
    result = quantiles(federation(frame), "v", [0.1, 0.9]).quantiles
    assert [(q.estimate, q.low, q.high, q.note) for q in result] == [
        (v, v, v, None) for v in values
    ]


def test_a_limit_declared_far_outside_costs_little() -> None:
    """Moments were rounded to a part of the cell up to that limit: all intervals missed."""
    random, truth = np.random.default_rng(4), 80 * np.exp(0.35 * stats.norm.ppf(0.98))
    sizes, covered = (60, 120, 200, 80, 40), 0
    for _ in range(12):
        centers = {str(n): 80 * np.exp(0.35 * random.normal(size=n)) for n in sizes}
        frames = {name: pl.DataFrame({"v": values}) for name, values in centers.items()}
        declared = {"v": Variable(lower=0, upper=20_000)}
        result = quantiles(
            Federation.local(frames, variables=declared, seed=1), "v", [0.98]
        ).quantiles[0]
        assert result.low is not None
        assert result.high is not None
        covered += result.low <= truth <= result.high
        assert result.high - result.low < 60
    assert covered >= 9


def test_the_order_of_centers_does_not_matter() -> None:
    random = np.random.default_rng(1)
    frames = {name: pl.DataFrame({"v": random.normal(130, 15, 200)}) for name in "ABCDE"}
    turned = dict(reversed(frames.items()))
    local = partial(Federation.local, seed=1)
    one, other = (quantiles(local(f), "v", P).quantiles for f in (frames, turned))
    assert [q.estimate for q in one] == pytest.approx([q.estimate for q in other], rel=1e-9)


def test_all_has_it_beside_the_papers_methods() -> None:
    both = federation().quantiles("v", [0.5], method="all")
    methods = [r["method"] for r in both.to_dict()["methods"]]
    assert methods == ["parallel", "yj-table", "yj-likelihood", "yj-grid", "interpolation"]


def test_a_group_below_two_cells_of_people_has_a_note_and_the_others_numbers() -> None:
    few = pl.DataFrame({"v": np.arange(60.0), "g": ["x"] * 45 + ["y"] * 15})
    fed = Federation.local({"A": few}, seed=1)
    result = quantiles(fed, "v", 0.5, by="g", groups=("x", "y"))
    assert [q.estimate is None for q in result.quantiles] == [False, True]
    assert [(r.center, r.group, r.reason) for r in result.refusals] == [("A", "y", "too-small")]
    with pytest.raises(RefusedError, match="fewer than 20 people"):
        fed.quantiles("v", by="g", groups=("y",))


def test_two_open_cells_without_means_are_left_out_and_named() -> None:
    few = {"A": pl.DataFrame({"v": np.arange(25.0)}), "B": pl.DataFrame({"v": np.arange(200.0)})}
    result = quantiles(
        Federation.local(few, policy=Policy(ad_hoc="free", moments="none"), seed=1), "v", 0.5
    )
    assert [(r.center, r.reason) for r in result.refusals] == [("A", "few-cells")]
    assert result.quantiles[0].estimate == pytest.approx(99.5, abs=3)


def test_where_every_center_answered_nobody_says_that_none_did() -> None:
    """It told both tables; the coordinator cannot place 25 people in two open cells."""
    ages = np.concatenate((np.arange(25.0), np.arange(200.0)))
    frame = pl.DataFrame({"v": ages, "g": ["x"] * 25 + ["y"] * 200, "h": "A"})
    fed = federation(frame, policy=Policy(ad_hoc="free", moments="none"))
    noted = quantiles(fed, "v", 0.5, by="g", groups=("x", "y")).quantiles[0]
    assert (noted.group, noted.note) == ("x", TOO_LITTLE)
    with pytest.raises(RefusedError, match=f"^{TOO_LITTLE}:\n  A, x: .*few-cells"):
        fed.quantiles("v", 0.5, by="g", groups=["x"])
    with pytest.raises(RefusedError, match=f"^{TOO_LITTLE}:\n  A, x: .*few-cells"):
        fed.compare("v", by="g", groups=("x", "y"), method="parallel")


def test_several_variables() -> None:
    several = federation().quantiles(["v", "w"], [0.5])
    assert [r["method"] for r in several.to_dict()["results"]] == ["parallel", "parallel"]
    assert str(several).count(" to ") == 2  # intervals


def test_of_several_variables_a_refusal_names_its_own() -> None:
    few = (pl.col("h") == "C") & (pl.col("w") < 5)
    frame = rows().with_columns(w=pl.when(few).then(None).otherwise(pl.col("w")))
    alone, both = ["v", "w"], ["w", "u"]
    fed = federation(frame.with_columns(u=pl.col("w") + 1.0))
    refusal = "C: no one has a value (all-missing)"
    assert f"refused: w, {refusal}" in str(fed.quantiles(alone, [0.5]))
    assert f"refused: {refusal}" in str(fed.quantiles(both, [0.5]))


def test_a_smooth_table_prints_its_bands_and_who_differs() -> None:
    frame = rows().with_columns(v=pl.col("v") + 3.0 * (pl.col("h") == "C"))
    answer = str(federation(frame).table("v", method="parallel"))
    assert "note: C differs from the other centers" in answer
    assert answer.count(" to ") > 20


def test_plain_values_say_which_center_differs_and_where() -> None:
    frame = rows().with_columns(v=pl.col("v") + 3.0 * (pl.col("h") == "C"))
    answer = json.loads(json.dumps(quantiles(federation(frame), "v", [0.5]).to_dict()))
    deviations = {one["center"]: one["deviation"] for one in answer["centers"]}
    assert min(deviations, key=lambda center: deviations[center]["p_value"]) == "C"
    assert deviations["C"]["difference"] < -0.2
    assert any(note.startswith("C differs from the other centers") for note in answer["notes"])


def test_something_else_than_a_probability_is_named() -> None:
    with pytest.raises(InputError, match=r"p must be numbers in \(0, 1\), got 'a'"):
        federation().quantiles("v", "a")  # type: ignore[arg-type]


def test_something_else_than_a_variable_is_named() -> None:
    with pytest.raises(InputError, match=r"got dict for 'v'\. Hint: variables=\{'v'"):
        federation(variables={"v": {"lower": 0}})


def test_the_smooth_table_has_the_shape_of_a_table(tmp_path: Path) -> None:
    fed = federation()
    smooth = fed.table("v", by="g", method="parallel")
    assert isinstance(smooth, DistributionResult)
    assert smooth.counts.shape == (2, len(smooth.edges) - 1)
    assert smooth.counts.sum(axis=1) == pytest.approx([(rows()["g"] == g).sum() for g in "xy"])
    exact = [
        np.histogram(rows().filter(pl.col("g") == g)["v"], smooth.edges[1:-1])[0] for g in "xy"
    ]
    assert np.abs(smooth.counts[:, 1:-1] - exact).max() < 25
    low, high = smooth.count_bands()
    assert np.mean((low[:, 1:-1] <= exact) & (exact <= high[:, 1:-1])) > 0.9
    answer = smooth.to_dict()
    assert {"edges", "groups", "counts", "curves", "method"} <= set(answer)
    assert len(answer["curves"][0]["cdf_low"]) == len(answer["curves"][0]["x"])
    assert "smooth distribution" in str(smooth)
    assert smooth.report(tmp_path / "smooth.html").read_text().count("<svg") >= 2
    with pytest.raises(InputError, match="chain or parallel, got 'kernel'"):
        fed.table("v", method="kernel")


def test_the_report_of_quantiles_draws_the_distribution(tmp_path: Path) -> None:
    page = quantiles(federation(), "v", P, by="g").report(tmp_path / "q.html").read_text()
    assert "The smooth density with its 95 % band" in page
