"""A bar on the terminal for what takes longer than two seconds, and on nothing else."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import sys, time
from unpooled.apps.cli import main, progress
from unpooled.center import Center

answer = Center.answer
def slowly(center, question):
    time.sleep({seconds})
    return answer(center, question)

Center.answer = slowly
progress.PATIENCE = {patience}
main(sys.argv[1:])
"""
SIMULATE = """
import sys
import unpooled_study.progress
from unpooled.apps.cli import main

unpooled_study.progress.PATIENCE = 0.01
main(sys.argv[1:])
"""
PLAN = ["plan", "--sizes", "40,30", "--effect", "0.3", "--jobs", "1", "--sims", "200"]


def at_terminal(code: str, *arguments: str) -> tuple[str, str]:
    """What a program prints, and what it shows on a terminal as its standard error."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
    ) as program:
        os.close(theirs)
        shown = b""
        while part := _read(ours):
            shown += part
        printed = program.communicate(timeout=60)[0].decode()
    os.close(ours)
    assert program.returncode == 0, shown.decode()
    return printed, shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the program has ended
        return b""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    names = [tmp_path / f"{name}.csv" for name in ("Haifa", "Oslo", "Porto")]
    for name in names:
        name.write_text("\n".join(["los", *map(str, range(60))]))
    return [str(name) for name in names]


def test_a_terminal_shows_how_many_centers_answered(files: list[str]) -> None:
    code = ASK.format(seconds=0.4, patience=0.1)
    printed, shown = at_terminal(code, "describe", "los", "--centers", *files)
    assert "1 of 3 centers answered" in shown
    assert "2 of 3 centers answered" in shown
    assert "━" in shown
    assert "centers answered" not in printed
    assert "180" in printed  # people


def test_what_is_quick_or_read_by_a_program_shows_nothing(files: list[str]) -> None:
    asked = ["describe", "los", "--centers", *files]
    assert at_terminal(ASK.format(seconds=0, patience=30), *asked)[1] == ""
    assert at_terminal(ASK.format(seconds=0.2, patience=0.01), *asked, "--json")[1] == ""


def test_a_plan_shows_how_many_simulations_are_done() -> None:
    pytest.importorskip("unpooled_study")
    shown = at_terminal(SIMULATE, *PLAN)[1]
    assert "simulating" in shown
    assert "/" in shown.split("simulating")[1]
    assert at_terminal(SIMULATE, *PLAN, "--json")[1] == ""


def test_stewards_who_are_waited_for_are_on_the_bar() -> None:
    from io import StringIO

    from unpooled.apps.cli.progress import CentersBar
    from unpooled.federation.progress import Progress

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    bar = CentersBar(terminal)
    bar.show(Progress(("Haifa", "Oslo"), ("Oslo",), ("Haifa",)))
    bar._begin()
    bar.stop()
    assert "1 of 2 centers answered, waiting for Haifa's steward" in terminal.getvalue()
