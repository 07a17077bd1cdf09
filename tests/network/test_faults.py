"""What goes wrong has a name, comes in time, and spoils nobody else's answer."""

import os
import resource
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.network.conftest import FRAMES, load, start_postgres
from tests.network.networks import (
    PATIENT,
    SLACK,
    Network,
    eventually,
    everybody_answers,
    people,
    run,
)
from unpooled import Federation, Policy
from unpooled.center.questions import Reason
from unpooled.center.records.ledger import Entry, read, verify
from unpooled.errors import InputError, LinkError, MissingError

pytest.importorskip("nvflare", reason="nvflare is not installed")
psutil = pytest.importorskip("psutil", reason="nvflare is not installed")


@pytest.fixture(autouse=True)
def sound_ledgers(trio: Network) -> Iterator[None]:
    """Whatever happened, every ledger verifies, and no question is recorded twice."""
    yield
    for name in trio.centers:
        assert verify(trio.kit(name) / f"{name}.ledger").ok
        asked = [entry for entry in entries(trio, name) if entry.ticket is not None]
        tickets = Counter((entry.ticket, entry.question) for entry in asked)
        assert set(tickets.values()) == {1}  # parts of two protocols may be alike, without a ticket


def entries(network: Network, name: str) -> list[Entry]:
    return read(network.kit(name) / f"{name}.ledger")[1]


def refused(fed: Federation) -> dict[str, str]:
    return {r.center: r.reason for r in fed.describe("los").refusals}


def link(fed: Federation) -> Any:
    return fed._coordinator.link


def kill_whole(network: Network, name: str) -> None:
    """What a power cut does: every process of a participant is gone at once."""
    top = psutil.Process(network.running[name].process.pid)
    for process in [top, *top.children(recursive=True)]:
        process.kill()
    network.running[name].process.wait(SLACK)


@contextmanager
def halted(network: Network, name: str) -> Iterator[None]:
    """The center's own process does nothing for a while."""
    with stopped(network.running[name].process.pid):
        yield


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """One process does nothing for a while."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """It ends within the analyst's timeout, and what a busy machine adds."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds + SLACK


def test_a_center_that_is_down_is_named_and_comes_back_by_itself(
    trio: Network, fed: Federation
) -> None:
    job = link(fed)._job
    trio.running["Porto"].end()
    with in_time(PATIENT):
        assert refused(fed) == {"Porto": Reason.NOT_CONNECTED}
    assert link(fed)._job == job  # no new one was opened for a center that is gone
    assert people(fed) == 360
    assert "left out: Porto: the center is not connected" in str(fed.describe("los"))
    eventually(lambda: run("federation", "status", trio.toml, wanted=1))
    assert "Porto: not connected" in run("federation", "status", trio.toml, wanted=1)
    answer = run("describe", "los", "--federation", trio.toml, wanted=1)
    assert "a center is missing:\n  Porto: the center is not connected" in answer
    answer = run("describe", "los", "--federation", trio.toml, "--on-missing", "exclude")
    assert "left out: Porto" in answer
    trio.start("Porto")
    eventually(lambda: everybody_answers(fed))


def test_a_center_whose_engine_is_busy_for_a_while_is_connected(
    trio: Network, fed: Federation
) -> None:
    (engine,) = psutil.Process(trio.running["Bern"].process.pid).children()
    with stopped(engine.pid):
        time.sleep(7)  # as where it ends the job of a coordinator that is gone
        assert link(fed).connected() == set(trio.centers)
    eventually(lambda: everybody_answers(fed))
    answer = run("federation", "status", trio.toml).splitlines()[1:]
    assert answer == [f"  {name}: connected" for name in trio.centers]


