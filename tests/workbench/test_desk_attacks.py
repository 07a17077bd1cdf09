"""Attacks on the desk: each fails, and succeeds when its defence is taken out.

What is attacked is the decision: an answer leaves that its steward did not approve.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jinja2
import pytest
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.workbench.browser import Browser
from tests.workbench.chromium import chromium
from tests.workbench.held import hold, open_haifa, people, write_center
from unpooled.apps.workbench import desk as desk_package
from unpooled.apps.workbench.desk import desk_server, pages
from unpooled.apps.workbench.foundation import guard, sessions
from unpooled.apps.workbench.foundation.guard import Guard
from unpooled.apps.workbench.foundation.page import Pages, Site
from unpooled.apps.workbench.foundation.server import Address, Server, application
from unpooled.apps.workbench.foundation.sessions import Sessions
from unpooled.center.approval import steward
from unpooled.center.approval.reviewers import make_reviewer, with_reviewer
from unpooled.center.approval.steward import decided, pending, read_reviews
from unpooled.center.questions import SizesQuestion

PASSPHRASE = "correct horse battery"
STRANGE = "<script>alert(1)</script>"


class Attacked:
    """A center with one answer that waits, and the desk."""

    def __init__(self, folder: Path) -> None:
        write_center(folder, people(arms=("control", STRANGE)))
        anna = make_reviewer(folder / "Haifa.reviewers", "Anna", PASSPHRASE)
        toml = folder / "center.toml"
        toml.write_text(with_reviewer(toml.read_text(), anna))
        self.folder = folder
        self.center = open_haifa(folder)
        hold(self.center, SizesQuestion(variable="crp", by="arm"))
        (self.held,) = pending(self.waiting)
        self.server = desk_server(folder, None, Address())

    @property
    def waiting(self) -> Path:
        return self.folder / "Haifa.pending"

    @property
    def path(self) -> str:
        return f"/held/{self.held.name}/approve"

    def steward(self) -> Browser:
        opened = Browser(self.server.url)
        opened.enter(self.server.link("steward"))
        return opened

    def approve(self, browser: Browser, headers: dict[str, str] | None = None) -> bool:
        """Whether the answer may leave now."""
        browser.post(self.path, headers, reviewer="Anna", passphrase=PASSPHRASE)
        return self.is_approved

    @property
    def is_approved(self) -> bool:
        return [decision for _, decision in decided(self.waiting)] == ["approved"]


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[Attacked]:
    running = Attacked(tmp_path / "Haifa")
    with running.server:
        yield running
    running.center.close()


def by_a_form_of_another_origin(on: Attacked) -> bool:
    sent = {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"}
    return on.approve(on.steward(), sent)


def by_a_form_without_the_token(on: Attacked) -> bool:
    victim = on.steward()
    victim.csrf = "guessed"
    return on.approve(victim)


def by_a_name_that_leads_to_this_machine(on: Attacked) -> bool:
    port = urlsplit(on.server.url).port
    return on.approve(on.steward(), {"Host": f"rebound.example:{port}"})


def without_a_session(on: Attacked) -> bool:
    return on.approve(Browser(on.server.url))


def by_the_session_of_the_analysts_page(on: Attacked) -> bool:
    """Somebody who works at a page of ours on the same machine, and sends its cookie here."""
    with analysts_page() as page:
        analyst = Browser(page.url)
        analyst.enter(page.link("maria"))
        port = urlsplit(on.server.url).port
        (secret,) = analyst.cookies.values()
        analyst.url, analyst.cookies = on.server.url, {f"unpooled-desk-{port}": secret}
        return on.approve(analyst)


def by_reading_the_inbox_with_that_session(on: Attacked) -> bool:
    with analysts_page() as page:
        analyst = Browser(page.url)
        analyst.enter(page.link("maria"))
        analyst.url = on.server.url
        port = urlsplit(on.server.url).port
        analyst.cookies = {f"unpooled-desk-{port}": next(iter(analyst.cookies.values()))}
        return "crp" in analyst.get("/").text


def by_guessing_the_passphrase(on: Attacked) -> bool:
    """The right one, after many wrong ones in a row."""
    thief = on.steward()
    for guess in range(5):
        thief.post(on.path, reviewer="Anna", passphrase=f"a guess {guess}")
    return on.approve(thief)


def by_a_reason_beyond_all_bounds(on: Attacked) -> bool:
    """To fill the disk, or the record that stewards read."""
    on.steward().post(
        f"/held/{on.held.name}/refuse", reviewer="Anna", passphrase=PASSPHRASE, reason="x" * 100_000
    )
    return bool(read_reviews(on.waiting))


def by_a_huge_body(on: Attacked) -> bool:
    browser = on.steward()
    browser.post(on.path, reviewer="Anna", passphrase=PASSPHRASE, reason="x" * 3_000_000)
    return on.is_approved


def by_a_level_that_is_a_script(on: Attacked) -> bool:
    return STRANGE in on.steward().get(f"/held/{on.held.name}").text


def analysts_page() -> Server:
    """A page of ours for analysts; all that matters here is that it has sessions of its own."""
    part, site = Sessions(), Pages(Site("test", "maria", [], []))

    async def show(request: Request) -> Response:
        return site.page(request, "base.html")

    return Server(
        lambda port: application(
            "test", [Route("/", show)], part, Address().hosts(port), port=port
        ),
        Address(),
        part,
    )


ALL: dict[str, sessions.Session] = {}


def one_table_for_all(patch: pytest.MonkeyPatch) -> None:
    """As if all pages of ours shared their sessions."""
    ALL.clear()
    begin, find = Sessions._begin, Sessions.find

    def begin_for_all(self: Sessions, user: str, by_key: bool = False) -> str:
        secret = begin(self, user, by_key)
        ALL.update(self._sessions)
        return secret

    def find_in_all(self: Sessions, secret: str, **how: bool) -> sessions.Session | None:
        self._sessions.update(ALL)
        return find(self, secret, **how)

    patch.setattr(Sessions, "_begin", begin_for_all)
    patch.setattr(Sessions, "find", find_in_all)


def escape_nothing(patch: pytest.MonkeyPatch) -> None:
    whole = jinja2.Environment
    page = "unpooled.apps.workbench.foundation.page.jinja2.Environment"
    patch.setattr(page, lambda **options: whole(**{**options, "autoescape": False}))


class _Any(frozenset[str]):
    def __contains__(self, _: object) -> bool:
        return True


def _anybody(self: Guard, headers: dict[str, str]) -> sessions.Session:
    return sessions.Session("anybody", "", 0.0, 0.0)


Attack = Callable[[Attacked], bool]
Undo = Callable[[pytest.MonkeyPatch], Any]
ATTACKS: list[tuple[Attack, Undo]] = [
    (by_a_form_of_another_origin, lambda m: m.setattr(Guard, "_same_origin", lambda *_: True)),
    (by_a_form_without_the_token, lambda m: m.setattr(guard, "_has_token", lambda *_: True)),
    (
        by_a_name_that_leads_to_this_machine,
        lambda m: m.setattr(Address, "hosts", lambda *_: _Any()),
    ),
    (without_a_session, lambda m: m.setattr(Guard, "_session", _anybody)),
    (by_the_session_of_the_analysts_page, one_table_for_all),
    (by_reading_the_inbox_with_that_session, one_table_for_all),
    (by_guessing_the_passphrase, lambda m: m.setattr(pages, "_WRONG", 1000)),
    (by_a_reason_beyond_all_bounds, lambda m: m.setattr(steward, "MOST_REASON", 10**9)),
    (by_a_huge_body, lambda m: m.setattr(guard, "MOST_BYTES", 10**9)),
    (by_a_level_that_is_a_script, escape_nothing),
]


@pytest.mark.parametrize("attack", [attack for attack, _ in ATTACKS])
def test_an_attack_fails(attacked: Attacked, attack: Attack) -> None:
    assert not attack(attacked)
    assert not attacked.is_approved


@pytest.mark.parametrize(("attack", "undo"), ATTACKS)
def test_it_would_succeed_without_its_defence(
    attack: Attack, undo: Undo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo(monkeypatch)
    running = Attacked(tmp_path / "Haifa")
    with running.server:
        assert attack(running)
    running.center.close()


def test_what_the_steward_sends_is_done(attacked: Attacked) -> None:
    assert attacked.approve(attacked.steward())


@pytest.mark.parametrize(
    "path", ["/held/../data.csv", "/held/..%2fdata.csv", "/held/", "/held/%00", "/ledger/-1"]
)
def test_no_path_leads_to_a_file(attacked: Attacked, path: str) -> None:
    reply = attacked.steward().get(path)
    assert reply.status == 404
    assert "crp,arm" not in reply.text


def test_the_beginning_of_a_name_decides_nothing(attacked: Attacked) -> None:
    """The page's form has the whole name: so what is approved is what was seen."""
    browser = attacked.steward()
    path = f"/held/{attacked.held.short}/approve"
    assert browser.post(path, reviewer="Anna", passphrase=PASSPHRASE).status == 404
    assert not attacked.is_approved


