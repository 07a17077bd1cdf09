"""How to add an analysis, done: a copy of the tree with one more touches the files that are said.

`tests/example_analysis` has the two new files. What is added to existing files stands here.
"""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

ROOT = Path(__file__).parents[1]
HERE = ROOT / "tests" / "example_analysis"

DECLARED = """CHI_SQUARE = Analysis(
    "chi_square",
    "Do two categories go together? Pearson's chi-square.",
    "the bars",
    (
        Argument("variable", "variable", "The category to analyse.", required=True),
        Argument("by", "variable", _BY.help, required=True),
        _GROUPS,
        _WHERE,
        _CUTS,
    ),
)

ANALYSES = (CHI_SQUARE, """

METHOD = '''    @_declared_as(specification.CHI_SQUARE)
    def chi_square(
        self,
        variable: str,
        by: str | None = None,
        *,
        groups: Sequence[object] | None = None,
        where: str | None = None,
        cuts: Sequence[float] | float | None = None,
    ) -> ChiSquareResult:
        """Do two categories go together? Pearson's chi-square."""
        conversation = self._coordinator.converse()
        request = self._request(conversation, variable, by, groups, where, cuts)
        result = run_chi_square(conversation, request)
        return replace(result, record=self._record(conversation))

    def _request('''

IMPORTS = """from unpooled.analyses import specification
from unpooled.analyses.chi_square import run_chi_square
from unpooled.results.chi_square import ChiSquareResult
from unpooled.analyses.conversation import"""

EDITS = {
    "analyses/specification.py": [("ANALYSES = (", DECLARED)],
    "federation/federation.py": [
        ("    def _request(", METHOD),
        ("from unpooled.analyses.conversation import", IMPORTS),
    ],
}
NEW = {"analyses/chi_square.py": "analysis.py", "results/chi_square.py": "result.py"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("copy") / "unpooled"
    shutil.copytree(ROOT / "src" / "unpooled", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, example in NEW.items():
        text = (HERE / example).read_text()
        text = text.replace("tests.example_analysis.result", "unpooled.results.chi_square")
        (copy / name).write_text(text)
    for name, edits in EDITS.items():
        text = (copy / name).read_text()
        for before, after in edits:
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
        (copy / name).write_text(text)
    return copy


def touched(copy: Path) -> Iterator[str]:
    original = ROOT / "src" / "unpooled"
    for path in sorted(copy.rglob("*.py")):
        before = original / path.relative_to(copy)
        if not before.exists() or not filecmp.cmp(before, path, shallow=False):
            yield str(path.relative_to(copy))


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, files = tmp_path_factory.mktemp("hospitals"), {}
    for seed, name in enumerate(("Haifa", "Bern")):
        random = np.random.default_rng(seed)
        arm = random.choice(["control", "patient"], 400)
        later = np.where(arm == "patient", 0.5, 0.3)
        stage = np.where(random.random(400) < later, "III", random.choice(["I", "II"], 400))
        files[name] = folder / f"{name}.csv"
        pl.DataFrame({"arm": arm, "stage": stage}).write_csv(files[name])
    return files


def run(package: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_a_command_and_agrees_with_scipy_on_the_pooled_people(
    package: Path, hospitals: dict[str, Path]
) -> None:
    files = [str(file) for file in hospitals.values()]
    asked = ["-m", "unpooled", "chi-square", "stage", "--by", "arm", "--centers", *files]
    assert "Do two categories go together?" in run(package, "-m", "unpooled", "--help")
    assert "χ²" in run(package, *asked)
    answer = json.loads(run(package, *asked, "--seed", "1", "--json"))
    pooled = pl.concat(pl.read_csv(file) for file in hospitals.values())
    counts = pooled.group_by("arm", "stage").len().pivot("stage", index="arm").sort("arm")
    expected = stats.chi2_contingency(counts.drop("arm").to_numpy(), correction=False)
    assert answer["chi2"]["statistic"] == pytest.approx(expected.statistic)
    assert 10 ** answer["chi2"]["log10_p"] == pytest.approx(expected.pvalue)
    assert answer["levels"] == ["I", "II", "III"]


def test_in_python_it_is_checked_and_reports_itself(
    package: Path, hospitals: dict[str, Path], tmp_path: Path
) -> None:
    script = f"""
import unpooled
fed = unpooled.Federation.local({[str(file) for file in hospitals.values()]!r}, seed=1)
result = fed.chi_square("stage", by="arm")
print(result.report({str(tmp_path / "report.html")!r}).name, result.to_frame().height)
try:
    fed.chi_square("stage")
except unpooled.errors.InputError as error:
    print(error)
"""
    lines = run(package, "-c", script).splitlines()
    assert lines == [
        "report.html 6",
        "chi_square needs by: the variable that says who is in which group",
    ]


def test_it_touches_the_files_that_contributing_names(package: Path) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text().split("### An analysis")[1].split("\n### ")[0]
    named = re.findall(r"`((?:analyses|results|federation)/[\w/]+\.py)`", guide)
    by_name = [name.replace("NAME", "chi_square") for name in dict.fromkeys(named)]
    assert sorted(by_name) == list(touched(package))
    assert len(by_name) <= 5


def test_every_file_that_contributing_names_is_there() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    paths = [p for p in re.findall(r"`([\w./]+/[\w/]*\.(?:py|md|toml))`", guide) if "NAME" not in p]
    assert len(paths) > 15
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "src" / "unpooled" / path).exists(), path
