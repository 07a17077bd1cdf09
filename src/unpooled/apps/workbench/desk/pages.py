"""The pages of the desk: each reads what lies in the center's folder, and calls the library."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from unpooled.apps.workbench.desk.before import Difference, Earlier, LedgerReader, Record
from unpooled.apps.workbench.desk.folder import CenterFolder
from unpooled.apps.workbench.desk.release import Key, Leaving, leaving, shut_out_in_words
from unpooled.apps.workbench.foundation.page import Pages, Site, Tab, form, go
from unpooled.apps.workbench.in_words.question import (
    in_words,
    protocol_in_words,
    protocol_of,
    read_question,
    variables_of,
)
from unpooled.apps.workbench.in_words.words import Words, name, names
from unpooled.center.approval.reviewers import Reviewer, unlock_reviewer
from unpooled.center.approval.steward import (
    MOST_REASON,
    Decision,
    HeldPayload,
    approvals,
    decide,
    decided,
    decision_on,
    is_waited_for,
    newer,
    pending,
    read_reviews,
    refusal,
    retract,
    withdraw,
)
from unpooled.center.questions import JointQuestion, ProtocolCheckQuestion, decode_answer
from unpooled.center.records.ledger import Entry, verify
from unpooled.errors import InputError, MessageError, UnpooledError

PACKAGE = "unpooled.apps.workbench.desk"
_ROWS = 50  # of the ledger, on one page
_KEPT = 20  # answers
_WRONG = 5  # passphrases, before the next one has to wait
_WAIT_SECONDS = 30.0

Endpoint = Callable[["Desk", Request], Response]


class State(NamedTuple):
    """What became of a payload."""

    kind: str
    text: Markup
    reason: str | None = None
    link: str | None = None


def _safely(endpoint: Endpoint) -> Endpoint:
    """A page that says what is wrong with the center's files, in the place of none."""

    @wraps(endpoint)
    def show(desk: "Desk", request: Request) -> Response:
        try:
            return endpoint(desk, request)
        except UnpooledError as error:
            return desk.show(request, "problem.html", 500, problem=str(error))

    return show


