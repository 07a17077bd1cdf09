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
from unpooled.analyses.protocols.protocol import read_protocol
from unpooled.analyses.specification import Analysis, Argument
from unpooled.apps.workbench.foundation.page import session
from unpooled.apps.workbench.researcher.book_pages import book_analyses
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
            Route("/api/protocol", _json(self.run), methods=["POST"]),
            Route("/api/protocol/check", _json(self.check), methods=["POST"]),
            Route("/api/study", _json(self.study)),
            Route("/api/study/{act}", _json(self.act), methods=["POST"]),
            Route("/api/book", _json(self.book)),
            Route("/api/book/{analysis}", _json(self.look), methods=["POST"]),
            Route("/api/{analysis}", _json(self.ask), methods=["POST"]),
        ]

    def _work(self, request: Request) -> Work:
        return self.source.work(session(request).user)

    async def document(self, request: Request) -> Response:
        """What the API is, as OpenAPI."""
        return _answer(openapi(self.source.analyses))

    async def catalogue(self, request: Request) -> Response:
        """The variables."""
        catalogue = await run_in_threadpool(self.source.catalogue)
        return _answer(catalogue.to_dict())

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

    async def run(self, request: Request) -> Response:
        """Ask a protocol."""
        tables = _object(await request.body())
        protocol, work = read_protocol(tables), self._work(request)
        work.run(protocol, tables)
        return _answer(_study(work), 202, {"location": "/api/study"})

    async def check(self, request: Request) -> Response:
        """What the centers would tell for a protocol."""
        tables, work = _object(await request.body()), self._work(request)
        if work.federation is None:
            raise InputError("a book asks no center")
        asked = work.worker.submit(work.federation.check, tables)
        return _answer((await run_in_threadpool(asked.result)).to_dict())

    async def study(self, request: Request) -> Response:
        """How far each center is."""
        work = self._work(request)
        return (
            _problem("no protocol was asked", 404) if work.study is None else _answer(_study(work))
        )

    async def act(self, request: Request) -> Response:
        """Stop, or go on."""
        work, act = self._work(request), request.path_params["act"]
        if work.study is None or act not in ("cancel", "resume"):
            return _problem("no protocol was asked, or this cannot be done with it", 404)
        if act == "cancel":
            work.study.cancel()
        else:
            work.study.start(work.worker)
        return _answer(_study(work), 202)

    async def book(self, request: Request) -> Response:
        """What the book is of."""
        book = self._work(request).book
        if book is None:
            return _problem("there is no book yet", 404)
        plain = {"protocol": msgspec.to_builtins(book.protocol), "centers": book.centers}
        refusals = [refusal.to_dict() for refusal in book.refusals]
        return _answer({**plain, "missing": book.missing, "refusals": refusals})

    async def look(self, request: Request) -> Response:
        """An analysis of the book."""
        name, work = request.path_params["analysis"], self._work(request)
        analyses = book_analyses()
        if name not in analyses or work.book is None:
            return _problem("there is no book yet, or no such analysis of one", 404)
        arguments = read_json(analyses[name], await request.body())
        answered = await run_in_threadpool(work.look, name, arguments)
        about = {"analysis": name, "state": "answered", "answer": answered.card.answer}
        return _answer({**about, "result": answered.result.to_dict()})

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
    plain = _object(body)
    names = [argument.name for argument in analysis.arguments if not argument.python_only]
    for name in plain:
        if name not in names:
            raise InputError(unknown("argument", name, names))
    arguments = {name: value for name, value in plain.items() if value is not None}
    analysis.check(arguments)
    return arguments


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InputError(f"the body must be a JSON object: {error}") from error


def _study(work: Work) -> dict[str, Any]:
    """How far a run is."""
    study = work.study
    if study is None:
        return {}
    centers = [
        {"center": one.center, "state": one.state, "says": one.says, "not_told": one.refused}
        for one in study.states.values()
    ]
    about = {"title": study.protocol.title, "state": study.state, "problem": study.problem or None}
    return {**about, "centers": centers}


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
    paths |= {
        "/api/protocol": _post("protocol", "Ask a protocol: its tables.", {"type": "object"}),
        "/api/protocol/check": _post(
            "check", "What each center would answer, without a count.", {"type": "object"}
        ),
        "/api/study": _get("How far each center is with the protocol.", 404),
        "/api/study/cancel": _post("cancel", "Ask no further center.", None),
        "/api/study/resume": _post("resume", "Ask the centers that have not answered.", None),
        "/api/book": _get("What came back for the protocol, and from whom.", 404),
    }
    for name, analysis in analyses.items():
        paths[f"/api/{name}"] = _post(name, analysis.help, _schema(analysis.arguments))
    for name, analysis in book_analyses().items():
        schema = _schema(analysis.arguments)
        paths[f"/api/book/{name}"] = _post(
            f"book_{name}", f"{analysis.help} From the book.", schema
        )
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


def _get(summary: str, *others: int) -> dict[str, Any]:
    responses = {"200": {"description": "It.", **_OBJECT}}
    return {
        "get": {
            "summary": summary,
            "responses": responses | {str(code): _RESPONSES[str(code)] for code in others},
        }
    }


def _post(name: str, summary: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    content = {"required": True, "content": {"application/json": {"schema": schema}}}
    body = {} if schema is None else {"requestBody": content}
    return {
        "post": {"operationId": name, "summary": summary, **body, "responses": _RESPONSES},
    }


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
