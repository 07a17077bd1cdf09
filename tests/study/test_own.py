"""Studies of one's own from a TOML file."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray
from unpooled_study.commands import study_app
from unpooled_study.own import read_quantile_config, read_test_config, run_quantiles, run_tests
from unpooled_study.simulations.methods import QUANTILE_METHODS, Federated, quantile_method

TESTS = """
sizes = [[60, 40]]
sizes_y = [[40, 30]]
effects = [0.0, 3.0]
methods = ["combined", "table", "weighted"]
sims = 40

[[families]]
name = "rounded"
step = 0.25
of = { name = "t", df = 3.0 }
"""
QUANTILES = """
sizes = [[200, 100], [30, 30]]
p = [0.5]
scale = 0.1
methods = ["sample", "interpolation"]
sims = 40

[[families]]
name = "mixture"
parts = [{ name = "normal" }, { name = "normal", mean = 4.0, sd = 0.5 }]
weights = [0.8, 0.2]

[[families]]
name = "zero-inflated"
zeros = 0.8
of = { name = "lognormal" }
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "study.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_tests_reject_a_large_effect_and_rarely_none(tmp_path: Path) -> None:
    """The table can fall to one cell where a few outliers of either group lie in the other."""
    result = run_tests(read_test_config(written(tmp_path, TESTS)), 1, tmp_path)
    rejected = {(row["effect"], row["method"]): row["rejected"] for row in result.rows}
    for method in ("combined", "table", "weighted"):
        assert rejected[0.0, method] < 0.2
        assert rejected[3.0, method] >= (0.85 if method == "table" else 1.0)
    assert {row["people"] for row in result.rows} == {170}


def test_quantiles_of_an_atom_are_exact(tmp_path: Path) -> None:
    result = run_quantiles(read_quantile_config(written(tmp_path, QUANTILES)), 1, tmp_path)
    assert len(result.rows) == 2 * 2 * 2
    atoms = [r for r in result.rows if r["family"].startswith("zero") and r["method"] == "sample"]
    assert [row["mse"] for row in atoms] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert "mixture(parts [normal(mean 0, sd 1)" in str(result)


def test_json_has_the_same_rows(tmp_path: Path) -> None:
    file = str(written(tmp_path, TESTS))
    done = CliRunner().invoke(study_app, ["tests", file, "--jobs", "1", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.output)["rows"]
    again = run_tests(read_test_config(Path(file)), 1, tmp_path).rows
    assert rows == list(again)


def test_a_new_method_is_a_function_with_a_decorator(tmp_path: Path) -> None:
    @quantile_method("middle")
    def middle(people: Federated, p: FloatArray) -> FloatArray:
        return np.full(len(p), people.pooled[0].mean())

    try:
        text = QUANTILES.replace('"interpolation"', '"middle"')
        result = run_quantiles(read_quantile_config(written(tmp_path, text)), 1, tmp_path)
        assert {row["method"] for row in result.rows} == {"sample", "middle"}
    finally:
        del QUANTILE_METHODS["middle"]


def test_a_method_without_an_estimate_is_told(tmp_path: Path) -> None:
    text = QUANTILES.replace('"interpolation"', '"yj-table"').replace("[30, 30]", "[12, 11]")
    result = run_quantiles(read_quantile_config(written(tmp_path, text)), 1, tmp_path)
    row = next(r for r in result.rows if r["people"] == 23 and r["method"] == "yj-table")
    assert row["none"] == 1.0
    assert row["mse"] is None


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"weighted"', '"wieghted"', "methods must be among combined, table, .*'wieghted'"),
        ('name = "rounded"', 'name = "round"', "families"),
        ("sims = 40", "simulations = 40", "simulations"),
        ("sizes_y = [[40, 30]]", "sizes_y = [[40]]", "as many centers"),
        ("sizes = [[60, 40]]", "sizes = [[0, 40]]", "at least 1"),
        ("sizes = [[60, 40]]", "sizes = [", "study.toml"),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in TESTS
    with pytest.raises(InputError, match=problem):
        read_test_config(written(tmp_path, TESTS.replace(old, new)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.toml' cannot be read"):
        read_quantile_config(tmp_path / "nothing.toml")
