"""A protocol file is read as it is written; what is wrong is said with its line and a hint."""

from pathlib import Path

import polars
import pytest

from unpooled import Federation, Protocol, read_protocol
from unpooled.errors import InputError
from unpooled.federation.local import name_by_file

PLAN = """title = "CRP and outcome in sepsis"
k = 10
[[groups]]
name = "arm"
levels = ["control", "patient"]
[[groups]]
name = "age_band"
of = "age"
cuts = [65]
labels = ["under 65", "65 and over"]
[[groups]]
name = "ward"
levels = [1, 2.0]
with = ["arm"]
[variables.crp]
label = "C-reactive protein"
resolution = 0.1
lower = 0
[variables.stage]
kind = "category"
levels = ["I", "II", "III"]
ordered = true
[variables.chol]
missing = [0, "unknown"]
[[survival]]
time = "months"
event = "died"
event_is = 1
horizon = 60
[[pairs]]
variables = ["age", "crp"]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "protocol.toml"
    path.write_text(text)
    return path


def test_every_setting_arrives(tmp_path: Path) -> None:
    plan = read_protocol(write(tmp_path, PLAN))
    assert [grouping.names for grouping in plan.groups] == [
        ("control", "patient"),
        ("under 65", "65 and over"),
        ("1", "2"),
    ]
    assert plan.groups[2].with_ == ("arm",)
    assert [[g.name for g in family] for family in plan.families()] == [
        ["arm", "age_band"],
        ["arm", "ward"],
    ]
    assert plan.variables["crp"].resolution == 0.1
    assert plan.variables["stage"].ordered
    assert list(plan.variables["chol"].missing) == [0, "unknown"]
    assert plan.survival[0].event_is == "1"
    assert plan.pairs[0].variables == ("age", "crp")


def test_python_and_the_file_say_the_same(tmp_path: Path) -> None:
    from tomllib import loads

    assert read_protocol(loads(PLAN)) == read_protocol(write(tmp_path, PLAN))
    plan = read_protocol(loads(PLAN))
    assert read_protocol(plan) is plan


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("levels = [1, 2.0]", "levls = [1]"), 13, "did you mean 'levels'?"),
        (("cuts = [65]", "cuts = [65, 40]"), 6, "the cuts of age_band must rise, got 65, 40"),
        (('with = ["arm"]', 'with = ["amr"]'), 14, "did you mean 'arm'?"),
        (('labels = ["under 65", "65 and over"]', 'labels = ["all"]'), 6, "needs 2 labels"),
        (('levels = ["I", "II", "III"]', 'levels = ["I", "I"]'), 19, "each once"),
        (("horizon = 60", "horizon = -1"), 25, "horizon must be positive"),
        (('event = "died"', 'event = "months"'), 25, "another variable than time"),
        (("lower = 0", "lower = 0\nupper = 0"), 15, "lower must be below upper"),
        (('kind = "category"', 'kind = "number"'), 19, "a number has no levels"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, change: tuple[str, str], line: int, words: str
) -> None:
    path = write(tmp_path, PLAN.replace(*change))
    with pytest.raises(InputError) as error:
        read_protocol(path)
    assert f"line {line}: " in str(error.value)
    assert words in str(error.value)


def test_a_category_of_thousands_of_levels_is_an_error() -> None:
    levels = [f"code {i}" for i in range(5000)]
    with pytest.raises(InputError, match=r"at most 200 levels, got 5000"):
        read_protocol({"title": "codes", "variables": {"icd": {"levels": levels}}})


def hospitals(folder: Path) -> list[Path]:
    """Two hospitals: a number with zeros, one with few values, and a level spelled in two ways."""
    files = []
    for name, rounds in (("Bern", 1), ("Haifa", 2)):
        n = 120
        frame = polars.DataFrame(
            {
                "chol": [0.0 if i % 4 == 0 else 180.0 + rounds * (i % 37) for i in range(n)],
                "smoker": [("no", "No", "yes")[i % 3] for i in range(n)],
                "stage": [1 + i % 3 for i in range(n)],
                "patient": [f"{name} {i}" for i in range(n)],
                "seen": ["2024-01-31"] * n,
            }
        ).with_columns(polars.col("seen").str.to_date())
        files.append(folder / f"{name}.csv")
        frame.write_csv(files[-1])
    return files


def test_a_draft_says_kinds_levels_and_what_was_noticed(tmp_path: Path) -> None:
    with Federation.local(name_by_file(hospitals(tmp_path))) as fed:
        text = fed.draft_protocol("Cholesterol")
    assert "# [[survival]]" in text
    plan = read_protocol(write(tmp_path, text))
    assert plan.title == "Cholesterol"
    assert list(plan.variables) == ["chol", "smoker", "stage"]
    assert plan.variables["stage"].levels == ("1", "2", "3")
    assert plan.variables["chol"].kind is None
    assert "60 people or more have 0: a value, or a code for missing?" in text
    assert '"No" and "no" look like one level' in text
    assert "rounded differently at the centers: to 1, 2" in text
    assert "# left out: no value of it is that of K people" in text
    assert '# name = "stage"' in text  # a grouping to be chosen


def test_a_draft_of_a_federation_is_a_protocol_that_can_be_read(tmp_path: Path) -> None:
    assert isinstance(read_protocol({"title": "t", "variables": {"a": {}}}), Protocol)
    with pytest.raises(InputError, match="at least one variable"):
        read_protocol({"title": "t"})
