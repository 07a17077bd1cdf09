"""What goes wrong has a name, comes in time, and spoils nobody else's answer."""

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.network.networks import Network, eventually, run
from unpooled import Federation
from unpooled.errors import LinkError
from unpooled.ledger import verify
from unpooled.messages import Reason

pytest.importorskip("nvflare", reason="nvflare is not installed")
psutil = pytest.importorskip("psutil", reason="nvflare is not installed")
pytestmark = pytest.mark.xdist_group("network")

PATIENT = 60  # seconds: more than any answer takes on a busy machine
SLACK = 30  # seconds: what ends on time on a busy machine


@pytest.fixture
def fed(trio: Network) -> Iterator[Federation]:
    for name in trio.centers:  # each test finds all centers there
        if trio.running[name].process.poll() is not None:
            trio.start(name)
    with Federation.connect(trio.toml, timeout=PATIENT) as fed:
        eventually(lambda: everybody_answers(fed))
        yield fed


def everybody_answers(fed: Federation) -> None:
    assert people(fed) == 445


def people(fed: Federation) -> int:
    groups = fed.describe("los").to_dict()["groups"]
    return sum(group["n"] for group in groups)


def refused(fed: Federation) -> dict[str, str]:
    return {r.center: r.reason for r in fed.describe("los").refusals}


def link(fed: Federation) -> Any:
    return fed._coordinator.link


def kill_whole(network: Network, name: str) -> None:
    """What a power cut does: every process of a participant is gone at once."""
    top = psutil.Process(network.running[name].process.pid)
    for process in [top, *top.children(recursive=True)]:
        process.kill()
    network.running[name].process.wait(10)


def test_a_center_that_is_down_is_named_and_comes_back_by_itself(
    trio: Network, fed: Federation
) -> None:
    trio.running["Porto"].end()
    start = time.monotonic()
    assert refused(fed) == {"Porto": Reason.NOT_CONNECTED}
    assert time.monotonic() - start < PATIENT
    assert people(fed) == 360
    assert "Porto: not connected" in run("federation", "status", trio.toml, wanted=1)
    trio.start("Porto")
    eventually(lambda: everybody_answers(fed))


def test_a_center_that_is_late_is_named_and_not_waited_for(trio: Network, fed: Federation) -> None:
    link(fed).timeout = 3
    pid = trio.running["Bern"].process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        start = time.monotonic()
        result = fed.describe("los")
        assert time.monotonic() - start < 3 + SLACK
    finally:
        os.kill(pid, signal.SIGCONT)
    assert [(r.center, r.reason, r.rule) for r in result.refusals] == [
        ("Bern", Reason.NO_ANSWER, "the center did not answer within 3 seconds")
    ]
    link(fed).timeout = PATIENT
    eventually(lambda: everybody_answers(fed))
    assert verify(trio.kit("Bern") / "Bern.ledger").ok


def test_a_center_killed_during_a_question_is_named(trio: Network, fed: Federation) -> None:
    link(fed).timeout = 6
    os.kill(trio.running["Bern"].process.pid, signal.SIGSTOP)
    killer = threading.Timer(1.5, kill_whole, (trio, "Bern"))
    killer.start()
    start = time.monotonic()
    told = refused(fed)
    assert time.monotonic() - start < 6 + SLACK
    killer.join()
    assert told in ({"Bern": Reason.NO_ANSWER}, {"Bern": Reason.NOT_CONNECTED})
    trio.start("Bern")
    link(fed).timeout = PATIENT
    eventually(lambda: everybody_answers(fed))
    assert verify(trio.kit("Bern") / "Bern.ledger").ok


def test_nothing_leaves_that_is_not_recorded(trio: Network, fed: Federation) -> None:
    ledger = trio.kit("Haifa") / "Haifa.ledger"
    pid = trio.running["Haifa"].process.pid
    full = ledger.stat().st_size + 10  # as on a full disk
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (full, before[1]))
    try:
        assert refused(fed) == {"Haifa": Reason.FAILED}
        assert ledger.stat().st_size < full
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    eventually(lambda: everybody_answers(fed))
    assert verify(ledger).ok


GARBAGE = """
import sys
from pathlib import Path
from types import SimpleNamespace
from unpooled.center import Center
from unpooled.links.flare.running import run_center

Center.answer = lambda self, question: SimpleNamespace(payload=bytes([255, 0]) + b"garbage")
run_center(Path(sys.argv[1]), None, lambda text: print(text, flush=True))
"""


def test_a_center_that_answers_garbage_is_named(
    trio: Network, fed: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trio.running["Porto"].end()
    script = tmp_path / "garbage.py"
    script.write_text(GARBAGE)
    monkeypatch.setattr("tests.network.networks.UNPOOLED", [sys.executable])
    trio.spawn("Porto", script, trio.kit("Porto")).wait_for("is connected")
    assert refused(fed) == {"Porto": Reason.UNREADABLE_ANSWER}
    started = psutil.Process(trio.running["Porto"].process.pid).children(recursive=True)
    assert len(started) >= 2
    trio.running["Porto"].end(signal.SIGKILL)
    _, alive = psutil.wait_procs(started, timeout=SLACK)
    assert not alive  # the engine ends with the center's own process


def test_a_coordinator_that_is_killed_and_started_again_is_found_again(
    trio: Network, fed: Federation
) -> None:
    kill_whole(trio, "coordinator")
    start = time.monotonic()
    link(fed).timeout = 3
    with pytest.raises(LinkError, match="coordinator"):
        fed.describe("los")
    assert time.monotonic() - start < 3 + SLACK
    trio.start("coordinator")
    link(fed).timeout = PATIENT
    eventually(lambda: everybody_answers(fed))  # centers come back by themselves
    assert run("federation", "status", trio.toml).count(": connected") == 3
    for name in trio.centers:
        assert verify(trio.kit(name) / f"{name}.ledger").ok
