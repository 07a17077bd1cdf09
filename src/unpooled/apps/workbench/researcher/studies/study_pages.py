"""The pages of a study: its protocol is built, looked at, asked once, and watched."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unpooled.apps.workbench.foundation.page import form, go, session
from unpooled.apps.workbench.in_words.question import ProtocolInWords, protocol_in_words
from unpooled.apps.workbench.in_words.words import Words
from unpooled.apps.workbench.researcher import words
from unpooled.apps.workbench.researcher.cards.saving import file_name
from unpooled.apps.workbench.researcher.studies.draft import (
    Draft,
    GroupRow,
    OutcomeRow,
    as_file,
    blocks_of,
)
from unpooled.apps.workbench.researcher.studies.study import Study
from unpooled.apps.workbench.researcher.work import Source, Work
from unpooled.errors import UnpooledError
from unpooled.results.report.text import alignment

Show = Callable[..., Response]


class StudyPages:
    """Protocol and run."""

    def __init__(self, source: Source, show: Show) -> None:
        self.source = source
        self._page = show

    @property
    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/protocol", self.protocol, methods=["GET"]),
            Route("/protocol", self.run, methods=["POST"]),
            Route("/protocol/check", self.check, methods=["POST"]),
            Route("/protocol.toml", self.file),
            Route("/study", self.study),
            Route("/study/{act:str}", self.act, methods=["POST"]),
        ]

    def _work(self, request: Request) -> Work:
        return self.source.work(session(request).user)

    async def protocol(self, request: Request) -> Response:
        """The protocol as a form, what it says in words, and its file."""
        typed = {name: request.query_params.getlist(name) for name in request.query_params}
        work = self._work(request)
        if typed:
            work.draft = Draft.of(typed)
        return await self._show_draft(request, work.draft or Draft.of({}))

    async def _show_draft(
        self, request: Request, draft: Draft, problem: str = "", status: int = 200
    ) -> Response:
        catalogue = await run_in_threadpool(self.source.catalogue)
        return self._page(
            request,
            "protocol.html",
            status=status,
            draft=draft,
            groups=[*draft.groups, GroupRow()],
            outcomes=[*draft.outcomes, OutcomeRow()],
            catalogue=catalogue,
            kinds={row.name: row.kind for row in catalogue.rows},
            looked=(looked := self._look(draft, problem)),
            check=(check := _dry_run(self._work(request), looked["file"])),
            live=(live := self.source.opening.is_unrecorded),
            send=live and not problem and not check["asked"],
            alignment=alignment,
        )

    def _look(self, draft: Draft, problem: str = "") -> dict[str, Any]:
        """What the protocol says, or what is wrong with it."""
        nothing: dict[str, Any] = {
            "problem": problem,
            "words": None,
            "file": "",
            "blocks": None,
            "shown": "",
        }
        if draft.is_empty:
            return nothing
        try:
            tables = draft.tables(self.source.catalogue(), self.source.codebook)
            protocol = draft.protocol(self.source.catalogue(), self.source.codebook)
        except UnpooledError as error:
            return {**nothing, "problem": str(error)}
        in_words: ProtocolInWords = protocol_in_words(protocol, Words())
        file = as_file(tables)
        return {
            "problem": problem,
            "words": in_words,
            "file": file,
            "blocks": blocks_of(protocol),
            "shown": sha256(file.encode()).hexdigest(),
        }

    async def file(self, request: Request) -> Response:
        """The protocol's file."""
        draft = self._work(request).draft
        look = self._look(draft) if draft is not None else {"file": ""}
        name = file_name(draft.title if draft is not None else "", "toml")
        disposition = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(look["file"], headers=disposition, media_type="application/toml")

    async def run(self, request: Request) -> Response:
        """Ask the centers what was shown; where another tab changed it since, it is shown again."""
        work, fields = self._work(request), await form(request)
        draft = work.draft or Draft.of({})
        catalogue = await run_in_threadpool(self.source.catalogue)
        if fields.get("shown") != [self._look(draft)["shown"]]:
            return await self._show_draft(request, draft, words.CHANGED, 409)
        try:
            tables = draft.tables(catalogue, self.source.codebook)
            work.run(draft.protocol(catalogue, self.source.codebook), tables)
        except UnpooledError as error:
            return await self._show_draft(request, draft, str(error), 422)
        return go("/study")

    async def check(self, request: Request) -> Response:
        """A dry run of what was shown."""
        work, fields = self._work(request), await form(request)
        draft = work.draft or Draft.of({})
        catalogue = await run_in_threadpool(self.source.catalogue)
        look = self._look(draft)
        if fields.get("shown") != [look["shown"]] or not look["file"]:
            return await self._show_draft(request, draft, words.CHANGED, 409)
        work.check(look["file"], draft.tables(catalogue, self.source.codebook))
        return go("/protocol")

    async def study(self, request: Request) -> Response:
        """How far each center is."""
        return self._page(request, "study.html", study=self._work(request).study)

    async def act(self, request: Request) -> Response:
        """Stop, or go on."""
        work = self._work(request)
        study: Study | None = work.study
        if study is not None and request.path_params["act"] == "cancel":
            study.cancel()
        if study is not None and request.path_params["act"] == "resume":
            study.start(work.worker)
        return go("/study")


def _dry_run(work: Work, file: str) -> dict[str, Any]:
    """What a dry run of this file says, if there was one."""
    nothing: dict[str, Any] = {"asked": False, "running": False, "problem": "", "parts": []}
    if work.checked is None or work.checked[0] != file or work.checked[1].cancelled():
        return nothing
    nothing["asked"] = True
    future = work.checked[1]
    if not future.done():
        return {**nothing, "running": True}
    error = future.exception()
    if error is not None:
        return {**nothing, "problem": str(error)}
    parts = [(type(part).__name__, part) for part in future.result().parts()]
    return {**nothing, "parts": parts}
