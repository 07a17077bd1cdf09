"""A coordinator that means harm gets releases and nothing else.

Its own locks are off in these tests (every role may do anything, every class is allowed), and it
has the strongest role there is: what refuses here are the centers.
"""

import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.network.networks import Network, hospital, network_of_files, run
from unpooled import Federation
from unpooled.center.questions import MomentsQuestion, Reason, decode_answer, encode
from unpooled.errors import LinkError, MissingError, UnpooledError
from unpooled.federation.network.setup import lockdown
from unpooled.federation.network.setup.kits import read_federation

pytest.importorskip("nvflare", reason="nvflare is not installed")

PLANTED = ("Zacharias-Quux", "Oddity", "8675309.25")
TRACES = ("unpooled/center/", "unpooled/data/", "duckdb", "data.parquet", "Parquet")

ROGUE = """
import sys
from pathlib import Path
from unpooled.federation.network.setup import lockdown
from unpooled.federation.network import running

def unlocked(storage):
    files = lockdown.coordinator_files(storage)
    roles = files["authorization.json"]["permissions"]
    files["authorization.json"]["permissions"] = dict.fromkeys(roles, "any")
    files["resources.json"]["class_allow_list"] = ["*"]
    return files

running.coordinator_files = unlocked
running.run_coordinator(Path(sys.argv[1]), lambda text: print(text, flush=True))
"""


def planted(frame: pl.DataFrame) -> pl.DataFrame:
    """One person with a name, a group and a value that must never be seen outside."""
    person = {"los": [8675309.25], "arm": ["Oddity"], "age": [40], "months": [1.5], "died": [1]}
    people = pl.concat([frame, pl.DataFrame(person)])
    return people.with_columns(name=pl.lit("Zacharias-Quux"))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    frames = {"Haifa": planted(hospital(1, 80, 70)), "Bern": planted(hospital(2, 60, 50))}
    policy = '[policy]\nad_hoc = "free"'
    network = network_of_files(tmp_path_factory.mktemp("rogue"), frames, policy)
    frames["Haifa"].write_parquet(network.kit("Haifa") / "data.parquet")
    network.write_center("Haifa", 'data = "data.parquet"', policy)
    make_boss(network)
    script = network.folder / "rogue.py"
    script.write_text(ROGUE)
    rogue = network.spawn_python("coordinator", script, network.kit("coordinator"))
    try:
        rogue.wait_for("is started")
        for name in network.centers:
            network.start(name)
        yield network
    finally:
        network.end_all()


def make_boss(network: Network) -> None:
    """Mint a kit with the engine's strongest role, as whoever owns the certificates can."""
    from unpooled.federation.network.setup import provision

    toml = network.folder / "boss.toml"
    toml.write_text('analysts = ["boss"]\n' + network.toml.read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provision, "ANALYST", "project_admin")
        made = provision.make_kits(toml)
    assert [kit.name for kit in made] == ["boss"]


def session_of(network: Network, name: str) -> Iterator[Any]:
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    session = new_secure_session(f"{name}@unpooled.local", str(network.kit(name)))
    yield session
    session.close()


@pytest.fixture(scope="module")
def boss(network: Network) -> Iterator[Any]:
    yield from session_of(network, "boss")


@pytest.fixture(scope="module")
def analyst(network: Network) -> Iterator[Any]:
    yield from session_of(network, "analyst")


def submit(session: Any, folder: Path, executor: str, code: str | None = None) -> str:
    """Run a job at the centers and wait for its end; how it ended."""
    from unpooled.federation.network.session import write_job

    write_job(folder, ("Haifa", "Bern"), executor)
    if code is not None:
        (folder / "app" / "custom").mkdir()
        (folder / "app" / "custom" / "evil.py").write_text(code)
    return run_job(session, folder)


def run_job(session: Any, folder: Path) -> str:
    job = session.submit_job(str(folder))
    end = time.monotonic() + 120
    while time.monotonic() < end:
        status = str(session.get_job_meta(job)["status"])
        if status.startswith("FINISHED"):
            return status
        time.sleep(0.5)
    session.abort_job(job)
    return "still running"


def coordinator_log(network: Network) -> str:
    return (network.kit("coordinator") / "log.txt").read_text()


