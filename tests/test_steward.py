"""The steward sees the exact payload before it leaves, and his word is kept."""

from pathlib import Path

import msgspec
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.approval.steward import (
    Decision,
    Steward,
    decide,
    decided,
    find,
    is_waited_for,
    pending,
    withdraw,
)
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Protocol,
    ProtocolQuestion,
    ProtocolVariable,
    Reason,
    SizesQuestion,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import read
from unpooled.errors import HeldError, InputError, LedgerError
from unpooled.results.provenance.releases import ledger_text
from unpooled.results.provenance.steward_text import decision_text, held_text

QUESTION = encode(SizesQuestion(variable="los"))
OTHER = encode(SizesQuestion(variable="los", where="los > 10"))
TICKET = "0" * 32
BUT_FIVE = "los >= 30 and los < 55"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "Haifa.pending"


def open_haifa(folder: Path) -> Center:
    rows = open_source(pl.DataFrame({"los": range(60)}))
    key = CenterKey.from_seed(1, "Haifa")
    ledger = folder.with_name("Haifa.ledger")
    return Center("Haifa", rows, Policy(ad_hoc="free"), key, None, ledger, Steward(folder))


@pytest.fixture
def haifa(folder: Path) -> Center:
    return open_haifa(folder)


def decide_all(folder: Path, decision: Decision) -> None:
    for held in pending(folder):
        decide(folder, held, decision)


def test_nothing_leaves_and_nothing_is_recorded_before_the_steward_has_decided(
    haifa: Center, folder: Path
) -> None:
    for _ in range(3):
        with pytest.raises(HeldError):
            haifa.answer(QUESTION, TICKET)
    assert len(haifa.ledger) == 0
    (held,) = pending(folder)
    assert held.question.encode() == QUESTION
    assert "60" in held.answer


def test_what_the_steward_approved_leaves_byte_for_byte(haifa: Center, folder: Path) -> None:
    with pytest.raises(HeldError):
        haifa.answer(QUESTION)
    (held,) = pending(folder)
    decide_all(folder, "approved")
    assert haifa.answer(QUESTION).payload == held.answer.encode()
    assert [entry.kind for entry in haifa.ledger] == ["release"]
    assert pending(folder) == []
    assert haifa.answer(QUESTION).payload == held.answer.encode()  # the same bytes may leave again
    with pytest.raises(HeldError):
        haifa.answer(OTHER)


def test_a_refusal_is_recorded_and_holds_for_the_next_such_question(
    haifa: Center, folder: Path
) -> None:
    with pytest.raises(HeldError):
        haifa.answer(QUESTION, TICKET)
    decide_all(folder, "refused")
    answer = decode_answer(haifa.answer(QUESTION, TICKET).payload)
    assert answer.aggregate is None
    assert [r.reason for r in answer.refusals] == [Reason.REFUSED_BY_STEWARD]
    assert [entry.kind for entry in haifa.ledger] == ["refusal"]
    assert decode_answer(haifa.answer(QUESTION, "1" * 32).payload) == answer
    assert [entry.kind for entry in haifa.ledger] == ["refusal"] * 2
    with pytest.raises(HeldError):
        haifa.answer(OTHER)
    haifa.close()
    assert decode_answer(open_haifa(folder).answer(QUESTION).payload) == answer


@pytest.mark.parametrize("decision", ["approved", "refused"])
def test_a_steward_can_change_his_mind(haifa: Center, folder: Path, decision: Decision) -> None:
    for question in (QUESTION, OTHER):
        with pytest.raises(HeldError):
            haifa.answer(question)
    mine, other = pending(folder)
    decide_all(folder, decision)
    for question in (QUESTION, OTHER):
        haifa.answer(question)
    assert {held.name for held, _ in decided(folder)} == {mine.name, other.name}
    assert {each for _, each in decided(folder)} == {decision}
    with pytest.raises(InputError, match="there are 2 decisions, say which"):
        withdraw(folder, None)
    assert withdraw(folder, mine.short) == (mine, decision)
    assert [held for held, _ in decided(folder)] == [other]
    with pytest.raises(HeldError):
        haifa.answer(mine.question.encode())
    (again,) = pending(folder)
    assert again.name == mine.name
    withdraw(folder, None)
    with pytest.raises(InputError, match="no decision is in force"):
        withdraw(folder, None)


