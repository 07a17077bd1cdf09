"""The pages of a book: cards that change as options change. No center is asked."""

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unpooled.analyses.protocols.book import Book
from unpooled.analyses.specification import ANALYSES, Analysis, Argument
from unpooled.apps.workbench.foundation.page import form, go, session
from unpooled.apps.workbench.researcher import words
from unpooled.apps.workbench.researcher.cards.code import command_line, python_code
from unpooled.apps.workbench.researcher.cards.saving import KINDS, file_name, saved
from unpooled.apps.workbench.researcher.forms import Choices, Typed, fields_of, read_arguments
from unpooled.apps.workbench.researcher.work import Answered, Source, Work
from unpooled.errors import UnpooledError
from unpooled.results.report.text import alignment
from unpooled.results.result import Result

_SEVERAL = {
    "by": "The groupings that say who is in which group, crossed.",
    "strata": "Groupings within which people are compared.",
    "covariates": "Groupings that the hazard ratio is adjusted for.",
}


def book_analyses() -> dict[str, Analysis]:
    """The analyses of a book, by name: those that are declared, with what a book can be asked."""
    return {a.name: _of_book(a) for a in ANALYSES if hasattr(Book, a.name)}


def _of_book(analysis: Analysis) -> Analysis:
    """The arguments that the book's method has."""
    method = signature(getattr(Book, analysis.name))
    arguments = []
    for name, parameter in method.parameters.items():
        declared = analysis.by_name.get(name)
        required = parameter.default is Parameter.empty
        if name in _SEVERAL:
            arguments.append(Argument(name, "variables", _SEVERAL[name], required=required))
        elif declared is not None and declared.required and not required:
            arguments.append(Argument(name, declared.kind, declared.help))
        elif declared is not None:
            arguments.append(declared)
    return Analysis(analysis.name, analysis.help, analysis.chart, tuple(arguments), analysis.more)


def choices_in(book: Book, analysis: str) -> Choices:
    """What of a book each argument may name."""
    protocol = book.protocol
    groupings = [grouping.name for grouping in protocol.groups]
    categories = [n for n, v in protocol.variables.items() if v.kind == "category" or v.levels]
    numbers = [name for name in protocol.variables if name not in categories]
    offered = {
        "variable": [*categories, *groupings] if analysis == "crosstab" else numbers,
        "time": [outcome.time for outcome in protocol.survival],
        "event": [outcome.event for outcome in protocol.survival],
    }
    offered["variables"] = [*protocol.variables, *groupings]

    def choices(argument: str) -> list[tuple[str, str]]:
        names = dict.fromkeys(offered.get(argument, groupings))
        labels = {n: v.label for n, v in protocol.variables.items() if v.label}
        return [(name, f"{name}: {labels[name]}" if name in labels else name) for name in names]

    return choices


def _can_be_asked(book: Book, analysis: Analysis) -> bool:
    """Whether there is something that each argument may name, where it must or stands first."""
    choices = choices_in(book, analysis.name)
    needed = ("variable", "time")
    named = [a.name for a in analysis.arguments if a.required or a.name in needed]
    return all(choices(name) for name in named)


def with_first(analysis: Analysis, choices: Choices, typed: Typed) -> Typed:
    """What is typed; nothing typed means the first of what must be named."""
    first = {
        argument.name: [offered[0][0]]
        for argument in analysis.arguments
        if argument.required and (offered := choices(argument.name)) and not typed
    }
    return {**first, **typed}


