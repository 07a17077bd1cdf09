"""The HTTP API: the same questions as JSON, for programs in R or any other language.

Routes, their OpenAPI document and the checks of arguments come from the specifications.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unpooled import __version__
from unpooled.analyses.specification import Analysis, Argument
from unpooled.apps.workbench.foundation.page import session
from unpooled.apps.workbench.researcher.work import Entry, Source, Work
from unpooled.errors import InputError, UnpooledError, unknown

Handler = Callable[[Request], Awaitable[Response]]
_PATIENCE = 20.0  # seconds that a question waits for an answer before it says "asking"

_KINDS: Mapping[str, dict[str, Any]] = {
    "variable": {"type": "string"},
    "variables": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "text": {"type": "string"},
    "names": {"type": "array", "items": {"type": "string"}},
    "numbers": {"oneOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]},
    "number": {"type": "number"},
    "whole": {"type": "integer", "minimum": 1},
    "flag": {"type": "boolean"},
    "anything": {},
}


class Api:
    """The routes below /api."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @property
    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/api/openapi.json", self.document),
            Route("/api/catalogue", _json(self.catalogue)),
            Route("/api/releases", _json(self.releases)),
            Route("/api/questions/{number:int}", _json(self.question)),
            Route("/api/{analysis}", _json(self.ask), methods=["POST"]),
        ]

    def _work(self, request: Request) -> Work:
        return self.source.work(session(request).user)

    async def document(self, request: Request) -> Response:
        """What the API is, as OpenAPI."""
        return _answer(openapi(self.source.analyses))

    async def catalogue(self, request: Request) -> Response:
        """The variables."""
        found = await run_in_threadpool(self.source.catalogue)
        return _answer(found.to_dict())

    async def releases(self, request: Request) -> Response:
        """All that left the centers for this user."""
        return _answer(self._work(request).releases.to_dict())

    async def ask(self, request: Request) -> Response:
        """Ask an analysis."""
        name = request.path_params["analysis"]
        analysis = self.source.analyses.get(name)
        if analysis is None:
            return _problem(unknown("analysis", name, list(self.source.analyses)), 404)
        arguments = read_json(analysis, await request.body())
        typed = {key: _as_typed(value) for key, value in arguments.items()}
        entry = self._work(request).ask(analysis, typed, arguments)
        await entry.wait(_PATIENCE)
        return _of_entry(entry)

    async def question(self, request: Request) -> Response:
        """A question that was asked before."""
        entry = self._work(request).entries.get(request.path_params["number"])
        return _problem("there is no such question", 404) if entry is None else _of_entry(entry)


def read_json(analysis: Analysis, body: bytes) -> dict[str, Any]:
    """The arguments of an analysis from JSON; what is null is left away.

    Examples
    --------
    >>> from unpooled.analyses.specification import COMPARE
    >>> read_json(COMPARE, b'{"variable": "crp", "by": "arm", "where": null}')
    {'variable': 'crp', 'by': 'arm'}
    >>> read_json(COMPARE, b'{"variable": "crp", "By": "arm"}')
    Traceback (most recent call last):
        ...
    unpooled.errors.InputError: there is no argument 'By'. Hint: did you mean 'by'?
    """
    try:
        plain = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InputError(f"the body must be a JSON object of arguments: {error}") from error
    names = [argument.name for argument in analysis.arguments if not argument.python_only]
    for name in plain:
        if name not in names:
            raise InputError(unknown("argument", name, names))
    arguments = {name: value for name, value in plain.items() if value is not None}
    analysis.check(arguments)
    return arguments


def _as_typed(value: Any) -> list[str]:
    """As a form would have it, for the page of the card."""
    several = value if isinstance(value, list) else [value]
    return ["yes" if one is True else f"{one}" for one in several if one is not False]


def _of_entry(entry: Entry) -> Response:
    """What came of a question: a result, a problem, or that the centers are still asked."""
    about = {"question": entry.number, "analysis": entry.analysis.name, "state": entry.state}
    if entry.state == "asking":
        return _answer(about, 202, {"location": f"/api/questions/{entry.number}"})
    if entry.state == "failed":
        return _answer({**about, "error": entry.problem}, 422)
    answered = entry.answered
    result = {"answer": answered.card.answer, "result": answered.result.to_dict()}
    return _answer({**about, **result})


def _answer(plain: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(plain)
    return Response(body, status, headers, media_type="application/json")


def _problem(text: str, status: int) -> Response:
    return _answer({"error": text}, status)


def _json(handler: Handler) -> Handler:
    """What is wrong is said as JSON."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except UnpooledError as error:
            return _problem(str(error), 422 if isinstance(error, InputError) else 409)

    return handle


def openapi(analyses: Mapping[str, Analysis]) -> dict[str, Any]:
    """The API in the words of OpenAPI 3.1."""
    paths = {
        "/api/catalogue": _get("The variables, their kinds, and the centers that lack them."),
        "/api/releases": _get("All that left the centers for you, center by center."),
        "/api/questions/{number}": {
            "get": {
                "summary": "A question that you asked, and what came of it.",
                "parameters": [
                    {
                        "name": "number",
                        "in": "path",
                        "required": True,
                        "schema": {"type": "integer"},
                    }
                ],
                "responses": _RESPONSES,
            }
        },
    }
    for name, analysis in analyses.items():
        paths[f"/api/{name}"] = {
            "post": {
                "operationId": name,
                "summary": analysis.help,
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": _schema(analysis.arguments)}},
                },
                "responses": _RESPONSES,
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "unpooled workbench",
            "version": __version__,
            "description": "Statistics across hospitals without pooling the data.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


_OBJECT = {"content": {"application/json": {"schema": {"type": "object"}}}}
_RESPONSES: dict[str, Any] = {
    "200": {"description": "The answer in a sentence, and the result.", **_OBJECT},
    "202": {
        "description": "The centers are still asked; `location` says where to look.",
        **_OBJECT,
    },
    "401": {"description": "The key is missing, wrong or too old."},
    "404": {"description": "There is no such thing.", **_OBJECT},
    "422": {"description": "It cannot be asked, or has no result; `error` says why.", **_OBJECT},
}


def _get(summary: str) -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": {"200": {"description": "It.", **_OBJECT}}}}


def _schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    shown = [argument for argument in arguments if not argument.python_only]
    return {
        "type": "object",
        "properties": {argument.name: _property(argument) for argument in shown},
        "required": [argument.name for argument in shown if argument.required],
        "additionalProperties": False,
    }


def _property(argument: Argument) -> dict[str, Any]:
    about: dict[str, Any] = {"description": argument.help}
    if argument.default is not None:
        about["default"] = argument.default
    if argument.kind == "choice":
        return {"type": "string", "enum": list(argument.choices), **about}
    if argument.kind == "choices":
        word = {"type": "string", "enum": [*argument.choices, "all"]}
        return {"oneOf": [word, {"type": "array", "items": word}], **about}
    return {**_KINDS[argument.kind], **about}
