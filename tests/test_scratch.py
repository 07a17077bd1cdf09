"""A bound on memory: the same answers, and nothing of the data left behind on disk."""

import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.data.scratch import Scratch
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    AboutPeople,
    GroupRanksQuestion,
    LatticeQuestion,
    MomentsQuestion,
    RanksQuestion,
    Reason,
    SizesQuestion,
    SurvivalQuestion,
    TableQuestion,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.errors import InputError, SourceError

LEAST = 256


def hospital(people: int, seed: int = 1) -> pl.DataFrame:
    """Values with ties and gaps, groups of all sizes, some visits of the same person."""
    random = np.random.default_rng(seed)
    crp = np.round(random.gamma(4, 1, people), 2)
    return pl.DataFrame(
        {
            "crp": np.where(random.random(people) < 0.1, np.nan, crp),
            "sex": random.choice(["F", "M"], people),
            "ward": random.choice(list("ABCDE"), people, p=[0.5, 0.3, 0.15, 0.04, 0.01]),
            "age": random.integers(20, 90, people),
            "days": np.round(random.exponential(30, people), 1),
            "died": random.integers(0, 2, people),
            "id": random.integers(0, int(people / 1.3), people),
        }
    )


LATTICE: list[AboutPeople] = [
    LatticeQuestion(variable="crp"),
    LatticeQuestion(variable="crp", by="sex"),
    LatticeQuestion(variable="crp", where="age >= 50"),
    LatticeQuestion(variable="crp", by="ward", where="age >= 50"),
    LatticeQuestion(variable="crp", by="ward", groups=("A", "E")),
    LatticeQuestion(variable="age", by="ward"),
    LatticeQuestion(variable="age", where="sex == 'F'"),
    LatticeQuestion(variable="age"),
    LatticeQuestion(variable="crp", by="age", cuts=(50.0,)),
    LatticeQuestion(variable="crp"),
]
OTHERS: list[AboutPeople] = [
    MomentsQuestion(variable="crp", by="ward"),
    TableQuestion(variable="crp", by="sex"),
    SizesQuestion(variable="crp", where="age >= 70"),
    RanksQuestion(variable="crp", by="sex", groups=("F", "M")),
    GroupRanksQuestion(variable="crp", by="ward"),
    LatticeQuestion(variable="crp", by="ward"),
    SurvivalQuestion(variable="days", event="died", by="sex", horizon=100.0),
]
POLICIES = {
    "rows": Policy(ad_hoc="free"),
    "all moments": Policy(ad_hoc="free", moments="all"),
    "persons": Policy(ad_hoc="free", person="id", per_person="mean"),
}


