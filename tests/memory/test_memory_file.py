"""The memory outlives the center: on disk before the answer, tied to the ledger."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Answer,
    CohortQuestion,
    LatticeQuestion,
    MomentsQuestion,
    Reason,
    SizesQuestion,
    SurvivalQuestion,
    TableQuestion,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import Ledger
from unpooled.center.rule.disclosure import Told
from unpooled.center.rule.memory import Draft, MemoryFile
from unpooled.errors import LedgerError

ROWS = pl.DataFrame(
    {
        "crp": np.random.default_rng(1).gamma(4, 1, 60),
        "age": np.random.default_rng(2).integers(42, 80, 60).astype(float),
        "id": np.arange(60),
    }
)
VISITS = pl.DataFrame(
    {"crp": np.random.default_rng(1).gamma(4, 1, 90), "id": [*range(60), *range(30)]}
).with_columns(visit=pl.Series([1] * 60 + [2] * 30), bed=pl.col("id"))


def center(folder: Path, rows: pl.DataFrame = ROWS, policy: Policy | None = None) -> Center:
    key = CenterKey.load_or_create(folder / "Haifa.key")
    return Center(
        "Haifa",
        open_source(rows),
        policy or Policy(ad_hoc="free"),
        key,
        None,
        folder / "Haifa.ledger",
    )


def ask(haifa: Center, question: CohortQuestion) -> Answer:
    return decode_answer(haifa.answer(encode(question)).payload)


def reasons(haifa: Center, *wheres: str | None) -> list[Reason | None]:
    answers: list[Reason | None] = []
    for where in wheres:
        answer = ask(haifa, SizesQuestion(variable="crp", where=where))
        answers.append(None if answer.aggregate is not None else answer.refusals[0].reason)
    return answers


def test_a_center_that_starts_again_still_knows_what_it_said(tmp_path: Path) -> None:
    haifa = center(tmp_path)
    half, beside = "id < 30", "id < 45 and id != 3"
    assert reasons(haifa, None, half, "id >= 30 and id < 45") == [None, None, None]
    assert reasons(haifa, beside) == [Reason.WOULD_ISOLATE]
    haifa.close()
    again = center(tmp_path)
    asked = reasons(again, beside, None, half, "id < 15")
    assert asked == [Reason.WOULD_ISOLATE, None, None, None]
    again.close()


def test_a_set_near_to_one_told_before_a_restart_is_answered_as_that_one(tmp_path: Path) -> None:
    haifa = center(tmp_path)
    half = ask(haifa, MomentsQuestion(variable="crp", where="id < 30"))
    haifa.close()
    again = center(tmp_path)
    one_more = ask(again, MomentsQuestion(variable="crp", where="id < 31"))
    assert one_more.nearest == ("all",)
    assert one_more.aggregate == half.aggregate
    again.close()


def test_tables_sums_who_shares_values_and_rows_are_all_remembered(tmp_path: Path) -> None:
    """What a center knows after a restart is what it knew before."""
    random = np.random.default_rng(3)
    rows = pl.DataFrame(
        {
            "stay": random.integers(1, 40, 240),
            "crp": random.gamma(4, 1, 240).round(1),
            "died": random.integers(0, 2, 240),
            "sex": np.where(np.arange(240) % 200 % 2 == 0, "F", "M"),
            "ward": np.arange(240) % 200 // 50,
            "id": np.arange(240) % 200,
            "visit": np.arange(240) // 200,
        }
    )
    policy = Policy(ad_hoc="free", person="id", per_person="first")
    asked: list[CohortQuestion] = [
        MomentsQuestion(variable="crp", where="visit == 0"),
        LatticeQuestion(variable="crp", where="visit == 0"),
        MomentsQuestion(variable="stay"),
        TableQuestion(variable="stay", by="sex"),
        SizesQuestion(variable="stay", where="ward == 1"),
        MomentsQuestion(variable="stay", where="ward == 1 or sex == 'F'"),
    ]
    outcome = SurvivalQuestion(variable="stay", event="died", horizon=60.0)
    haifa = center(tmp_path, rows, policy)
    for question in asked:
        ask(haifa, question)
    before = haifa._memory.state
    assert before.tables
    assert before.rows
    assert len(before.sets) > 2
    assert any(part.knows for part in before.variables.values())
    haifa.close()
    again = center(tmp_path, rows, policy)
    assert knowledge(again._memory.state) == knowledge(before)
    assert ask(again, outcome).aggregate is None
    again.close()


def knowledge(answer: Draft) -> dict[str, object]:
    """All that a draft knows, in what can be compared."""
    return {
        "words": of_list(answer.words),
        "variables": {name: of_list(part) for name, part in answer.variables.items()},
        "sets": answer.sets,
        "tables": [(t.variable, t.edges.tolist(), t.people) for t in answer.tables],
        "rows": dict(answer.rows),
    }


def of_list(answer: Told) -> object:
    parts = [
        (element.part[answer.of].tolist(), element.numbers.tolist(), element.answer)
        for element in answer.elements
    ]
    return parts, answer.crowd[answer.of].tolist(), answer.others, answer.knows


def test_rows_that_make_up_a_person_are_remembered_too(tmp_path: Path) -> None:
    """Leaving out one visit changes one person's mean, and nothing else."""
    policy = Policy(ad_hoc="free", person="id", per_person="mean")
    haifa = center(tmp_path, VISITS, policy)
    assert reasons(haifa, None, "not (bed == 3 and visit == 2)") == [None, Reason.WOULD_ISOLATE]
    haifa.close()
    again = center(tmp_path, VISITS, policy)
    asked = reasons(again, "not (bed == 3 and visit == 2)", "visit == 1", None, "bed < 30")
    assert asked == [Reason.WOULD_ISOLATE, Reason.WOULD_ISOLATE, None, None]
    again.close()


