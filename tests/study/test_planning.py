"""Planning, against the textbook power of the Mann-Whitney test and simple truths."""

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
import typer
from scipy.stats import norm
from typer.testing import CliRunner

from unpooled import Federation
from unpooled.apps.cli.analyses import command_of_package
from unpooled.apps.cli.options import CommandWithRows
from unpooled.errors import InputError
from unpooled_study.commands import plan, run_plan
from unpooled_study.planning import (
    Plan,
    PlanResult,
    ProportionPlan,
    SurvivalPlan,
    make_plan,
    read_family,
)
from unpooled_study.simulations.families import Gamma, Normal
from unpooled_study.simulations.monte_carlo import share
from unpooled_study.simulations.runs import run

COMMAND = typer.Typer()
COMMAND.command(cls=CommandWithRows)(command_of_package(plan))


def textbook_power(n: int, effect: float) -> float:
    """Noether's approximation, two-sided at .05, n people in each group."""
    away = norm.cdf(effect / math.sqrt(2)) - 0.5
    return float(norm.cdf(away * math.sqrt(6 * n) - norm.ppf(0.975)))


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> PlanResult:
    asked = Plan((60, 40), (60, 40), 0.35, power=0.8, p=(0.5, 0.9))
    return make_plan(asked, 300, 1, 1, tmp_path_factory.mktemp("plan"))


def test_the_pooled_power_is_the_textbooks(planned: PlanResult) -> None:
    row = planned.powers[0]
    assert row["method"] == "combined"
    assert abs(row["power"] - textbook_power(100, 0.35)) < 4 * row["error"]


def test_the_people_needed_are_the_textbooks(planned: PlanResult) -> None:
    needed = {row["method"]: row for row in planned.needed}
    exact = next(n for n in range(10, 1000) if textbook_power(n, 0.35) >= 0.8)
    assert needed["combined"]["people"] == pytest.approx(2 * exact, rel=0.2)
    assert needed["combined"]["times_pooled"] == 1.0
    assert needed["fisher"]["people"] > needed["weighted"]["people"]


def test_more_people_have_more_power(planned: PlanResult) -> None:
    curve = [row["power"] for row in planned.curve if row["method"] == "weighted"]
    assert curve[-1] >= 0.8 > curve[0]


def test_the_pooled_median_has_its_textbook_error(planned: PlanResult) -> None:
    row = planned.precisions[0]
    assert (row["p"], row["method"], row["times_pooled"]) == (0.5, "sample", 1.0)
    assert row["standard_error"] == pytest.approx(1.2533 / math.sqrt(100), rel=0.15)


def test_effects_that_vary_put_the_target_out_of_reach(tmp_path: Path) -> None:
    asked = Plan((200, 200), (200, 200), 0.0, power=0.8)
    result = make_plan(asked, 20, 1, 1, tmp_path)
    assert all(row["people"] is None for row in result.needed)
    assert "–" in str(result)


def test_centers_below_k_are_no_use(tmp_path: Path) -> None:
    result = make_plan(Plan((9, 9), (9, 9), 5.0), 20, 1, 1, tmp_path)
    powers = {row["method"]: row["power"] for row in result.powers}
    assert powers["combined"] == 1.0
    assert powers["weighted"] == powers["table"] == powers["parallel"] == 0.0


@pytest.mark.parametrize("effect", [0.0, 0.4])
def test_the_power_of_table_is_how_often_compare_rejects(effect: float, tmp_path: Path) -> None:
    """The paper's test of the chain's counts would reject .40 and .72 of these samples."""
    (setting,) = (
        one for one in Plan((100,) * 5, (20,) * 5, effect).tests() if "table" in one.methods
    )
    table = msgspec.structs.replace(setting, methods=("table",))  # the others take their time
    hits = run([table], 200, 1, 1, tmp_path)[table][:, 0] < math.log(0.05)
    planned = share(hits.astype(np.float64))
    rejected = [compared(seed, effect) < 0.05 for seed in range(30)]
    computed = share(np.array(rejected, dtype=np.float64))
    assert abs(planned.value - computed.value) < 3.5 * math.hypot(planned.error, computed.error)