@dataclass(slots=True)
class Desk:
    """The pages of one center's steward."""

    folder: CenterFolder
    words: Words = field(default_factory=Words)
    clock: Callable[[], float] = time.monotonic
    pages: Pages = field(init=False)
    _ledger: LedgerReader = field(init=False)
    _wrong: list[float] = field(default_factory=list)
    _read: dict[bytes, Leaving] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tabs = [
            Tab("/" if key == "inbox" else f"/{key}", self.words.texts[f"tab.{key}"])
            for key in ("inbox", "decided", "ledger", "check", "policy")
        ]
        center = self.folder.center().name
        site = Site(
            self.words.texts["site.name"],
            center,
            tabs,
            [PACKAGE],
            self.words.texts["language.code"],
            self.words.texts["language.direction"],
        )
        self.pages = Pages(site)
        self._ledger = LedgerReader(self.folder, self.words)

    @property
    def routes(self) -> list[Route]:
        """What is served; nothing but the three decisions changes anything."""
        return [
            Route("/", self.inbox),
            Route("/held/{payload}", self.held),
            Route("/held/{payload}/part/{number:int}", self.part_of_held),
            Route("/held/{payload}/bytes", self.bytes_of_held),
            Route("/held/{payload}/{act}", self._posted(self._act), methods=["POST"]),
            Route("/decided", self.decisions),
            Route("/decided/{payload}/withdraw", self._posted(self._withdraw), methods=["POST"]),
            Route("/ledger", self.ledger),
            Route("/ledger/{number:int}", self.entry),
            Route("/ledger/{entry:int}/part/{number:int}", self.part_of_entry),
            Route("/ledger/{entry:int}/bytes", self.bytes_of_entry),
            Route("/check", self.check),
            Route("/policy", self.policy),
        ]

    def show(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """A page, with the words that all of them say."""
        return self.pages.page(request, template, status, w=self.words, **values)

    # --- what waits -----------------------------------------------------------------------------

    @_safely
    def inbox(self, request: Request) -> Response:
        """What waits, the oldest first."""
        center, folder, reviewers = self.folder.center(), self.folder.pending, self.folder.reviewers
        items = [self._item(held) for held in pending(folder, reviewers)]
        return self.show(request, "inbox.html", items=items, asks=center.approval == "ask")

    def _item(self, held: HeldPayload) -> dict[str, Any]:
        question = read_question(held.question)
        leaves = self._leaving(question, held.answer)
        smallest = None if leaves is None else leaves.smallest
        study = protocol_of(question)
        return {
            "held": held,
            "asked": in_words(question, self.words),
            "purpose": None if study is None else study.purpose,
            "since": _readable(held.since),
            "waited": is_waited_for(self.folder.pending, held),
            "smallest": None if smallest is None else smallest[0],
            "k": 0 if leaves is None else leaves.k,
            "names": names(self._approved_by(held)),
        }

    @_safely
    def held(self, request: Request) -> Response:
        """All that there is to see of one payload, and the decision."""
        held = self._find(request.path_params["payload"])
        if held is None:
            return self._gone(request)
        return self._show_held(request, held)

    def _show_held(
        self, request: Request, held: HeldPayload, status: int = 200, problem: str | None = None
    ) -> Response:
        question, reviewers = read_question(held.question), self.folder.reviewers
        leaves, record = self._leaving(question, held.answer), self._ledger.read()
        by = self._approved_by(held)
        protocol = protocol_of(question)
        joint = question if isinstance(question, JointQuestion) else None
        return self.show(
            request,
            "held.html",
            status,
            problem=problem,
            held=held,
            asked=in_words(question, self.words),
            since=_readable(held.since),
            waited=is_waited_for(self.folder.pending, held),
            protocol=None if protocol is None else protocol_in_words(protocol, self.words),
            check=isinstance(question, ProtocolCheckQuestion),
            members=None if joint is None else names(joint.members),
            keepers=None if joint is None else names(keeper.name for keeper in joint.keepers),
            state=self._state(held, record),
            now_k=self.folder.center().policy.k if protocol is None or leaves is None else leaves.k,
            **self._shown(leaves),
            **self._compared(question, leaves, held, record),
            reviewers=[other for other in reviewers.keys if other not in by],
            retractable=by,
            needed=reviewers.needed,
            so_far=names(by),
            most_reason=MOST_REASON,
        )

    def _shown(self, leaves: Leaving | None) -> dict[str, Any]:
        """What the page says of an answer as a whole."""
        smallest = None if leaves is None else leaves.smallest
        return {
            "said": leaves,
            "shut_out": None if leaves is None else shut_out_in_words(leaves, self.words),
            "nonzero": "" if smallest is None else name(smallest[1]),
        }

    def _compared(
        self, question: object, leaves: Leaving | None, held: HeldPayload, record: Record
    ) -> dict[str, Any]:
        """How it stands to what left before."""
        variables = variables_of(question)
        earlier = [
            (entry, in_words(read_question(entry.question), self.words))
            for entry in record.answers_about(variables)
        ]
        return {
            "numbers": record.numbers,
            "broken": record.problem,
            "left": record.entry_of(held),
            "earlier": earlier,
            "variables": names(variables),
            "difference": None if leaves is None else Difference.between(leaves, record),
            "entry_link": self._entry_link,
        }

    def _entry_link(self, entry: Entry) -> Markup:
        words = self.words("before.entry", n=entry.number)
        return Markup('<a href="/ledger/{}">{}</a>').format(entry.number, words)

    def _leaving(self, question: object, answer: str) -> Leaving | None:
        """What an answer says; the last few are kept, since they are read page by page."""
        key = sha256(f"{question!r} {answer}".encode()).digest()
        if key not in self._read:
            try:
                leaves = leaving(question, decode_answer(answer.encode()), self.words)
            except MessageError:
                return None
            if len(self._read) >= _KEPT:
                del self._read[next(iter(self._read))]
            self._read[key] = leaves
        return self._read[key]

    # --- a long answer, part by part ------------------------------------------------------------

    @_safely
    def part_of_held(self, request: Request) -> Response:
        """One part of a payload."""
        held = self._find(request.path_params["payload"])
        if held is None:
            return self._gone(request)
        numbers = self._ledger.read().numbers
        return self._part(request, held, f"/held/{held.name}", numbers)

    @_safely
    def part_of_entry(self, request: Request) -> Response:
        """One part of an entry of the ledger."""
        entry = self._entry(request.path_params["entry"])
        if entry is None:
            return self._gone(request)
        return self._part(request, entry, f"/ledger/{entry.number}", {})

    @_safely
    def bytes_of_held(self, request: Request) -> Response:
        """The exact bytes of a payload, as text."""
        held = self._find(request.path_params["payload"])
        return self._gone(request) if held is None else PlainTextResponse(held.answer)

    @_safely
    def bytes_of_entry(self, request: Request) -> Response:
        """The exact bytes of an entry, as text."""
        entry = self._entry(request.path_params["entry"])
        return self._gone(request) if entry is None else PlainTextResponse(entry.answer)

    def _part(
        self,
        request: Request,
        of: HeldPayload | Entry,
        back: str,
        numbers: Mapping[Key, Earlier],
    ) -> Response:
        leaves = self._leaving(read_question(of.question), of.answer)
        number = request.path_params["number"]
        if leaves is None or not 1 <= number <= len(leaves.parts):
            return self._gone(request)
        shown = {"said": leaves, "part": leaves.parts[number - 1], "number": number}
        return self.show(request, "part.html", **shown, back=back, numbers=numbers)

    def _gone(self, request: Request) -> Response:
        return self.show(request, "problem.html", 404, problem=str(self.words("problem.gone")))

    def _find(self, payload: str) -> HeldPayload | None:
        """The payload of this whole name, decided or not."""
        folder, reviewers = self.folder.pending, self.folder.reviewers
        some = [*pending(folder, reviewers), *(held for held, _ in decided(folder, reviewers))]
        return next((held for held in some if held.name == payload), None)

    def _approved_by(self, held: HeldPayload) -> list[str]:
        some = approvals(self.folder.pending, held, self.folder.reviewers)
        return [review.by for review in some if review.by is not None]

    # --- what became of it ----------------------------------------------------------------------

    def _state(self, held: HeldPayload, record: Record) -> State | None:
        """None while it waits for a decision."""
        folder, reviewers = self.folder.pending, self.folder.reviewers
        match decision_on(folder, held, reviewers):
            case "refused":
                no = refusal(folder, held)
                reason = None if no is None else no.reason
                return State("refused", self.words("state.refused"), reason)
            case "approved":
                return State("approved", self._approved(held, record))
        other = newer(folder, held)
        if other is None:
            return None
        return State("replaced", self.words("state.replaced"), link=f"/held/{other.name}")

    def _approved(self, held: HeldPayload, record: Record) -> Markup:
        entry = record.entry_of(held)
        if entry is not None:
            return self.words("state.approved-left", entry=self._entry_link(entry))
        now = is_waited_for(self.folder.pending, held)
        return self.words("state.approved-now" if now else "state.approved-later")

    # --- the decision ---------------------------------------------------------------------------

    def _posted(
        self, act: Callable[[Request, dict[str, list[str]]], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        """What a form asks for, done in a thread of its own."""

        async def posted(request: Request) -> Response:
            fields = await form(request)
            try:
                return await run_in_threadpool(act, request, fields)
            except UnpooledError as error:
                return self.show(request, "problem.html", 409, problem=str(error))

        return posted

    def _act(self, request: Request, fields: dict[str, list[str]]) -> Response:
        """Approve, refuse, or take one's own approval back."""
        held, act = self._find(request.path_params["payload"]), request.path_params["act"]
        if held is None or act not in ("approve", "refuse", "retract"):
            return self._gone(request)
        try:
            self._do(act, held, fields)
        except InputError as error:
            return self._show_held(request, held, 409, str(error))
        return go(f"/held/{held.name}")

    def _do(self, act: str, held: HeldPayload, fields: dict[str, list[str]]) -> None:
        folder, reviewers = self.folder.pending, self.folder.reviewers
        by = self._reviewer(fields)
        if act == "retract":
            if by is None or by.name not in self._approved_by(held):
                raise InputError(str(self.words("decide.wrong")))
            if decision_on(folder, held, reviewers) is not None:
                raise InputError(str(self.words("problem.gone")))
            retract(folder, held, by)
            return
        decision: Decision = "approved" if act == "approve" else "refused"
        reason = fields.get("reason", [""])[0].strip() or None if act == "refuse" else None
        decide(folder, held, decision, by, reason, reviewers)

    def _withdraw(self, request: Request, fields: dict[str, list[str]]) -> Response:
        by = self._reviewer(fields)
        payload = request.path_params["payload"]
        withdraw(self.folder.pending, payload, by, self.folder.reviewers)
        return go("/decided")

    def _reviewer(self, fields: dict[str, list[str]]) -> Reviewer | None:
        """Who decides, by their passphrase; None where the center names nobody."""
        keys = self.folder.reviewers.keys
        if not keys:
            return None
        now = self.clock()
        self._wrong = [then for then in self._wrong if now - then < _WAIT_SECONDS]
        if len(self._wrong) >= _WRONG:
            raise InputError(str(self.words("decide.wait")))
        who, passphrase = (fields.get(key, [""])[0] for key in ("reviewer", "passphrase"))
        try:
            if who not in keys:
                raise InputError("nobody of this name reviews here")
            return unlock_reviewer(self.folder.keys, who, passphrase)
        except InputError:
            self._wrong.append(now)
            raise InputError(str(self.words("decide.wrong"))) from None

    @_safely
    def decisions(self, request: Request) -> Response:
        """The decisions in force, and who decided what."""
        folder, reviewers = self.folder.pending, self.folder.reviewers
        items = []
        for held, decision in reversed(decided(folder, reviewers)):
            no = refusal(folder, held) if decision == "refused" else None
            by = self._approved_by(held) if no is None else [no.by] if no.by else []
            items.append(
                {
                    "held": held,
                    "decision": decision,
                    "asked": in_words(read_question(held.question), self.words),
                    "names": names(by),
                    "reason": None if no is None else no.reason,
                }
            )
        notes = [
            (note, in_words(read_question(note.question), self.words))
            for note in reversed(read_reviews(folder)[-200:])
        ]
        return self.show(
            request,
            "decided.html",
            problem=None,
            items=items,
            notes=notes,
            reviewers=reviewers.keys,
        )

    # --- the record -----------------------------------------------------------------------------

    @_safely
    def ledger(self, request: Request) -> Response:
        """Whether the ledger is sound, and its entries, the newest first."""
        record = self._ledger.read()
        head = request.query_params.get("head", "").strip()
        first = request.query_params.get("from", "0")
        start = int(first) if first.isdecimal() and len(first) < 10 else 0
        entries = list(reversed(record.entries))
        rows = [
            {"entry": entry, "asked": in_words(read_question(entry.question), self.words)}
            for entry in entries[start : start + _ROWS]
        ]
        return self.show(
            request,
            "ledger.html",
            verdict=record.verdict,
            head=head,
            compared=self._compare_head(head) if head else None,
            rows=rows,
            older=start + _ROWS if start + _ROWS < len(entries) else None,
            newer=max(0, start - _ROWS) if start > 0 else None,
        )

    def _compare_head(self, head: str) -> str:
        """Whether a hash that was noted is in the chain."""
        try:
            verdict = verify(self.folder.ledger, self.folder.public_key(), head)
        except InputError as error:
            return str(error)
        return "there" if verdict.ok else str(verdict)

    @_safely
    def entry(self, request: Request) -> Response:
        """One entry, as it left."""
        record, number = self._ledger.read(), request.path_params["number"]
        entry = self._entry(number)
        if entry is None:
            return self._gone(request)
        question = read_question(entry.question)
        return self.show(
            request,
            "entry.html",
            entry=entry,
            asked=in_words(question, self.words),
            against=record.against.get(number),
            **self._shown(self._leaving(question, entry.answer)),
        )

    def _entry(self, number: int) -> Entry | None:
        entries = self._ledger.read().entries
        return next((entry for entry in entries if entry.number == number), None)

    # --- what is in force -----------------------------------------------------------------------

    @_safely
    def check(self, request: Request) -> Response:
        """The data check, in words."""
        findings = self.folder.findings()
        wrong = sum(not finding.good for finding in findings)
        return self.show(request, "check.html", findings=findings, wrong=wrong)

    @_safely
    def policy(self, request: Request) -> Response:
        """What center.toml says."""
        center, words = self.folder.center(), self.words
        policy = msgspec.structs.asdict(center.policy)
        settings = [*policy.items(), ("approval", center.approval)]
        settings += [("reviewers", center.reviewers), ("tick", center.tick)]
        declared = [
            (
                key,
                variable.unit or "–",
                "–" if variable.resolution is None else f"{variable.resolution:g}",
                self._between(variable.lower, variable.upper),
                ", ".join(map(str, variable.missing)) or "–",
            )
            for key, variable in center.variables.items()
        ]
        return self.show(
            request,
            "policy.html",
            settings=[(key, _setting(key, value, words)) for key, value in settings],
            reviewers=list(center.reviewer_keys),
            needed=center.reviewers,
            declared=declared,
        )

    def _between(self, low: float | None, high: float | None) -> str:
        limits = {"low": f"{low:g}" if low is not None else "", "high": f"{high or 0:g}"}
        if low is None and high is None:
            return "–"
        key = "from" if high is None else "to" if low is None else "between"
        return str(self.words(f"policy.{key}", **limits))


def _readable(moment: str) -> str:
    """A time in UTC, without the letters that programs need."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def _setting(key: str, value: object, words: Words) -> Markup:
    """The value of a setting in words."""
    match value:
        case None if key == "variables":
            return words("policy.all")
        case None if key == "groupings":
            return words("policy.none")
        case None:
            return words("policy.not-set")
        case bool():
            return words("policy.yes" if value else "policy.no")
        case dict():
            return Markup("; ").join(_grouping(column, cuts) for column, cuts in value.items())
        case str():
            return name(value)
        case Sequence():
            return names(value)
        case _:
            return name(f"{value:,}" if isinstance(value, int) else value)


def _grouping(column: object, cuts: object) -> Markup:
    if not isinstance(cuts, tuple | list) or not cuts:
        return name(column)
    return name(f"{column}: {', '.join(f'{cut:g}' for cut in cuts)}")
