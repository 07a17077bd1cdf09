"""The command line: readable by default, exact with --json, errors in one paragraph."""

import json
import re
import subprocess
import sys
from pathlib import Path
from shutil import copy

import numpy as np
import polars as pl
import pytest

from unpooled import Federation
from unpooled.apps.cli import main
from unpooled.apps.demo import write_hospitals
from unpooled.errors import RefusedError


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = write_hospitals(tmp_path_factory.mktemp("hospitals"))
    return [str(file) for file in files.values()]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    captured = capsys.readouterr()
    assert stopped.value.code in (0, None), captured.err
    return captured.out


def fail(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    captured = capsys.readouterr()
    assert stopped.value.code not in (0, None)
    assert "Traceback" not in captured.err
    return captured.err


def test_table_as_text_and_json(capsys: pytest.CaptureFixture[str], hospitals: list[str]) -> None:
    text = run(capsys, "table", "crp", "--centers", *hospitals, "--by", "arm", "--max-bins", "8")
    assert "refused: Porto, control: fewer than 10 people (too-small)" in text
    answer = json.loads(
        run(capsys, "table", "crp", "--centers", *hospitals, "--by", "arm", "--json")
    )
    assert {"edges", "groups", "counts"} <= set(answer)
    assert sum(map(sum, answer["counts"])) == pytest.approx(1392)


def test_describe_as_text_and_json_with_the_releases(
    capsys: pytest.CaptureFixture[str], hospitals: list[str]
) -> None:
    asked = ["describe", "crp", "--centers", *hospitals, "--by", "arm"]
    text = run(capsys, *asked, "--groups", "control", "patient", "--releases")
    assert "patient − control" in text
    assert "left the center" in text
    answer = json.loads(run(capsys, *asked, "--json", "--releases"))
    assert [group["group"] for group in answer["groups"]] == ["control", "patient"]
    assert set(answer["releases"]) == {"Haifa", "Lausanne", "Milan", "Oslo", "Porto"}


def test_one_file_with_a_column_that_names_the_center(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = "\n".join(f"{i},{'ab'[i % 2]}" for i in range(60))
    (tmp_path / "all.csv").write_text(f"v,site\n{rows}\n")
    text = run(
        capsys, "table", "v", "--centers", str(tmp_path / "all.csv"), "--center-column", "site"
    )
    assert "2 centers" in text


def test_three_groups_and_their_trend(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = "\n".join(f"{i * 7 % 90 + 9 * (i % 3)},{'abc'[i % 3]},{i % 2}" for i in range(180))
    (tmp_path / "all.csv").write_text(f"v,g,center\n{rows}\n")
    asked = ["compare", "v", "--centers", str(tmp_path / "all.csv"), "--center-column", "center"]
    text = run(capsys, *asked, "--by", "g")
    assert "v by g: a, b, c: do they differ?" in text
    assert "kruskal-wallis" in text
    assert "P(c > a)" in text
    order = ["--by", "g", "--groups", "a", "b", "c", "--ordered", "--alternative", "greater"]
    chart, report = tmp_path / "pairs.svg", tmp_path / "page.html"
    made = ["--json", "--chart", str(chart), "--report", str(report)]
    answer = json.loads(run(capsys, *asked, *order, *made))
    assert answer["test"] == "jonckheere-terpstra"
    assert [row["method"] for row in answer["methods"]] == ["weighted", "sum", "fisher", "table"]
    assert all(name in report.read_text() for name in ("weighted", "sum", "fisher", "table"))
    assert answer["methods"][0]["p_value"] < 0.05
    assert "<svg" in chart.read_text()
    assert "jonckheere-terpstra" in report.read_text()
    assert "ordered needs groups" in fail(capsys, *asked, "--by", "g", "--ordered")


def test_a_seed_gives_the_same_numbers_in_every_run(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], tmp_path: Path
) -> None:
    asked = ["quantiles", "crp", "--centers", *hospitals, "--by", "arm", "--json"]
    runs = [run(capsys, *asked, "--seed", seed) for seed in ("7", "7", "8")]
    assert runs[0] == runs[1] != runs[2]
    lived = ["survival", "months", "--event", "died", "--centers", *hospitals, "--seed", "7"]
    assert run(capsys, *lived, "--json") == run(capsys, *lived, "--json")
    column = tmp_path / "all.csv"
    column.write_text("v,site\n" + "\n".join(f"{i * 7 % 61},{'ab'[i % 2]}" for i in range(200)))
    split = ["table", "v", "--centers", str(column), "--center-column", "site", "--seed", "1"]
    assert run(capsys, *split, "--json") == run(capsys, *split, "--json")


def test_a_seed_goes_with_no_ledger_and_no_network(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], tmp_path: Path
) -> None:
    asked = ["table", "crp", "--seed", "1"]
    ledger = ["--centers", *hospitals, "--ledger", str(tmp_path / "ledgers")]
    assert "either seed or ledger" in fail(capsys, *asked, *ledger)
    network = ["--federation", str(tmp_path / "federation.toml")]
    assert "seed" in fail(capsys, *asked, *network)


def test_centers_can_be_named(capsys: pytest.CaptureFixture[str], hospitals: list[str]) -> None:
    one, two = hospitals[:2]
    asked = ["describe", "crp", "--centers", f"North={one}", f"South={two}", "--json"]
    answer = json.loads(run(capsys, *asked))
    assert {center["center"] for center in answer["centers"]} == {"North", "South"}


def test_charts_are_written(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], tmp_path: Path
) -> None:
    for name in ("a.svg", "a.png"):
        run(capsys, "table", "crp", "--centers", *hospitals, "--chart", str(tmp_path / name))
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_codebook_gives_natural_limits(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], tmp_path: Path
) -> None:
    book = tmp_path / "book.toml"
    book.write_text('[crp]\nunit = "mg/L"\nlower = 0\n')
    asked = ["table", "crp", "--centers", *hospitals, "--limits", "natural", "--json"]
    assert json.loads(run(capsys, *asked, "--codebook", str(book)))["edges"][0] == 0
    book.write_text("[crp]\nlowest = 0\n")
    answer = fail(capsys, *asked, "--codebook", str(book))
    assert "codebook" in answer
    assert "at [crp]: there is no setting 'lowest'. Hint: did you mean 'lower'?" in answer
    book.write_text("[cpr]\nlower = 0\n")
    answer = fail(capsys, *asked, "--codebook", str(book))
    assert answer == "unpooled: codebook: there is no variable 'cpr'. Hint: did you mean 'crp'?\n"
    book.write_bytes("[crp]\nunit = 'µg'\n".encode("latin-1"))
    assert "is not UTF-8 text" in fail(capsys, *asked, "--codebook", str(book))


