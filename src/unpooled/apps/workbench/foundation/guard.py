"""The guard before every page: what it lets through, and what every response carries.

| attack | defence |
|---|---|
| another machine | the server listens on loopback (`server.py`) |
| DNS rebinding: a name of the attacker's that leads to 127.0.0.1 | the Host must be ours |
| a page of another origin (another port is another origin) sends a form | Origin, Sec-Fetch-Site |
| the same, from a browser that sends neither | the session's CSRF token in form or header |
| reading the cookie by script | HttpOnly; no script but ours: Content-Security-Policy |
| a frame around the page | frame-ancestors 'none' |
| a huge body | bounded, also where no length is declared |
| a stranger on this machine | the one-time token of the link, then the session's cookie |
"""

import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any

from unpooled.apps.workbench.foundation.forms import read_fields
from unpooled.apps.workbench.foundation.sessions import Session, Sessions
from unpooled.apps.workbench.in_words.words import Words

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 2_000_000  # of a request's body
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # "no-referrer" would take the Origin off our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class _TooLarge(Exception):  # noqa: N818
    """A body beyond the limit."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets a request through to `app`, with its session, or answers it itself."""

    app: App
    sessions: Sessions
    hosts: Collection[str]  # "127.0.0.1:8000" and other names that are ours
    secure: bool  # whether the page is served over TLS
    cookie: str  # its name; other pages on this machine share the cookies of all ports
    public: Collection[str]  # paths that need no session; those that end in "/" with all below

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        scope["cookie_name"] = self.cookie
        sent = _with_headers(scope, send)
        try:
            body = await _read(scope, receive)
        except _TooLarge:
            await _refuse(scope, sent, 413, _say("too-large", most=f"{MOST_BYTES:,}"))
            return
        refusal = self._refusal(scope, body)
        if refusal is not None:
            await _refuse(scope, sent, *refusal)
            return
        await self.app(scope, _replay(body, receive), sent)

    def _refusal(self, scope: Scope, body: bytes) -> tuple[int, str] | None:
        """Why a request is not let through; its session is put into the scope."""
        headers = _headers(scope)
        if headers.get("host") not in self.hosts:
            return 421, _say("other-host")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, _say("other-method")
        writes = scope["method"] == "POST"
        if writes and not self._same_origin(headers):
            return 403, _say("other-page")
        session = self._session(headers)
        scope["session"] = session
        if self._is_public(scope["path"]):
            return None
        if session is None:
            return 401, ""  # a page that says what to do
        if writes and not session.by_key and not _has_token(session, headers, body):
            return 403, _say("too-old")
        return None

    def _is_public(self, path: str) -> bool:
        return any(path == p or (p.endswith("/") and path.startswith(p)) for p in self.public)

    def _same_origin(self, headers: dict[str, str]) -> bool:
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = headers.get("origin")
        scheme = "https" if self.secure else "http"
        return origin is None or origin == f"{scheme}://{headers.get('host')}"

    def _session(self, headers: dict[str, str]) -> Session | None:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.sessions.find(key.strip(), by_key=True)
        cookie = cookies(headers.get("cookie", "")).get(self.cookie)
        by_hand = "x-poll" not in headers  # a page that looks by itself is used by nobody
        return None if cookie is None else self.sessions.find(cookie, used=by_hand)


def _say(key: str, **values: object) -> str:
    """A text, as it stands in a page or in JSON."""
    return Words().texts[f"page.{key}"].format(**values)


def cookies(header: str) -> dict[str, str]:
    """The cookies of a request.

    Examples
    --------
    >>> cookies("a=1; b=2")
    {'a': '1', 'b': '2'}
    """
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs if name}


def session_cookie(scope: Scope, secret: str, secure: bool) -> str:
    """The header that gives a browser its cookie; no script can read it, no other site send it."""
    tail = "; Secure" if secure else ""
    return f"{scope['cookie_name']}={secret}; Path=/; HttpOnly; SameSite=Strict{tail}"


def _has_token(session: Session, headers: dict[str, str], body: bytes) -> bool:
    token = headers.get("x-csrf-token")
    if token is None and headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    ):
        token = read_fields(body).get("csrf", [""])[0]
    return compare_digest((token or "").encode(), session.csrf.encode())


def _headers(scope: Scope) -> dict[str, str]:
    """Names in lower case; of a header that comes twice all are refused by looking like none."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        headers[key] = value.decode("latin-1") if key not in headers else f"{headers[key]}, twice"
    return headers


async def _read(scope: Scope, receive: Receive) -> bytes:
    length = _headers(scope).get("content-length", "0")
    if not length.isdigit() or int(length) > MOST_BYTES:
        raise _TooLarge
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            raise _TooLarge
        if message["type"] != "http.request" or not message.get("more_body"):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then what comes after it."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


def _with_headers(scope: Scope, send: Send) -> Send:
    still = scope["path"].startswith("/static/")
    keep = "private, max-age=86400" if still else "no-store"

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            ours = {**HEADERS, "cache-control": keep}
            message["headers"] = [
                *message["headers"],
                *((n.encode(), v.encode()) for n, v in ours.items() if n.encode() not in given),
            ]
        await send(message)

    return sent


async def _refuse(scope: Scope, send: Send, status: int, text: str) -> None:
    """A page that says so; a program that asks below /api gets it as JSON."""
    from unpooled.apps.workbench.foundation.page import refusal_page

    if scope["path"].startswith("/api/"):
        body = json.dumps({"error": text or "the key is missing, wrong or too old"}).encode()
        kind = b"application/json"
    else:
        body, kind = refusal_page(status, text).encode(), b"text/html; charset=utf-8"
    headers = [(b"content-type", kind), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
