"""Attacks on a page of ours: each fails, and succeeds when its defence is taken out."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.workbench.browser import Browser
from unpooled.apps.workbench.foundation import guard, sessions
from unpooled.apps.workbench.foundation.guard import Guard
from unpooled.apps.workbench.foundation.page import Pages, Site, Tab, form, session
from unpooled.apps.workbench.foundation.server import Address, Server, application, read_passwords
from unpooled.apps.workbench.foundation.sessions import Sessions
from unpooled.errors import InputError

SITE = Site("test", "nobody's data", [Tab("/", "First")], [])
PASSWORD = "correct horse battery"


class Notes:
    """A site that keeps one note a user."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self.pages = Pages(SITE)

    async def show(self, request: Request) -> Response:
        return self.pages.page(request, "base.html")

    async def note(self, request: Request) -> Response:
        return PlainTextResponse(self.notes.get(session(request).user, "none"))

    async def write(self, request: Request) -> Response:
        self.notes[session(request).user] = (await form(request)).get("note", ["?"])[0]
        return PlainTextResponse("written")

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/", self.show),
            Route("/note", self.note, methods=["GET"]),
            Route("/note", self.write, methods=["POST"]),
        ]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Page:
    """A running site, its user's browser, and what it keeps."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.site = Notes()
        self.sessions = Sessions({"anna": PASSWORD, "ben": PASSWORD + "!"}, self.clock)
        self.server = Server(
            lambda port: application(
                "test", self.site.routes, self.sessions, Address().hosts(port), port=port
            ),
            Address(),
            self.sessions,
        )

    def browser(self, user: str = "anna") -> Browser:
        opened = Browser(self.server.url)
        opened.enter(self.server.link(user))
        return opened


@pytest.fixture
def page() -> Iterator[Page]:
    running = Page()
    with running.server:
        yield running


def of_another_origin(page: Page) -> bool:
    """A form on a page of another origin, in a browser that says so."""
    victim = page.browser()
    sent = {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"}
    return victim.post("/note", sent, note="mine").status == 200


def without_the_token(page: Page) -> bool:
    """The same from a browser that says nothing; the attacker cannot read the token."""
    victim = page.browser()
    victim.csrf = "guessed"
    return victim.post("/note", note="mine").status == 200


def by_another_name(page: Page) -> bool:
    """DNS rebinding: the attacker's name leads to this machine, its page is one origin with us."""
    victim = page.browser()
    port = urlsplit(page.server.url).port
    return victim.get("/note", Host=f"rebound.example:{port}").status == 200


def without_a_session(page: Page) -> bool:
    return Browser(page.server.url).get("/note").status == 200


def with_a_huge_body(page: Page) -> bool:
    victim = page.browser()
    return victim.post("/note", note="x" * 3_000_000).status == 200


