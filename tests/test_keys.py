"""The key of a center, and the files that the center alone may read and write."""

import gc
import os
import pickle
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from unpooled.center.records import line_file
from unpooled.center.records.keys import CenterKey, verifier
from unpooled.center.records.ledger import Ledger, mend, verify
from unpooled.center.records.line_file import LineFile, create_file
from unpooled.errors import LedgerError

HAIFA = CenterKey.from_seed(1, "Haifa")
QUESTION, ANSWER = b'{"variable":"los"}', b'{"counts":[12,17]}'


def sound_entries(path: Path, public_key: str | None = None, head: str | None = None) -> int:
    verdict = verify(path, public_key, head)
    assert verdict.ok, str(verdict)
    return verdict.entries


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "haifa.ledger"


def written(path: Path) -> bytes:
    with Ledger("Haifa", HAIFA, path) as ledger:
        for _ in range(5):
            ledger.append("release", QUESTION, ANSWER)
    return path.read_bytes()


def test_a_seed_and_a_center_give_the_same_key_every_time_and_others_give_another() -> None:
    key = CenterKey.from_seed(1, "Haifa")
    assert CenterKey.from_seed(1, "Haifa").public == key.public
    assert CenterKey.from_seed(1, "Haifa").secret == key.secret
    others = [CenterKey.from_seed(2, "Haifa"), CenterKey.from_seed(1, "Lausanne")]
    assert len({key.public, *(other.public for other in others)}) == 3
    assert len({key.secret, *(other.secret for other in others)}) == 3


def test_generated_keys_differ() -> None:
    assert CenterKey.generate().public != CenterKey.generate().public


def test_the_secret_is_32_bytes_and_neither_half_of_the_key(tmp_path: Path) -> None:
    key = CenterKey.load_or_create(tmp_path / "key")
    assert len(key.secret) == 32
    assert key.secret.hex() not in (tmp_path / "key").read_text()


def test_only_the_holder_of_the_key_can_sign() -> None:
    key, other = CenterKey.from_seed(1, "Haifa"), CenterKey.from_seed(1, "Lausanne")
    is_signed = verifier(key.public)
    assert is_signed(key.sign(b"message").hex(), b"message")
    assert not is_signed(other.sign(b"message").hex(), b"message")
    assert not is_signed(key.sign(b"message").hex(), b"another")


def test_repr_and_str_show_no_secret() -> None:
    key = CenterKey.from_seed(1, "Haifa")
    for text in (repr(key), str(key), f"{key}"):
        assert text == f"CenterKey(public='{key.public[:8]}...')"
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_a_key_file_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    made = CenterKey.load_or_create(path)
    loaded = CenterKey.load_or_create(path)
    assert (loaded.public, loaded.secret) == (made.public, made.secret)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
def test_a_key_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    CenterKey.load_or_create(path)
    path.chmod(mode)
    with pytest.raises(LedgerError, match=f"got mode {mode:o}. Hint: chmod 600"):
        CenterKey.load_or_create(path)


def test_any_changed_byte_of_the_keys_is_found_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "key"
    CenterKey.load_or_create(path)
    content = path.read_bytes()
    result = re.search(rb'"private":"([0-9a-f]{64})","public":"([0-9a-f]{64})"', content)
    assert result is not None
    private = result[1].decode()
    for place in (result.start(1), result.end(1) - 1, result.start(2), result.end(2) - 1):
        for letter in (b"z", b"0" if content[place] != ord("0") else b"1"):
            path.write_bytes(content[:place] + letter + content[place + 1 :])
            with pytest.raises(LedgerError, match=r"key file .* is damaged") as caught:
                CenterKey.load_or_create(path)
            assert private[8:56] not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"format":"unpooled key 2"}', b"[" * 9])
def test_what_is_not_a_key_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    create_file(path, content)
    with pytest.raises(LedgerError, match=r"is damaged: not a key of unpooled. Hint: restore it"):
        CenterKey.load_or_create(path)
    assert path.read_bytes() == content


def test_a_key_that_cannot_be_kept_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be used: No such file or directory"):
        CenterKey.load_or_create(tmp_path / "missing" / "key")
    with pytest.raises(LedgerError, match="cannot be used: Is a directory"):
        CenterKey.load_or_create(tmp_path)


def test_a_file_is_never_created_over_another(tmp_path: Path) -> None:
    create_file(tmp_path / "file", b"first")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_system_without_locks_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(LedgerError, match="cannot be locked: files need Linux"):
        LineFile(tmp_path / "lines", b"first\n")


@pytest.mark.parametrize("piece", [1, 3, 100])
def test_lines_that_nobody_reads_to_the_end_leave_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """An open file that a waiting generator held was found by Python's search for cycles alone."""
    monkeypatch.setattr("unpooled.center.records.line_file._PIECE", piece)
    opened: list[Path] = []
    plain = line_file.open_lines

    @contextmanager
    def noted(path: Path) -> Iterator[BinaryIO]:
        opened.append(path)
        with plain(path) as file:
            yield file
        opened.remove(path)

    monkeypatch.setattr(line_file, "open_lines", noted)
    (tmp_path / "lines").write_bytes(b"first\n\nthird\ncut sho")
    file = LineFile(tmp_path / "lines")
    begun = iter(file)
    assert next(begun) == b"first\n"
    assert not opened
    assert list(file) == [b"first\n", b"\n", b"third\n", b"cut sho"]
    file.close()


