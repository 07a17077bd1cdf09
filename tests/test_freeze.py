"""A freeze: rows that stay as they are, whatever happens to the data."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unpooled.center.config import open_center, open_data, read_center
from unpooled.center.freeze import Freeze, freeze_rows, use_freeze
from unpooled.center.questions import MomentsQuestion, encode
from unpooled.center.rule.fingerprint import people_fingerprint
from unpooled.errors import InputError, SourceError

DAY = date(2026, 11, 18)
CENTER = """\
# The center of the east wing
name = "Haifa"
data = "stays.csv"   # written every night
ledger = "Haifa.ledger"

[policy]
k = 5
person = "id"
variables = ["los", "sex"]

[variables.sex]      # coded by the registry
local = "SEX"
codes = { M = "1", F = "2" }

[variables.glucose]  # declared, and not allowed
missing = [999]
"""
RANDOM = np.random.default_rng(5)
ROWS = pl.DataFrame(
    {
        "id": [f"P{i}" for i in range(40)],
        "los": RANDOM.permutation(40),
        "SEX": ["M", "F", "x", None] * 10,
        "glucose": [5.5, 999.0, 6.0, None] * 10,
        "name": ["Anna"] * 40,
    }
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    ROWS.write_csv(tmp_path / "stays.csv")
    (tmp_path / "center.toml").write_text(CENTER)
    return tmp_path / "center.toml"


def people(config: Path) -> str:
    center = read_center(config)
    return people_fingerprint(open_data(center, config.parent), center.policy)


def answer_bytes(config: Path) -> bytes:
    center = open_center(read_center(config), config.parent)
    try:
        return center.answer(encode(MomentsQuestion(variable="los", by="sex"))).payload
    finally:
        center.close()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_center_answers_the_same_from_a_freeze_and_goes_on(config: Path, suffix: str) -> None:
    if suffix == "parquet":
        ROWS.write_parquet(config.parent / "stays.parquet")
        config.write_text(CENTER.replace("stays.csv", "stays.parquet"))
    before, truth = answer_bytes(config), people(config)
    freeze = freeze_rows(config, DAY)
    assert freeze.path == config.parent / "Haifa-2026-11-18.parquet"
    assert freeze.setting == 'data = "Haifa-2026-11-18.parquet"'
    use_freeze(config, freeze)
    (config.parent / f"stays.{suffix}").unlink()
    assert people(config) == truth
    assert answer_bytes(config) == before  # with the ledger and the memory of before


def test_a_freeze_has_what_is_needed_and_is_for_its_owner_alone(config: Path) -> None:
    freeze = freeze_rows(config, DAY)
    assert (freeze.rows, freeze.columns) == (40, ("id", "los", "SEX", "glucose"))
    assert pl.read_parquet(freeze.path).equals(ROWS.drop("name"))
    assert freeze.path.stat().st_mode & 0o777 == 0o600
    assert freeze.sha256 == sha256(freeze.path.read_bytes()).hexdigest()
    left = {path.name for path in config.parent.iterdir()}
    assert left == {"center.toml", "stays.csv", freeze.path.name}


def test_a_policy_that_allows_all_keeps_all(config: Path) -> None:
    config.write_text('name = "Haifa"\ndata = "stays.csv"\nledger = "Haifa.ledger"\n')
    assert freeze_rows(config, DAY).columns == tuple(ROWS.columns)


def test_the_same_rows_give_the_same_file(config: Path) -> None:
    first, second = (freeze_rows(config, date(2026, month, 1)) for month in (1, 2))
    assert first.path != second.path
    assert first.sha256 == second.sha256


def test_a_freeze_is_never_written_over(config: Path) -> None:
    freeze = freeze_rows(config, DAY)
    content = freeze.path.read_bytes()
    ROWS[:20].write_csv(config.parent / "stays.csv")
    with pytest.raises(InputError, match="exists, and a freeze is never written over"):
        freeze_rows(config, DAY)
    assert freeze.path.read_bytes() == content


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may grow past a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_nothing_behind(config: Path) -> None:
    before = sorted(config.parent.iterdir())
    with full_disk(100), pytest.raises(SourceError, match=r"cannot be copied: .*File too large"):
        freeze_rows(config, DAY)
    assert sorted(config.parent.iterdir()) == before


def test_a_file_that_is_written_meanwhile_is_no_freeze(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unpooled.center.data.sources import Source

    path = config.parent / "stays.parquet"
    ROWS.write_parquet(path)
    config.write_text(CENTER.replace("stays.csv", "stays.parquet"))
    write = Source.write_parquet

    def late(source: Source, columns: tuple[str, ...], copy: Path) -> None:
        write(source, columns, copy)
        ROWS[:39].write_parquet(path)

    monkeypatch.setattr(Source, "write_parquet", late)
    with pytest.raises(SourceError, match="the copy differs from the data"):
        freeze_rows(config, DAY)
    assert not list(config.parent.glob("Haifa-*"))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("stays.csv", "gone.csv", "does not exist"),
        ('data = "stays.csv"', "", "either data"),
        ('"Haifa"', '"../Haifa"', "name must be letters"),
        ('"los", "sex"', '"lso", "sex"', "policy: there is no column 'lso'"),
    ],
)
def test_what_cannot_be_frozen_is_said(config: Path, old: str, new: str, problem: str) -> None:
    config.write_text(CENTER.replace(old, new))
    with pytest.raises((InputError, SourceError), match=problem):
        freeze_rows(config, DAY)


def test_nobody_is_not_frozen(config: Path) -> None:
    (config.parent / "stays.csv").write_text("id,los,SEX,glucose\n")
    with pytest.raises(SourceError, match="no rows, so there is nothing to freeze"):
        freeze_rows(config, DAY)
    assert not list(config.parent.glob("Haifa-*"))


def test_use_changes_one_setting_and_keeps_every_comment(config: Path) -> None:
    config.chmod(0o640)
    use_freeze(config, freeze_rows(config, DAY))
    assert config.read_text() == CENTER.replace("stays.csv", "Haifa-2026-11-18.parquet")
    assert config.stat().st_mode & 0o777 == 0o640
    assert not list(config.parent.glob(".center*"))


POSTGRES = """\
# The center of the east wing
name = "Haifa"
ledger = "Haifa.ledger"  # what left

