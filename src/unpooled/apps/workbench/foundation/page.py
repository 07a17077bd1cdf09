"""Pages: templates that escape everything, one layout, one style sheet, one script."""

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from unpooled.apps.workbench.foundation.forms import read_fields
from unpooled.apps.workbench.foundation.sessions import Session
from unpooled.apps.workbench.in_words.words import Words

_HERE = "unpooled.apps.workbench.foundation"
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Tab(NamedTuple):
    """A place in the navigation."""

    path: str
    name: str


class Site(NamedTuple):
    """What all pages of one application share."""

    name: str  # "workbench"
    under: str  # whose data: a line below the name
    tabs: Sequence[Tab]
    packages: Sequence[str]  # that have a folder `templates`, the nearest first
    language: str = "en"
    direction: str = "ltr"  # "rtl" where it is written so


class Pages:
    """Renders the templates of a site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        loaders = [jinja2.PackageLoader(package) for package in (*site.packages, _HERE)]
        self._environment = jinja2.Environment(
            loader=jinja2.ChoiceLoader(loaders),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals["static"] = static_path
        self._environment.globals["page_words"] = Words(site.language)

    def markup(self, template: str, values: Mapping[str, Any]) -> Markup:
        """A piece of a page."""
        return Markup(self._environment.get_template(template).render(values))

    def page(
        self, request: Request, template: str, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A whole page, in the layout."""
        person = session(request)
        shared = {"site": self.site, "path": request.url.path, "csrf": person.csrf}
        return HTMLResponse(self.markup(template, {**shared, **values}), status)

    def part(self, request: Request, template: str, **values: Any) -> HTMLResponse:
        """A piece of a page that the script puts in the place of an earlier one."""
        return HTMLResponse(self.markup(template, {"csrf": session(request).csrf, **values}))


def session(request: Request) -> Session:
    """The session of a request; the guard lets none through without one."""
    current: Session = request.scope["session"]
    return current


async def form(request: Request) -> dict[str, list[str]]:
    """The fields of the form that came with a request."""
    return read_fields(await request.body())


def go(path: str) -> RedirectResponse:
    """After a form: a page that can be reloaded without sending the form again."""
    return RedirectResponse(path, 303)


@cache
def _static() -> dict[str, tuple[bytes, str]]:
    """Name → bytes and kind. Only these are served; no path of a request touches the disk."""
    folder = files(_HERE) / "static"
    return {
        entry.name: (entry.read_bytes(), KINDS[entry.name.rpartition(".")[2]])
        for entry in folder.iterdir()
        if entry.name.rpartition(".")[2] in KINDS
    }


@cache
def static_path(name: str) -> str:
    """Where a file of ours is served, under a name that changes with its content."""
    return f"/static/{name}?v={sha256(_static()[name][0]).hexdigest()[:12]}"


async def serve_static(request: Request) -> Response:
    """A style sheet, a script or a picture of ours."""
    body, kind = _static().get(request.path_params["name"], (None, "text/plain"))
    if body is None:
        return Response(Words().texts["page.no-file"], 404, media_type="text/plain")
    return Response(body, media_type=kind)


@cache
def _plain() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(_HERE), autoescape=True, undefined=jinja2.StrictUndefined
    )


def refusal_page(status: int, text: str) -> str:
    """What somebody sees whom the guard does not let through."""
    template = _plain().get_template("stopped.html")
    style = static_path("style.css")
    return template.render(status=status, text=text, style=style, page_words=Words())


def enter_page(text: str, ask_password: bool) -> str:
    """Where a user gives name and password, or reads how to come in."""
    template = _plain().get_template("enter.html")
    style = static_path("style.css")
    return template.render(text=text, ask_password=ask_password, style=style, page_words=Words())