@pytest.fixture
def all_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No array is small enough to stay in memory, and pieces are of few people."""
    monkeypatch.setattr("unpooled.center.data.scratch._SMALL", 0)
    monkeypatch.setattr("unpooled.center.data.scratch._ARRAYS", 0)
    monkeypatch.setattr("unpooled.maths.big_arrays._PIECE", 64)


def center(
    rows: object, scratch: Scratch | None, policy: Policy, ledger: Path | None = None
) -> Center:
    key = CenterKey.from_seed(1, "Haifa")
    return Center("Haifa", open_source(rows, scratch), policy, key, None, ledger)


@pytest.mark.usefixtures("all_on_disk")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("questions", [LATTICE, LATTICE[::-1], OTHERS], ids=["a", "b", "others"])
@pytest.mark.parametrize("people", [90, 700])
def test_answers_are_the_same_bytes_with_a_bound_and_without(
    people: int, questions: list[AboutPeople], policy: Policy, tmp_path: Path
) -> None:
    hospital(people).write_parquet(tmp_path / "rows.parquet")
    free = center(tmp_path / "rows.parquet", None, policy)
    bounded = center(tmp_path / "rows.parquet", Scratch(LEAST, tmp_path), policy)
    answer = 0
    for question in questions:
        aggregate = free.answer(encode(question)).payload
        assert bounded.answer(encode(question)).payload == aggregate
        answer += decode_answer(aggregate).aggregate is not None
    assert answer


@pytest.mark.usefixtures("all_on_disk")
@pytest.mark.parametrize("bounded_first", [False, True])
def test_what_one_wrote_down_the_other_remembers(bounded_first: bool, tmp_path: Path) -> None:
    """A center gets a bound, or loses it, in the middle of its life."""
    rows = hospital(700)
    free = center(rows, None, Policy(ad_hoc="free"), tmp_path / "free.ledger")
    expected = [free.answer(encode(question)).payload for question in LATTICE]
    answer = []
    for bounded, questions in ((bounded_first, LATTICE[:4]), (not bounded_first, LATTICE[4:])):
        scratch = Scratch(LEAST, tmp_path) if bounded else None
        haifa = center(rows, scratch, Policy(ad_hoc="free"), tmp_path / "both.ledger")
        answer += [haifa.answer(encode(question)).payload for question in questions]
        haifa.close()
    assert answer == expected
    lines = [(tmp_path / f"{name}.memory").read_bytes() for name in ("free", "both")]
    assert lines[0] == lines[1]


def peak(rows: Path, scratch: Scratch | None) -> int:
    haifa = center(rows, scratch, Policy(ad_hoc="free"))
    tracemalloc.start()
    for question in (LATTICE[0], LATTICE[1], LATTICE[0]):
        assert decode_answer(haifa.answer(encode(question)).payload).aggregate is not None
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.usefixtures("all_on_disk")
def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly: less than a byte for each is left."""
    monkeypatch.setattr("unpooled.maths.big_arrays._PIECE", 1 << 12)
    people = (200_000, 600_000)  # each more than one batch
    for n in people:
        hospital(n).write_parquet(tmp_path / f"{n}.parquet")
    bounded = [peak(tmp_path / f"{n}.parquet", Scratch(LEAST, tmp_path)) for n in people]
    free = [peak(tmp_path / f"{n}.parquet", None) for n in people]
    assert bounded[1] - bounded[0] < people[1] - people[0]
    assert free[1] - free[0] > 20 * (people[1] - people[0])


def test_arrays_lie_in_memory_as_long_as_there_is_room(tmp_path: Path) -> None:
    scratch, size = Scratch(LEAST, tmp_path), 3_000_000
    arrays = [scratch.empty(size, np.dtype(np.float64)) for _ in range(4)]
    assert [array.base is None for array in arrays] == [True, True, False, False]
    del arrays[0]
    assert scratch.empty(size, np.dtype(np.float64)).base is None


def open_files(folder: Path) -> list[os.stat_result]:
    return [
        descriptor.stat()
        for descriptor in Path("/proc/self/fd").iterdir()
        if descriptor.is_symlink()
        and os.readlink(descriptor).startswith(f"{folder}/")
        and os.readlink(descriptor) != f"{folder}/lock"
    ]


@pytest.mark.usefixtures("all_on_disk")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at Linux's open files")
def test_a_scratch_file_has_no_name_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    scratch = Scratch(LEAST, tmp_path)
    values = scratch.empty(5_000_000, np.dtype(np.float64))
    values[:] = 1.5
    assert scratch.folder.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in scratch.folder.iterdir()] == ["lock"]
    (file,) = open_files(scratch.folder)
    assert (file.st_nlink, file.st_mode & 0o777, file.st_size) == (0, 0o600, 40_000_000)
    del values
    assert open_files(scratch.folder) == []


@pytest.mark.usefixtures("all_on_disk")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at Linux's open files")
def test_small_arrays_share_files_and_nothing_else(tmp_path: Path) -> None:
    """Each file that is mapped takes one of the process's descriptors."""
    scratch = Scratch(LEAST, tmp_path)
    arrays = [scratch.empty(100_001, np.dtype(kind)) for kind in (bool, np.int32, float) * 300]
    assert len(open_files(scratch.folder)) == 2
    for number, array in enumerate(arrays):
        array[:] = number % 2
    assert all((array == number % 2).all() for number, array in enumerate(arrays))
    assert all(array.flags.aligned for array in arrays)


