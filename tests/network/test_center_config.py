"""A center as its steward writes it down."""

from pathlib import Path

import polars as pl
import pytest

from unpooled.center.config import (
    CenterVariable,
    Code,
    open_center,
    open_data,
    read_center,
    translate,
)
from unpooled.center.data.sources import open_source
from unpooled.center.questions import SizesQuestion, decode_answer, encode
from unpooled.errors import InputError, SourceError

CENTER = """
name = "Haifa"
data = "stays.csv"
ledger = "Haifa.ledger"

[policy]
k = 5

[variables.los]
unit = "days"
resolution = 1
lower = 0

[variables.sex]
local = "SEX"
codes = { M = "1", F = "2" }

[variables.glucose]
unit = "mg/dL"
factor = 18.016
missing = [999]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    frame = pl.DataFrame(
        {
            "los": range(40),
            "SEX": ["M", "F", "x", None] * 10,
            "glucose": [5.5, 999.0, 6.0, None] * 10,
            "ward": ["A"] * 40,
        }
    )
    frame.write_csv(tmp_path / "stays.csv")
    (tmp_path / "center.toml").write_text(CENTER)
    return tmp_path


def test_the_study_sees_its_own_names_codes_and_units(folder: Path) -> None:
    source = open_data(read_center(folder / "center.toml"), folder)
    assert set(source.kinds) == {"ward", "los", "sex", "glucose"}
    sexes = source.rows(f"SELECT sex, count(*) FROM {source.relation} GROUP BY sex ORDER BY sex")
    assert sexes == [("1", 10), ("2", 10), (None, 20)]
    glucose = source.rows(f"SELECT DISTINCT glucose FROM {source.relation} ORDER BY glucose")
    assert [row[0] for row in glucose] == [pytest.approx(99.088), pytest.approx(108.096), None]


def test_a_center_answers_by_its_own_policy_and_keeps_its_ledger(folder: Path) -> None:
    declared = CENTER.replace("k = 5", "k = 5\ngroupings = { sex = [] }")
    (folder / "center.toml").write_text(declared)
    center = open_center(read_center(folder / "center.toml"), folder)
    question = SizesQuestion(variable="los", by="sex")
    answer = decode_answer(center.answer(encode(question)).payload)
    assert answer.k == 5
    assert "10" in str(answer.aggregate)
    assert len(center.ledger) == 1
    center.ledger.close()
    assert (folder / "Haifa.key").stat().st_mode & 0o077 == 0


def test_groups_leave_out_what_the_study_does_not_have() -> None:
    source = open_source(pl.DataFrame({"arm": ["a", "b", "c"]}))
    kept = translate(source, {"arm": CenterVariable(groups=("a", "b"))})
    assert kept.rows(f"SELECT arm FROM {kept.relation}") == [("a",), ("b",), (None,)]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('data = "stays.csv"', "", "either data"),
        ("k = 5", "k = 2", "at least 3"),
        ("k = 5", "kk = 5", r"no setting 'kk' in \[policy\]\. Hint: did you mean 'k'"),
        ("k = 5", "colour = 5", r"no setting 'colour' in \[policy\]\. There are: k, variables"),
        ("[policy]", "[polcy]", "no setting 'polcy'. Hint: did you mean 'policy'"),
        ("unit =", "uni =", r"'uni' in \[variables\.los\]\. Hint: did you mean 'unit'"),
        ("[policy]", "[postgress]", "did you mean 'postgres'"),
        ("data =", "dta =", "did you mean 'data'"),
        ('ledger = "Haifa.ledger"', "", "ledger"),
        ('name = "Haifa"', "name = 5", "name"),
        ('name = "Haifa"', 'name = "Haifa"\napproval = "maybe"', "maybe"),
        (
            'name = "Haifa"',
            'name = "Haifa"\ntick = 0',
            r"tick must lie in \(0, 60\] seconds, got 0",
        ),
        ('name = "Haifa"', 'name = "Haifa"\ntick = 61', "tick must lie in"),
        ('name = "Haifa"', 'name = "Haifa"\ntick = nan', "tick must lie in"),
        ("k = 5", "groupings = { los = [9, 3] }", r"cut points of los must ascend, got \[9.0, 3.0"),
        ("k = 5", "groupings = { los = [nan] }", r"cut points of los must ascend, got \[nan"),
        ("k = 5", 'variables = ["los"]\ngroupings = { sex = [] }', "sex may not be asked for"),
        ("k = 5", 'ad_hoc = "everything"', "everything"),
        ("k = 5", "refusals_a_day = 0", "refusals_a_day must be at least 1, got 0"),
        ("factor = 18.016", 'factor = 2\ncodes = { a = "b" }', "codes do not go"),
    ],
)
def test_a_file_that_is_wrong_says_how(folder: Path, old: str, new: str, problem: str) -> None:
    path = folder / "center.toml"
    path.write_text(CENTER.replace(old, new, 1))
    with pytest.raises(InputError, match=problem):
        read_center(path)


def test_a_column_that_is_not_there_is_named(folder: Path) -> None:
    path = folder / "center.toml"
    path.write_text(CENTER.replace('local = "SEX"', 'local = "GENDER"'))
    with pytest.raises(InputError, match=r"sex: there is no column 'GENDER'\. There are: los, SEX"):
        open_data(read_center(path), folder)
    path.write_text(CENTER.replace("[variables.glucose]", "[variables.glucoes]"))
    with pytest.raises(InputError, match=r"no column 'glucoes'\. Hint: did you mean 'glucose'"):
        open_data(read_center(path), folder)


@pytest.mark.parametrize(
    "setting", ['variables = ["los", "wrad"]', 'person = "wrad"', "groupings = { wrad = [] }"]
)
def test_a_policy_names_columns_that_are_there(folder: Path, setting: str) -> None:
    path = folder / "center.toml"
    path.write_text(CENTER.replace("k = 5", setting))
    with pytest.raises(InputError, match=r"policy: there is no column 'wrad'\. Hint: .* 'ward'"):
        open_center(read_center(path), folder)
    assert not (folder / "Haifa.ledger").exists()


def test_only_numbers_have_cut_points(folder: Path) -> None:
    path = folder / "center.toml"
    path.write_text(
        CENTER.replace("k = 5", "k = 5\ngroupings = { los = [7], sex = [], ward = [1] }")
    )
    with pytest.raises(InputError, match="policy: the column 'ward' has no numbers, so its group"):
        open_center(read_center(path), folder)
    path.write_text(CENTER.replace("k = 5", "k = 5\ngroupings = { los = [7], sex = [] }"))
    center = open_center(read_center(path), folder)
    question = SizesQuestion(variable="los", by="los", cuts=(7,))
    answer = decode_answer(center.answer(encode(question)).payload)
    assert "under 7" in str(answer.aggregate)
    center.close()


def test_numbers_are_coded_as_numbers() -> None:
    source = open_source(pl.DataFrame({"s": [1.0, 2.0, None], "t": ["1", "01", "x"]}))
    codes: dict[str, Code] = {"1": "M", "2": "F"}
    kept = translate(source, {"s": CenterVariable(codes=codes), "t": CenterVariable(codes=codes)})
    assert kept.rows(f"SELECT s, t FROM {kept.relation}") == [("M", "M"), ("F", None), (None, None)]
    with pytest.raises(InputError, match="is numeric; 'M' cannot be one of its codes"):
        translate(source, {"s": CenterVariable(codes={"M": "1"})})


def test_what_is_declared_missing_leaves_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("crp,sex\n4,F\n<0.1,N/A\n-,M\n-9,-\n")
    source = open_source(file)
    assert source.kinds == {"crp": "text", "sex": "text"}
    declared: tuple[Code, ...] = ("<0.1", "-", -9)
    kept = translate(source, {"crp": CenterVariable(missing=declared)})
    assert kept.kinds == {"sex": "text", "crp": "float"}
    assert kept.rows(f"SELECT crp FROM {kept.relation}") == [(4.0,), (None,), (None,), (None,)]
    twice = translate(source, {"crp": CenterVariable(missing=declared, factor=2)})
    assert twice.rows(f"SELECT crp FROM {twice.relation}")[0] == (8.0,)
    words = translate(source, {"sex": CenterVariable(missing=("N/A", "-"))})
    assert words.rows(f"SELECT sex FROM {words.relation}") == [("F",), (None,), ("M",), (None,)]
    with pytest.raises(InputError, match=r"'crp' has cells that are no numbers\. Hint: missing ="):
        translate(source, {"crp": CenterVariable(missing=("-",), factor=2)})


def test_data_that_are_not_there_are_named(folder: Path) -> None:
    (folder / "stays.csv").unlink()
    with pytest.raises(SourceError, match="does not exist"):
        open_data(read_center(folder / "center.toml"), folder)


def test_the_memory_of_a_center_is_bounded_by_its_file(folder: Path) -> None:
    path = folder / "center.toml"
    for line, bound in (("", "476.8 MiB"), ("ram_mb = 400", "190.7 MiB")):  # half is DuckDB's
        path.write_text(f"{line}\n{CENTER}")
        source = open_data(read_center(path), folder)
        assert source.rows("SELECT current_setting('memory_limit')") == [(bound,)]
        ((spills,),) = source.rows("SELECT current_setting('temp_directory')")
        assert Path(spills).parent == folder
    path.write_text(f"ram_mb = 100\n{CENTER}")
    with pytest.raises(InputError, match="ram_mb must be at least 256, got 100"):
        read_center(path)
