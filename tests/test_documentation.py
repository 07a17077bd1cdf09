"""Documents are true: every command, option, setting and reason is documented."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
import typer.main

from unpooled.apps.cli import app
from unpooled.center.config import CenterFile, CenterVariable
from unpooled.center.policy import Policy
from unpooled.center.questions import Answer, Reason

ROOT = Path(__file__).parents[1]
TEXT = "\n".join(
    path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
)

PRIVACY = (ROOT / "docs" / "privacy.md").read_text()
ANSWER_TYPES = get_type_hints(Answer)


def commands(command: Any, name: str = "unpooled") -> list[tuple[str, Any]]:
    if hasattr(command, "commands"):
        return [
            each
            for part, child in command.commands.items()
            for each in commands(child, f"{name} {part}")
        ]
    return [(name, command)]


ALL = commands(typer.main.get_command(app))


@pytest.mark.parametrize("name", [name for name, _ in ALL])
def test_every_command_is_documented(name: str) -> None:
    assert f"`{name}" in TEXT or f"\n{name}" in TEXT


def first_cells(page: str) -> list[str]:
    """The first cells of the rows of a table of commands."""
    lines = (ROOT / page).read_text().splitlines()
    return [line.split(" | ")[0] for line in lines if line.startswith(("| `unpooled", "| [`unp"))]


def test_the_table_of_commands_has_all_of_them() -> None:
    """A row begins with the group, `unpooled ledger show`, and may go on with `verify`."""
    rows = first_cells("docs/command-line.md")
    for name, _ in ALL:
        *group, last = name.split()
        beside = [row for row in rows if f"`{' '.join(group)} " in row and f"`{last}`" in row]
        assert beside or any(f"`{name}`" in row for row in rows), name


def test_the_first_page_has_a_few_commands_that_exist() -> None:
    few = [row.strip("| `") for row in first_cells("README.md")]
    assert 3 <= len(few) <= 8
    assert set(few) <= {name for name, _ in ALL}


@pytest.mark.parametrize(
    "option",
    sorted({o for _, c in ALL for p in c.params for o in p.opts if o.startswith("--")}),
)
def test_every_option_is_documented(option: str) -> None:
    assert f"`{option}" in TEXT or f" {option}" in TEXT


@pytest.mark.parametrize(
    "name",
    [f.name for kind in (Policy, CenterVariable) for f in msgspec.structs.fields(kind)],
)
def test_every_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in TEXT


@pytest.mark.parametrize("name", [f.name for f in msgspec.structs.fields(CenterFile)])
def test_every_entry_of_a_center_file_is_documented(name: str) -> None:
    assert f"\n{name} = " in TEXT or f"[{name}" in TEXT or f"`{name}`" in TEXT


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_for_a_refusal_is_documented(reason: Reason) -> None:
    assert f"`{reason.value}`" in TEXT


@pytest.mark.parametrize("kind", get_args(ANSWER_TYPES["aggregate"]))
def test_every_kind_of_answer_that_can_leave_is_listed(kind: type[Any]) -> None:
    if kind is not type(None):
        rows = [row for row in PRIVACY.splitlines() if row.startswith("| `")]
        tag = kind.__struct_config__.tag
        assert any(f"`{tag}`" in row.split(" | ")[0] for row in rows), tag


def test_the_layers_on_paper_are_those_that_are_kept() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    kept = project["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = page.split("| layer | is |\n|---|---|\n")[1].split("\n\n")[0].splitlines()
    cells = [row.split(" | ")[0].strip("| ").replace("`", "").replace("/", "") for row in rows]
    on_paper = [name.strip() for cell in cells for name in cell.split(",")]
    assert on_paper == [
        name.strip().removeprefix("unpooled.") for layer in kept for name in layer.split("|")
    ]


def test_every_dependency_is_justified() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    for requirement in wanted:
        name = requirement.split(">")[0]
        assert f"| {name} |" in page, name