@pytest.mark.browser
def test_a_page_of_another_origin_in_the_stewards_browser_decides_and_reads_nothing(
    attacked: Attacked, tmp_path: Path
) -> None:
    """The browser sends it the desk's cookie, since ports share cookies."""
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "index.html").write_text(
        f'<form method="post" action="{attacked.server.url}{attacked.path}">'
        f'<input name="reviewer" value="Anna"><input name="passphrase" value="{PASSPHRASE}">'
        "</form><p>waiting</p><script>"
        f'fetch("{attacked.server.url}/", {{credentials: "include"}}).then(r => r.text())'
        '.then(t => document.querySelector("p").textContent = "read " + t)'
        '.catch(() => document.querySelector("p").textContent = "not read")</script>'
    )
    handler = partial(_Quiet, directory=str(evil))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as other, chromium() as browser:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(attacked.server.link("steward"))
        page.goto(f"http://127.0.0.1:{other.server_address[1]}/index.html")
        page.get_by_text("not read").wait_for()
        page.evaluate("document.querySelector('form').submit()")
        page.get_by_text("Another page sent this. Nothing was done.").wait_for()
        other.shutdown()
    assert not attacked.is_approved


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_the_analysts_page_has_no_way_to_the_desk() -> None:
    """No module of the workbench but the desk's own, and the command, knows the desk."""
    root = Path(desk_package.__file__).parents[2]
    knows = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "workbench.desk" in path.read_text() and path.parent.name != "desk"
    }
    assert knows == {"cli/network.py"}


def test_names_are_escaped_before_they_are_set_apart() -> None:
    from unpooled.apps.workbench.in_words.words import name

    assert name(STRANGE) == Markup("<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>")