def compared(seed: int, effect: float) -> float:
    """The p-value of the federation itself, with people of its own."""
    random = np.random.default_rng([7, seed])
    group = ["x"] * 100 + ["y"] * 20
    frames = {
        f"center {i}": pd.DataFrame({"v": random.normal(size=120), "group": group})
        for i in range(5)
    }
    for frame in frames.values():
        frame.loc[frame.group == "y", "v"] += effect
    with Federation.local(frames, k=10, seed=seed) as federation:
        return federation.compare("v", by="group", groups=("x", "y"), method="table").p_value


def test_where_no_center_has_both_groups_only_the_table_has_power(tmp_path: Path) -> None:
    result = make_plan(Plan((90, 9, 70), (9, 90, 9), 2.0), 20, 1, 1, tmp_path)
    powers = {row["method"]: row["power"] for row in result.powers}
    assert powers["table"] > 0.5
    assert powers["weighted"] == powers["sum"] == powers["fisher"] == 0.0
    assert "3 of 3 centers with one group below K = 10" in str(result)


def test_centers_too_small_for_powers_are_no_use_to_the_likelihood(tmp_path: Path) -> None:
    """46 people tell the powers of three rounds where K is 10."""
    few, enough = (
        make_plan(Plan(n, n, 0.0, p=(0.5,)), 20, 1, 1, tmp_path) for n in ((45, 40), (46, 40))
    )
    answer = [
        {row["method"]: row["standard_error"] for row in result.precisions}
        for result in (few, enough)
    ]
    assert answer[0]["yj-likelihood"] is None
    assert answer[0]["yj-table"] is not None
    assert answer[1]["yj-likelihood"] is not None
    assert "2 of 2 centers with fewer than 46 people" in str(few)
    assert few.to_dict()["refusals"] == list(few.plan.refusals())


def test_the_command_prints_json_and_draws(tmp_path: Path) -> None:
    chart = tmp_path / "power.svg"
    options = ["--sizes", "30,20", "--effect", "0.5", "--sims", "20", "--jobs", "1", "--json"]
    done = CliRunner().invoke(
        COMMAND, [*options, "--chart", str(chart), "--family", "gamma:shape=9"]
    )
    assert done.exit_code == 0, done.output
    answer = json.loads(done.output)
    assert answer["plan"]["family"] == {"name": "gamma", "shape": 9.0, "scale": 1.0}
    assert len(answer["powers"]) == 6
    assert chart.read_text(encoding="utf-8").startswith("<svg")


def test_families_by_name() -> None:
    assert read_family("normal") == Normal()
    assert read_family("gamma:shape=4,scale=2") == Gamma(4.0, 2.0)
    with pytest.raises(InputError, match="family must be such as"):
        read_family("gama")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sizes": "a,b"}, "sizes must be numbers"),
        ({"sizes_y": [10]}, "the same ones in both groups"),
        ({"alternative": "both"}, "alternative must be"),
        ({"power": 80.0}, r"power must lie in \(0, 1\), got 80"),
        ({"p": [25]}, r"p must lie in \(0, 1\), got 25"),
        ({"k": 0}, "k must be at least 1"),
        ({"center_sd": -1.0}, "center-sd must not be negative"),
    ],
)
def test_what_cannot_be_planned(change: dict[str, object], problem: str) -> None:
    asked: dict[str, object] = {"sizes": [30, 20], "effect": 0.5}
    with pytest.raises(InputError, match=problem):
        run_plan(True, **{**asked, **change})


def schoenfeld(events: float, ratio: float) -> float:
    """The power of the log-rank test of two equal groups, two-sided at .05."""
    return float(norm.cdf(abs(math.log(ratio)) * math.sqrt(events) / 2 - norm.ppf(0.975)))


def test_the_pooled_power_of_the_log_rank_test_is_the_textbooks(tmp_path: Path) -> None:
    asked = SurvivalPlan((60, 40, 30), (60, 40, 30), 0.65, 24.0, 60.0, dropout=0.1)
    result = make_plan(asked, 40, 1, 1, tmp_path)
    pooled, alone, joint = result.powers
    had = np.array(asked.events) @ (130, 130)
    assert pooled["power"] == pytest.approx(schoenfeld(float(had), 0.65), abs=4 * pooled["error"])
    assert alone["minus_pooled"] <= 0.1
    assert joint["power"] >= alone["power"] - 0.1
    rows = {(row["group"], row["method"]): row for row in result.precisions}
    error = math.sqrt(1 / 130 * 0.25 / (math.log(2) / 24 * 0.5) ** 2)  # 1/(2 f √n), nobody lost
    assert rows["x", "pooled"]["standard_error"] == pytest.approx(error, rel=0.3)
    assert rows["x", "alone"]["answered"] == 1
    assert "Standard error of medians" in str(result)


