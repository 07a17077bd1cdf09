"""The published figures as data, the Monte Carlo errors, and ours beside the published ones."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from unpooled.maths.arrays import FloatArray
from unpooled_study.paper.tables import make_table, read_published, settings_of
from unpooled_study.simulations import monte_carlo
from unpooled_study.simulations.monte_carlo import Estimate, Published, z_score
from unpooled_study.simulations.runs import run


def published(name: str) -> dict[tuple[str, ...], float]:
    rows = read_published(name)
    return {tuple(row.values())[:-1]: float(row["value"]) for row in rows}


def test_the_published_tables_are_complete() -> None:
    assert [len(published(name)) for name in ("S1", "S2", "S3", "S4", "S5")] == [60, 90, 90, 90, 90]


def test_the_published_tables_agree_with_each_other() -> None:
    """MSE = bias² + SD², up to rounding: a figure copied wrongly would show."""
    bias, sd, mse = published("S2"), published("S3"), published("S4")
    for key, value in mse.items():
        room = 2 * 0.0006 * (abs(bias[key]) + sd[key]) + 0.0001
        assert abs(bias[key] ** 2 + sd[key] ** 2 - value) <= room, key


def test_the_published_ratios_agree_with_bias_and_sd() -> None:
    bias, sd, ratio = published("S2"), published("S3"), published("S5")
    for key, value in ratio.items():
        expected = bias[key] ** 2 / sd[key] ** 2
        assert value == pytest.approx(expected, rel=0.09, abs=0.0008), key


@pytest.mark.parametrize(
    "figure",
    [
        monte_carlo.mean,
        monte_carlo.standard_deviation,
        monte_carlo.mean_square,
        monte_carlo.bias_ratio,
        lambda values: monte_carlo.quantile(values, 0.25),
        lambda values: monte_carlo.share((values > 1).astype(np.float64)),
    ],
)
def test_errors_are_those_of_repeated_studies(figure: Callable[[FloatArray], Estimate]) -> None:
    random = np.random.default_rng(1)
    answer = [figure(random.gamma(4, 0.2, 500)) for _ in range(400)]
    spread = float(np.std([estimate.value for estimate in answer]))
    assert np.mean([estimate.error for estimate in answer]) == pytest.approx(spread, rel=0.12)


def test_z_scores_of_two_such_studies_are_standard_normal() -> None:
    """The published study has 2000 simulations and is printed with four digits."""
    random = np.random.default_rng(2)
    scores = []
    for _ in range(400):
        theirs = monte_carlo.quantile(random.random(2000) ** 3, 0.5)
        ours = monte_carlo.quantile(random.random(500) ** 3, 0.5)
        scores.append(z_score(ours, Published.of(f"{theirs.value:.4f}")))
    assert np.mean(scores) == pytest.approx(0.0, abs=0.2)
    assert np.std(scores) == pytest.approx(1.0, abs=0.12)


def test_rounding_alone_keeps_z_finite() -> None:
    assert z_score(Estimate(0.00004, 0.0, 2000), Published.of("0.0001")) == pytest.approx(
        -0.00006 * math.sqrt(12) / 0.0001
    )


def test_a_small_study_is_near_the_published_figures(tmp_path: Path) -> None:
    settings = settings_of("S1") + settings_of("S4")
    results = run(settings, 40, 7, 1, tmp_path)
    for name in ("S1", "S2", "S3", "S4"):
        table = make_table(name, results)
        assert np.mean(np.abs(table.scores) < 3) > 0.9, name
        assert table.to_csv().count("\n") == len(table.entries) + 1
        assert table.to_markdown().count("\n") == len(table.entries) + 4


def test_the_power_table_has_every_test_and_no_published_figure(tmp_path: Path) -> None:
    results = run(settings_of("power"), 20, 1, 1, tmp_path)
    table = make_table("power", results)
    assert len(table.entries) == 3 * 5 * 5 * 3
    assert len(table.scores) == 0
