"""The commands of a steward, without a network."""

from pathlib import Path

import polars as pl
import pytest

from unpooled.apps.cli.network import center_approve, center_freeze
from unpooled.center.approval.steward import pending
from unpooled.center.config import open_center, read_center
from unpooled.center.questions import SizesQuestion, encode
from unpooled.errors import HeldError, InputError

KIT = """
federation = "trial"
role = "center"
name = "Haifa"
address = "localhost"
port = 8002
centers = ["Haifa"]
"""
CENTER = """
name = "Haifa"
data = "stays.csv"
ledger = "Haifa.ledger"
"""


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A center's kit without certificates."""
    kit = tmp_path / "Haifa"
    kit.mkdir()
    (kit / "kit.toml").write_text(KIT)
    (kit / "center.toml").write_text(CENTER)
    pl.DataFrame({"los": range(40), "sex": ["F", "M"] * 20}).write_csv(kit / "stays.csv")
    return kit


def hold(kit: Path, *questions: SizesQuestion) -> None:
    """Let questions wait for the steward."""
    path = kit / "center.toml"
    path.write_text(f'approval = "ask"\n{CENTER}')
    center = open_center(read_center(path), kit)
    for question in questions:
        with pytest.raises(HeldError):
            center.answer(encode(question))
    center.close()


@pytest.mark.parametrize("unsaid", [None, ""])
def test_nobody_approves_what_they_have_not_seen(
    kit: Path, unsaid: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(kit, SizesQuestion(variable="los", by="sex"))
    (held,) = pending(kit / "Haifa.pending")
    with pytest.raises(InputError, match=rf"by its ID\. .*\n  {held.short}  sizes of los by sex"):
        center_approve(kit, unsaid)
    assert pending(kit / "Haifa.pending") == [held]
    center_approve(kit, held.short)
    assert "approved" in capsys.readouterr().out
    assert pending(kit / "Haifa.pending") == []
    with pytest.raises(InputError, match="nothing waits"):
        center_approve(kit)


def test_freeze_says_what_to_write_or_writes_it(
    kit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    center_freeze(kit)
    answer = capsys.readouterr().out
    (frozen,) = kit.glob("Haifa-*.parquet")
    assert f"frozen: {frozen}\n  40 rows, 2 columns: los, sex\n  SHA-256 " in answer
    assert f'\n  data = "{frozen.name}"\n' in answer
    assert (kit / "center.toml").read_text() == CENTER
    frozen.unlink()
    center_freeze(kit, use=True)
    assert f'center.toml now says data = "{frozen.name}"' in capsys.readouterr().out
    assert read_center(kit / "center.toml").data == frozen.name