def test_the_strongest_role_runs_nothing_at_a_center(
    network: Network, boss: Any, tmp_path: Path
) -> None:
    assert submit(boss, tmp_path / "job", lockdown.EXECUTOR) == "FINISHED:FAILED_TO_RUN"
    refused = "Haifa: user 'boss@unpooled.local' is not authorized for 'submit_job'"
    assert refused in coordinator_log(network)


def test_a_job_with_code_of_its_own_is_refused(
    network: Network, analyst: Any, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    code = f"from pathlib import Path\nPath({str(proof)!r}).touch()\nclass Evil: pass\n"
    status = submit(analyst, tmp_path / "job", "evil.Evil", code)
    assert status.startswith("FINISHED")
    assert "Haifa: NVFLARE_ERROR: BYOC not permitted" in coordinator_log(network)
    assert not proof.exists()


def test_a_class_that_is_not_on_the_list_is_refused(
    network: Network, analyst: Any, tmp_path: Path
) -> None:
    status = submit(analyst, tmp_path / "job", "nvflare.app_common.np.np_trainer.NPTrainer")
    assert status not in ("FINISHED:COMPLETED", "still running")
    logs = [path.read_text() for path in network.kit("Haifa").rglob("*log*.txt")]
    assert any("not in allow_list" in text for text in logs)


READING = ("cat_target", "head_target", "tail_target")


@pytest.mark.parametrize("command", [*READING, "ls_target", "grep_target", "pwd"])
def test_no_role_reads_files_or_runs_a_shell(network: Network, boss: Any, command: str) -> None:
    def act() -> str:
        if command == "pwd":
            return str(boss.get_working_directory("Haifa"))
        if command == "ls_target":
            return str(boss.ls_target("Haifa"))
        if command == "grep_target":
            return str(boss.grep_target("Haifa", pattern="Quux", file="data.csv"))
        return str(getattr(boss, command)("Haifa", file="data.csv"))

    assert_refused(act)


@pytest.mark.parametrize("command", ["report_env Haifa", "sys_info client Haifa"])
def test_no_role_asks_what_the_center_runs_on(network: Network, boss: Any, command: str) -> None:
    assert_refused(lambda: str(boss.do_command(command)))


def assert_refused(act: Any) -> None:
    try:
        answer = act()
    except Exception as error:
        answer = str(error)
    assert "not authorized" in answer.lower() or "not permitted" in answer.lower(), answer
    assert not any(value in answer for value in PLANTED)


def test_a_policy_cannot_be_weakened_from_outside(network: Network) -> None:
    question = encode(MomentsQuestion(variable="los", by="arm"))
    with Federation.connect(network.toml, timeout=120) as fed:
        for looser in (b'"k":1', b'"k":60', b'"policy":{"k":1}', b'"ad_hoc":"free"'):
            forged = question[:-1] + b"," + looser + b"}"
            answers = fed._coordinator.link.ask(forged, network.centers)
            for payload in answers.values():
                assert isinstance(payload, bytes)
                answer = decode_answer(payload)
                assert (answer.k, answer.aggregate) == (10, None)
                assert [r.reason for r in answer.refusals] == [Reason.UNREADABLE_QUESTION]
        assert {group.group for group in fed.describe("los", by="arm").groups} == {"a", "b"}
        assert all(b'"k":10' in received.payload for received in fed.releases)


def loosen(folder: Path, file: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a file of a job that is otherwise ours."""
    path = folder / file
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


CLIENT = "app/config/config_fed_client.json"
POLICY = {"k": 1, "policy": {"k": 1, "paper_iteration": True}}
LOOSER: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "a policy": (CLIENT, lambda c: c["executors"][0]["executor"].update(args=POLICY)),
    "a filter": (
        CLIENT,
        lambda c: c["task_result_filters"].append(
            {"tasks": ["question"], "filters": [{"path": "nvflare.apis.filter.Filter"}]}
        ),
    ),
    "another scope": ("meta.json", lambda c: c.update(scope="public")),
    "a component": (
        CLIENT,
        lambda c: c["components"].append(
            {"id": "logs", "path": "nvflare.widgets.widget.Widget", "args": {}}
        ),
    ),
}


@pytest.mark.parametrize("looser", LOOSER)
def test_a_job_that_comes_with_looser_rules_is_refused(
    network: Network, analyst: Any, tmp_path: Path, looser: str
) -> None:
    from unpooled.federation.network.session import write_job

    write_job(tmp_path / "job", ("Haifa", "Bern"))
    loosen(tmp_path / "job", *LOOSER[looser])
    status = run_job(analyst, tmp_path / "job")
    assert status not in ("FINISHED:COMPLETED", "still running")


def test_a_kit_of_another_federation_opens_nothing(network: Network, tmp_path: Path) -> None:
    stranger = network_of_files(tmp_path / "strange", {"Haifa": hospital(1, 20, 20)})
    part, port = (str(read_federation(n.toml).coordinator.port) for n in (stranger, network))
    for pattern in ("*.toml", "*.json"):
        for path in stranger.folder.rglob(pattern):
            path.write_text(path.read_text().replace(part, port))
    center = stranger.start("Haifa", wait=False)
    with pytest.raises(LinkError):
        Federation.connect(stranger.toml, timeout=8)
    center.end()
    stranger.end_all()
    assert "is connected" not in center.output.read_text()


def test_a_center_cannot_pose_as_another(network: Network, tmp_path: Path) -> None:
    copy = tmp_path / "kit"
    shutil.copytree(network.kit("Bern"), copy, ignore=shutil.ignore_patterns("*.log", "*.txt"))
    for name in ("kit.toml", "center.toml"):
        path = copy / name
        path.write_text(path.read_text().replace('name = "Bern"', 'name = "Haifa"'))
    for path in copy.glob("Bern.*"):
        path.unlink()
    assert "it belongs to 'Bern', not to 'Haifa'" in run("center", "check", copy, wanted=1)
    poser = network.spawn("poser", "center", "start", copy)
    refused = "authenticated as 'Bern' but claimed endpoint 'Haifa' requires identity 'Haifa'"
    until = time.monotonic() + 120
    while refused not in coordinator_log(network) and time.monotonic() < until:
        time.sleep(0.5)
    poser.end()
    assert "is connected" not in poser.output.read_text()
    assert refused in coordinator_log(network)


def test_nothing_planted_is_in_what_the_coordinator_has(network: Network) -> None:
    with Federation.connect(network.toml, timeout=120) as fed:
        fed.describe("los", by="arm")
        fed.table("los", by="arm", groups=("a", "b"))
        fed.compare("los", by="arm", groups=("a", "b"), method="all")
        for wrong, each in (
            ("name", "would-isolate"),
            ("nothing", "no center has a variable 'nothing'"),
        ):
            with pytest.raises(UnpooledError, match=each):
                fed.describe(wrong)
        with pytest.raises(UnpooledError, match="the condition does not fit"):
            fed.describe("los", where="name > 5")
        break_data(network.kit("Haifa") / "data.parquet")
        with pytest.raises(MissingError, match="Haifa: the center could not answer"):
            fed.describe("months", where="died == 1")
    log = network.kit("Haifa") / "center.log"
    assert "Traceback" in log.read_text()  # it is told at the center
    assert log.stat().st_mode & 0o077 == 0
    places = [network.kit(name) for name in ("coordinator", "analyst", "boss")]
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    files.append(network.running["coordinator"].output)
    assert len(files) > 10
    for path in files:
        for content in contents(path):
            for value in (*PLANTED, *TRACES):
                assert value.encode() not in content, f"{value} is in {path}"


def break_data(path: Path) -> None:
    """Make the next question fail at the center, with a trace of its own code.

    Size and date stay: of a file that was written the center says so at once.
    """
    status, planted = path.stat(), b"Zacharias-Quux" * path.stat().st_size
    path.write_bytes((path.read_bytes()[:200] + planted)[: status.st_size])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def contents(path: Path) -> Iterator[bytes]:
    """Every byte of a file, and of what is packed in it."""
    yield path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            yield from (packed.read(name) for name in packed.namelist())


def test_ports_are_bound_to_loopback_alone(network: Network) -> None:
    import psutil

    top = psutil.Process(network.running["coordinator"].process.pid)
    for process in [top, *top.children(recursive=True)]:
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                assert connection.laddr.ip in ("127.0.0.1", "::ffff:127.0.0.1", "::1")