def with_a_body_of_no_declared_length(page: Page) -> bool:
    """Chunked: no Content-Length says how much will come."""
    victim = page.browser()
    chunk = b"note=" + b"x" * 3_000_000
    body = f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n0\r\n\r\n"
    sent = {
        "Transfer-Encoding": "chunked",
        "X-CSRF-Token": victim.csrf,
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return victim.send("POST", "/note", body, sent).status == 200


def with_an_old_cookie(page: Page) -> bool:
    victim = page.browser()
    page.clock.now += 3 * 3600
    return victim.get("/note").status == 200


def with_a_link_used_before(page: Page) -> bool:
    link = page.server.link("anna")
    Browser(page.server.url).enter(link)
    thief = Browser(page.server.url)
    thief.enter(link)
    return bool(thief.cookies)


def with_a_link_of_yesterday(page: Page) -> bool:
    link = page.server.link("anna")
    page.clock.now += 86400
    thief = Browser(page.server.url)
    thief.enter(link)
    return bool(thief.cookies)


def by_guessing_passwords(page: Page) -> bool:
    """The right one, after many wrong ones in a row."""
    thief = Browser(page.server.url)
    for i in range(9):
        thief.post("/enter", user="anna", password=f"guess {i}")
    return thief.post("/enter", user="anna", password=PASSWORD).status == 303


def keep_the_token(self: Sessions, token: str) -> str | None:
    user, until = self._links[sessions._digest(token)]
    return self._begin(user) if self.clock() < until else None


def never_too_old(self: Sessions, token: str) -> str | None:
    return self._begin(self._links.pop(sessions._digest(token))[0])


Undo = Callable[[pytest.MonkeyPatch], Any]
ATTACKS: list[tuple[Callable[[Page], bool], Undo]] = [
    (of_another_origin, lambda m: m.setattr(Guard, "_same_origin", lambda *_: True)),
    (without_the_token, lambda m: m.setattr(guard, "_has_token", lambda *_: True)),
    (by_another_name, lambda m: m.setattr(Address, "hosts", lambda *_: _Any())),
    (without_a_session, lambda m: m.setattr(Guard, "_session", _anybody)),
    (with_a_huge_body, lambda m: m.setattr(guard, "MOST_BYTES", 10**9)),
    (with_a_body_of_no_declared_length, lambda m: m.setattr(guard, "MOST_BYTES", 10**9)),
    (with_an_old_cookie, lambda m: m.setattr(sessions, "IDLE_SECONDS", 10.0**9)),
    (with_a_link_used_before, lambda m: m.setattr(Sessions, "enter_by_link", keep_the_token)),
    (with_a_link_of_yesterday, lambda m: m.setattr(Sessions, "enter_by_link", never_too_old)),
    (by_guessing_passwords, lambda m: m.setattr(sessions, "_WRONG", 1000)),
]


class _Any(frozenset[str]):
    def __contains__(self, _: object) -> bool:
        return True


def _anybody(self: Guard, headers: dict[str, str]) -> sessions.Session:
    return sessions.Session("anna", "", 0.0, 0.0)


@pytest.mark.parametrize("attack", [attack for attack, _ in ATTACKS])
def test_an_attack_fails(page: Page, attack: Callable[[Page], bool]) -> None:
    assert not attack(page)
    assert page.site.notes == {}


@pytest.mark.parametrize(("attack", "undo"), ATTACKS)
def test_it_would_succeed_without_its_defence(
    attack: Callable[[Page], bool], undo: Undo, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo(monkeypatch)
    running = Page()
    with running.server:
        assert attack(running)


def test_what_a_user_sends_is_done(page: Page) -> None:
    part = page.browser()
    assert part.post("/note", note="mine").text == "written"
    port = urlsplit(page.server.url).port
    sent = {"Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}
    assert part.post("/note", sent, note="again").text == "written"
    assert part.get("/note").text == "again"


def test_two_users_never_see_each_other(page: Page) -> None:
    anna, ben = page.browser("anna"), page.browser("ben")
    anna.post("/note", note="of Anna")
    assert ben.get("/note").text == "none"
    ben.csrf = anna.csrf  # the token of another session is no token
    assert ben.post("/note", note="of Ben").status == 403


def test_a_user_who_left_is_out(page: Page) -> None:
    part = page.browser()
    cookies = dict(part.cookies)
    assert part.post("/leave").status == 200
    part.cookies = cookies
    assert part.get("/note").status == 401


def test_a_page_that_looks_by_itself_keeps_no_session_alive(page: Page) -> None:
    left, used = page.browser(), page.browser()
    for _ in range(3):
        page.clock.now += 3000
        left.get("/note", **{"X-Poll": "1"})
        assert used.get("/note").status == 200
    assert left.get("/note", **{"X-Poll": "1"}).status == 401


def test_the_cookie_is_out_of_reach(page: Page) -> None:
    opened = Browser(page.server.url)
    reply = opened.enter(page.server.link("anna"))
    assert reply.status == 303
    assert "HttpOnly; SameSite=Strict" in reply.headers["set-cookie"]


def test_the_cookie_of_one_page_is_not_that_of_another_port(page: Page) -> None:
    other = Page()
    with other.server:
        both = page.browser()
        both.url = other.server.url
        assert both.get("/note").status == 401  # a browser sends cookies to every port


@pytest.mark.parametrize("path", ["/", "/note", "/enter", "/static/style.css", "/nowhere"])
def test_every_response_carries_the_policy(page: Page, path: str) -> None:
    reply = page.browser().get(path)
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../guard.py",
        "/static/..%2fguard.py",
        "/static/%2e%2e/guard.py",
        "/static//etc/passwd",
        "/static/..\\guard.py",
        "/static/style.css%00.js",
        "/static/",
    ],
)
def test_no_path_leads_to_another_file(page: Page, path: str) -> None:
    """Files are served from a table of names; a path of a request is never one of the disk."""
    assert page.browser().get(path).status in (400, 404)


def test_other_methods_are_not_served(page: Page) -> None:
    assert page.browser().send("DELETE", "/note").status == 405


def test_a_program_with_a_key_needs_no_cookie(page: Page) -> None:
    key = page.sessions.key("anna")
    program = Browser(page.server.url)
    bearer = {"Authorization": f"Bearer {key}"}
    assert program.send("GET", "/note", headers=bearer).text == "none"
    assert program.send("POST", "/note", b"note=x", bearer).status == 200
    program.cookies = {f"unpooled-test-{urlsplit(page.server.url).port}": key}
    assert program.get("/note").status == 401  # a key in a cookie would have no CSRF token


def test_nonsense_on_the_wire_harms_nobody(page: Page) -> None:
    port = urlsplit(page.server.url).port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=10) as raw:
        raw.sendall(b"\x16\x03\x01 not http\r\n\r\n")
        raw.recv(1000)
    assert page.browser().get("/note").status == 200


def test_another_host_needs_passwords_and_tls(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs --users, --certificate and --private-key"):
        Address("0.0.0.0")
    with pytest.raises(InputError, match="go together"):
        Address(certificate=tmp_path / "a")


def test_the_file_of_users_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    path.write_text('[users]\nanna = "correct horse battery"\n')
    path.chmod(0o644)
    with pytest.raises(InputError, match="others can read"):
        read_passwords(path)
    path.chmod(0o600)
    assert read_passwords(path) == {"anna": PASSWORD}
    path.write_text('[users]\nanna = "short"\n')
    with pytest.raises(InputError, match="12 letters"):
        read_passwords(path)


def test_a_port_that_is_taken_is_said(page: Page) -> None:
    port = urlsplit(page.server.url).port or 0
    second = Server(page.server.app, Address(port=port), page.sessions)
    with pytest.raises(InputError, match=f"port {port} of"):
        second.start()
