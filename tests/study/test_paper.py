"""The study of the paper as a person runs it: the command, its files and its page."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unpooled.errors import InputError
from unpooled.study.commands import study_app
from unpooled.study.paper import PARTS, PaperStudy, run_paper


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All parts, with as few simulations as there may be."""
    out = tmp_path_factory.mktemp("study")
    run_paper(PaperStudy.of(None, 20, 1), out, jobs=2)
    return out


def test_every_table_and_figure_is_written(small: Path) -> None:
    expected = {f"{t}.{kind}" for t in PARTS[:6] for kind in ("csv", "md")}
    expected |= {f"{f}.{kind}" for f in PARTS[6:] for kind in ("svg", "png")}
    assert {file.name for file in small.iterdir() if file.is_file()} == {*expected, "study.html"}
    assert all((small / name).stat().st_size > 500 for name in expected)


def test_the_page_needs_no_network_and_says_that_the_errors_are_wide(small: Path) -> None:
    page = (small / "study.html").read_text(encoding="utf-8")
    assert "The errors are wide: 20 simulations are few" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert page.count("<svg") == 6
    assert "<script" not in page


def test_the_page_has_a_verdict_with_numbers_for_every_claim(small: Path) -> None:
    page = (small / "study.html").read_text(encoding="utf-8")
    verdicts = re.findall(r">((?:not )?reproduced)</td><td[^>]*>([^<]+)</td>", page)
    assert len(verdicts) == 18
    assert all(re.search(r"\d", numbers) for _, numbers in verdicts)


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