class BookPages:
    """A book, its analyses, and its file."""

    def __init__(self, source: Source, show: Callable[..., Response]) -> None:
        self.source = source
        self._page = show
        self.analyses = book_analyses()

    @property
    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/book", self.book),
            Route("/book/file", self.file),
            Route("/book/{name}", self.card, methods=["GET"]),
            Route("/book/{name}", self.pin, methods=["POST"]),
            Route("/book/{name}/save.{kind}", self.save),
        ]

    def _work(self, request: Request) -> Work:
        return self.source.work(session(request).user)

    async def book(self, request: Request) -> Response:
        """What it is, and what can be looked at."""
        book = self._work(request).book
        named = [
            (name, words.ANALYSES.get(name, name.capitalize()), analysis.help)
            for name, analysis in self.analyses.items()
            if book is not None and _can_be_asked(book, analysis)
        ]
        return self._page(request, "book.html", book=book, analyses=named)

    async def file(self, request: Request) -> Response:
        """The book as a file."""
        book = self._work(request).book
        if book is None:
            return self._page(request, "book.html", status=404, book=None, analyses=[])
        content = await run_in_threadpool(_bytes_of, book)
        name = file_name(book.protocol.title, "book")
        disposition = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, headers=disposition, media_type="application/octet-stream")

    async def card(self, request: Request) -> Response:
        """A card that changes with its form."""
        typed: dict[str, Sequence[str]] = {
            name: request.query_params.getlist(name) for name in request.query_params
        }
        name, work = request.path_params["name"], self._work(request)
        analysis, book = self.analyses.get(name), work.book
        if analysis is None or book is None:
            return self._page(request, "book.html", status=404, book=book, analyses=[])
        choices = choices_in(book, name)
        typed = dict(with_first(analysis, choices, typed))
        shown: dict[str, Any] = {"answered": None, "problem": "", "python": "", "command_line": ""}
        try:
            arguments = read_arguments(analysis, typed)
            shown["answered"] = await run_in_threadpool(work.look, name, arguments)
            about = self.source.book_opening, analysis, arguments
            shown |= {"python": python_code(*about), "command_line": command_line(*about)}
        except UnpooledError as error:
            shown["problem"] = str(error)
        return self._page(
            request,
            "book_card.html",
            path="/book",
            analysis=analysis,
            heading=words.ANALYSES.get(name, name.capitalize()),
            fields=fields_of(analysis, choices, typed),
            typed=[(key, value) for key, values in typed.items() for value in values if value],
            query=request.url.query,
            alignment=alignment,
            **shown,
        )

    def _answer(self, work: Work, name: str, typed: Typed) -> tuple[dict[str, Any], Answered]:
        arguments = read_arguments(self.analyses[name], typed)
        return arguments, work.look(name, arguments)

    async def pin(self, request: Request) -> Response:
        """Put the card that is shown into the report."""
        name, work = request.path_params["name"], self._work(request)
        typed = {key: values for key, values in (await form(request)).items() if key != "csrf"}
        if name not in self.analyses or work.book is None:
            return go("/book")
        arguments, answered = await run_in_threadpool(self._answer, work, name, typed)
        entry = work.keep(self.analyses[name], typed, arguments, answered, self.source.book_opening)
        work.pin(entry.number)
        return go("/report")

    async def save(self, request: Request) -> Response:
        """The card that is shown as a file."""
        name, kind, work = (*map(request.path_params.get, ("name", "kind")), self._work(request))
        if name not in self.analyses or kind not in KINDS or work.book is None:
            return go("/book")
        typed: Typed = {key: request.query_params.getlist(key) for key in request.query_params}
        choices = choices_in(work.book, name)
        typed = with_first(self.analyses[name], choices, typed)
        _, answered = await run_in_threadpool(self._answer, work, name, typed)
        return await file_response([answered.result], answered.card.title, kind)


async def file_response(results: Sequence[Result], title: str, kind: str) -> Response:
    """A file that the browser saves."""
    content = await run_in_threadpool(saved, results, title, kind)
    disposition = {"content-disposition": f'attachment; filename="{file_name(title, kind)}"'}
    return Response(content, media_type=KINDS[kind], headers=disposition)


def _bytes_of(book: Book) -> bytes:
    with TemporaryDirectory(prefix="unpooled-") as folder:
        return book.save(Path(folder) / "study.book").read_bytes()
