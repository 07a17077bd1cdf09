"""The memory outlives the center: on disk before the answer, tied to the ledger."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.keys import CenterKey
from unpooled.center.ledger import Ledger
from unpooled.center.memory.memory_file import MemoryFile
from unpooled.center.policy import Policy
from unpooled.data.sources import open_source
from unpooled.errors import LedgerError
from unpooled.questions import PowersQuestion, Reason, SizesQuestion, decode_answer, encode

ROWS = pl.DataFrame({"crp": np.random.default_rng(1).gamma(4, 1, 60), "id": np.arange(60)})
VISITS = pl.DataFrame(
    {"crp": np.random.default_rng(1).gamma(4, 1, 90), "id": [*range(60), *range(30)]}
).with_columns(visit=pl.Series([1] * 60 + [2] * 30), bed=pl.col("id"))


def center(folder: Path, rows: pl.DataFrame = ROWS, policy: Policy | None = None) -> Center:
    key = CenterKey.load_or_create(folder / "Haifa.key")
    return Center(
        "Haifa", open_source(rows), policy or Policy(), key, None, folder / "Haifa.ledger"
    )


def reasons(haifa: Center, *wheres: str | None) -> list[Reason | None]:
    told: list[Reason | None] = []
    for where in wheres:
        answer = decode_answer(
            haifa.answer(encode(SizesQuestion(variable="crp", where=where))).payload
        )
        told.append(None if answer.aggregate is not None else answer.refusals[0].reason)
    return told


def test_a_center_that_starts_again_still_knows_what_it_said(tmp_path: Path) -> None:
    haifa = center(tmp_path)
    assert reasons(haifa, None, "id < 30", "id < 31") == [None, None, Reason.WOULD_DIFFER]
    haifa.close()
    again = center(tmp_path)
    asked = reasons(again, "id < 31", "id != 3", None, "id < 30", "id < 15")
    assert asked == [Reason.WOULD_DIFFER, Reason.WOULD_DIFFER, None, None, None]
    again.close()


def test_rows_that_make_up_a_person_are_remembered_too(tmp_path: Path) -> None:
    """Leaving out one visit changes one person's mean, and nothing else."""
    policy = Policy(person="id", per_person="mean")
    haifa = center(tmp_path, VISITS, policy)
    assert reasons(haifa, None, "not (bed == 3 and visit == 2)") == [None, Reason.WOULD_DIFFER]
    haifa.close()
    again = center(tmp_path, VISITS, policy)
    asked = reasons(again, "not (bed == 3 and visit == 2)", "visit == 1", None, "bed < 30")
    assert asked == [Reason.WOULD_DIFFER, Reason.WOULD_DIFFER, None, None]
    again.close()


def test_powers_are_counted_after_a_restart(tmp_path: Path) -> None:
    def told(haifa: Center, *lambdas: float) -> bool:
        question = encode(PowersQuestion(variable="crp", lambdas=lambdas))
        return decode_answer(haifa.answer(question).payload).aggregate is not None

    grid = tuple(np.linspace(-1, 2, 7).tolist())
    for asked in (grid, grid, (0.1, 0.2, 0.3, 0.4, 0.6, 0.7)):  # 13 in all: 54 people
        haifa = center(tmp_path)
        assert told(haifa, *asked)
        haifa.close()
    again = center(tmp_path)
    assert told(again, *grid)
    assert not told(again, 0.11, 0.12)  # 15 in all: 62 people
    again.close()


def test_another_rule_for_several_rows_gives_other_values(tmp_path: Path) -> None:
    haifa = center(tmp_path, VISITS, Policy(person="id", per_person="mean"))
    assert reasons(haifa, None) == [None]
    haifa.close()
    changed = center(tmp_path, VISITS, Policy(person="id", per_person="max"))
    assert reasons(changed, None) == [Reason.DATA_CHANGED]
    changed.close()


def test_a_memory_that_is_gone_or_lags_stops_the_center(tmp_path: Path) -> None:
    haifa = center(tmp_path)
    reasons(haifa, None, "id < 30")
    haifa.close()
    memory = tmp_path / "Haifa.memory"
    lines = memory.read_bytes().splitlines(keepends=True)
    for kept in (lines[:-1], lines[:-2], [*lines[:-1], lines[-1][:40]]):
        memory.write_bytes(b"".join(kept))
        with pytest.raises(LedgerError, match="does not know the ledger's answer"):
            center(tmp_path)
    memory.unlink()
    with pytest.raises(LedgerError, match="does not know the ledger's answer 1"):
        center(tmp_path)
    assert not memory.exists()
    memory.write_bytes(b"".join(lines))
    center(tmp_path).close()


def test_a_line_whose_answer_never_left_does_no_harm(tmp_path: Path) -> None:
    """The memory is written first: a crash before the ledger leaves a line too many."""
    haifa = center(tmp_path)
    reasons(haifa, None)
    ledger = (tmp_path / "Haifa.ledger").read_bytes()
    reasons(haifa, "id < 30")
    haifa.close()
    (tmp_path / "Haifa.ledger").write_bytes(ledger)
    again = center(tmp_path)
    assert reasons(again, "id < 31", "id < 30") == [Reason.WOULD_DIFFER, None]
    again.close()
    center(tmp_path).close()


def test_nothing_leaves_that_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    haifa = center(tmp_path)

    def full(*_: object) -> None:
        raise LedgerError("no space left on device")

    monkeypatch.setattr(MemoryFile, "append", full)
    with pytest.raises(LedgerError):
        haifa.answer(encode(SizesQuestion(variable="crp")))
    assert len(haifa.ledger) == 0
    haifa.close()


def test_data_that_changed_are_not_told_of_again(tmp_path: Path) -> None:
    haifa = center(tmp_path)
    reasons(haifa, None)
    haifa.close()
    changed = center(tmp_path, ROWS.with_columns(crp=pl.col("crp").sqrt()))
    assert reasons(changed, None, "id < 30") == [Reason.DATA_CHANGED] * 2
    other = SizesQuestion(variable="id")
    assert decode_answer(changed.answer(encode(other)).payload).aggregate is not None
    changed.close()


def test_a_file_of_another_center_is_refused(tmp_path: Path) -> None:
    ledger = Ledger("Haifa", CenterKey.from_seed(1, "Haifa"))
    MemoryFile("Bern", tmp_path / "x.memory", ledger).close()
    with pytest.raises(LedgerError, match="not the memory of Haifa"):
        MemoryFile("Haifa", tmp_path / "x.memory", ledger)
    (tmp_path / "x.memory").write_bytes(b'{"format":"unpooled memory 2","center":"Haifa"}\n')
    with pytest.raises(LedgerError, match=r"another version wrote it\. Begin a new ledger"):
        MemoryFile("Haifa", tmp_path / "x.memory", ledger)
    (tmp_path / "x.memory").write_bytes(b"{}\n")
    with pytest.raises(LedgerError, match="line 1"):
        MemoryFile("Haifa", tmp_path / "x.memory", ledger)
