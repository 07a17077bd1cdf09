"""The house keeps its own rules: names that say what a thing is, and layers as they are drawn."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VAGUE = frozenset({"told", "found", "own", "said", "known"})  # of every variable one could say so
PLACES = ("src", "study", "tests", "benchmarks", "examples")


def stored_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Variables, arguments, attributes and functions that a module names, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield node.lineno, name


def vague_names(text: str) -> list[tuple[int, str]]:
    return [(line, name) for line, name in stored_names(ast.parse(text)) if name in VAGUE]


@pytest.mark.parametrize("place", PLACES)
def test_names_say_what_a_thing_is(place: str) -> None:
    vague = {
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted((ROOT / place).rglob("*.py"))
        for line, name in vague_names(path.read_text())
    }
    assert not vague, "\n".join(sorted(vague))


def test_a_vague_name_is_noticed_wherever_it_is_given() -> None:
    text = "found = 1\ndef f(told): ...\ndef known(): ...\n[0 for own in x]\nclass A:\n said: int\n"
    assert sorted(name for _, name in vague_names(text)) == sorted(VAGUE)


def test_the_rooms_of_a_center_on_paper_are_those_that_are_kept() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    inner = next(c for c in contracts["contracts"] if c.get("containers") == ["unpooled.center"])
    kept = [name.strip() for layer in inner["layers"] for name in layer.split("|")]
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = page.split("| file | does |\n|---|---|\n")[1].split("\n\n")[0].splitlines()
    on_paper = [name for row in rows for name in re.findall(r"`(\w+)/?`", row.split(" | ")[0])]
    assert on_paper == kept
    there = {path.stem for path in (ROOT / "src" / "unpooled" / "center").iterdir()}
    assert set(on_paper) == there - {"__init__", "__pycache__"}


def rows_of_where() -> list[tuple[str, str]]:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = page.split("| to find | look in | at |\n|---|---|---|\n")[1].split("\n\n")[0]
    return [
        (files, names)
        for _, files, names in (row.strip("| ").split(" | ") for row in rows.splitlines())
    ]


@pytest.mark.parametrize(("files", "names"), rows_of_where())
def test_what_a_newcomer_looks_for_is_where_the_page_says(files: str, names: str) -> None:
    paths = re.findall(r"`([\w/]+\.py)`", files)
    body = [
        node
        for path in paths
        for node in ast.walk(ast.parse((ROOT / "src" / "unpooled" / path).read_text()))
    ]
    there = {name for _, name in stored_names(ast.Module(body=body, type_ignores=[]))}  # type: ignore[arg-type]
    there |= {node.name for node in body if isinstance(node, ast.ClassDef)}
    assert paths
    assert set(re.findall(r"\w+", names.replace("`", ""))) <= there
