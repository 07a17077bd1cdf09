"""Two people must approve, nobody twice, and nobody in another's name."""

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from unpooled.center import Center
from unpooled.center.approval.reviewers import (
    Reviewer,
    Reviewers,
    make_reviewer,
    unlock_reviewer,
    with_reviewer,
)
from unpooled.center.approval.steward import (
    Steward,
    approvals,
    decide,
    decided,
    newer,
    pending,
    read_reviews,
    retract,
    withdraw,
)
from unpooled.center.config import CenterFile, open_center, read_center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import Reason, SizesQuestion, decode_answer, encode
from unpooled.center.records.keys import CenterKey
from unpooled.errors import HeldError, InputError, LedgerError

QUESTION = encode(SizesQuestion(variable="los"))
PASSPHRASE = "correct horse battery"


class Haifa:
    """A center that two of its three reviewers must approve for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "Haifa.pending"
        self.keys = folder / "Haifa.reviewers"
        self.anna, self.ben, self.cleo = (
            make_reviewer(self.keys, name, PASSPHRASE) for name in ("Anna", "Ben", "Cleo")
        )
        people = (self.anna, self.ben, self.cleo)
        self.reviewers = Reviewers("Haifa", 2, {who.name: who.public for who in people})
        rows = open_source(pl.DataFrame({"los": range(60)}))
        key, steward = CenterKey.from_seed(1, "Haifa"), Steward(self.folder, self.reviewers)
        ledger = folder / "Haifa.ledger"
        self.center = Center("Haifa", rows, Policy(ad_hoc="free"), key, None, ledger, steward)

    def ask(self) -> None:
        with pytest.raises(HeldError):
            self.center.answer(QUESTION, None, "maria")

    def approve(self, by: Reviewer | None) -> None:
        (held,) = pending(self.folder, self.reviewers)
        decide(self.folder, held, "approved", by, None, self.reviewers)


@pytest.fixture
def haifa(tmp_path: Path) -> Haifa:
    asked = Haifa(tmp_path)
    asked.ask()
    return asked


def test_two_must_approve(haifa: Haifa) -> None:
    haifa.approve(haifa.anna)
    haifa.ask()
    assert len(haifa.center.ledger) == 0
    haifa.approve(haifa.ben)
    assert decode_answer(haifa.center.answer(QUESTION).payload).aggregate is not None
    ((held, decision),) = decided(haifa.folder, haifa.reviewers)
    assert decision == "approved"
    assert [r.by for r in approvals(haifa.folder, held, haifa.reviewers)] == ["Anna", "Ben"]


def test_nobody_reviews_twice(haifa: Haifa) -> None:
    haifa.approve(haifa.anna)
    with pytest.raises(InputError, match=r"Anna has approved .* nobody reviews twice"):
        haifa.approve(haifa.anna)
    (first,) = haifa.folder.glob("*.approved")  # nor by a copy of the file under another name
    first.with_name(f"{first.name.split('.')[0]}.{haifa.ben.public[:16]}.approved").write_bytes(
        first.read_bytes()
    )
    haifa.ask()
    assert len(haifa.center.ledger) == 0


def test_one_refusal_is_enough(haifa: Haifa) -> None:
    haifa.approve(haifa.anna)
    (held,) = pending(haifa.folder, haifa.reviewers)
    decide(haifa.folder, held, "refused", haifa.cleo, "too many wards", haifa.reviewers)
    answer = decode_answer(haifa.center.answer(QUESTION).payload)
    assert [r.reason for r in answer.refusals] == [Reason.REFUSED_BY_STEWARD]
    assert "wards" not in haifa.center.answer(QUESTION).payload.decode()
    assert [note.reason for note in read_reviews(haifa.folder)] == [None, "too many wards"]


def test_the_steward_alone_and_strangers_do_not_count(haifa: Haifa, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only a reviewer of this center"):
        haifa.approve(None)
    stranger = make_reviewer(tmp_path / "elsewhere", "Anna", PASSPHRASE)
    with pytest.raises(InputError, match="only a reviewer of this center"):
        haifa.approve(stranger)


@pytest.mark.parametrize("lie", ["unsigned", "of another name", "of another payload"])
def test_a_decision_that_is_written_by_hand_does_not_count(haifa: Haifa, lie: str) -> None:
    """Whoever can write in the folder, but has no passphrase, approves nothing."""
    haifa.approve(haifa.anna)
    (held,) = pending(haifa.folder, haifa.reviewers)
    (file,) = haifa.folder.glob("*.approved")
    review = msgspec.json.decode(file.read_bytes())
    signatures = {
        "unsigned": None,
        "of another name": review["signature"],
        "of another payload": haifa.ben.sign("Haifa", "approved", "0" * 64),
    }
    forged = {**review, "by": "Ben", "signature": signatures[lie]}
    (haifa.folder / f"{held.name}.forged.approved").write_bytes(msgspec.json.encode(forged))
    haifa.ask()
    assert len(haifa.center.ledger) == 0
    forged["signature"] = haifa.ben.sign("Haifa", "approved", held.name)  # as he would himself
    (haifa.folder / f"{held.name}.forged.approved").write_bytes(msgspec.json.encode(forged))
    assert len(haifa.center.answer(QUESTION).payload) > 0


def test_an_approval_can_be_taken_back_alone_and_a_decision_as_a_whole(haifa: Haifa) -> None:
    haifa.approve(haifa.anna)
    (held,) = pending(haifa.folder, haifa.reviewers)
    retract(haifa.folder, held, haifa.anna)
    assert approvals(haifa.folder, held, haifa.reviewers) == []
    for who in (haifa.anna, haifa.ben):
        haifa.approve(who)
    withdraw(haifa.folder, held.short, haifa.ben, haifa.reviewers)
    haifa.ask()
    acts = [(note.act, note.by) for note in read_reviews(haifa.folder)]
    assert acts == [
        ("approved", "Anna"),
        ("withdrawn", "Anna"),
        ("approved", "Anna"),
        ("approved", "Ben"),
        ("withdrawn", "Ben"),
    ]


def test_who_asks_is_held_and_recorded(haifa: Haifa) -> None:
    (held,) = pending(haifa.folder, haifa.reviewers)
    assert held.asker == "maria"
    for who in (haifa.anna, haifa.ben):
        haifa.approve(who)
    haifa.center.answer(QUESTION, None, "maria")
    assert [entry.asker for entry in haifa.center.ledger] == ["maria"]


def test_what_another_answer_took_the_place_of_is_not_approved(haifa: Haifa) -> None:
    (held,) = pending(haifa.folder, haifa.reviewers)
    other = msgspec.structs.replace(held, answer=held.answer.replace("60", "61"))
    path = haifa.folder / f"{other.name}.json"
    path.write_bytes(msgspec.json.encode(other))
    assert newer(haifa.folder, held) == other
    with pytest.raises(InputError, match=f"another one by now.*{other.short}"):
        decide(haifa.folder, held, "approved", haifa.anna, None, haifa.reviewers)
    path.unlink()
    decide(haifa.folder, held, "approved", haifa.anna, None, haifa.reviewers)


def test_a_passphrase_opens_a_key_and_nothing_else_does(tmp_path: Path) -> None:
    anna = make_reviewer(tmp_path, "Anna", PASSPHRASE)
    assert unlock_reviewer(tmp_path, "Anna", PASSPHRASE) == anna
    for name, passphrase in (("Anna", "wrong"), ("Ben", PASSPHRASE), ("../Anna", PASSPHRASE)):
        with pytest.raises(InputError, match=r"^name or passphrase is wrong$"):
            unlock_reviewer(tmp_path, name, passphrase)
    file = (tmp_path / "Anna.json").read_text()
    assert anna.private.hex() not in file
    with pytest.raises(InputError, match="has a key already"):
        make_reviewer(tmp_path, "Anna", PASSPHRASE)
    with pytest.raises(InputError, match="12 letters"):
        make_reviewer(tmp_path, "Ben", "short")
    with pytest.raises(InputError, match="must have 1 to 40 letters"):
        make_reviewer(tmp_path, "../Ben", PASSPHRASE)
    (tmp_path / "Anna.json").write_text(file.replace(anna.public, "0" * 64))
    with pytest.raises(LedgerError, match="two halves do not match"):
        unlock_reviewer(tmp_path, "Anna", PASSPHRASE)


def test_center_toml_names_the_reviewers(tmp_path: Path) -> None:
    pl.DataFrame({"los": range(60)}).write_csv(tmp_path / "data.csv")
    path = tmp_path / "center.toml"
    text = 'name = "Haifa"\ndata = "data.csv"\nledger = "Haifa.ledger"\napproval = "ask"\n'
    path.write_text(text + "reviewers = 2\n")
    with pytest.raises(InputError, match=r"needs as many names in \[reviewer_keys\], got 0"):
        read_center(path)
    keys = tmp_path / "Haifa.reviewers"
    people = [make_reviewer(keys, name, PASSPHRASE) for name in ("Anna Levi", "Ben")]
    written = text + "reviewers = 2\n[policy]\nk = 10\n"
    for reviewer in people:
        written = with_reviewer(written, reviewer)
    path.write_text(written)
    center = open_center(read_center(path), tmp_path)
    with pytest.raises(HeldError):
        center.answer(QUESTION)
    center.close()
    assert read_center(path).reviewer_keys == {p.name: p.public for p in people}


def test_settings_of_reviewers_that_would_do_nothing_are_errors() -> None:
    answer: dict[str, Any] = {"name": "Haifa", "data": "data.csv", "ledger": "Haifa.ledger"}
    with pytest.raises(InputError, match='approval = "ask"'):
        CenterFile(**answer, reviewers=2)
    with pytest.raises(InputError, match="must be at least 1"):
        CenterFile(**answer, approval="ask", reviewers=0)
    with pytest.raises(InputError, match="must not have one key"):
        CenterFile(**answer, approval="ask", reviewer_keys={"A": "0" * 64, "B": "0" * 64})
