"""A newcomer's way through the workbench, by clicks and keys alone, from the catalogue to Word."""

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import docx


def _nothing() -> None:
    """Nobody else has to do anything."""


def build(page: Any, title: str, groups: Sequence[tuple[str, str]], variables: list[str]) -> None:
    """The protocol: groupings with their levels, then ticks."""
    page.click("nav >> text=Protocol")
    page.fill("#title", title)
    for number, (group, levels) in enumerate(groups, 1):
        page.select_option(f"#group-{number}", group)
        page.wait_for_selector(f"#group-{number + 1}")
        page.fill(f"#levels-{number}", levels)
    for name in variables:
        page.check(f"#variables label:has-text('{name}')")
    page.wait_for_selector(f"#look .words bdi:text-is('{variables[-1]}')")


def check(page: Any, centers: Sequence[str], soon: float, steward: Callable[[], Any]) -> None:
    """Each center says what it would tell; over the network it is asked by the button."""
    if not page.locator("#check[data-send], #check[data-poll], #check table").count():
        page.click("button[formaction='/protocol/check']")
        steward()
    page.wait_for_selector("#check table", timeout=soon)
    shown = page.inner_text("#check")
    assert all(center in shown for center in centers)


def run(page: Any, centers: Sequence[str], soon: float, steward: Callable[[], Any]) -> None:
    """The centers are asked once, and each has its state."""
    page.click("text=Ask the centers once")
    steward()
    page.wait_for_selector("#run:not([data-poll])", timeout=soon)
    assert page.locator("#run tbody tr").count() == len(centers)
    assert page.locator(".state.answered, .state.partly").count() == len(centers)


def look(page: Any, variable: str, by: str) -> str:
    """Table 1 and a comparison, both pinned; what the comparison says."""
    answers = []
    page.click("text=Look at what came back")
    for card, fields in (
        ("Table 1", {"#f-by": by}),
        ("Comparison", {"#f-variable": variable, "#f-by": by}),
    ):
        page.click("nav >> text=Book")
        page.click(f"main a:text-is('{card}')")
        for field, value in fields.items():
            with page.expect_response(lambda reply: "/book/" in reply.url):
                page.select_option(field, value)
            page.wait_for_selector("#card:not([aria-busy]) .answer")
        answers.append(str(page.inner_text("#card .answer")))
        assert page.locator("#card table").count()
        page.click("text=Pin to the report")
    return answers[-1]


def save_as_word(page: Any, folder: Path) -> Any:
    """The report as a Word file, as the browser saves it."""
    page.click("nav >> text=Report")
    with page.expect_download() as begun:
        page.get_by_role("link", name="Word").click()
    path = folder / begun.value.suggested_filename
    begun.value.save_as(path)
    return docx.Document(BytesIO(path.read_bytes()))


def whole_way(
    page: Any,
    folder: Path,
    centers: Sequence[str],
    title: str,
    groups: Sequence[tuple[str, str]],
    variables: list[str],
    soon: float = 60_000,
    steward: Callable[[], Any] = _nothing,
) -> None:
    """From the catalogue, which is there, to a Word file that says what the pages said."""
    page.fill("#search", variables[0])
    shown = page.locator("#variables tbody tr:visible th")
    assert shown.all_inner_texts() == [variables[0]]
    build(page, title, groups, variables)
    check(page, centers, soon, steward)
    run(page, centers, soon, steward)
    sentence = look(page, variables[0], groups[0][0])
    assert f"{variables[0]} is " in sentence
    saved = save_as_word(page, folder)
    text = "\n".join(paragraph.text for paragraph in saved.paragraphs)
    assert sentence in text
    assert len(saved.inline_shapes) == 2  # of Table 1 and of the comparison
    cells = [cell.text for table in saved.tables for row in table.rows for cell in row.cells]
    assert all(name in " ".join(cells) for name in variables)