def test_small_centers_are_as_good_as_pooled_with_a_joint_center(tmp_path: Path) -> None:
    """Alone they tell times without statuses, and their medians are off."""
    sizes = (15,) * 6
    result = make_plan(SurvivalPlan(sizes, sizes, 0.5, 12.0, 24.0), 20, 1, 1, tmp_path)
    powers = {row["method"]: row["power"] for row in result.powers}
    assert powers["joint"] > powers["pooled"] - 0.2
    bias = {row["method"]: abs(row["bias"]) for row in result.precisions if row["group"] == "x"}
    assert bias["joint"] < 2 < bias["alone"]
    assert "6 of 6 centers expect fewer than K = 10 people of a group with one status" in str(
        result
    )


def test_the_power_of_two_proportions_is_the_textbooks(tmp_path: Path) -> None:
    asked = ProportionPlan((100, 80, 15, 15, 15), (100, 80, 15, 15, 15), 0.3, 0.42, power=0.8)
    result = make_plan(asked, 1000, 1, 1, tmp_path)
    pooled, alone, joint = result.powers
    error = math.sqrt((0.3 * 0.7 + 0.42 * 0.58) / 225)
    textbook = float(norm.cdf(0.12 / error - norm.ppf(0.975)))
    assert pooled["power"] == pytest.approx(textbook, abs=4 * pooled["error"])
    assert alone["power"] < joint["power"]
    rows = {row["method"]: row for row in result.precisions}
    assert rows["pooled"]["standard_error"] == pytest.approx(error, rel=0.1)
    assert rows["alone"]["times_pooled"] == pytest.approx(math.sqrt(225 / 180), rel=0.08)
    needed = {row["method"]: row["people"] for row in result.needed}
    assert needed["alone"] > needed["joint"]


def test_the_parallel_method_is_planned_too(planned: PlanResult) -> None:
    powers = {row["method"]: row for row in planned.powers}
    apart = math.hypot(powers["parallel"]["error"], powers["combined"]["error"])
    assert abs(powers["parallel"]["minus_pooled"]) < 3 * apart
    rows = {(row["p"], row["method"]): row for row in planned.precisions}
    assert rows[0.5, "parallel"]["times_pooled"] == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ([], "say what differs"),
        (["--effect", "1", "--hazard-ratio", ".5"], "got effect and hazard-ratio"),
        (["--hazard-ratio", ".5"], "hazard-ratio needs median"),
        (["--hazard-ratio", ".5", "--median", "12"], "hazard-ratio needs follow-up"),
        (["--hazard-ratio", "0", "--median", "12", "--follow-up", "9"], "hazard-ratio must be"),
        (["--proportions", ".5"], "proportions must be those of group x and y"),
        (["--proportions", ".5,1.2"], r"proportions must lie in \(0, 1\), got 1.2"),
        (["--proportions", ".5,.6", "--median", "3"], "median goes with hazard-ratio"),
        (["--effect", "1", "--dropout", ".1"], "dropout goes with hazard-ratio, not with effect"),
    ],
)
def test_what_the_command_cannot_plan(typed: list[str], problem: str) -> None:
    done = CliRunner().invoke(COMMAND, ["--sizes", "30,20", *typed])
    assert done.exception is not None
    with pytest.raises(InputError, match=problem):
        raise done.exception


def test_the_command_plans_survival(tmp_path: Path) -> None:
    options = ["--sizes", "30,20", "--hazard-ratio", ".6", "--median", "12", "--follow-up", "36"]
    done = CliRunner().invoke(COMMAND, [*options, "--sims", "20", "--jobs", "1", "--json"])
    assert done.exit_code == 0, done.output
    plan_of = json.loads(done.output)
    assert [row["method"] for row in plan_of["powers"]] == ["pooled", "alone", "joint"]
    assert plan_of["plan"]["ratio"] == 0.6
