"""The server: on loopback with a link that opens it once, or elsewhere with passwords and TLS."""

import socket
import stat
import threading
import webbrowser
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from traceback import print_exception
from typing import TYPE_CHECKING, Any

from unpooled.apps.workbench.foundation.guard import App, Guard, cookies, session_cookie
from unpooled.apps.workbench.foundation.sessions import Sessions
from unpooled.apps.workbench.in_words.words import Words
from unpooled.errors import InputError
from unpooled.toml_file import read_tables

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

LOOPBACK = ("127.0.0.1", "::1", "localhost")
PUBLIC = ("/enter", "/static/", "/favicon.ico")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a page is served, and how it is protected there."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any that is free
    certificate: Path | None = None
    private_key: Path | None = None
    passwords: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.private_key is None):
            raise InputError("certificate and private-key go together; one is missing")
        if self.host in LOOPBACK:
            return
        if self.certificate is None or not self.passwords:
            raise InputError(
                f"host {self.host!r} can be reached from other machines, so it needs --users, "
                "--certificate and --private-key. Hint: leave --host away to serve this machine"
            )

    @property
    def secure(self) -> bool:
        """Whether it is served over TLS."""
        return self.certificate is not None

    def url(self, port: int) -> str:
        """How a browser reaches it."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{name}:{port}"

    def hosts(self, port: int) -> frozenset[str]:
        """The names that a request may call it by."""
        names = ["127.0.0.1", "localhost", "[::1]"] if self.host in LOOPBACK else [self.host]
        bare = (80, 443)[self.secure]
        return frozenset({*(f"{name}:{port}" for name in names), *(names if port == bare else ())})


def read_passwords(path: Path) -> dict[str, str]:
    """The users and passwords of a TOML file that only its owner can read."""
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InputError(f"users: others can read {str(path)!r}. Hint: chmod 600 {path}")
    users = read_tables(path).get("users", {})
    for name, password in users.items():
        if not isinstance(password, str) or len(password) < 12:
            raise InputError(f"users: the password of {name!r} must be text of 12 letters or more")
    if not users:
        raise InputError(f'users: {str(path)!r} names nobody. Hint: [users] and NAME = "PASSWORD"')
    return dict(users)


def application(
    name: str,
    routes: "Sequence[BaseRoute]",
    sessions: Sessions,
    hosts: Collection[str],
    secure: bool = False,
    port: int = 0,
) -> App:
    """The routes of a site behind the guard, with those that all sites have."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    from unpooled.apps.workbench.foundation.page import serve_static

    entrance = _Entrance(sessions, secure)
    shared = [
        Route("/static/{name}", serve_static),
        Route("/enter", entrance.show, methods=["GET"]),
        Route("/enter", entrance.enter, methods=["POST"]),
        Route("/leave", entrance.leave, methods=["POST"]),
    ]
    inner: Starlette = Starlette(
        routes=[*routes, *shared],
        exception_handlers={404: _not_there, 405: _not_there, 500: _failed},
    )
    return Guard(inner, sessions, hosts, secure, f"unpooled-{name}-{port}", PUBLIC)


