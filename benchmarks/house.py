"""How large the house is, and what runs through what: python -m benchmarks.house.

Lines without blank ones, comments and docstrings stand beside all lines.
"""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

import numpy as np
import polars as pl

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "unpooled"
PROMISE = (
    "rule/disclosure",
    "rule/memory",
    "gate",
    "cohort/people",
    "cohort/words",
    "policy",
    "records/ledger",
    "records/line_file",
    "records/keys",
)
CORE = (*PROMISE[:6], "center", "proposal/summarise", "rule/fingerprint", "approval/steward")


def lines(path: Path) -> tuple[int, int]:
    """All lines of a file, and those that are code."""
    text = path.read_text()
    spoken: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            spoken.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    every = text.splitlines()
    code = [
        line
        for number, line in enumerate(every, 1)
        if number not in spoken and line.strip() and not line.lstrip().startswith("#")
    ]
    return len(every), len(code)


def _sum(paths: Iterable[Path]) -> tuple[int, int]:
    counted = [lines(path) for path in paths]
    return sum(one for one, _ in counted), sum(one for _, one in counted)


def _center(names: Iterable[str]) -> list[Path]:
    return [PACKAGE / "center" / f"{name}.py" for name in names]


def print_lines() -> None:
    """Print a line for each set of files."""
    questions = sorted((PACKAGE / "center" / "questions").glob("*.py"))
    package, study = sorted(PACKAGE.rglob("*.py")), sorted((ROOT / "study").rglob("*.py"))
    promise = [*_center(PROMISE), *questions, PACKAGE / "maths" / "precision.py"]
    print(f"{'':<40}{'files':>6}{'lines':>7}{'code':>7}")
    for title, files in (
        ("the core and its messages", [*_center(CORE), *questions]),
        ("what must be right for the promise", promise),
        ("all that runs beside the data", sorted((PACKAGE / "center").rglob("*.py"))),
        ("src/unpooled", package),
        ("the study", study),
        ("both", [*package, *study]),
    ):
        every, code = _sum(files)
        print(f"{title:<40}{len(files):>6}{every:>7}{code:>7}")


def print_folders() -> None:
    """Print how many files each folder has, and what stands at the top."""
    tops = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    packages = sorted(path.name for path in tops if path.is_dir())
    modules = sorted(p.stem for p in tops if p.suffix == ".py" and not p.stem.startswith("__"))
    print(f"\nat the top: {len(packages)} packages ({', '.join(packages)})")
    print(f"            {len(modules)} modules ({', '.join(modules)})")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    print(f"layers: {len(contracts['contracts'][0]['layers'])}")
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    for folder in sorted(folders):
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        if files and folder != PACKAGE:
            print(f"  {folder.relative_to(PACKAGE)!s:<38}{len(files):>4} files")


def modules_of_a_center() -> int:
    """How many modules of unpooled `import unpooled.center` loads."""
    script = (
        "import sys, unpooled.center as center; center.Center; "
        "print(sum(name.split('.')[0] == 'unpooled' for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return int(done.stdout)


def ran_through(call: Callable[[], object]) -> tuple[int, int]:
    """Through how many files and functions of unpooled a call runs, once all is imported."""
    call()
    functions: set[tuple[str, str, int]] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            functions.add((code.co_filename, code.co_name, code.co_firstlineno))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len({file for file, *_ in functions}), len(functions)


def hospitals() -> dict[str, pl.DataFrame]:
    """Two hospitals of two arms, with follow-up."""
    frames = {}
    for seed, name in enumerate(("Haifa", "Bern")):
        random = np.random.default_rng(seed)
        frames[name] = pl.DataFrame(
            {
                "crp": random.gamma(4.0, 1.0, 200),
                "arm": random.choice(["control", "patient"], 200),
                "months": random.uniform(1, 60, 200).round(1),
                "died": random.integers(0, 2, 200),
            }
        )
    return frames


def print_paths() -> None:
    """Print what runs when a question is asked, from the call to its text."""
    from unpooled import Federation

    def compare() -> str:
        fed = Federation.local(frames, k=10, seed=1)
        return str(fed.compare("crp", by="arm", groups=groups))

    def survival() -> str:
        fed = Federation.local(frames, k=10, seed=1)
        return str(fed.survival("months", "died", by="arm", groups=groups, horizon=60))

    frames, groups = hospitals(), ("control", "patient")
    print(f"\nimport unpooled.center loads {modules_of_a_center()} modules of unpooled")
    for name, call in (("compare", compare), ("survival", survival)):
        files, functions = ran_through(call)
        print(f"{name} runs through {files} files and {functions} functions")


if __name__ == "__main__":
    print_lines()
    print_folders()
    print_paths()
