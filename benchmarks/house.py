"""How many lines there are to read: python -m benchmarks.house [CHECKOUT].

Lines without blank ones, comments and docstrings stand beside all lines.
"""

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

PROMISE = (
    "disclosure",
    "memory",
    "gate",
    "people",
    "words",
    "policy",
    "ledger",
    "line_file",
    "keys",
)
CORE = (*PROMISE[:6], "center", "summarise", "fingerprint", "steward")


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
    found = [lines(path) for path in paths]
    return sum(one for one, _ in found), sum(one for _, one in found)


def main(root: Path) -> None:
    """Print a line for each set of files."""
    package = root / "src" / "unpooled"
    questions = sorted((package / "questions").glob("*.py"))
    print(f"{'':<40}{'files':>6}{'lines':>7}{'code':>7}")
    promise = [*_center(package, PROMISE), *questions, package / "maths" / "precision.py"]
    for title, files in (
        ("the core and its messages", [*_center(package, CORE), *questions]),
        ("what must be right for the promise", promise),
        ("everything", sorted(package.rglob("*.py"))),
    ):
        every, code = _sum(files)
        print(f"{title:<40}{len(files):>6}{every:>7}{code:>7}")


def _center(package: Path, names: Iterable[str]) -> list[Path]:
    return [package / "center" / f"{name}.py" for name in names]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