@dataclass(frozen=True, slots=True)
class _Entrance:
    """The pages through which somebody comes in, and goes."""

    sessions: Sessions
    secure: bool

    async def show(self, request: "Request") -> "Response":
        from starlette.responses import HTMLResponse, RedirectResponse

        from unpooled.apps.workbench.foundation.page import enter_page

        token = request.query_params.get("token")
        secret = None if token is None else self.sessions.enter_by_link(token)
        if secret is not None:
            return self._let_in(request, secret)
        if request.scope["session"] is not None:
            return RedirectResponse("/", 303)
        text = "" if token is None else Words().texts["page.link-used"]
        status = 200 if token is None else 403
        return HTMLResponse(enter_page(text, bool(self.sessions.passwords)), status)

    async def enter(self, request: "Request") -> "Response":
        from starlette.responses import HTMLResponse

        from unpooled.apps.workbench.foundation.page import enter_page, form

        if self.sessions.must_wait:
            return HTMLResponse(enter_page(Words().texts["page.wait"], True), 429)
        fields = await form(request)
        user, password = (fields.get(name, [""])[0] for name in ("user", "password"))
        secret = self.sessions.enter_by_password(user, password)
        if secret is None:
            return HTMLResponse(enter_page(Words().texts["page.wrong"], True), 403)
        return self._let_in(request, secret)

    async def leave(self, request: "Request") -> "Response":
        from starlette.responses import HTMLResponse

        from unpooled.apps.workbench.foundation.page import enter_page

        name = request.scope["cookie_name"]
        self.sessions.leave(cookies(request.headers.get("cookie", "")).get(name, ""))
        page = enter_page(Words().texts["page.left"], False)
        return HTMLResponse(page)

    def _let_in(self, request: "Request", secret: str) -> "Response":
        from starlette.responses import RedirectResponse

        response = RedirectResponse("/", 303)
        response.headers["set-cookie"] = session_cookie(request.scope, secret, self.secure)
        return response


async def _not_there(request: "Request", error: Exception) -> "Response":
    from starlette.responses import HTMLResponse

    from unpooled.apps.workbench.foundation.page import refusal_page

    return HTMLResponse(refusal_page(404, Words().texts["page.not-there"]), 404)


async def _failed(request: "Request", error: Exception) -> "Response":
    """Something that nobody foresaw: its trace goes to the terminal, not into the page."""
    from starlette.responses import HTMLResponse

    from unpooled.apps.workbench.foundation.page import refusal_page

    print_exception(error)
    return HTMLResponse(refusal_page(500, Words().texts["page.failed"]), 500)


@dataclass(slots=True)
class Server:
    """A site that is being served; `with` ends it."""

    app: Callable[[int], App]  # the port → what is served there
    address: Address
    sessions: Sessions
    _server: Any = None
    _thread: threading.Thread | None = None
    _socket: socket.socket | None = None

    @property
    def url(self) -> str:
        """How a browser reaches it."""
        if self._socket is None:
            raise InputError("the server is not started")
        return self.address.url(int(self._socket.getsockname()[1]))

    def link(self, user: str) -> str:
        """A link that opens the page once, for this user."""
        return f"{self.url}/enter?token={self.sessions.link_token(user)}"

    def start(self) -> None:
        """Listen, in a thread of its own; returns when requests are answered."""
        import uvicorn

        family = socket.AF_INET6 if ":" in self.address.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.address.host, self.address.port))
        except OSError as error:
            listening.close()
            raise InputError(
                f"port {self.address.port} of {self.address.host} cannot be used: "
                f"{error.strerror}. Hint: leave --port away, and a free one is taken"
            ) from error
        self._socket = listening
        config = uvicorn.Config(
            self.app(int(listening.getsockname()[1])),
            log_level="critical",
            lifespan="off",
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=2,
            proxy_headers=False,
            ssl_certfile=self.address.certificate,
            ssl_keyfile=self.address.private_key,
        )
        self._server = uvicorn.Server(config)
        listening.listen(128)  # a browser that comes before the loop runs waits here
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End in good order."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(timeout=5)

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(
    server: Server, user: str, browser: bool, show: Callable[[str], None], read: Callable[[], str]
) -> None:
    """Serve until Ctrl-C. `read` waits for a line: then there is a new link."""
    with server:
        if server.address.passwords:
            show(f"serving: {server.url}")
            _wait()
            return
        link = server.link(user)
        show(f"open: {link}")
        show("The link works once. Press Enter for a new one, Ctrl-C to end.")
        if browser:
            webbrowser.open(link)
        while True:
            try:
                read()
            except EOFError:  # nobody is at the terminal
                _wait()
            show(f"open: {server.link(user)}")


def _wait() -> None:
    threading.Event().wait()
