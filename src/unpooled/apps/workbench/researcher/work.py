"""What a user does at the workbench: questions, their cards, and what is pinned to a report."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from markupsafe import Markup

from unpooled.analyses.protocols.book import Book
from unpooled.analyses.specification import ANALYSES, Analysis
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.cards.drawing import draw
from unpooled.apps.workbench.researcher.cards.sketch import Sketch, sketch
from unpooled.apps.workbench.researcher.forms import Typed
from unpooled.apps.workbench.researcher.planning import Planned
from unpooled.apps.workbench.researcher.studies.draft import Draft
from unpooled.apps.workbench.researcher.studies.study import Study
from unpooled.center.data.variables import Codebook
from unpooled.center.questions import MISSING, Protocol
from unpooled.errors import InputError, UnpooledError
from unpooled.federation import Federation
from unpooled.results.catalogue import CatalogueResult
from unpooled.results.numbers.table import TableResult
from unpooled.results.protocol_check import ProtocolCheckResult
from unpooled.results.provenance.releases import Releases
from unpooled.results.report.card import Card, card_of
from unpooled.results.result import Result

MOST_KEPT = 60  # answers of a book that are kept
_PATIENCE = 5.0  # seconds that a page waits for the first word about variables
_AGAIN = 5.0  # seconds until centers that have not given their variables are asked again
MOST_ENTRIES = 500  # that a user keeps; the oldest that is not pinned makes room


@dataclass(frozen=True, slots=True)
class Answered:
    """A result and its card, with the picture drawn."""

    result: Result
    card: Card
    picture: Markup | None

    @classmethod
    def of(cls, result: Result) -> "Answered":
        """Draw it."""
        card = card_of(result)
        return cls(result, card, None if card.figure is None else draw(card.figure))


@dataclass(slots=True)
class Entry:
    """A question of a user, and what came of it."""

    number: int
    analysis: Analysis
    typed: Typed
    arguments: dict[str, Any]
    future: "Future[Answered]"
    opening: Opening

    @property
    def of_book(self) -> bool:
        """Whether no center was asked for it."""
        return self.opening.name == "book"

    @property
    def state(self) -> str:
        """asking, answered or failed."""
        if not self.future.done():
            return "asking"
        return "failed" if self.future.exception() is not None else "answered"

    async def wait(self, seconds: float) -> None:
        """Wait until there is an answer, but not longer; what went wrong is in `problem`."""
        future = asyncio.wrap_future(self.future)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([future], timeout=seconds)

    @property
    def answered(self) -> Answered:
        """What came of it, where something did."""
        return self.future.result(timeout=0)

    @property
    def problem(self) -> str:
        """Why there is no result."""
        error = self.future.exception(timeout=0)
        if isinstance(error, UnpooledError):
            return str(error)
        return f"{type(error).__name__}: {error}"

    @property
    def title(self) -> str:
        """What was asked, in a line."""
        if self.state == "answered":
            return self.answered.card.title
        shown = ", ".join(f"{name} {_plain(value)}" for name, value in self.arguments.items())
        return f"{self.analysis.name}: {shown}"


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@dataclass(slots=True)
class Work:
    """The work of one user. Nobody else sees it."""

    federation: Federation | None
    opening: Opening
    worker: ThreadPoolExecutor  # shared: centers answer one question at a time
    opened: Book | None = None  # a book that was opened from its file
    entries: dict[int, Entry] = field(default_factory=dict)
    pinned: list[int] = field(default_factory=list)
    draft: Draft | None = None
    study: Study | None = None
    planned: Planned | None = None
    checked: "tuple[str, Future[ProtocolCheckResult]] | None" = None  # a file, and its dry run
    _last: int = 0
    _looked: dict[str, tuple[Book, Answered, dict[str, Any]]] = field(default_factory=dict)

    def ask(self, analysis: Analysis, typed: Typed, arguments: dict[str, Any]) -> Entry:
        """Begin to ask the centers; the entry says when they have answered."""
        if self.federation is None:
            raise InputError("a book asks no center")
        method: Callable[..., Result] = getattr(self.federation, analysis.name)
        future = self.worker.submit(lambda: Answered.of(method(**arguments)))
        return self._enter(analysis, typed, arguments, future, self.opening)

    def _enter(
        self,
        analysis: Analysis,
        typed: Typed,
        arguments: dict[str, Any],
        future: "Future[Answered]",
        opening: Opening,
    ) -> Entry:
        self._last += 1
        entry = Entry(self._last, analysis, typed, arguments, future, opening)
        self.entries[entry.number] = entry
        self._make_room()
        return entry

    @property
    def book(self) -> Book | None:
        """The book: that of the study, as far as centers have answered; else the opened one."""
        return self.opened if self.study is None else self.study.book

    def look(self, name: str, arguments: dict[str, Any]) -> Answered:
        """What the book says; kept for a while, since people go back and forth."""
        book = self.book
        if book is None:
            raise InputError("there is no book yet. Hint: ask a protocol first")
        key = f"{id(book)} {name} {sorted(arguments.items())!r}"
        kept = self._looked.get(key)
        if kept is None or kept[0] is not book:
            kept = book, Answered.of(getattr(book, name)(**arguments)), arguments
            self._looked[key] = kept
            if len(self._looked) > MOST_KEPT:
                self._looked.pop(next(iter(self._looked)))
        return kept[1]

    def keep(
        self,
        analysis: Analysis,
        typed: Typed,
        arguments: dict[str, Any],
        answered: Answered,
        opening: Opening,
    ) -> Entry:
        """Keep a card of the book."""
        future: Future[Answered] = Future()
        future.set_result(answered)
        return self._enter(analysis, typed, arguments, future, opening)

    def run(self, protocol: Protocol, tables: Mapping[str, Any]) -> None:
        """Begin to ask a protocol; an earlier run asks no further center."""
        if self.federation is None:
            raise InputError("a book asks no center")
        if self.study is not None:
            self.study.cancel()
        self.study = Study(protocol, tables, self.federation)
        self.study.start(self.worker)

    def check(self, file: str, tables: Mapping[str, Any]) -> None:
        """Begin a dry run of a protocol; the centers tell no count."""
        if self.federation is None:
            raise InputError("a book asks no center")
        if self.checked is not None:
            self.checked[1].cancel()  # it was of an earlier protocol, and may not have begun
        self.checked = file, self.worker.submit(self.federation.check, tables)

    def _make_room(self) -> None:
        loose = [number for number in self.entries if number not in self.pinned]
        for number in loose[: max(0, len(self.entries) - MOST_ENTRIES)]:
            del self.entries[number]

    def pin(self, number: int) -> None:
        """Put a card into the report, or take it out."""
        if number in self.pinned:
            self.pinned.remove(number)
        elif self.entries[number].state == "answered":
            self.pinned.append(number)

    def move(self, number: int, steps: int) -> None:
        """Move a card of the report up or down."""
        if number not in self.pinned:
            return
        at = self.pinned.index(number)
        to = min(max(at + steps, 0), len(self.pinned) - 1)
        self.pinned.insert(to, self.pinned.pop(at))

    @property
    def report(self) -> list[Entry]:
        """The pinned cards in their order."""
        return [self.entries[number] for number in self.pinned]

    @property
    def sketches(self) -> dict[str, Sketch]:
        """Variable → its last table without a condition, of those that this user saw."""
        book = [(*looked[1:], "/book/table") for looked in self._looked.values()]
        cards = [
            (entry.answered, entry.arguments, f"/cards/{entry.number}")
            for entry in self.entries.values()
            if entry.state == "answered"
        ]
        return {
            table.variable: Sketch(picture, link)
            for answered, arguments, link in (*book, *cards)
            if isinstance(table := answered.result, TableResult) and not arguments.get("where")
            if (picture := sketch(table)) is not None
        }

    @property
    def releases(self) -> Releases:
        """All that left the centers for this user."""
        if self.federation is None:
            return Releases(()) if self.opened is None else self.opened.releases
        return self.federation.releases


@dataclass(slots=True)
class Source:
    """Whose data the workbench is about, and every user's work with it."""

    about: str
    opening: Opening
    federation: Federation | None
    worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "centers"))
    book: Book | None = None
    _works: dict[str, Work] = field(default_factory=dict)
    _catalogue: CatalogueResult | None = None
    _asking: "Future[CatalogueResult] | None" = None  # for the variables
    _asked: float = 0.0  # when they were asked for last

    def work(self, user: str) -> Work:
        """The work of a user."""
        if user not in self._works:
            federation = None if self.federation is None else self.federation.for_another()
            self._works[user] = Work(federation, self.opening, self.worker, self.book)
        return self._works[user]

    @property
    def book_opening(self) -> Opening:
        """How a program opens the book."""
        return self.opening if self.opening.name == "book" else self.opening.of_study()

    @property
    def codebook(self) -> Codebook:
        """What is public about the variables."""
        return {} if self.federation is None else self.federation.codebook

    @property
    def analyses(self) -> Mapping[str, Analysis]:
        """The analyses that can be asked, by name."""
        return {a.name: a for a in ANALYSES if hasattr(self.federation, a.name)}

    def catalogue(self) -> CatalogueResult:
        """The variables as far as centers have given them; those that did not are asked again.

        Nobody waits for a steward here, nor longer than some seconds for anybody else.
        """
        if self.federation is None:
            return CatalogueResult((), ())
        again = time.monotonic() - self._asked > _AGAIN and self.catalogue_grows
        if self._asking is None and (self._catalogue is None or again):
            self._asked = time.monotonic()
            self._asking = self.worker.submit(partial(self.federation.catalogue, wait=False))
        asking = self._asking
        if asking is not None and (self._catalogue is None or asking.done()):
            try:
                self._catalogue = asking.result(timeout=_PATIENCE)
            except TimeoutError:
                return CatalogueResult((), ())
            except UnpooledError:
                self._asking = None
                if self._catalogue is None:
                    raise
            self._asking = None
        return self._catalogue or CatalogueResult((), ())

    @property
    def catalogue_grows(self) -> bool:
        """Whether some center may still tell its variables."""
        if self.federation is None:
            return False
        catalogue = self._catalogue
        return catalogue is None or any(r.reason in MISSING for r in catalogue.refusals)

    def close(self) -> None:
        """Let go of the centers."""
        self.worker.shutdown(wait=False, cancel_futures=True)
        if self.federation is not None:
            self.federation.close()