def test_a_chain_stops_with_the_name_of_the_center_that_is_missing(
    trio: Network, fed: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Federation.connect(trio.toml, timeout=PATIENT) as careful:
        ask = link(careful).ask

        def ask_a_late_center(question: bytes, centers: Sequence[str], **more: bool) -> Any:
            if "Bern" not in centers or b'"join"' not in question:
                return ask(question, centers, **more)
            link(careful).timeout = 3
            with halted(trio, "Bern"):
                return ask(question, centers, **more)

        monkeypatch.setattr(link(careful), "ask", ask_a_late_center)
        with in_time(3), pytest.raises(MissingError, match="Bern: the center did not") as caught:
            careful.table("los")
        (missing,) = caught.value.refusals
        assert (missing.center, missing.reason) == ("Bern", Reason.NO_ANSWER)
        assert missing.rule == "the center did not answer within 3 seconds"
        assert {release.center for release in careful.releases} == {"Haifa", "Bern", "Porto"}
    with pytest.raises(InputError, match="'stop' or 'exclude', got 'wait'"):
        Federation.connect(trio.toml, on_missing="wait")  # type: ignore[arg-type]
    eventually(lambda: everybody_answers(fed))


def test_a_chain_goes_on_without_a_center_that_is_killed_in_the_middle_of_it(
    trio: Network, fed: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = link(fed).ask

    def ask_and_kill(question: bytes, centers: Sequence[str], **more: bool) -> Any:
        if "Bern" not in centers or b'"join"' not in question:
            return ask(question, centers, **more)
        link(fed).timeout = 20
        os.kill(trio.running["Bern"].process.pid, signal.SIGSTOP)
        killer = threading.Timer(1.5, kill_whole, (trio, "Bern"))
        killer.start()
        try:
            return ask(question, centers, **more)
        finally:
            killer.join()
            link(fed).timeout = PATIENT

    with monkeypatch.context() as patch, in_time(20):
        patch.setattr(link(fed), "ask", ask_and_kill)
        result = fed.table("los")
    (missing,) = result.refusals
    assert missing.center == "Bern"
    assert missing.reason in (Reason.NO_ANSWER, Reason.NOT_CONNECTED, Reason.FAILED)
    assert result.counts.sum() == pytest.approx(305)
    assert "left out: Bern" in str(result)
    assert not any(b'"join"' in e.question.encode() for e in entries(trio, "Bern")[-1:])
    trio.start("Bern")
    eventually(lambda: everybody_answers(fed))


ROUNDS: dict[bytes, Callable[[Federation], Any]] = {  # the last question of an analysis
    b'"moments"': lambda fed: fed.describe("los", by="arm", groups=("a", "b")),
    b'"powers"': lambda fed: fed.quantiles("los", [0.5], method="paper-grid"),
}


@pytest.mark.parametrize("last", ROUNDS)
def test_an_analysis_goes_on_as_if_a_center_that_goes_missing_in_it_had_never_been(
    trio: Network, fed: Federation, monkeypatch: pytest.MonkeyPatch, last: bytes
) -> None:
    ask = link(fed).ask
    late: list[bytes] = []

    def ask_late_in_the_last_round(question: bytes, centers: Sequence[str], **more: bool) -> Any:
        if last not in question or late:
            return ask(question, centers, **more)
        late.append(question)
        link(fed).timeout = 3
        with halted(trio, "Porto"):
            try:
                return ask(question, centers, **more)
            finally:
                link(fed).timeout = PATIENT

    with monkeypatch.context() as patch:
        patch.setattr(link(fed), "ask", ask_late_in_the_last_round)
        result = ROUNDS[last](fed)
    assert len(late) == 1
    without = Federation.local(
        {name: trio.kit(name) / "data.csv" for name in ("Haifa", "Bern")},
        policy=Policy(ad_hoc="free", paper_iteration=True),
    )
    assert [(r.center, r.reason) for r in result.refusals] == [("Porto", Reason.NO_ANSWER)]
    expected = ROUNDS[last](without).to_dict()
    parts = expected.keys() & {"groups", "centers", "quantiles"}
    assert parts
    assert {part: result.to_dict()[part] for part in parts} == {p: expected[p] for p in parts}


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


def test_a_database_that_is_stopped_is_named_by_a_center_that_starts(
    trio: Network, fed: Federation, tmp_path: Path
) -> None:
    server = start_postgres(tmp_path / "postgres")
    load(server.get_uri(), "stays", FRAMES["Porto"])
    toml = trio.kit("Porto") / "center.toml"
    from_file = toml.read_text()
    query = "SELECT los, arm, age, months, died FROM stays"
    where = f'[postgres]\nconnection = "{server.get_uri()}"\nquery = "{query}"'
    trio.write_center("Porto", where)
    try:
        trio.running["Porto"].end()
        trio.start("Porto")
        eventually(lambda: everybody_answers(fed))
        server.cleanup()
        assert people(fed) == 445  # it was read when the center started
        assert "WRONG  data: PostgreSQL: " in run("center", "check", trio.kit("Porto"), wanted=1)
        trio.running["Porto"].end()
        answer = run("center", "start", trio.kit("Porto"), wanted=1)
        assert answer.startswith("unpooled: PostgreSQL: ")
        assert "Traceback" not in answer
        assert "is connected" not in answer
        eventually(lambda: only_refusal(fed, "Porto", Reason.NOT_CONNECTED))
    finally:
        toml.write_text(from_file)


def only_refusal(fed: Federation, center: str, reason: Reason) -> None:
    assert refused(fed) == {center: reason}


GARBAGE = """
import sys
from pathlib import Path
from types import SimpleNamespace
from unpooled.center import Center
from unpooled.federation.network.running import run_center

def garbage(self, question, ticket=None, asker=None):
    return SimpleNamespace(payload=bytes([255, 0]) + b"garbage")

Center.answer = garbage
run_center(Path(sys.argv[1]), None, lambda text: print(text, flush=True))
"""


def test_a_center_that_answers_garbage_is_named(
    trio: Network, fed: Federation, tmp_path: Path
) -> None:
    trio.running["Porto"].end()
    script = tmp_path / "garbage.py"
    script.write_text(GARBAGE)
    trio.spawn_python("Porto", script, trio.kit("Porto")).wait_for("is connected")
    eventually(lambda: only_refusal(fed, "Porto", Reason.UNREADABLE_ANSWER))
    started = psutil.Process(trio.running["Porto"].process.pid).children(recursive=True)
    assert len(started) >= 2
    trio.running["Porto"].end(signal.SIGKILL)
    _, alive = psutil.wait_procs(started, timeout=SLACK)
    assert not alive  # the engine ends with the center's own process


def test_an_answer_is_neither_lost_nor_doubled_when_the_coordinator_dies_under_it(
    trio: Network, fed: Federation
) -> None:
    link(fed).timeout = 3 * PATIENT
    before = len(entries(trio, "Haifa"))
    with ThreadPoolExecutor(1) as analyst:
        with halted(trio, "Haifa"):
            asked = analyst.submit(fed.describe, "los", where="age < 80")
            time.sleep(3)  # the question is on Haifa's desk
            kill_whole(trio, "coordinator")
        trio.start("coordinator")
        result = asked.result(4 * PATIENT)
    assert result.refusals == ()
    kinds = [entry.question.split('"')[3] for entry in entries(trio, "Haifa")[before:]]
    assert kinds == ["sizes", "moments"]


def test_a_coordinator_that_is_killed_and_started_again_is_found_again(
    trio: Network, fed: Federation
) -> None:
    kill_whole(trio, "coordinator")
    link(fed).timeout = 3
    with in_time(3), pytest.raises(LinkError, match="coordinator"):
        fed.describe("los")
    trio.start("coordinator")
    link(fed).timeout = PATIENT
    eventually(lambda: everybody_answers(fed))  # centers come back by themselves
    assert run("federation", "status", trio.toml).count(": connected") == 3
