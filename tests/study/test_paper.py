"""The study of the paper as a person runs it: the command, its files and its page."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from unpooled.errors import InputError
from unpooled_study.commands import study_app
from unpooled_study.paper.paper import PARTS, PaperStudy, run_paper
from unpooled_study.paper.tables import settings_of
from unpooled_study.simulations.runs import run
from unpooled_study.simulations.settings import ALLOCATIONS, PAPER_TESTS


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All parts, with as few simulations as there may be."""
    out = tmp_path_factory.mktemp("study")
    run_paper(PaperStudy.of(None, 20, 1), out, jobs=2)
    return out


def test_every_table_and_figure_is_written(small: Path) -> None:
    expected = {f"{t}.{kind}" for t in PARTS[:7] for kind in ("csv", "md")}
    expected |= {f"{f}.{kind}" for f in PARTS[7:] for kind in ("svg", "png")}
    assert {file.name for file in small.iterdir() if file.is_file()} == {*expected, "study.html"}
    assert all((small / name).stat().st_size > 300 for name in expected)


def test_the_page_needs_no_network_and_says_that_the_errors_are_wide(small: Path) -> None:
    page = (small / "study.html").read_text(encoding="utf-8")
    assert "The errors are wide: 20 simulations are few" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert page.count("<svg") == 6
    assert "<script" not in page


def test_the_table_under_study_is_the_papers_and_said_to_be(small: Path) -> None:
    assert PAPER_TESTS[1] == "paper-table"
    assert "3,paper-table," in (small / "null.csv").read_text(encoding="utf-8")
    page = (small / "study.html").read_text(encoding="utf-8")
    assert "Federated is the paper's test" in page.replace("&#x27;", "'").replace("&#39;", "'")


def test_the_page_has_a_verdict_with_numbers_for_every_claim(small: Path) -> None:
    page = (small / "study.html").read_text(encoding="utf-8")
    verdicts = re.findall(r">((?:not )?reproduced)</td><td[^>]*>([^<]+)</td>", page)
    assert len(verdicts) == 18
    assert all(re.search(r"\d", numbers) for _, numbers in verdicts)


def test_the_page_shows_the_null_rates_with_their_errors(small: Path) -> None:
    page = (small / "study.html").read_text(encoding="utf-8")
    assert "20 simulations of each setting, 100 where the groups are alike" in page
    assert re.search(r"15 rejection rates at .05: [\d. to]+ in 100 simulations each", page)
    rows = (small / "null.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(rows) == 15
    for row in rows:
        centers, method, _, rate, error, _ = row.split(",")
        assert int(centers) in ALLOCATIONS
        assert method in PAPER_TESTS
        assert 0 <= float(rate) <= 0.2
        assert 0.01 < float(error) < 0.05
        assert re.search(f">{rate}</td><td[^>]*>{error}</td>", page)


def test_the_null_has_more_simulations_and_the_first_ones_are_the_same(tmp_path: Path) -> None:
    study = PaperStudy.of("null,power", 20, 1)
    counts = study.simulations()
    assert {n for s, n in counts.items() if s in settings_of("null")} == {100}
    assert {n for s, n in counts.items() if s in settings_of("power")} == {20}
    null = settings_of("null")[0]
    whole = run([null], counts, 1, 1, tmp_path / "whole")[null]
    assert np.array_equal(whole[:20], run([null], 20, 1, 1, tmp_path / "part")[null])


def test_only_some_parts(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        study_app,
        ["paper", "--out", str(tmp_path), "--only", "s2,fig4", "--sims", "20", "--jobs", "1"],
    )
    assert done.exit_code == 0, done.output
    names = {file.name for file in tmp_path.iterdir() if file.is_file()}
    assert names == {"S2.csv", "S2.md", "fig4.svg", "fig4.png", "study.html"}
    assert "11 claims need simulations" in (tmp_path / "study.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("only", "sims", "seed", "problem"),
    [
        ("S9", 50, 1, "only must name parts of S1, .*, got 's9'"),
        (None, 3, 1, "sims must be at least 20, got 3"),
        (None, 50, -1, "seed must not be negative, got -1"),
    ],
)
def test_what_cannot_be_asked_for(only: str | None, sims: int, seed: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        PaperStudy.of(only, sims, seed)
