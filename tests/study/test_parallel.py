"""The study of the parallel method as a person runs it, and what its verdicts say."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from unpooled.errors import InputError
from unpooled_study.commands import study_app
from unpooled_study.parallel import study as parallel
from unpooled_study.parallel.settings import SETS, ParallelQuantiles, ParallelTests
from unpooled_study.parallel.study import QuantileSummary, TestSummary
from unpooled_study.simulations.simulation import simulate


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two settings of each kind are enough to see the page."""
    monkeypatch.setattr(
        parallel,
        "quantile_settings",
        lambda name: [ParallelQuantiles("rounded" if name == "gridded" else "gamma 4", 3)],
    )
    monkeypatch.setattr(parallel, "test_settings", lambda: [ParallelTests("normal")])


@pytest.mark.usefixtures("few")
def test_the_page_is_written_and_the_simulations_are_kept(tmp_path: Path) -> None:
    asked = ["parallel", "--out", str(tmp_path), "--runs", "20", "--jobs", "1"]
    for _ in range(2):
        answer = CliRunner().invoke(study_app, asked)
        assert answer.exit_code == 0, answer.output
    page = (tmp_path / "parallel.html").read_text(encoding="utf-8")
    assert "Tests at ten centers" in page
    assert page.count("gamma 4") == len(SETS) - 1
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert len(list((tmp_path / parallel.KEPT).rglob("*.npy"))) == 3


def test_a_simulation_does_not_depend_on_the_others() -> None:
    setting = ParallelQuantiles("t3", 3)
    np.testing.assert_array_equal(simulate(setting, 1, 0, 3)[2], simulate(setting, 1, 2, 3)[0])


def test_every_k_sees_the_same_people() -> None:
    full = [simulate(ParallelQuantiles("t3", 3, k), 1, 0, 2)[:, 5:10] for k in (10, 20)]
    np.testing.assert_array_equal(full[0], full[1])


@pytest.mark.parametrize(
    ("setting", "limits"),
    [
        (ParallelQuantiles("gamma 4", 5), [0.72, 0.85, 0.85, 0.85, 0.72]),
        (ParallelQuantiles("gamma 4", 10, 20), [1.1] * 5),
        (ParallelQuantiles("normal", 3), [1.05] * 5),
        (ParallelQuantiles("normal", 2, sizes=(90, 60)), [1.1] * 5),
        (ParallelQuantiles("t3", 10), [1.1, 1.05, 1.05, 1.05, 1.1]),
        (ParallelQuantiles("uniform", 10), [1.05, 1.05, 1.05, 1.05, 1.2]),
        (ParallelQuantiles("gap mixture", 10), [1.2] * 5),
        (ParallelQuantiles("gap mixture", 10, 20), [1.1] * 5),
        (ParallelQuantiles("laplace", 10), [1.1] * 5),
    ],
)
def test_what_is_asked(setting: ParallelQuantiles, limits: list[float]) -> None:
    """Named families, sizes and K have limits of their own; all others 1.10."""
    rows = np.ones((20, setting.columns))
    assert QuantileSummary.of(setting, rows).limits().tolist() == limits


def test_the_full_data_themselves_have_ratio_one() -> None:
    error = np.random.default_rng(1).normal(size=(200, 5))
    rows = np.concatenate((error, error, np.ones((200, 20))), axis=1)
    result = QuantileSummary.of(ParallelQuantiles("normal", 3), rows)
    np.testing.assert_allclose(result.ratio, 1)
    assert result.verdicts() == ["met"] * 5
    assert result.coverage_verdicts() == ["within its error"] * 5  # 1 of 200 intervals, by chance


def test_a_miss_counts_as_noted_only_where_the_answers_say_so() -> None:
    """Ratios of 4 everywhere; of the answers at .5 none has a note, of those at .75 half."""
    error = np.random.default_rng(1).normal(size=(200, 5))
    noted = np.ones((200, 5))
    noted[:, 2] = 0
    noted[::2, 3] = 0
    rows = np.concatenate((2 * error, error, np.ones((200, 15)), noted), axis=1)
    result = QuantileSummary.of(ParallelQuantiles("laplace", 10, 20), rows)
    assert result.verdicts() == ["missed"] * 5
    assert result.missed_unnoted() == pytest.approx([4, 4])


def test_answers_note_where_cells_tell_little() -> None:
    """A pole of the density at .02: known by the note, not by the estimate."""
    result = QuantileSummary.of(
        setting := ParallelQuantiles("weibull .5", 10), simulate(setting, 1, 0, 20)
    )
    assert result.noted[0] == 1
    assert result.noted[2:4].tolist() == [0, 0]


def test_a_test_that_is_that_of_the_combined_data_meets_everything() -> None:
    p = (np.arange(1000) + 0.5) / 1000
    rows = np.stack((np.zeros(1000), p, np.zeros(1000), np.zeros(1000)), axis=1)
    result = TestSummary.of(rows)
    verdicts = (result.sd_verdict("all"), result.level_verdict(), result.effect_verdict())
    assert verdicts == ("met", "met", "met")


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(InputError, match="runs must be at least 20"):
        parallel.ParallelStudy(5, 1)