def test_the_folder_is_gone_with_its_center(tmp_path: Path) -> None:
    scratch = Scratch(LEAST, tmp_path)
    haifa = center(hospital(90), scratch, Policy(ad_hoc="free"))
    haifa.answer(encode(LATTICE[0]))
    assert scratch.folder.exists()
    del haifa, scratch
    assert list(tmp_path.iterdir()) == []


CRASH = """
import os, signal, sys
from pathlib import Path
import duckdb
import numpy as np
from unpooled.center.data.scratch import Scratch
from unpooled.center.data.sources import connect

scratch = Scratch(256, Path(sys.argv[1]))
values = scratch.empty(20_000_000, np.dtype(float))
values[:] = 1.5
database = connect(scratch)
database.execute("SET enable_progress_bar = false")
database.execute("CREATE TEMP TABLE t AS SELECT random() AS v FROM range(30_000_000)")
print(sum(file.stat().st_size for file in scratch.folder.iterdir()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_crash_leaves_nothing_that_the_next_start_does_not_remove(tmp_path: Path) -> None:
    """Arrays vanish with the process; what DuckDB put on disk goes when a center starts again."""
    running = Scratch(LEAST, tmp_path)
    crashed = subprocess.run(
        [sys.executable, "-c", CRASH, tmp_path], capture_output=True, text=True, check=False
    )
    assert crashed.returncode == -signal.SIGKILL
    spilled = int(crashed.stdout)
    (left,) = set(tmp_path.iterdir()) - {running.folder}
    assert left.stat().st_mode & 0o777 == 0o700
    assert 0 < sum(file.stat().st_size for file in left.iterdir()) == spilled
    again = Scratch(LEAST, tmp_path)
    assert set(tmp_path.iterdir()) == {running.folder, again.folder}


def test_a_full_disk_is_a_refusal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unpooled.center.data.scratch._SMALL", 0)
    monkeypatch.setattr("unpooled.center.data.scratch._ARRAYS", 0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    haifa = center(hospital(90), Scratch(LEAST, tmp_path), Policy(ad_hoc="free"))
    answer = decode_answer(haifa.answer(encode(LATTICE[0])).payload)
    assert answer.aggregate is None
    assert answer.refusals[0].reason is Reason.FAILED


def test_a_bound_must_leave_room_to_work_and_a_folder_must_take_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ram_mb must be at least 256, got 10"):
        Scratch(10)
    with pytest.raises(SourceError, match="takes no files: No such file or directory"):
        Scratch(LEAST, tmp_path / "nowhere")


@pytest.mark.parametrize("sql", ["SELECT 1.5::DOUBLE AS v WHERE false", "SELECT 2.5::DOUBLE AS v"])
def test_a_result_may_be_empty_or_short(sql: str, tmp_path: Path) -> None:
    source = open_source(hospital(90), Scratch(LEAST, tmp_path))
    read = [value for batch in source.batches(sql) for value in batch["v"].tolist()]
    assert read == [value for (value,) in source.rows(sql)]


def test_a_query_that_fails_on_its_way_says_so_and_leaves_the_source_usable(tmp_path: Path) -> None:
    source = open_source(hospital(90), Scratch(LEAST, tmp_path))
    late = "CASE WHEN range = 400000 THEN error('stop here') ELSE 1.0::DOUBLE END"
    with pytest.raises(SourceError, match="stop here"):
        sum(len(batch["v"]) for batch in source.batches(f"SELECT {late} AS v FROM range(500000)"))
    with pytest.raises(SourceError, match="one in every row"):
        list(source.batches("SELECT nullif(range, 3)::DOUBLE AS v FROM range(9)"))
    assert source.size == 90


def test_a_disk_that_cannot_lock_is_named_and_nothing_is_left_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr("fcntl.flock", fail)
    with pytest.raises(SourceError, match="takes no files"):
        Scratch(LEAST, tmp_path)
    assert not list(tmp_path.iterdir())