def test_importing_keys_and_ledger_does_not_import_cryptography() -> None:
    program = "import sys, unpooled.center.records.ledger; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- one writer -----------------------------------------------------------------------------------


def test_a_second_writer_is_refused_until_the_first_lets_go(path: Path) -> None:
    with Ledger("Haifa", HAIFA, path):
        with pytest.raises(LedgerError, match="is open in another place"):
            Ledger("Haifa", HAIFA, path)
        with pytest.raises(LedgerError, match="is open in another place"):
            mend(path)
        assert verify(path).ok
    Ledger("Haifa", HAIFA, path).close()


def test_a_second_process_is_refused(path: Path) -> None:
    program = (
        "import pathlib, sys\nfrom unpooled.center.records.ledger import *\n"
        "from unpooled.center.records.keys import *\n"
        "Ledger('Haifa', CenterKey.from_seed(1, 'Haifa'), pathlib.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, str(path)]
    with Ledger("Haifa", HAIFA, path):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "LedgerError" in run.stderr
        assert "is open in another place" in run.stderr
    assert subprocess.run(command, check=False).returncode == 0


def test_a_forgotten_ledger_lets_go(path: Path) -> None:
    ledger = Ledger("Haifa", HAIFA, path)
    del ledger
    gc.collect()
    Ledger("Haifa", HAIFA, path).close()


def test_a_closed_ledger_records_nothing(path: Path) -> None:
    ledger = Ledger("Haifa", HAIFA, path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="is closed; nothing was recorded"):
        ledger.append("release", QUESTION, ANSWER)
    assert len(ledger) == 0


def test_a_file_changed_by_another_program_is_noticed(path: Path) -> None:
    before = written(path)
    with Ledger("Haifa", HAIFA, path) as ledger:
        for content in (before + b"{}\n", before[:-1]):
            path.write_bytes(content)
            with pytest.raises(LedgerError, match="no other program may write"):
                ledger.append("release", QUESTION, ANSWER)
            assert path.read_bytes() == content
        path.write_bytes(b"".join(before.splitlines(keepends=True)[:3]))
        with pytest.raises(LedgerError, match="line 4: removed while the ledger was open"):
            list(ledger)
        path.write_bytes(before)
        ledger.append("release", QUESTION, ANSWER)


def test_a_file_moved_or_replaced_by_another_program_is_noticed(path: Path) -> None:
    before = written(path)
    with Ledger("Haifa", HAIFA, path) as ledger:
        path.rename(path.with_suffix(".away"))
        with pytest.raises(LedgerError, match="nothing was recorded: No such file"):
            ledger.append("release", QUESTION, ANSWER)
        path.write_bytes(before)
        with pytest.raises(LedgerError, match="no other program may write, move or replace"):
            ledger.append("release", QUESTION, ANSWER)
        assert len(ledger) == 5


# --- writes that fail -----------------------------------------------------------------------------


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may grow past a size: the system writes what fits, then fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_full_disk_leaves_no_half_line_and_the_next_append_works(path: Path, room: int) -> None:
    before = written(path)
    with Ledger("Haifa", HAIFA, path) as ledger:
        with (
            full_disk(len(before) + room),
            pytest.raises(LedgerError, match="nothing was recorded: File too large"),
        ):
            ledger.append("release", QUESTION, ANSWER)
        assert path.read_bytes() == before
        assert len(ledger) == len(list(ledger)) == 5
        assert ledger.append("release", QUESTION, ANSWER).number == 6
    assert sound_entries(path, HAIFA.public, ledger.head) == 6


def test_a_new_ledger_on_a_full_disk_leaves_nothing_behind(path: Path) -> None:
    with full_disk(10), pytest.raises(LedgerError, match="cannot be opened: File too large"):
        Ledger("Haifa", HAIFA, path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("stuck", [False, True])
@pytest.mark.parametrize("interruption", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_line_that_did_not_reach_the_disk_is_not_recorded(
    path: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException, stuck: bool
) -> None:
    def fail(*_: object) -> None:
        raise interruption

    before = written(path)
    ledger = Ledger("Haifa", HAIFA, path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        if stuck:  # nor can the line be taken back
            patch.setattr(os, "ftruncate", lambda *_: None)
        with pytest.raises((LedgerError, KeyboardInterrupt)):
            ledger.append("release", QUESTION, ANSWER)
    assert len(ledger) == len(list(ledger)) == 5
    assert ledger.append("refusal", QUESTION, b"another").number == 6
    ledger.close()
    assert path.read_bytes().startswith(before)
    assert sound_entries(path, HAIFA.public, ledger.head) == 6
