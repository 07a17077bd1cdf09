"""Attacks on the workbench: each fails, and succeeds when its defence is taken out.

Those on any page of ours (rebinding, another origin, huge bodies, old sessions): `test_guard`.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pytest

from tests.workbench.browser import Browser
from unpooled import Federation
from unpooled.analyses.specification import Argument
from unpooled.apps.workbench.foundation import guard
from unpooled.apps.workbench.foundation.server import Address
from unpooled.apps.workbench.researcher import planning
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.opening import make_server
from unpooled.apps.workbench.researcher.work import Source, Work

COLUMN, LEVEL = "<img src=x onerror=alert(1)>", "</svg><script>alert(2)</script>"


class Place:
    """A running workbench on two small hospitals with hostile names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = [f"{i % 40 + i / 9},{LEVEL if i % 2 else 'b'}" for i in range(120)]
        for name in ("A", "B"):
            (folder / f"{name}.csv").write_text("\n".join([f"{COLUMN},g", *rows]))
        fed = Federation.local([folder / "A.csv", folder / "B.csv"], seed=1)
        self.source = Source("test", Opening.of_federation("f.toml"), fed)
        self.server = make_server(self.source, Address())

    def browser(self, user: str) -> Browser:
        opened = Browser(self.server.url)
        opened.enter(self.server.link(user))
        return opened

    def ask(self, part: Browser) -> str:
        """The place of a card that has its answer."""
        place = part.post("/ask/compare", variable=COLUMN, by="g").headers["location"]
        while 'data-state="asking"' in part.get(place).text:
            time.sleep(0.05)
        return place


def script_in_the_name_of_a_column(place: Place) -> bool:
    return COLUMN in place.browser("victim").get("/").text


def script_in_the_name_of_a_level(place: Place) -> bool:
    victim = place.browser("victim")
    return LEVEL in victim.get(place.ask(victim)).text


def script_in_what_is_typed(place: Place) -> bool:
    """A link that an attacker sends."""
    return "<b>typed" in place.browser("victim").get("/?search=<b>typed").text.replace("%3C", "<")


def reading_the_card_of_another(place: Place) -> bool:
    card = place.ask(place.browser("victim"))
    return place.browser("thief").get(card).status == 200


def reading_what_left_for_another(place: Place) -> bool:
    place.ask(place.browser("victim"))
    return "ranks" in place.browser("thief").get("/left").text


def saving_the_card_of_another(place: Place) -> bool:
    card = place.ask(place.browser("victim"))
    return place.browser("thief").get(f"{card}/save.csv").status == 200


def asking_in_the_name_of_a_visitor(place: Place) -> bool:
    """A form of another page with JSON in it, sent by a browser that says no origin."""
    victim = place.browser("victim")
    body = json.dumps({"variable": COLUMN}).encode()
    return victim.send("POST", "/api/describe", body, {"Content-Type": "text/plain"}).status == 200


def writing_a_file_by_a_plan(place: Place) -> bool:
    part, file = place.browser("own"), place.folder / "written.svg"
    part.post("/plan", sizes="30 30", effect="1", sims="20", chart=str(file))
    while "data-poll" in part.get("/plan").text:
        time.sleep(0.1)
    return file.exists()


def without_escaping(patch: pytest.MonkeyPatch) -> None:
    class Careless(jinja2.Environment):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "autoescape": False})

    patch.setattr("unpooled.apps.workbench.foundation.page.jinja2.Environment", Careless)


def one_work_for_all(patch: pytest.MonkeyPatch) -> None:
    whole = Source.work

    def work(self: Source, user: str) -> Work:
        return whole(self, "everybody")

    patch.setattr(Source, "work", work)


def without_the_token(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guard, "_has_token", lambda *_: True)


def with_files(patch: pytest.MonkeyPatch) -> None:
    fields = (*planning.fields(), Argument("chart", "text", "A file."))
    patch.setattr(planning, "fields", lambda: fields)


ATTACKS: list[tuple[Callable[[Place], bool], Callable[[pytest.MonkeyPatch], None]]] = [
    (script_in_the_name_of_a_column, without_escaping),
    (script_in_the_name_of_a_level, without_escaping),
    (script_in_what_is_typed, without_escaping),
    (reading_the_card_of_another, one_work_for_all),
    (reading_what_left_for_another, one_work_for_all),
    (saving_the_card_of_another, one_work_for_all),
    (asking_in_the_name_of_a_visitor, without_the_token),
    (writing_a_file_by_a_plan, with_files),
]


@pytest.mark.parametrize("undone", [False, True], ids=["defended", "without its defence"])
@pytest.mark.parametrize(
    ("attack", "undo"), ATTACKS, ids=[attack.__name__ for attack, _ in ATTACKS]
)
def test_an_attack_succeeds_only_without_its_defence(
    attack: Callable[[Place], bool],
    undo: Callable[[pytest.MonkeyPatch], None],
    undone: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if undone:
        undo(monkeypatch)
    place = Place(tmp_path)
    with place.server:
        assert attack(place) == undone
    place.source.close()


@pytest.mark.parametrize(
    "path",
    [
        "/cards/1/save.../../etc/passwd",
        "/cards/..%2f..%2fetc/save.csv",
        "/book/file/../../etc/passwd",
        "/book/__init__",
        "/ask/close",
        "/ask/__class__",
    ],
)
def test_no_path_leads_elsewhere(tmp_path: Path, path: str) -> None:
    """Names of paths are looked up in tables; none is an attribute or a file."""
    place = Place(tmp_path)
    with place.server:
        assert place.browser("own").get(path).status == 404
    place.source.close()
