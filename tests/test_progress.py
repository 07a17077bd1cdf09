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

    from unpooled.apps.cli.progress import WorkBar
    from unpooled.federation.progress import Progress

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    bar = WorkBar(terminal)
    bar.show(Progress(("Haifa", "Oslo"), ("Oslo",), ("Haifa",)))
    bar._begin()
    bar.stop()
    assert "1 of 2 centers answered, waiting for Haifa's steward" in terminal.getvalue()


WORK = """
import importlib, sys, time
from unpooled.apps.cli import main, progress

progress.PATIENCE = 0.01
module, name = {slow!r}.rsplit(".", 1)
where = importlib.import_module(module)
act = getattr(where, name)
def slowly(*given, **more):
    time.sleep(0.3)
    return act(*given, **more)
setattr(where, name, slowly)
main(sys.argv[1:])
"""


def test_the_demo_and_its_report_show_that_they_go_on(tmp_path: Path) -> None:
    code = WORK.format(slow="unpooled.apps.demo.write_hospitals")
    printed, shown = at_terminal(code, "demo", "--out", str(tmp_path / "demo"))
    assert "the demo goes on" in shown
    assert "Open the report:" in printed
    assert "goes on" not in printed


def test_a_report_shows_that_it_is_written(files: list[str], tmp_path: Path) -> None:
    code = WORK.format(slow="unpooled.results.data_frame.write_csv")
    asked = ["describe", "los", "--csv", str(tmp_path / "los.csv"), "--centers", *files]
    assert "the files are written" in at_terminal(code, *asked)[1]
    assert "written" not in at_terminal(code, *asked, "--json")[1]


def test_what_an_administrator_does_shows_that_it_goes_on(tmp_path: Path, files: list[str]) -> None:
    """Kits, the check of a center, a freeze, a ledger."""
    pytest.importorskip("nvflare", reason="nvflare is not installed")
    setup = "unpooled.federation.network.setup"
    toml = tmp_path / "federation.toml"
    toml.write_text(
        'name = "trial"\ncenters = ["Haifa"]\n[coordinator]\naddress = "localhost"\nport = 8102\n'
    )
    code = WORK.format(slow=f"{setup}.provision.make_kits")
    printed, shown = at_terminal(code, "federation", "init", str(toml))
    assert "the kits are made" in shown
    assert "kit: " in printed
    kit = tmp_path / "kits/Haifa"
    (kit / "center.toml").write_text(
        f'name = "Haifa"\nledger = "Haifa.ledger"\ndata = "{files[0]}"\n'
    )
    code = WORK.format(slow="unpooled.center.freeze.freeze_rows")
    assert "the rows are copied" in at_terminal(code, "center", "freeze", str(kit))[1]
    ledger = tmp_path / "ledgers"
    at_terminal(ASK.format(seconds=0, patience=30), "describe", "los", "--ledger", str(ledger),
                "--centers", *files)  # fmt: skip
    code = WORK.format(slow="unpooled.center.records.ledger.verify")
    shown = at_terminal(code, "ledger", "verify", str(ledger / "Haifa.ledger"))[1]
    assert "the ledger is verified" in shown
