"""What `center check` says of the memory beside the ledger: what the start would say."""

from pathlib import Path

import msgspec
import polars as pl
import pytest

from unpooled.center.check import Finding, center_findings, memory_findings, people_findings
from unpooled.center.config import open_center, open_data, read_center
from unpooled.center.questions import CatalogueQuestion, SizesQuestion, encode
from unpooled.center.records.keys import CenterKey
from unpooled.center.rule.fingerprint import people_fingerprint
from unpooled.errors import LedgerError

ROWS = pl.DataFrame({"los": range(40), "sex": ["F", "M"] * 20})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A center that has answered twice."""
    ROWS.write_csv(tmp_path / "stays.csv")
    config = tmp_path / "center.toml"
    names = 'name = "Haifa"\ndata = "stays.csv"\nledger = "Haifa.ledger"\n'
    config.write_text(f"{names}[policy]\ngroupings = {{ sex = [] }}\n")
    center = open_center(read_center(config), tmp_path)
    for variable in ("los", "sex"):
        center.answer(
            encode(SizesQuestion(variable="los", by=None if variable == "los" else "sex"))
        )
    center.close()
    return config


def files(config: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in config.parent.glob("Haifa*")}


def finding_of(config: Path, center: str = "Haifa") -> Finding:
    key = CenterKey.load_or_create(config.with_name("Haifa.key"))
    (finding,) = memory_findings(center, config.with_name("Haifa.ledger"), key)
    return finding


def test_a_sound_memory_is_said_to_be_so_and_stays_as_it_is(config: Path) -> None:
    before = files(config)
    assert str(finding_of(config)) == "ok     memory: knows every answer of the ledger"
    center = open_center(read_center(config), config.parent)
    assert finding_of(config).good  # also while the center runs
    center.close()
    assert files(config) == before


def without_an_answer(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def of_another_center(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"Haifa", b"Porto"), *lines[1:]]


def of_another_version(lines: list[bytes]) -> list[bytes]:
    header = msgspec.json.decode(lines[0])
    return [msgspec.json.encode({**header, "format": "unpooled memory 3"}) + b"\n", *lines[1:]]


def damaged(lines: list[bytes]) -> list[bytes]:
    return [lines[0], b"\x00" + lines[1][1:], *lines[2:]]


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (without_an_answer, "the memory does not know the ledger's answer 2"),
        (of_another_center, "this is not the memory of Haifa"),
        (of_another_version, "another version wrote it"),
        (damaged, "line 2: not a line of a memory"),
        (None, "the memory does not know the ledger's answer 1"),
    ],
)
def test_a_memory_with_which_the_center_would_not_start_is_wrong(
    config: Path, change: object, answer: str
) -> None:
    memory = config.with_name("Haifa.memory")
    if callable(change):
        memory.write_bytes(b"".join(change(memory.read_bytes().splitlines(keepends=True))))
    else:
        memory.unlink()
    finding = finding_of(config)
    assert not finding.good
    assert answer in finding.words
    assert finding.words.startswith(str(memory))
    assert memory.exists() == callable(change)
    with pytest.raises(LedgerError) as caught:
        open_center(read_center(config), config.parent)
    assert str(caught.value) == finding.words


def test_a_center_that_spoke_of_nobody_needs_no_memory(tmp_path: Path) -> None:
    ROWS.write_csv(tmp_path / "stays.csv")
    config = tmp_path / "center.toml"
    config.write_text('name = "Haifa"\ndata = "stays.csv"\nledger = "Haifa.ledger"\n')
    center = open_center(read_center(config), tmp_path)
    center.answer(encode(CatalogueQuestion()))
    center.close()
    (tmp_path / "Haifa.memory").unlink()
    assert str(finding_of(config)) == "ok     memory: a new one will be made"
    assert not (tmp_path / "Haifa.memory").exists()


def test_people_who_are_others_now_are_found(config: Path) -> None:
    memory, center = config.with_name("new.memory"), read_center(config)

    def people() -> str:
        return people_fingerprint(open_data(center, config.parent), center.policy)

    def findings() -> list[str]:
        source = open_data(center, config.parent)
        return [str(finding) for finding in people_findings(memory, source, center.policy)]

    def remember(*lines: dict[str, str]) -> None:
        memory.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    assert findings() == []
    header = {"format": "unpooled memory 4", "center": "Haifa", "people": people()}
    remember(header, {"variable": "los"})
    assert findings() == ["ok     people: the same as in its earlier answers"]
    pl.concat([ROWS, ROWS[:1]]).write_csv(config.with_name("stays.csv"))
    (answer,) = findings()
    assert answer.startswith(
        "WRONG  people: there were 40 rows, now there are 41, since the center"
    )
    assert "(data-changed). Hint: " in answer
    remember(header, {"people": people()})
    assert findings() == ["ok     people: the same as in its earlier answers"]
    remember({**header, "people": "40 rows"})
    assert findings()[0].startswith("WRONG  people: this is no fingerprint")


def test_columns_of_which_one_follows_from_the_other_are_noticed(config: Path) -> None:
    crp = pl.Series(range(40)) * 7 % 41 + 1.0
    rows = ROWS.with_columns(crp=crp, log_crp=crp.log(), rest=100 - crp, age=crp % 13)
    rows.write_csv(config.with_name("stays.csv"))
    notes = [str(each) for each in center_findings(read_center(config), config.parent)]
    pairs = [note.split(": ")[1].split(" say")[0] for note in notes if "say the same" in note]
    assert pairs == ["crp and log_crp", "crp and rest"]
