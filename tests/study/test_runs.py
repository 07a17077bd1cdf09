"""Runs that are kept: other jobs, a second run, damage, and Ctrl-C change no number."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from unpooled_study.simulations import runs
from unpooled_study.simulations.runs import run
from unpooled_study.simulations.settings import AnySetting, paper_quantiles, paper_test

SETTINGS: list[AnySetting] = [paper_test(10, (0.05, 0.1, 0.05)), paper_quantiles(4, 10)]
COMMAND = [sys.executable, "-c", "from unpooled_study.commands import study_app; study_app()"]


def test_the_number_of_jobs_changes_nothing(tmp_path: Path) -> None:
    alone = run(SETTINGS[:1], 120, 1, 1, tmp_path / "alone")
    several = run(SETTINGS[:1], 120, 1, 2, tmp_path / "several")
    assert np.array_equal(alone[SETTINGS[0]], several[SETTINGS[0]])


def test_a_second_run_simulates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(SETTINGS, 20, 1, 1, tmp_path)
    monkeypatch.setattr(runs, "simulate", lambda *_: pytest.fail("simulated again"))
    second = run(SETTINGS, 20, 1, 1, tmp_path)
    for setting in SETTINGS:
        assert np.array_equal(first[setting], second[setting])


def test_another_seed_or_setting_is_not_taken_for_this_one(tmp_path: Path) -> None:
    first = run(SETTINGS[:1], 20, 1, 1, tmp_path)
    second = run(SETTINGS[:1], 20, 2, 1, tmp_path)
    assert not np.array_equal(first[SETTINGS[0]], second[SETTINGS[0]])


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "fewer rows"])
def test_a_damaged_piece_is_simulated_again(tmp_path: Path, damage: str) -> None:
    first = run(SETTINGS[:1], 20, 1, 1, tmp_path)
    (file,) = tmp_path.rglob("*.npy")
    whole = file.read_bytes()
    if damage == "fewer rows":
        np.save(file, first[SETTINGS[0]][:3])
    else:
        file.write_bytes({"empty": b"", "text": b"not an array", "cut": whole[:200]}[damage])
    second = run(SETTINGS[:1], 20, 1, 1, tmp_path)
    assert np.array_equal(first[SETTINGS[0]], second[SETTINGS[0]])


def study(out: Path) -> list[str]:
    return [*COMMAND, "paper", "--only", "S1", "--sims", "200", "--jobs", "2", "--out", str(out)]


def hear_ctrl_c() -> None:
    """A shell lets what it runs in the background ignore Ctrl-C, and so would the study."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupt(
    out: Path, how: Callable[[int, int], None], number: signal.Signals
) -> subprocess.CompletedProcess[str]:
    """Start the study, send a signal once some of it is kept, and wait for its processes' end."""
    process = subprocess.Popen(
        study(out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )
    deadline = time.monotonic() + 300
    while not list(out.rglob("*.npy")) and time.monotonic() < deadline:
        time.sleep(0.02)
    how(process.pid, number)
    answer = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, *answer)


def test_a_study_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    """Its children hold its output: they would be waited for."""
    ended = interrupt(tmp_path, os.kill, signal.SIGKILL)
    assert ended.returncode == -signal.SIGKILL


def test_a_study_that_is_told_to_end_says_how_to_go_on(tmp_path: Path) -> None:
    ended = interrupt(tmp_path, os.kill, signal.SIGTERM)
    assert (ended.returncode, ended.stderr) == (
        130,
        "stopped; the same command goes on from here\n",
    )


def test_ctrl_c_and_again_gives_the_same_bytes(tmp_path: Path) -> None:
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    first = interrupt(stopped, os.killpg, signal.SIGINT)  # as a terminal does: to all processes
    assert first.returncode == 130
    assert first.stderr == "stopped; the same command goes on from here\n"
    kept = {file: file.stat().st_mtime_ns for file in stopped.rglob("*.npy")}
    assert 0 < len(kept) < 12
    for out in (stopped, whole):
        done = subprocess.run(study(out), check=True, capture_output=True, text=True)
        assert done.stderr == ""
    assert all(file.stat().st_mtime_ns == at for file, at in kept.items())
    for name in ("S1.csv", "S1.md", "study.html"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes(), name
