"""Rows of every kind give the same answers; files that cannot be read say where."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unpooled import Federation
from unpooled.center.check import almost_numbers, kept_words, missing_cells
from unpooled.center.data.scratch import Scratch
from unpooled.center.data.sources import open_source
from unpooled.errors import InputError, SourceError


@pytest.fixture
def frame() -> pl.DataFrame:
    random = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "los": random.gamma(4, 1, 200).round(3),
            "arm": random.choice(["a", "b"], 200),
            "age": random.integers(20, 90, 200),
        }
    ).with_columns(pl.when(pl.col("age") > 85).then(None).otherwise(pl.col("los")).alias("los"))


def test_frames_and_files_of_every_kind_give_the_same_bytes(
    frame: pl.DataFrame, tmp_path: Path
) -> None:
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    frame.write_csv(csv)
    frame.write_parquet(parquet)
    data: list[object] = [
        frame,
        frame.lazy(),
        frame.to_pandas(),
        frame.to_pandas().convert_dtypes(dtype_backend="pyarrow"),
        frame.to_arrow(),
        csv,
        str(parquet),
    ]
    payloads = []
    for rows in data:
        fed = Federation.local({"Haifa": rows}, seed=1)
        fed.table("los", by="arm", where="age < 60")
        fed.describe("los", by="arm")
        payloads.append([release.payload for release in fed.releases])
    assert all(payload == payloads[0] for payload in payloads)


def test_the_order_of_rows_does_not_matter(frame: pl.DataFrame) -> None:
    """Of rows with values: who counts with a drawn one is drawn by the place of the row."""
    frame, payloads = frame.drop_nulls(), []
    for rows in (frame, frame.sample(fraction=1, shuffle=True, seed=3), frame.reverse()):
        fed = Federation.local({"Haifa": rows}, seed=1)
        fed.table("los", by="arm")
        fed.describe("los", by="arm")
        payloads.append([release.payload for release in fed.releases])
    assert payloads[0] == payloads[1] == payloads[2]


def test_kinds(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("i;f;t;b;d\n1;1.5;x;true;2024-01-31\nNA;NaN;;false;2024-02-01\n")
    assert open_source(file).kinds == {
        "i": "integer",
        "f": "float",
        "t": "text",
        "b": "boolean",
        "d": "date",
    }
    stamps = pd.DataFrame({"d": pd.to_datetime(["2024-01-31"])})
    assert open_source(stamps).kinds == {"d": "date"}


@pytest.mark.parametrize(
    "word",
    ["", " ", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "none", "n/a", "."],
)
def test_a_word_for_nothing_is_missing_among_numbers_and_a_word_among_words(
    tmp_path: Path, word: str
) -> None:
    file = tmp_path / "a.csv"
    rows = (
        f"7;1.5;31.01.2024;true;x\n{word};{word};{word};{word};{word}\n8;2.5;01.02.2024;false;y\n"
    )
    file.write_text(f"i;f;d;b;t\n{rows}")
    source = open_source(file)
    assert list(source.kinds.values()) == ["integer", "float", "date", "boolean", "text"]
    *nothing, text = source.rows(f"SELECT * FROM {source.relation}")[1]
    assert nothing == [None] * 4
    left = None if word.strip() in ("", "NA", "NULL") else word
    assert text == left
    (kept, *_) = [*kept_words(source, source.kinds), None]
    assert (None if kept is None else (kept.column, kept.word, kept.cells)) == (
        ("t", word, 1) if left else None
    )
    assert missing_cells(source, source.kinds) == {
        **dict.fromkeys("ifdb", 1),
        **({} if left else {"t": 1}),
    }


@pytest.mark.parametrize("cell", [" NA", "NA ", "     ", " . "])
def test_spaces_around_nothing_leave_a_column_of_numbers(tmp_path: Path, cell: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"v,w\n1.5,x\n{cell},y\n 2,z\n")
    source = open_source(file)
    assert source.kinds == {"v": "float", "w": "text"}
    assert source.rows(f"SELECT v FROM {source.relation}") == [(1.5,), (None,), (2.0,)]


def test_a_column_is_of_truth_values_only_where_they_are_written_so(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("sex;t;yes;true\nF;T;yes;TRUE\nF;F;no;NA\nF;T;Yes;false\n")
    source = open_source(file)
    assert list(source.kinds.values()) == ["text", "text", "text", "boolean"]
    rows = "".join(f"{i};F\n" for i in range(30))
    file.write_text(f"crp;sex\n{rows}")
    fed = Federation.local({"Haifa": file}, seed=1)
    assert [g.group for g in fed.describe("crp", by="sex", groups=("F",)).groups] == ["F"]


def test_a_group_called_none_is_a_group_and_what_r_writes_for_nothing_is_not(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.csv"
    rows = "".join(f"{i},{('None', 'N/A', 'aspirin', 'NA')[i % 4]}\n" for i in range(120))
    file.write_text(f"crp,drug\n{rows}")
    answer = Federation.local({"Haifa": file}, seed=1).describe("crp", by="drug").to_dict()
    assert {group["group"]: group["n"] for group in answer["groups"]} == dict.fromkeys(
        ("N/A", "None", "aspirin"), 30
    )


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", b"a,b\n1,2\n3\n4,5\n", r"line 3 has 1 fields where the header has 2"),
        ("a.csv", b"a,b\n" + b"1,2\n" * 40 + b"1,2,3\n", r"line 42 has 3 fields"),
        ("a.csv", b"", r"has no header line"),
        ("a.csv", b"\xff\xfe\x00\x01", r"cannot be read"),
        ("a.csv", "v,n\n1,x\n2,Zoë\n".encode("latin-1"), r"line 3 is not UTF-8 text\. Hint: save"),
        ("a.csv", "größe,n\n1,x\n".encode("latin-1"), r"line 1 is not UTF-8 text\. Hint: save"),
        ("a.csv", "v,n\n1,x\n".encode("utf-16"), r"line 1 is not UTF-8 text\. Hint: save"),
        ("a.csv", "v,n\n1,x\n".encode("utf-16-le"), r"line 1 is not UTF-8 text\. Hint: save"),
        ("a.csv", b'"v,n\n' + b"1,2\n" * 50_000, r"cannot be read"),
        ("a.csv", b"v,n,v\n1,2,3\n", r"has two columns named 'v'"),
        ("a.csv", b'\xef\xbb\xbfage;"v";age \n1;2;3\n', r"has two columns named 'age'"),
        ("a.csv", b"Age,age\n1,2\n", r"the columns 'Age' and 'age', which differ in capitals"),
        ("a.parquet", b"PAR1 not really", r"cannot be read"),
        ("a.xlsx", b"PK", r"ends in '\.xlsx'; a center's file must be \.csv or \.parquet"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(SourceError, match=problem):
        open_source(file)


def test_text_among_numbers_is_pointed_at(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "id;comma;below;code;rare;sex;name\n"
        "1;4;0.3;A1;1;F;Ada\n2;;<0.1;7;x;M;Bo\n3;12,5;5e-1;B2;y;F;Cy\n4;1,25;2;B3;;M;Di\n"
    )
    source = open_source(file)
    answer = [str(each) for each in almost_numbers(source, source.kinds)]
    assert answer == [
        "comma is read as text, for row 3 has '12,5'. Hint: decimals have a point: 12.5",
        "below is read as text, for row 2 has '<0.1'. "
        "Hint: a cell holds a number, or nothing; missing = [...] in [variables.below] names other "
        "words for nothing",
    ]
    words = open_source(
        pl.DataFrame({"v": ["1", "NA", "<2", "3", "4"], "w": ["1", "2", "NA"] + ["4"] * 2})
    )
    assert [each.cell for each in almost_numbers(words, words.kinds)] == ["<2", "NA"]
    long = open_source(pl.DataFrame({"v": ["1", "2", "3", "note " * 100]}))
    assert "row 4 has 'note note" in str(*almost_numbers(long, long.kinds))
    assert len(str(*almost_numbers(long, long.kinds))) < 200
    for nothing in ([], [None], [""], ["1", "2"]):
        empty = open_source(pl.DataFrame({"v": pl.Series(nothing, dtype=pl.String)}))
        assert list(almost_numbers(empty, empty.kinds)) == []


def test_a_file_that_is_not_there_and_data_that_is_no_frame() -> None:
    with pytest.raises(SourceError, match="does not exist"):
        open_source("nowhere.csv")
    with pytest.raises(SourceError, match="must be a frame or a path, got int"):
        open_source(3)


def test_split_needs_a_center_in_every_row() -> None:
    frame = pl.DataFrame({"los": [1.0, 2.0], "hospital": ["a", None]})
    with pytest.raises(InputError, match="must be given in every row"):
        Federation.split(frame, center="hospital")
    with pytest.raises(InputError, match=r"got 'clinic'\. There are: los, hospital"):
        Federation.split(frame, center="clinic")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_name_is_no_pattern_for_other_files(tmp_path: Path, suffix: str) -> None:
    names = {"a[1]": 1.0, "a1": 2.0, "x*": 3.0, "xy": 4.0, "q?": 5.0, "qq": 6.0, "it's": 7.0}
    for name, value in names.items():
        rows = pl.DataFrame({"v": [value] * 3})
        write = rows.write_csv if suffix == ".csv" else rows.write_parquet
        write(tmp_path / f"{name}{suffix}")
    for name, value in names.items():
        source = open_source(tmp_path / f"{name}{suffix}")
        assert source.rows(f"SELECT count(*), max(v) FROM {source.relation}") == [(3, value)]


def test_a_fingerprint_changes_with_every_value_and_with_the_order() -> None:
    base = {
        "f": [0.1, None, 2.0],
        "i": [2**60, 2, None],
        "b": [True, None, False],
        "t": list("abc"),
    }
    changes: list[tuple[str, list[object]]] = [
        ("f", [0.1, None, 2.0000000000000004]),
        ("f", [0.1, 2.0, None]),
        ("i", [2**60 + 1, 2, None]),
        ("i", [2**60, 2, 0]),
        ("b", [True, True, False]),
        ("t", ["a", "b", None]),
        ("t", ["b", "a", "c"]),
    ]
    answer = {open_source(pl.DataFrame(base)).fingerprint(*base)}
    for column, values in changes:
        answer.add(open_source(pl.DataFrame({**base, column: values})).fingerprint(*base))
    answer.add(open_source(pl.DataFrame(base)).fingerprint("f", "i"))
    assert len(answer) == len(changes) + 2


def test_a_fingerprint_is_the_same_however_rows_are_read(tmp_path: Path) -> None:
    rows = pl.DataFrame({"v": np.arange(300_000) / 7, "id": [f"p{i}" for i in range(300_000)]})
    rows.write_parquet(tmp_path / "rows.parquet")
    bounded = open_source(tmp_path / "rows.parquet", Scratch(256, tmp_path))
    assert bounded.fingerprint("v", "id") == open_source(rows).fingerprint("v", "id")


@pytest.mark.parametrize(
    ("values", "result"),
    [
        (np.arange(100.0), 1.0),
        (np.arange(100.0) * 5, 5.0),
        (np.arange(100) / 10, 0.1),
        (1e6 + np.arange(100) / 10, 0.1),
        (np.sqrt(np.arange(100.0)), None),
        (np.append(np.arange(100.0), [1.5] * 9), 1.0),  # fewer than K do not decide
        (np.append(np.arange(100.0), [1.5] * 10), 0.5),
        (np.append(np.arange(2000.0), np.sqrt(np.arange(100.0))), None),  # not in the first rows
        (np.append(np.arange(100.0), np.nan), 1.0),
    ],
)
def test_the_resolution_of_rounded_values_is_found(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], result: float | None
) -> None:
    source = open_source(pl.DataFrame({"v": values}))
    usual = [100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1]
    assert source.resolution("v", usual, 10) == result


def test_digits_tell_whether_values_are_multiples() -> None:
    usual = [1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01]
    tenths = np.round(np.random.default_rng(1).normal(120, 15, 300), 1)
    single, huge = pl.Series("v", tenths, pl.Float32), pl.Series("v", 1e9 + tenths)
    assert open_source(single.to_frame()).resolution("v", usual, 10) == 0.1
    assert open_source(huge.to_frame()).resolution("v", usual, 10) in (0.1, None)
    lost = pl.Series("v", 1e16 + tenths)
    assert open_source(lost.to_frame()).resolution("v", usual, 10) is None


def test_people_decide_on_the_resolution_and_not_their_rows() -> None:
    rows = pl.DataFrame(
        {"v": [*map(float, range(100)), *[1.5] * 30], "who": [*range(100), *[7] * 30]}
    )
    source = open_source(rows)
    assert source.resolution("v", [1.0, 0.5], 10, "who") == 1.0
    assert source.resolution("v", [1.0, 0.5], 10) == 0.5


@pytest.mark.parametrize(
    ("values", "resolution", "off"),
    [
        ([0.3, 0.7, 1.1, -0.9, 0.1 + 0.2], 0.1, 0),
        ([0.3, 0.35, None, float("nan")], 0.1, 1),
        ([n / 7 for n in range(500)], 1 / 7, 0),
        ([float(np.float32(n / 10)) for n in range(2000)], 0.1, 0),  # once of single precision
        ([1e6 + n / 10 for n in range(10)], 1.0, 7),  # single precision leaves .12 of a unit
        ([1e15, 1e300, -1e300, 1e-300], 1e-9, 0),  # digits cannot tell
        ([1.5, 2.0], 1e-320, 0),
        ([0, 1, 2, 3], 2, 2),
        ([0.1 + 0.2 - 0.3, 0.0], 0.1, 0),
        ([5.3, 7.0], 1e7, 2),  # 10⁹ cells per liter, where cells were declared
    ],
)
def test_those_are_counted_who_are_surely_off_a_grid(
    values: list[float | None], resolution: float, off: int
) -> None:
    source = open_source(pl.DataFrame({"v": values}, strict=False))
    assert source.off_grid("v", resolution) == off


def test_people_are_off_a_grid_by_a_row_or_by_their_mean() -> None:
    rows = pl.DataFrame({"v": [1.0, 2.0, 1.0, 3.0, 0.5, 1.5], "who": [1, 1, 2, 2, 3, 3]})
    source = open_source(rows)
    assert source.off_grid("v", 1.0) == 2
    assert source.off_grid("v", 1.0, "who") == 1
    assert source.off_grid("v", 1.0, "who", means=True) == 2
