"""A client that can send anything, also what no browser would."""

import http.client
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Browser:
    """Keeps its cookies, as a browser does."""

    url: str
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        cookie: bool = True,
    ) -> Reply:
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
        given = {"Host": place.netloc}
        if self.cookies and cookie:
            given["Cookie"] = "; ".join(f"{n}={v}" for n, v in self.cookies.items())
        given |= headers or {}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if body is not None and "Content-Length" not in given and "Transfer-Encoding" not in given:
            given["Content-Length"] = str(len(body))
        for name, value in given.items():
            connection.putheader(name, value)
        try:
            with suppress(BrokenPipeError):  # refused before all of it was sent
                connection.endheaders(body)
            answer = connection.getresponse()
        except ConnectionError:
            return Reply(0, {}, b"")  # cut off
        reply = Reply(answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read())
        connection.close()
        for set_cookie in answer.headers.get_all("set-cookie") or []:
            name, _, value = set_cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        return reply

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, headers: dict[str, str] | None = None, **fields: Any) -> Reply:
        body = urlencode({"csrf": self.csrf, **fields}, doseq=True).encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.send("POST", path, body, {**kind, **(headers or {})})

    def enter(self, link: str) -> Reply:
        """Open the link, and read the token that the page's forms carry."""
        place = urlsplit(link)
        reply = self.get(f"{place.path}?{place.query}")
        page = self.get("/").text
        mark = 'name="csrf" content="'
        if mark in page:
            self.csrf = page.split(mark)[1].split('"')[0]
        return reply