def test_levels_may_stand_between_commas_and_words_are_named(
    capsys: pytest.CaptureFixture[str], hospitals: list[str]
) -> None:
    asked = ["quantiles", "crp", "--centers", *hospitals, "--json", "--p"]
    answer = json.loads(run(capsys, *asked, ".25,.5", ".75"))
    assert [q["p"] for q in answer["quantiles"]] == [0.25, 0.5, 0.75]
    assert "got 'half'. Hint: --p .25 .5 .75" in fail(capsys, *asked, "half")
    answer = json.loads(run(capsys, *asked[:-1], "--p=.25", ".5"))
    assert [q["p"] for q in answer["quantiles"]] == [0.25, 0.5]


def test_an_option_without_its_values_says_what_to_type(
    capsys: pytest.CaptureFixture[str], hospitals: list[str]
) -> None:
    asked = ["quantiles", "crp", "--centers", *hospitals]
    for more in (["--p"], ["--p", "--json"]):
        assert fail(capsys, *asked, *more) == "unpooled: --p needs a value. Hint: --p .25 .5 .75\n"
    assert fail(capsys, *asked, "--p", "-0.5") == (
        "unpooled: quantile must lie in (0, 1), got -0.5. Hint: for the median use 0.5.\n"
    )
    assert "--groups needs a value. Hint: --groups" in fail(
        capsys, *asked, "--by", "arm", "--groups"
    )
    assert "--centers needs a value. Hint: --centers a.csv" in fail(capsys, *asked[:3])
    once = fail(capsys, "table", "crp", "--centers", *hospitals, "--method", "chain", "parallel")
    assert "unexpected extra argument" in once


def test_groups_may_be_negative_numbers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{i % 2 - 1}" for i in range(60))
    (tmp_path / "a.csv").write_text(f"v,g\n{rows}\n")
    asked = ["describe", "v", "--centers", str(tmp_path / "a.csv"), "--by", "g", "--json"]
    answer = json.loads(run(capsys, *asked, "--groups", "0", "-1"))
    assert [group["group"] for group in answer["groups"]] == ["0", "-1"]


