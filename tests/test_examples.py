"""The examples run, as a reader would run them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("[!_]*.py"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_and_writes_its_report(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"examples.{name}", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "weighted" in done.stdout
    assert (tmp_path / f"{name}.html").read_text().count("<svg") >= 3