# what may leave
[policy]
k = 5

[postgres]
connection = "host=localhost"
# the view of the registry
query = "TABLE stays ORDER BY id"

[variables.los]
unit = "days"
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_use_puts_a_file_in_the_place_of_a_database(tmp_path: Path, end: str) -> None:
    config = tmp_path / "center.toml"
    config.write_bytes(POSTGRES.replace("\n", end).encode())
    use_freeze(config, Freeze(tmp_path / "Haifa-2026-11-18.parquet", 40, ("los",), ""))
    wanted = POSTGRES.replace("# what left\n", '# what left\ndata = "Haifa-2026-11-18.parquet"\n')
    for line in ("[postgres]", "connection", "query"):
        wanted = wanted.replace(f"\n{line}", f"\n# {line}")
    assert config.read_bytes().decode() == wanted.replace("\n", end)
    center = read_center(config)
    assert (center.postgres, center.data) == (None, "Haifa-2026-11-18.parquet")
    assert center.variables["los"].unit == "days"


def test_what_cannot_be_changed_safely_is_left_to_a_person(tmp_path: Path) -> None:
    config = tmp_path / "center.toml"
    text = (
        'name = "Haifa"\nledger = "Haifa.ledger"\n'
        'postgres = { connection = "host=localhost", query = "TABLE stays" }\n'
    )
    config.write_text(text)
    freeze = Freeze(tmp_path / "Haifa-2026-11-18.parquet", 40, ("los",), "")
    with pytest.raises(InputError, match=r"could not be changed\. Hint: write data = \"Haifa-2026"):
        use_freeze(config, freeze)
    assert config.read_text() == text
    assert list(tmp_path.iterdir()) == [config]
