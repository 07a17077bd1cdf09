"""The ledger: nothing is lost, nothing can be changed unseen, nothing half-written counts."""

import os
import re
import threading
from hashlib import sha256
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpooled.center.questions import SizesQuestion, encode
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import Entry, Kind, Ledger, mend, read, verify
from unpooled.errors import InputError, LedgerError
from unpooled.results.provenance.releases import ledger_text

HAIFA = CenterKey.from_seed(1, "Haifa")
QUESTION = '{"analysis":"table","variable":"größe","where":"age >= 65\\n"}'.encode()
ANSWER = '{"edges":[null,4.5,null],"counts":[[12,17]],"groups":["\u2028","☃"]}'.encode()


def written(path: Path, entries: int = 5) -> bytes:
    with Ledger("Haifa", HAIFA, path) as ledger:
        for number in range(entries):
            kind: Kind = "refusal" if number % 3 == 2 else "release"
            ledger.append(kind, QUESTION, ANSWER + b" " * number)
    return path.read_bytes()


def sound_entries(path: Path, public_key: str | None = None, head: str | None = None) -> int:
    verdict = verify(path, public_key, head)
    assert verdict.ok, str(verdict)
    return verdict.entries


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "haifa.ledger"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A path to write changed copies to, and the sound ledger to change."""
    path = tmp_path_factory.mktemp("shelf") / "haifa.ledger"
    return path, written(path)


# --- recording ------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_disk", [True, False])
def test_the_exact_bytes_come_back(path: Path, on_disk: bool) -> None:
    with Ledger("Haifa", HAIFA, path if on_disk else None) as ledger:
        first = ledger.append("release", QUESTION, ANSWER)
        second = ledger.append("refusal", QUESTION, b"")
        assert list(ledger) == [first, second]
        assert [entry.number for entry in ledger] == [1, 2]
        assert [entry.kind for entry in ledger] == ["release", "refusal"]
        assert first.question.encode() == QUESTION
        assert first.answer.encode() == ANSWER
        assert second.previous == first.hash
        assert ledger.head == second.hash
        assert len(ledger) == 2
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first.time)


@settings(max_examples=50)
@given(texts=st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_any_text_comes_back(texts: list[tuple[str, str]]) -> None:
    ledger = Ledger("Haifa", HAIFA)
    for question, answer in texts:
        ledger.append("release", question.encode(), answer.encode())
    assert [(entry.question, entry.answer) for entry in ledger] == texts


def test_a_person_can_read_a_line_and_check_its_hash_with_common_tools(path: Path) -> None:
    _, line = written(path, 1).splitlines()
    assert "größe".encode() in line
    body, _, seal = line.rpartition(b',"hash":"')
    assert sha256(body + b"}").hexdigest() == seal[:64].decode()


def test_a_ledger_of_a_file_is_for_its_owner_alone(path: Path) -> None:
    written(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_what_is_not_utf8_text_or_of_no_known_kind_is_not_recorded(path: Path) -> None:
    with Ledger("Haifa", HAIFA, path) as ledger:
        with pytest.raises(LedgerError, match=r"question must be UTF-8 text.* at byte 3"):
            ledger.append("release", b"ab\xff", ANSWER)
        with pytest.raises(LedgerError, match="answer must be UTF-8 text"):
            ledger.append("release", QUESTION, b"\xed\xa0\x80")
        with pytest.raises(LedgerError, match="not the JSON of a ledger's entry: Invalid enum"):
            ledger.append(cast("Kind", "rumour"), QUESTION, ANSWER)
        assert len(ledger) == 0
        ledger.append("release", QUESTION, ANSWER)
    assert sound_entries(path) == 1


def test_many_threads_append_one_chain(path: Path) -> None:
    with Ledger("Haifa", HAIFA, path) as ledger:
        work = [
            threading.Thread(
                target=lambda: [ledger.append("release", QUESTION, ANSWER) for _ in range(5)]
            )
            for _ in range(8)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert len(ledger) == 40
    assert sound_entries(path, HAIFA.public, ledger.head) == 40


# --- opening again --------------------------------------------------------------------------------


def test_opening_again_continues_the_chain(path: Path) -> None:
    before = written(path, 2)
    with Ledger("Haifa", HAIFA, path) as ledger:
        assert len(ledger) == 2
        entry = ledger.append("release", QUESTION, ANSWER)
        assert entry.number == 3
        assert [entry.number for entry in ledger] == [1, 2, 3]
    assert path.read_bytes().startswith(before)
    verdict = verify(path, HAIFA.public, entry.hash)
    assert verdict.ok
    assert (verdict.center, verdict.entries, verdict.head) == ("Haifa", 3, entry.hash)


def test_a_relative_path_survives_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger("Haifa", HAIFA, Path("haifa.ledger")) as ledger:
        monkeypatch.chdir("/")
        ledger.append("release", QUESTION, ANSWER)
        assert len(list(ledger)) == 1
    assert sound_entries(tmp_path / "haifa.ledger") == 1


@pytest.mark.parametrize(
    ("center", "key", "problem"),
    [
        ("Haifa", CenterKey.from_seed(2, "Haifa"), "line 1: signed by the key .*, not by"),
        ("Lausanne", HAIFA, "line 1: this is the ledger of 'Haifa', not of 'Lausanne'"),
    ],
)
def test_another_center_cannot_continue_a_ledger(
    path: Path, center: str, key: CenterKey, problem: str
) -> None:
    before = written(path)
    with pytest.raises(LedgerError, match=problem) as caught:
        Ledger(center, key, path)
    assert path.read_bytes() == before
    Ledger("Haifa", HAIFA, path).close()
    assert caught.tb, "the error still holds the refused ledger, which must have let go"


def test_a_damaged_ledger_is_refused_and_not_written_to(path: Path) -> None:
    damaged = written(path).replace(b"[12,17]", b"[12,18]", 2)
    path.write_bytes(damaged)
    with pytest.raises(LedgerError, match=r"haifa.ledger: line 2: the hash of the line does not"):
        Ledger("Haifa", HAIFA, path)
    assert path.read_bytes() == damaged


def test_an_empty_file_is_not_taken_for_a_new_ledger(path: Path) -> None:
    path.touch()
    with pytest.raises(LedgerError, match="line 1: the file is empty"):
        Ledger("Haifa", HAIFA, path)
    assert path.read_bytes() == b""


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened: No such file or directory"):
        Ledger("Haifa", HAIFA, tmp_path / "missing" / "haifa.ledger")
    with pytest.raises(LedgerError, match="cannot be opened: Is a directory"):
        Ledger("Haifa", HAIFA, tmp_path)


# --- a crash --------------------------------------------------------------------------------------


def test_a_last_line_cut_short_is_refused_and_can_be_mended(path: Path) -> None:
    before = written(path, 2)
    *_, last = before.splitlines(keepends=True)
    kept = len(before) - len(last)
    for cut in (1, 2, len(last) // 2, len(last) - 1):
        path.write_bytes(before[: kept + cut])
        with pytest.raises(LedgerError, match=r"line 3: cut short.*unpooled ledger mend"):
            Ledger("Haifa", HAIFA, path)
        assert path.read_bytes() == before[: kept + cut]
        assert (verify(path).line, verify(path).entries) == (3, 1)
        aside = mend(path)
        assert aside.parent == path.parent
        assert aside.read_bytes() == last[:cut]
        assert path.read_bytes() == before[:kept]
        with Ledger("Haifa", HAIFA, path) as ledger:
            assert ledger.append("release", QUESTION, ANSWER).number == 2
        assert verify(path).ok


def test_mending_that_was_interrupted_can_be_repeated(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    cut = written(path, 2)[:-9]
    path.write_bytes(cut)
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(LedgerError, match="cannot be written: Input/output error"):
            mend(path)
    assert path.read_bytes() == cut
    aside = mend(path)
    assert path.read_bytes() + aside.read_bytes() == cut
    assert verify(path).ok


def test_mend_touches_nothing_but_a_last_line_cut_short(path: Path) -> None:
    sound = written(path)
    header, *_ = sound.splitlines(keepends=True)
    cases = {
        sound: "the last line is whole",
        sound.replace(b"[12,17]", b"[12,18]", 1)[:-1]: "line 2: the hash of the line",
        header[:-1]: "line 1: the file is empty",
        b"": "line 1: the file is empty",
    }
    for content, problem in cases.items():
        path.write_bytes(content)
        with pytest.raises(LedgerError, match=f"mend is for a last line cut short; {problem}"):
            mend(path)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


# --- verifying ------------------------------------------------------------------------------------


def test_a_sound_ledger_is_said_to_be_sound(path: Path) -> None:
    written(path)
    header, entries = read(path)
    verdict = verify(path, HAIFA.public.upper() + " ", entries[-1].hash)
    assert verdict.ok
    assert (verdict.problem, verdict.line) == (None, None)
    assert (verdict.center, verdict.public_key) == ("Haifa", HAIFA.public)
    assert (verdict.entries, verdict.head) == (5, entries[-1].hash)
    assert verify(path, head=entries[2].hash).ok, "a head noted earlier stays in the chain"
    assert verify(path, head=header.hash).ok
    assert str(verdict).startswith("The ledger of Haifa is sound: 5 entries, head ")


def line_of(content: bytes, position: int) -> int:
    return content[:position].count(b"\n") + 1


def check_found(path: Path, changed: bytes, lines: set[int]) -> None:
    path.write_bytes(changed)
    verdict = verify(path)
    assert not verdict.ok
    assert verdict.problem
    assert verdict.line in lines
    assert verdict.entries == max(verdict.line - 2, 0)
    assert f"line {verdict.line}: " in str(verdict)


@settings(max_examples=400)
@given(data=st.data(), mask=st.integers(1, 255))
def test_a_changed_byte_is_found_in_its_line(
    shelf: tuple[Path, bytes], data: st.DataObject, mask: int
) -> None:
    path, sound = shelf
    position = data.draw(st.integers(0, len(sound) - 1))
    changed = bytearray(sound)
    changed[position] ^= mask
    line = line_of(sound, position)
    lines = {line, line + 1} if sound[position] == ord("\n") else {line}
    check_found(path, bytes(changed), lines)


@settings(max_examples=300)
@given(data=st.data(), extra=st.binary(min_size=1, max_size=3) | st.sampled_from([b" ", b"\n"]))
def test_added_bytes_are_found_in_their_line(
    shelf: tuple[Path, bytes], data: st.DataObject, extra: bytes
) -> None:
    path, sound = shelf
    position = data.draw(st.integers(0, len(sound)))
    line = line_of(sound, position)
    check_found(path, sound[:position] + extra + sound[position:], {line, line + 1})


@settings(max_examples=300)
@given(data=st.data(), length=st.integers(1, 3))
def test_removed_bytes_are_found_in_their_line(
    shelf: tuple[Path, bytes], data: st.DataObject, length: int
) -> None:
    path, sound = shelf
    position = data.draw(st.integers(0, len(sound) - length))
    line = line_of(sound, position)
    check_found(path, sound[:position] + sound[position + length :], {line, line + 1})


def test_every_removed_repeated_or_swapped_line_is_found(shelf: tuple[Path, bytes]) -> None:
    path, sound = shelf
    lines = sound.splitlines(keepends=True)
    for here in range(len(lines)):
        repeated = [*lines[: here + 1], *lines[here:]]
        check_found(path, b"".join(repeated), {here + 2})
        if here < len(lines) - 1:
            check_found(path, b"".join(lines[:here] + lines[here + 1 :]), {here + 1})
        for there in range(here):
            swapped = list(lines)
            swapped[here], swapped[there] = swapped[there], swapped[here]
            check_found(path, b"".join(swapped), {there + 1})


def test_removed_last_lines_are_found_with_a_head_noted_earlier(path: Path) -> None:
    lines = written(path).splitlines(keepends=True)
    head = verify(path).head
    path.write_bytes(b"".join(lines[:4]))
    assert verify(path).ok, "the file alone cannot show it"
    verdict = verify(path, head=head)
    assert not verdict.ok
    assert verdict.line is None
    assert verdict.entries == 3
    assert "lines were removed or rewritten" in str(verdict)


def test_a_ledger_written_anew_with_another_key_is_found_with_the_public_key(path: Path) -> None:
    with Ledger("Haifa", CenterKey.from_seed(2, "Haifa"), path) as ledger:
        ledger.append("release", QUESTION, ANSWER)
    assert verify(path).ok
    verdict = verify(path, HAIFA.public)
    assert (verdict.ok, verdict.line, verdict.head) == (False, 1, None)
    assert verdict.problem == f"signed by the key {verify(path).public_key}, not by {HAIFA.public}"


def rewritten(line: bytes, **fields: object) -> bytes:
    """A line whose hash is made to fit its new content, by somebody without the key."""
    content = {**msgspec.json.decode(line), **fields}
    unsealed = {name: content[name] for name in content if name not in ("hash", "signature")}
    if "hash" not in fields:
        content["hash"] = sha256(msgspec.json.encode(unsealed)).hexdigest()
    return msgspec.json.encode(content) + b"\n"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"answer": "{}"}, "the signature is wrong"),
        ({"signature": "0" * 128}, "the signature is wrong"),
        ({"hash": "0" * 64}, "the hash of the line does not match"),
        ({"previous": "0" * 64}, "the link to the line before is broken"),
        ({"number": 3}, "the number is out of order: expected 2, found 3"),
        ({"number": 10**30}, "not the JSON of a ledger's entry: "),
        ({"time": "yesterday"}, "not the JSON of a ledger's entry: "),
        ({"kind": "rumour"}, "not the JSON of a ledger's entry: Invalid enum value 'rumour'"),
        ({"more": 1}, "not the JSON of a ledger's entry: Object contains unknown field `more`"),
    ],
)
def test_a_forged_line_is_named_for_what_is_wrong(
    path: Path, fields: dict[str, object], problem: str
) -> None:
    lines = written(path).splitlines(keepends=True)
    lines[2] = rewritten(lines[2], **fields)
    path.write_bytes(b"".join(lines))
    verdict = verify(path)
    assert (verdict.ok, verdict.line, verdict.entries) == (False, 3, 1)
    assert str(verdict.problem).startswith(problem)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"kind":', b'"kind": '),
        (b'{"number":2,', b'{ "number":2,'),
        ("ö".encode(), b"\\u00f6"),
        (b'"kind":"release"', b'"kind":"releas\\u0065"'),
        (b'{"number":2,', b'{"number":2,"number":2,'),
        (b'"signature":"', b'"signature":"0'),
        (b'"}\n', b'"} \n'),
        (b'"}\n', b'"}\r\n'),
    ],
)
def test_another_spelling_of_the_same_line_is_found(path: Path, old: bytes, new: bytes) -> None:
    lines = written(path).splitlines(keepends=True)
    sound = lines[2]
    lines[2] = sound.replace(old, new)
    path.write_bytes(b"".join(lines))
    assert verify(path).line == 3
    signature = msgspec.json.decode(lines[3])["signature"].encode()
    lines[2:4] = [sound, lines[3].replace(signature, signature.upper())]
    path.write_bytes(b"".join(lines))
    assert verify(path).line == 4


def test_fields_in_another_order_are_found_even_outside_the_hash(path: Path) -> None:
    lines = written(path).splitlines(keepends=True)
    lines[2] = re.sub(rb',("hash":".*?"),("signature":".*?")}', rb",\2,\1}", lines[2])
    path.write_bytes(b"".join(lines))
    assert verify(path).line == 3
    assert "order of the fields" in str(verify(path))


def test_a_later_format_is_named(path: Path) -> None:
    path.write_bytes(written(path).replace(b"unpooled ledger 1", b"unpooled ledger 2", 1))
    assert "'unpooled ledger 2' - at `$.format`" in str(verify(path))


def test_wrong_arguments_and_missing_files_are_clear_errors(path: Path) -> None:
    with pytest.raises(LedgerError, match=r"haifa.ledger cannot be read: No such file"):
        verify(path)
    with pytest.raises(LedgerError, match=r"haifa.ledger cannot be read: No such file"):
        read(path)
    with pytest.raises(InputError, match="public_key must be 64 hex digits, got 'abc'"):
        verify(path, public_key="abc")
    with pytest.raises(InputError, match="head must be 64 hex digits, got ''"):
        verify(path, head="")


def test_a_ledger_that_is_not_sound_can_still_be_read(path: Path) -> None:
    changed = written(path).replace(b"[12,17]", b"[12,18]", 1)
    path.write_bytes(changed)
    header, entries = read(path)
    assert header.center == "Haifa"
    assert [entry.number for entry in entries] == [1, 2, 3, 4, 5]
    assert isinstance(entries[0], Entry)
    path.write_bytes(changed + b"nonsense\n")
    with pytest.raises(LedgerError, match="line 7: not the JSON of a ledger's entry"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="line 1: not the JSON of a ledger's header"):
        read(path)


def test_a_ledger_says_where_a_number_was_cut(tmp_path: Path) -> None:
    asked = SizesQuestion(variable="crp", by="age", cuts=(50, 65.5), where="sex == 'F'")
    with Ledger("Haifa", HAIFA, tmp_path / "Haifa.ledger") as ledger:
        ledger.append("release", encode(asked), ANSWER)
    assert "sizes of crp by age cut at 50, 65.5 where sex == 'F'" in ledger_text(
        *read(tmp_path / "Haifa.ledger")
    )