def test_a_question_can_ask_for_more_people(
    capsys: pytest.CaptureFixture[str], hospitals: list[str]
) -> None:
    asked = ["describe", "crp", "--centers", *hospitals, "--by", "arm", "--groups", "control"]
    assert "Oslo, control: fewer than 60 people" in run(capsys, *asked, "--k", "60")


def test_a_center_whose_data_changed_does_not_end_as_if_all_were_well(
    hospitals: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was left out, and the exit code was 0."""
    files = [str(copy(file, tmp_path)) for file in hospitals]
    asked = ["describe", "crp", "--centers", *files, "--ledger", str(tmp_path / "ledgers")]
    run(capsys, *asked)
    lines = Path(files[0]).read_text().splitlines(keepends=True)
    Path(files[0]).write_text("".join(lines[:-1]))
    problem = fail(capsys, *asked)
    assert f"{Path(files[0]).stem}: the center's data changed" in problem
    assert "--on-missing exclude" in problem  # and so it goes on
    assert "data-changed" in run(capsys, *asked, "--on-missing", "exclude")


def test_ledgers_are_shown_and_verified(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], tmp_path: Path
) -> None:
    run(capsys, "describe", "crp", "--centers", *hospitals, "--ledger", str(tmp_path))
    file = tmp_path / "Porto.ledger"
    shown = run(capsys, "ledger", "show", str(file))
    assert "moments of crp" in shown
    first = json.loads(run(capsys, "ledger", "show", str(file), "--json").splitlines()[0])
    assert first["center"] == "Porto"
    assert "is sound" in run(capsys, "ledger", "verify", str(file))
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"number":')
    assert "cut-" in run(capsys, "ledger", "mend", str(file))
    assert file.read_bytes() == whole
    damaged = file.read_bytes().replace(b"crp", b"CRP", 1)
    file.write_bytes(damaged)
    with pytest.raises(SystemExit) as stopped:
        main(["ledger", "verify", str(file)])
    assert stopped.value.code == 1
    assert "line 2" in capsys.readouterr().out


def test_a_ledger_says_which_earlier_entry_stands_against_a_refusal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = pl.DataFrame({"crp": np.linspace(1, 9, 60), "age": np.arange(60)})
    with Federation.local({"Bern": rows}, ledger=tmp_path) as fed:
        for where in ("age < 20", "age >= 20 and age < 40", "age >= 40"):
            fed.describe("crp", where=where)
        with pytest.raises(RefusedError):
            fed.describe("crp", where="age >= 2 and age < 42")
    file = str(tmp_path / "Bern.ledger")
    lines = run(capsys, "ledger", "show", file).splitlines()
    refused = [line for line in lines if "could reveal something" in line]
    assert len(refused) == 1
    stands = re.search(r"\(together with (entry \d, .+ of crp where age .+)\)", refused[0])
    assert stands is not None
    answer = run(capsys, "ledger", "show", file, "--json").splitlines()
    entries = [json.loads(line) for line in answer]
    assert [e["against"] for e in entries if "against" in e] == [stands[1]]


def test_a_ledger_that_is_not_sound_is_shown_as_such(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], tmp_path: Path
) -> None:
    run(capsys, "describe", "crp", "--centers", *hospitals, "--ledger", str(tmp_path))
    file = tmp_path / "Oslo.ledger"
    sound = file.read_bytes()
    run(capsys, "ledger", "show", str(file))
    changes = {
        "line 2: the hash of the line does not match": sound.replace(b"crp", b"CRP", 1),
        "line 3: the hash of the line": sound.replace(b'"moments', b'"movements', 1),
        "line 4: cut short, as by a crash; `unpooled ledger mend`": sound + b'{"number":',
        "line 1: the file is empty, a ledger begins with a header": b"",
    }
    for problem, changed in changes.items():
        file.write_bytes(changed)
        for arguments in (["show"], ["show", "--json"]):
            with pytest.raises(SystemExit) as stopped:
                main(["ledger", *arguments, str(file)])
            shown = capsys.readouterr()
            assert stopped.value.code == 1
            assert shown.err.startswith(f"The ledger is not sound: {problem}")
            assert len(shown.err.splitlines()) == 1
            if problem.endswith("match"):
                assert "CRP" in shown.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["table", "loss"], "There are: age, arm, crp, died, months, sex"),
        (["table", "crp", "--by", "ward"], "no center has a variable 'ward'"),
        (["table", "crp", "--where", "age > 9 and sex == F"], "in quotes, as in sex == 'F'"),
        (["describe", "crp", "--where", "not F != sex"], "in quotes, as in sex != 'F'"),
        (["compare", "crp", "--by", "arm", "--where", "F <= sex"], "quotes, as in sex >= 'F'"),
        (["table", "crp", "--where", "sx == F"], "There are: age, arm, crp, died, months, sex\n"),
        (["table", "crp", "--where", "F == 1"], "There are: age, arm, crp, died, months, sex\n"),
        (["table", "sex"], "something other than numbers"),
        (["table", "crp", "--where", "age >> 3"], "^"),
        (["table", "crp", "--limits", "closed"], "limits must be"),
        (
            ["compare", "crp", "--by", "crp"],
            "by and variable must differ, got 'crp' for both",
        ),
        (["table", "crp", "--federation", "f.toml"], "either --centers FILES..., or --federation"),
        (
            ["table", "crp", "--method", "parallel", "--limits", "natural"],
            "limits are for method 'chain'",
        ),
        (["table", "crp", "--k", "2"], "k must be at least 3"),
        (["describe", "crp", "--per-person", "median"], "per-person must be"),
        (["describe", "crp", "--by", "arm", "--groups", "control", "cases"], "in 'cases' of 'arm'"),
    ],
)
def test_what_goes_wrong_is_told_in_words(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], arguments: list[str], problem: str
) -> None:
    assert problem in fail(capsys, *arguments, "--centers", *hospitals)


def test_files_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], tmp_path: Path
) -> None:
    asked = ["describe", "crp", "--centers", *hospitals]
    assert "must end in .svg or .png" in fail(capsys, *asked, "--chart", str(tmp_path / "x.gif"))
    assert "must end in .html" in fail(capsys, *asked, "--report", str(tmp_path / "x.pdf"))
    (tmp_path / "file").write_text("")
    assert "file" in fail(capsys, *asked, "--report", str(tmp_path / "file" / "r.html"))
    assert "is a folder. Hint: name its files" in fail(
        capsys, "table", "crp", "--centers", str(tmp_path)
    )


def test_the_files_to_write_are_looked_at_before_anybody_is_asked(
    capsys: pytest.CaptureFixture[str], hospitals: list[str], tmp_path: Path
) -> None:
    asked = ["describe", "crp", "--centers", *hospitals, "--ledger", str(tmp_path / "ledgers")]
    for option, file in (("--chart", "x.gif"), ("--report", "x.pdf")):
        assert "must end in" in fail(capsys, *asked, option, str(tmp_path / file))
    assert not (tmp_path / "ledgers").exists()
    plan = ["plan", "--sizes", "30", "30", "--effect", "1", "--sims", "20"]
    assert "must end in .svg or .png" in fail(capsys, *plan, "--chart", str(tmp_path / "x.gif"))
    assert "sims must be at least 20, got 0" in fail(capsys, *plan, "--sims", "0")


def test_centers_that_cannot_be_opened(
    capsys: pytest.CaptureFixture[str], hospitals: list[str]
) -> None:
    assert "does not exist" in fail(capsys, "table", "crp", "--centers", "nowhere.csv")
    assert "file is missing after 'A='" in fail(capsys, "table", "crp", "--centers", "A=")
    for nameless in (f"={hospitals[0]}", f" ={hospitals[0]}"):
        answer = fail(capsys, "table", "crp", "--centers", nameless)
        assert "a center's name must not be empty" in answer
    assert "two centers are named" in fail(
        capsys, "table", "crp", "--centers", hospitals[0], hospitals[0]
    )


def test_the_demo_runs_as_a_newcomer_runs_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "unpooled", "demo", "--out", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "refused: Porto, control: fewer than 10 people" in done.stdout
    assert done.stdout.count("is sound") == 5
    assert done.stderr == ""


def test_an_error_is_said_in_words_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    people = {"arm": rng.choice(["a", "b", "c"], 200), "crp": rng.lognormal(1, 1, 200).round(2)}
    pl.DataFrame(people).write_csv(tmp_path / "Haifa.csv")
    command = ["compare", "crp", "--by", "arm", "--ordered", "--centers"]
    with pytest.raises(SystemExit):
        main([*command, str(tmp_path / "Haifa.csv")])
    problem = capsys.readouterr().err
    assert "--groups none low high --ordered" in problem
    assert "ordered=" not in problem
