"""The pages of the workbench."""

from collections.abc import Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unpooled.apps.workbench.foundation.page import Pages, Site, Tab, form, go, session
from unpooled.apps.workbench.foundation.sessions import Sessions
from unpooled.apps.workbench.researcher import words
from unpooled.apps.workbench.researcher.api import Api
from unpooled.apps.workbench.researcher.book_pages import BookPages, file_response
from unpooled.apps.workbench.researcher.cards.code import command_line, python_code
from unpooled.apps.workbench.researcher.cards.saving import KINDS, OF_REPORTS
from unpooled.apps.workbench.researcher.forms import (
    Typed,
    choices_of,
    fields_of,
    read_arguments,
)
from unpooled.apps.workbench.researcher.planning import Planning, fields, is_first
from unpooled.apps.workbench.researcher.studies.study_pages import StudyPages
from unpooled.apps.workbench.researcher.work import Entry, Source, Work
from unpooled.errors import UnpooledError
from unpooled.results.catalogue import CatalogueRow
from unpooled.results.provenance.releases import payload_sentence, question_sentence
from unpooled.results.report.text import alignment, number

_PATIENCE = 1.5  # seconds that a page waits for an answer before it says that centers are asked
_HERE = "unpooled.apps.workbench.researcher"


class Workbench:
    """The researcher's pages on one source of data."""

    def __init__(self, source: Source, sessions: Sessions) -> None:
        self.source = source
        self.sessions = sessions
        self.planning = Planning()
        of_centers = [
            Tab("/", words.CATALOGUE),
            Tab("/ask", words.ASK),
            Tab("/protocol", words.PROTOCOL),
            Tab("/study", words.STUDY),
        ]
        tabs = [
            *(of_centers if source.federation is not None else []),
            Tab("/book", words.BOOK),
            Tab("/report", words.REPORT),
            Tab("/plan", words.PLAN),
            Tab("/left", words.LEFT),
            Tab("/programs", words.PROGRAMS),
        ]
        self.pages = Pages(
            Site(words.NAME, source.about, tabs, [_HERE], words.LANGUAGE, words.DIRECTION)
        )

    @property
    def routes(self) -> Sequence[Route]:
        """All pages."""
        return [
            Route("/", self.catalogue),
            Route("/ask", self.questions),
            Route("/ask/{name}", self.question, methods=["GET"]),
            Route("/ask/{name}", self.ask, methods=["POST"]),
            Route("/cards/{number:int}", self.card),
            Route("/cards/{number:int}/pin", self.pin, methods=["POST"]),
            Route("/cards/{number:int}/save.{kind}", self.save_card),
            Route("/report", self.report),
            Route("/report/save.{kind}", self.save_report),
            Route("/report/move", self.move, methods=["POST"]),
            Route("/left", self.left),
            Route("/plan", self.plan, methods=["GET"]),
            Route("/plan", self.make_plan, methods=["POST"]),
            Route("/programs", self.programs, methods=["GET"]),
            Route("/programs", self.make_key, methods=["POST"]),
            *StudyPages(self.source, self._page).routes,
            *BookPages(self.source, self._page).routes,
            *Api(self.source).routes,
        ]

    def _work(self, request: Request) -> Work:
        return self.source.work(session(request).user)

    def _page(self, request: Request, template: str, **values: Any) -> Response:
        return self.pages.page(request, template, words=words, **values)

    async def catalogue(self, request: Request) -> Response:
        """The variables, and where they are not."""
        if self.source.federation is None:
            return go("/book")
        variables = await run_in_threadpool(self.source.catalogue)
        wanted = request.query_params.get("search", "")
        rows = [_row(row, variables.centers) for row in variables.rows]
        shown = [row for row in rows if all(w in row["words"] for w in wanted.lower().split())]
        return self._page(
            request,
            "catalogue.html",
            catalogue=variables,
            grows=self.source.catalogue_grows,
            rows=shown,
            every=rows,
            search=wanted,
            sketches=self._work(request).sketches,
        )

    async def questions(self, request: Request) -> Response:
        """What can be asked, and what was asked so far."""
        entries = list(reversed(self._work(request).entries.values()))
        return self._page(request, "questions.html", analyses=self._named(), entries=entries)

    def _named(self) -> list[tuple[str, str, str]]:
        return [
            (name, words.ANALYSES.get(name, name.capitalize()), analysis.help)
            for name, analysis in self.source.analyses.items()
        ]

    async def question(self, request: Request) -> Response:
        """The form of an analysis."""
        typed = {name: request.query_params.getlist(name) for name in request.query_params}
        return await self._form(request, request.path_params["name"], typed)

    async def _form(
        self, request: Request, name: str, typed: Typed, problem: str = "", status: int = 200
    ) -> Response:
        analysis = self.source.analyses.get(name)
        if analysis is None:
            return self._stopped(request, words.NO_SUCH_PAGE)
        catalogue = await run_in_threadpool(self.source.catalogue)
        return self._page(
            request,
            "question.html",
            status=status,
            analysis=analysis,
            heading=words.ANALYSES.get(name, name.capitalize()),
            fields=fields_of(analysis, choices_of(catalogue), typed),
            problem=problem,
        )

    async def ask(self, request: Request) -> Response:
        """Ask the centers; the card says what they answer."""
        name, typed = request.path_params["name"], await form(request)
        analysis = self.source.analyses.get(name)
        if analysis is None:
            return self._stopped(request, words.NO_SUCH_PAGE)
        try:
            arguments = read_arguments(analysis, typed)
            entry = self._work(request).ask(analysis, typed, arguments)
        except UnpooledError as error:
            return await self._form(request, name, typed, str(error), 422)
        await entry.wait(_PATIENCE)
        return go(f"/cards/{entry.number}")

    async def card(self, request: Request) -> Response:
        """A question and its card."""
        entry = self._entry(request)
        if entry is None:
            return self._stopped(request, words.NO_SUCH_CARD)
        catalogue = await run_in_threadpool(self.source.catalogue)
        return self._page(
            request,
            "card.html",
            path="/ask",
            entry=entry,
            heading=words.ANALYSES.get(entry.analysis.name, entry.analysis.name),
            analysis=entry.analysis,
            fields=fields_of(entry.analysis, choices_of(catalogue), entry.typed),
            problem="",
            pinned=entry.number in self._work(request).pinned,
            **self._shown(entry),
        )

    def _shown(self, entry: Entry) -> dict[str, Any]:
        """What the template of a card needs."""
        about = entry.opening, entry.analysis, entry.arguments
        code = {"python": python_code(*about), "command_line": command_line(*about)}
        return {**code, "alignment": alignment}

    def _entry(self, request: Request) -> Entry | None:
        return self._work(request).entries.get(request.path_params["number"])

    async def pin(self, request: Request) -> Response:
        """Put a card into the report, or take it out."""
        entry = self._entry(request)
        if entry is None:
            return self._stopped(request, words.NO_SUCH_CARD)
        self._work(request).pin(entry.number)
        fields = await form(request)
        return go("/report" if fields.get("to") == ["report"] else f"/cards/{entry.number}")

    async def save_card(self, request: Request) -> Response:
        """A card as a file."""
        entry, kind = self._entry(request), request.path_params["kind"]
        if entry is None or entry.state != "answered" or kind not in KINDS:
            return self._stopped(request, words.NO_SUCH_CARD)
        return await file_response([entry.answered.result], entry.title, kind)

    async def save_report(self, request: Request) -> Response:
        """The pinned cards as a file."""
        entries, kind = self._work(request).report, request.path_params["kind"]
        if not entries or kind not in OF_REPORTS:
            return self._stopped(request, words.NOTHING_PINNED)
        return await file_response([entry.answered.result for entry in entries], words.REPORT, kind)

    async def report(self, request: Request) -> Response:
        """The pinned cards."""
        cards = [(entry, self._shown(entry)) for entry in self._work(request).report]
        return self._page(request, "report.html", cards=cards, alignment=alignment)

    async def move(self, request: Request) -> Response:
        """Move a card of the report."""
        fields = await form(request)
        for steps, name in ((-1, "up"), (1, "down")):
            for text in fields.get(name, ()):
                if text.isdigit():
                    self._work(request).move(int(text), steps)
        return go("/report")

    async def left(self, request: Request) -> Response:
        """Everything that left the centers."""
        rows = [
            {
                "center": release.center,
                "question": question_sentence(release.question),
                "says": payload_sentence(release.payload),
                "bytes": len(release.payload),
                "payload": release.payload.decode("utf-8", "replace"),
            }
            for release in self._work(request).releases
        ]
        return self._page(request, "left.html", rows=rows)

    async def plan(self, request: Request) -> Response:
        """The form of a plan, and the last one."""
        planned = self._work(request).planned
        typed = {} if planned is None else planned.typed
        shown = await run_in_threadpool(fields)
        return self._page(
            request, "plan.html", fields=shown, is_first=is_first, planned=planned, typed=typed
        )

    async def make_plan(self, request: Request) -> Response:
        """Begin to simulate."""
        self._work(request).planned = self.planning.plan(await form(request))
        return go("/plan")

    async def programs(self, request: Request) -> Response:
        """How a program asks the same."""
        return self._page(request, "programs.html", key=None, url=str(request.base_url))

    async def make_key(self, request: Request) -> Response:
        """A key for a program, shown once."""
        key = self.sessions.key(session(request).user)
        return self._page(request, "programs.html", key=key, url=str(request.base_url))

    def _stopped(self, request: Request, text: str) -> Response:
        return self.pages.page(request, "missing.html", 404, words=words, text=text)


def _row(row: CatalogueRow, centers: Sequence[str]) -> dict[str, Any]:
    """A variable as a row of the page; centers with one problem stand together."""
    problems: dict[str, list[str]] = {}
    for center, why in row.problems.items():
        problems.setdefault(why, []).append(center)
    limits = "" if row.lower is None and row.upper is None else _limits(row.lower, row.upper)
    return {
        "name": row.name,
        "kind": words.KINDS.get(row.kind, row.kind),
        "unit": ", ".join(filter(None, (row.unit, limits))),
        "at": len(centers) - len(row.problems),
        "problems": list(problems.items()),
        "words": f"{row.name} {row.kind} {row.unit or ''}".lower(),
    }


def _limits(lower: float | None, upper: float | None) -> str:
    if lower is None or upper is None:
        open_above = upper is None
        text = words.FROM if open_above else words.UP_TO
        return text.format(number(lower) if open_above else number(upper))
    return words.BETWEEN.format(number(lower), number(upper))
