"""What is wrong in a file that a person wrote is said with its line, and what was meant."""

from pathlib import Path

import pytest

from unpooled.center.questions.protocol import Protocol
from unpooled.errors import InputError
from unpooled.toml_file import read_toml

PROTOCOL = """title = "CRP and outcome in sepsis"
k = 10
[[groups]]                       # the most important first
name = "arm"
levels = ["control", "patient"]
[[groups]]
name = "age_band"
of = "age"
cuts = [65]
labels = ["under 65", "65 and over"]
[[groups]]
name = "ward"
with = ["arm"]
[variables.crp]
resolution = 0.1
[variables.chol]
missing = [0]
[[survival]]
time = "months"
event = "died"
horizon = 60
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line", "words"),
    [
        ("cuts = [65]", "cuts = [65, 60]", 6, "must rise, got 65, 60"),
        ("cuts", "cutz", 9, "'cutz' in [groups]. Hint: did you mean 'cuts'?"),
        (
            'with = ["arm"]',
            'with = ["arn"]',
            13,
            "no other grouping 'arn'. Hint: did you mean 'arm'?",
        ),
        (
            "resolution = 0.1",
            'resolution = "a"',
            15,
            'resolution in [variables.crp] must be a number, got "a"',
        ),
        ("resolution = 0.1", 'resolution = "0.1"', 15, "Hint: resolution = 0.1"),
        ("resolution = 0.1", 'kind = "numbr"', 15, "must be number or category, got 'numbr'. Hint"),
        (
            "missing = [0]",
            "missing = 0",
            17,
            "missing in [variables.chol] must be a list, got 0. Hint: missing = [0]",
        ),
        ("horizon = 60", "", 18, "horizon is missing in [[survival]], number 1"),
        (
            'levels = ["control", "patient"]',
            'levels = "control"',
            5,
            'in [[groups]] \'arm\' must be a list, got "control". Hint: levels = ["control"]',
        ),
        (
            "cuts = [65]",
            'cuts = ["65"]',
            9,
            "each of cuts in [[groups]] 'age_band' must be a number",
        ),
        ("k = 10", 'k = "ten"', 2, 'k must be a whole number, got "ten"'),
        ("[[survival]]", "[survival]", 18, "must be a list of tables. Hint: [[survival]]"),
        ("title", "titel", 1, "did you mean 'title'?"),
        ("labels", "lables", 10, "did you mean 'labels'?"),
        ('"age_band"', '"arm"', 4, "two groupings named 'arm'"),
    ],
)
def test_an_error_names_the_line_and_what_was_meant(
    tmp_path: Path, right: str, wrong: str, line: int, words: str
) -> None:
    file = tmp_path / "protocol.toml"
    file.write_text(PROTOCOL.replace(right, wrong, 1))
    with pytest.raises(InputError) as raised:
        read_toml(file, Protocol)
    assert f"line {line}: " in str(raised.value)
    assert words in str(raised.value)


def test_a_file_without_errors_is_read(tmp_path: Path) -> None:
    file = tmp_path / "protocol.toml"
    file.write_text(PROTOCOL)
    protocol = read_toml(file, Protocol)
    assert [g.name for g in protocol.groups] == ["arm", "age_band", "ward"]
    assert protocol.groups[2].with_ == ("arm",)
    assert protocol.variables["chol"].missing == (0.0,)