def test_another_rule_for_several_rows_gives_other_values(tmp_path: Path) -> None:
    haifa = center(tmp_path, VISITS, Policy(ad_hoc="free", person="id", per_person="mean"))
    assert reasons(haifa, None) == [None]
    haifa.close()
    changed = center(tmp_path, VISITS, Policy(ad_hoc="free", person="id", per_person="max"))
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
    assert reasons(again, "id < 15 or 17 < id", "id < 30") == [None, None]
    assert ask(again, SizesQuestion(variable="crp", where="id < 31")).nearest == ("all",)
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


@pytest.mark.parametrize(
    "changed",
    [
        ROWS.with_columns(crp=pl.col("crp").sqrt()),
        ROWS.with_columns(age=pl.Series([41.0, *ROWS["age"][1:]])),
        ROWS[1:],
        ROWS.reverse(),
        ROWS.drop("crp"),
    ],
    ids=["a column", "one value", "one person fewer", "the order", "a column fewer"],
)
def test_people_who_changed_are_not_told_of_whatever_is_asked(
    changed: pl.DataFrame, tmp_path: Path
) -> None:
    haifa = center(tmp_path)
    reasons(haifa, None)
    haifa.close()
    later = center(tmp_path, changed)
    for variable in ("crp", "age", "id"):
        answer = ask(later, SizesQuestion(variable=variable))
        assert answer.aggregate is None
        assert [refusal.reason for refusal in answer.refusals] == [Reason.DATA_CHANGED]
    later.close()


def test_new_columns_of_the_same_people_do_no_harm_but_must_then_stay(tmp_path: Path) -> None:
    haifa = center(tmp_path)
    reasons(haifa, None)
    haifa.close()
    more = ROWS.with_columns(ldl=pl.col("crp") * 2)
    for rows, refused in ((more, None), (ROWS, Reason.DATA_CHANGED), (more, None)):
        later = center(tmp_path, rows)
        assert reasons(later, None) == [refused]
        later.close()


def test_a_file_of_another_center_is_refused(tmp_path: Path) -> None:
    ledger = Ledger("Haifa", CenterKey.from_seed(1, "Haifa"))
    MemoryFile("Bern", tmp_path / "x.memory", ledger).close()
    with pytest.raises(LedgerError, match="not the memory of Haifa"):
        MemoryFile("Haifa", tmp_path / "x.memory", ledger)
    (tmp_path / "x.memory").write_bytes(b'{"format":"unpooled memory 3","center":"Haifa"}\n')
    with pytest.raises(LedgerError, match=r"another version wrote it\. Begin a new ledger"):
        MemoryFile("Haifa", tmp_path / "x.memory", ledger)
    (tmp_path / "x.memory").write_bytes(b"{}\n")
    with pytest.raises(LedgerError, match="line 1"):
        MemoryFile("Haifa", tmp_path / "x.memory", ledger)
