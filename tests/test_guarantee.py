"""The page of the guarantee is true: each rule has a function that keeps it and an attack."""

import ast
import re
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_ROW = re.compile(
    r"^\| (?P<rule>.+) \| `(?P<function>[\w.]+)` \| `(?P<file>[\w/.]+)::(?P<test>\w+)` \|$"
)
_TABLE = (ROOT / "docs" / "guarantee.md").read_text().split("|---|---|---|\n")[1].split("\n\n")[0]
LINES = _TABLE.splitlines()
ROWS = [named for named in map(_ROW.match, LINES) if named is not None]


def named(name: str) -> object:
    """What a dotted name means below the package: the longest module, then its attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(("unpooled", *parts[:end])))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[end:], module)
    raise AssertionError(f"there is no module of {name}")


@cache
def attacks_in(file: str) -> frozenset[str]:
    """The tests of a file, by name."""
    path = ROOT / "tests" / file
    assert path.exists(), f"there is no {path.relative_to(ROOT)}"
    body = ast.parse(path.read_text()).body
    return frozenset(each.name for each in body if isinstance(each, ast.FunctionDef))


def test_every_row_has_a_rule_a_function_and_a_test() -> None:
    assert len(ROWS) == len(LINES) > 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["function"])
def test_the_function_of_a_rule_exists(row: re.Match[str]) -> None:
    assert callable(named(row["function"]))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["test"])
def test_the_attack_on_a_rule_exists(row: re.Match[str]) -> None:
    assert row["test"] in attacks_in(row["file"])


def test_a_name_that_is_gone_is_found_out() -> None:
    with pytest.raises(AttributeError):
        named("center.disclosure.Told.no_such_function")
    assert "test_no_such_attack" not in attacks_in("test_guarantee.py")
