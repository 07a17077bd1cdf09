"""A study that runs: the protocol is asked center by center, and what came back is kept."""

import threading
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from unpooled.analyses.protocols.ask_protocol import ProtocolReplies
from unpooled.analyses.protocols.book import Book
from unpooled.center.questions import MISSING, Protocol, ProtocolAnswer, Reason
from unpooled.errors import UnpooledError
from unpooled.federation import Federation
from unpooled.results.provenance.releases import Received, payload_sentence

AGAIN_SECONDS = 5.0  # between two questions to a center whose steward has not decided
JOINED = "counts in the joint center"
_WAITS = (Reason.WAITING_FOR_STEWARD,)


@dataclass(slots=True)
class CenterState:
    """How far one center is."""

    center: str
    state: str = "not-asked"  # asking, answered, partly, refused, waits, down
    says: str = ""
    since: datetime | None = None
    refused: list[str] = field(default_factory=list)

    def to(self, state: str, says: str = "") -> None:
        """A new state, with the time of the change."""
        if state != self.state:
            self.since = datetime.now(UTC)
        self.state, self.says = state, says

    @property
    def time(self) -> str:
        """Since when."""
        return "" if self.since is None else self.since.strftime("%H:%M:%S UTC")


@dataclass(slots=True)
class Study:
    """One run of a protocol, which can be stopped and gone on with."""

    protocol: Protocol
    tables: Mapping[str, Any]  # as its file has them
    federation: Federation
    states: dict[str, CenterState] = field(default_factory=dict)
    received: dict[str, Received] = field(default_factory=dict)
    refusals: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    running: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)
    whole: bool = False  # whether the book came in one piece
    _book: Book | None = None

    def __post_init__(self) -> None:
        for center in self.federation.centers:
            self.states[center] = CenterState(center)

    @property
    def book(self) -> Book | None:
        """What came back so far; None while nobody has answered."""
        if not self.received:
            return None
        if self.whole:
            return self._book
        if self._book is None or len(self._book.centers) != len(self.received):
            refused = [item for item in self.refusals.items() if item[0] not in self.received]
            every = self.federation.centers
            self._book = Book(self.protocol, list(self.received.values()), refused, every)
        return self._book

    @property
    def answered(self) -> int:
        """How many centers have answered."""
        return sum(one.state in ("answered", "partly") for one in self.states.values())

    @property
    def state(self) -> str:
        """running, stopped or done."""
        if self.running:
            return "running"
        return "done" if not self.open_centers else "stopped"

    @property
    def open_centers(self) -> list[str]:
        """The centers that have not answered, and may when they are asked again."""
        over = ("answered", "partly", "refused")
        return [name for name, one in self.states.items() if one.state not in over]

    def start(self, worker: Executor) -> None:
        """Ask the centers that have not answered."""
        if self.running:
            return
        self.running, self.problem = True, ""
        self._stop.clear()
        worker.submit(self._run)

    def cancel(self) -> None:
        """Ask no further center; what was answered is kept."""
        self._stop.set()

    def _run(self) -> None:
        try:
            if self.federation.counts_jointly:
                self._run_jointly()
            while self.open_centers and not self._stop.is_set():
                for center in self.open_centers:
                    if not self._stop.is_set():
                        self._ask(center)
                if not any(self.states[name].state == "waits" for name in self.open_centers):
                    break  # those that are down are asked when the analyst says so
                self._stop.wait(AGAIN_SECONDS)
        except UnpooledError as error:
            self.problem = str(error)
        finally:
            self.running = False

    def _run_jointly(self) -> None:
        """All at once: small centers count together, so they are asked together."""
        asked = self.open_centers
        for center in asked:
            self.states[center].to("asking")
        book = self.federation.run(self.protocol, into=self._book)
        self._book, self.whole = book, True
        self.problem = "" if book.no_joint is None else f"no joint center: {book.no_joint}"
        self.received |= {release.center: release for release in book.releases}
        why = {refusal.center: refusal for refusal in book.refusals}
        for center in asked:
            one = self.states[center]
            if center in book.centers:
                one.to("answered")
            elif center in book.members:
                one.to("answered", JOINED)
            elif center in why:
                one.to("refused", f"{why[center].rule} ({why[center].reason})")
            else:
                one.to("down")
        self._stop.set()  # who is left is asked together again, when the analyst says so

    def _ask(self, center: str) -> None:
        one = self.states[center]
        if one.state != "waits":
            one.to("asking")
        replies = self.federation.ask_protocol(self.protocol, [center], wait=False)
        self._note(one, replies)

    def _note(self, one: CenterState, replies: ProtocolReplies) -> None:
        """What a center says, and what it says of each part."""
        for release in replies.received:
            self.received[release.center] = release
        refusal = next((r for c, r in replies.refusals if c == one.center), None)
        answer = replies.answers.get(one.center)
        if answer is not None:
            one.refused = _refused_parts(answer)
            answered = sum(part.answer.aggregate is not None for part in answer.parts)
            says = f"{answered} of {len(answer.parts)} parts"
            every = "partly" if answered else "refused"
            one.to(every if one.refused else "answered", says)
        elif refusal is not None:
            self.refusals[one.center] = refusal
            missing = refusal.reason in MISSING
            if refusal.reason in _WAITS:
                one.to("waits")
            else:
                one.to("down" if missing else "refused", f"{refusal.rule} ({refusal.reason})")
        else:
            one.to("refused", payload_sentence(self.received[one.center].payload))


def _refused_parts(answer: ProtocolAnswer) -> list[str]:
    """What of the protocol a center did not tell, and why: each once."""
    lines = []
    for part in answer.parts:
        variable = getattr(part.question, "variable", "")
        lines += [f"{variable}: {refusal.rule}" for refusal in part.answer.refusals]
    return list(dict.fromkeys(lines))