def test_a_steward_can_change_their_mind_about_a_protocol_that_left(
    haifa: Center, folder: Path
) -> None:
    """Its bytes are kept to be the same again, and wait again all the same."""
    los = {"los": ProtocolVariable(kind="number")}
    plan = Protocol(title="stays", purpose="how long they are", variables=los)
    question = encode(ProtocolQuestion(protocol=plan))
    with pytest.raises(HeldError):
        haifa.answer(question)
    (shown,) = [held_text(folder, held) for held in pending(folder)]
    assert "purpose:      how long they are" in shown
    assert "    sizes of los: [] 60\n" in shown  # each part, also in the terminal
    decide_all(folder, "approved")
    first = haifa.answer(question).payload
    assert haifa.answer(question).payload == first
    withdraw(folder, None)
    with pytest.raises(HeldError):
        haifa.answer(question)
    (held,) = pending(folder)
    assert held.answer.encode() == first
    decide_all(folder, "refused")
    answer = decode_answer(haifa.answer(question).payload)
    assert [r.reason for r in answer.refusals] == [Reason.REFUSED_BY_STEWARD]
    assert pending(folder) == []


def test_a_refusal_that_was_not_recorded_yet_can_be_withdrawn(haifa: Center, folder: Path) -> None:
    with pytest.raises(HeldError):
        haifa.answer(QUESTION)
    (held,) = pending(folder)
    decide(folder, held, "refused")
    assert pending(folder) == []
    withdraw(folder, held.short)
    assert pending(folder) == [held]
    assert len(haifa.ledger) == 0


def test_of_two_decisions_at_once_the_refusal_holds_and_both_are_withdrawn(
    haifa: Center, folder: Path
) -> None:
    with pytest.raises(HeldError):
        haifa.answer(QUESTION)
    (held,) = pending(folder)
    decide(folder, held, "approved")
    (approved,) = folder.glob("*.approved")
    review = msgspec.json.decode(approved.read_bytes())
    refused = msgspec.json.encode({**review, "decision": "refused"})
    (folder / held.file("refused")).write_bytes(refused)  # as two programs at once might
    assert decided(folder) == [(held, "refused")]
    withdraw(folder, held.short)
    assert decided(folder) == []
    assert pending(folder) == [held]


def test_the_steward_reads_what_an_answer_shuts_out_before_and_after_it_leaves(
    haifa: Center, folder: Path
) -> None:
    some, most = (encode(SizesQuestion(variable="los", where=w)) for w in ("los < 30", BUT_FIVE))
    for question in (some, most):
        with pytest.raises(HeldError):
            haifa.answer(question)
        decide_all(folder, "approved")
        haifa.answer(question)
        ledger = ledger_text(*read(folder.with_name("Haifa.ledger")))
        warning = "shuts out later answers by everybody"
        ((_, shown),) = [(h, held_text(folder, h)) for h, _ in decided(folder)][-1:]
        assert (f"all 25; {warning}" in shown) == (question == most)
        assert (f"all 25; {warning}" in ledger) == (question == most)
    with pytest.raises(HeldError):
        haifa.answer(QUESTION)
    (late,) = pending(folder)
    assert "would-isolate" in late.answer  # it was true


def test_the_steward_reads_which_groups_are_those_of_an_earlier_answer(
    haifa: Center, folder: Path
) -> None:
    with pytest.raises(HeldError):
        haifa.answer(encode(SizesQuestion(variable="los", where="los > 5")))  # all but six
    (held,) = pending(folder)
    assert "all 60; all as in an earlier answer, fewer than 10 people" in held_text(folder, held)


