"""A center's rows from PostgreSQL: the same as from a file, read-only, and past one batch."""

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pytest

from unpooled.center.config import open_data, read_center
from unpooled.center.data.postgres import Postgres, open_postgres
from unpooled.center.freeze import freeze_rows, use_freeze
from unpooled.center.rule.fingerprint import people_fingerprint
from unpooled.errors import SourceError

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


def execute(uri: str, *statements: str) -> None:
    with psycopg.connect(uri) as database:
        for statement in statements:
            database.execute(statement)


def test_every_kind_of_column_arrives(postgres: str) -> None:
    execute(
        postgres,
        "CREATE TABLE kinds (i integer, f double precision, n numeric, t text, b boolean, "
        "d date, s timestamp, u uuid)",
        "INSERT INTO kinds VALUES (1, 2.5, 3.25, 'é', true, '2020-02-29', '2020-01-02 03:04:05', "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    source = open_postgres(Postgres(connection=postgres, query="SELECT * FROM kinds"))
    kinds = ["integer", "float", "float", "text", "boolean", "date", "date", "text"]
    assert list(source.kinds.values()) == kinds
    first, second = source.rows(f"SELECT * FROM {source.relation} ORDER BY i NULLS LAST")
    assert first[:5] == (1, 2.5, 3.25, "é", True)
    assert first[5:7] == (date(2020, 2, 29), datetime(2020, 1, 2, 3, 4, 5))
    assert second == (None,) * 8


def test_a_query_cannot_write(postgres: str) -> None:
    execute(postgres, "CREATE TABLE kept (x integer)", "INSERT INTO kept VALUES (1)")
    for query in ("DELETE FROM kept RETURNING x", "SELECT 1; DELETE FROM kept", "TABLE nowhere"):
        with pytest.raises(SourceError, match="PostgreSQL"):
            open_postgres(Postgres(connection=postgres, query=query))
    with psycopg.connect(postgres) as database:
        assert database.execute("SELECT count(*) FROM kept").fetchone() == (1,)


def test_a_database_that_is_not_there_is_named() -> None:
    where = Postgres(connection="host=127.0.0.1 port=1 dbname=x", query="SELECT 1")
    with pytest.raises(SourceError, match="PostgreSQL"):
        open_postgres(where)


def test_many_rows_arrive_in_batches(postgres: str) -> None:
    query = "SELECT x, sin(x) AS y, 'g' || x % 3 AS g FROM generate_series(1, 120000) AS x"
    source = open_postgres(Postgres(connection=postgres, query=query))
    read = source.fetch(f"SELECT x, y FROM {source.relation} ORDER BY x")
    assert len(read["x"]) == 120_000
    assert np.allclose(read["y"], np.sin(read["x"]))


def test_a_query_is_frozen_as_it_was_read(postgres: str, tmp_path: Path) -> None:
    execute(
        postgres,
        "CREATE TABLE stays (id integer, los float8, seen timestamptz, ward text)",
        "INSERT INTO stays SELECT i, i / 7.0, now(), 'w' || i % 3 FROM generate_series(1, 50) AS i",
    )
    config = tmp_path / "center.toml"
    config.write_text(
        'name = "Haifa"\nledger = "Haifa.ledger"\n\n[postgres]\n'
        f'connection = "{postgres}"\nquery = "SELECT * FROM stays ORDER BY id DESC"\n'
    )
    center = read_center(config)
    before = people_fingerprint(open_data(center, tmp_path), center.policy)
    freeze = freeze_rows(config, date(2026, 11, 18))
    use_freeze(config, freeze)
    execute(postgres, "DELETE FROM stays WHERE id = 7")
    center = read_center(config)
    assert center.postgres is None
    assert people_fingerprint(open_data(center, tmp_path), center.policy) == before