def test_refusals_are_held_too_so_that_waiting_tells_nothing(haifa: Center, folder: Path) -> None:
    few, nonsense = encode(SizesQuestion(variable="los", where="los < 3")), b"nonsense"
    for question in (few, nonsense):
        with pytest.raises(HeldError):
            haifa.answer(question)
    assert len(pending(folder)) == 2
    texts = " ".join(held_text(folder, held) for held in pending(folder))
    assert "fewer than 10 people" in texts
    assert "asked:        unreadable" in texts


def test_what_is_held_survives_a_restart_and_is_not_released_by_it(
    haifa: Center, folder: Path
) -> None:
    with pytest.raises(HeldError):
        haifa.answer(QUESTION)
    haifa.close()
    again = open_haifa(folder)
    assert len(pending(folder)) == 1
    with pytest.raises(HeldError):
        again.answer(QUESTION)
    assert len(pending(folder)) == 1
    assert len(again.ledger) == 0


def test_a_payload_that_was_changed_while_it_waited_is_noticed(haifa: Center, folder: Path) -> None:
    with pytest.raises(HeldError):
        haifa.answer(QUESTION)
    (file,) = folder.glob("*.json")
    held = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode({**held, "answer": held["answer"].replace("60", "61")}))
    with pytest.raises(LedgerError, match="was changed"):
        pending(folder)


def test_a_full_disk_lets_nothing_out(
    haifa: Center, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unpooled.center.approval.steward.create_file", full)
    with pytest.raises(LedgerError, match="No space left on device"):
        haifa.answer(QUESTION)
    assert len(haifa.ledger) == 0


def test_the_steward_names_a_payload_by_its_beginning_or_not_at_all(
    haifa: Center, folder: Path
) -> None:
    with pytest.raises(InputError, match="nothing waits"):
        find(folder, None)
    with pytest.raises(HeldError):
        haifa.answer(QUESTION)
    (held,) = pending(folder)
    assert find(folder, None) == find(folder, held.short[:4]) == held
    with pytest.raises(InputError, match=f"names none of .*{held.short}"):
        find(folder, "nothing")
    with pytest.raises(HeldError):
        haifa.answer(OTHER)
    with pytest.raises(InputError, match="there are 2 payloads that wait, say which"):
        find(folder, None)


def test_the_steward_reads_what_comes_of_his_word(haifa: Center, folder: Path) -> None:
    with pytest.raises(HeldError):
        haifa.answer(QUESTION)
    (held,) = pending(folder)
    assert is_waited_for(folder, held)
    assert "leaves now" in decision_text(folder, held, "approved")
    assert "records it" in decision_text(folder, held, "refused")
    (folder / f"{held.name}.json").unlink()
    assert "is asked again" in decision_text(folder, held, "approved")


def test_a_repeated_question_gets_its_recorded_release_and_no_second_record(tmp_path: Path) -> None:
    rows = open_source(pl.DataFrame({"los": range(60)}))
    key, ledger = CenterKey.from_seed(1, "Haifa"), tmp_path / "Haifa.ledger"
    center = Center("Haifa", rows, Policy(ad_hoc="free"), key, None, ledger)
    first = center.answer(QUESTION, TICKET).payload
    assert center.answer(QUESTION, TICKET).payload == first
    assert len(center.ledger) == 1
    center.answer(OTHER, TICKET)  # another question is another entry, whatever its ticket is
    center.answer(QUESTION)
    center.answer(QUESTION, "1" * 32)
    assert len(center.ledger) == 4
    center.close()
    again = Center("Haifa", rows, Policy(ad_hoc="free"), key, None, ledger)
    assert again.answer(QUESTION, TICKET).payload == first
    assert len(again.ledger) == 4
