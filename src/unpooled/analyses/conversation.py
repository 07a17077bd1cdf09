"""The coordinator: asks centers, keeps what they released, never sees a row.

Each analysis asks in a `Conversation` of its own; the `Coordinator` keeps what arrived in all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from unpooled.center.questions import (
    MISSING,
    Aggregate,
    Answer,
    Message,
    Question,
    Reason,
    Refusal,
    decode_answer,
    encode,
)
from unpooled.errors import InputError, MessageError
from unpooled.results.provenance.record import Nearest
from unpooled.results.provenance.releases import Received

T = TypeVar("T", bound=Message)


class Link(Protocol):
    """How a question reaches centers: the same bytes in one process and over a network."""

    @property
    def centers(self) -> tuple[str, ...]:
        """The names of the centers that can be reached."""
        ...

    def ask(
        self, question: bytes, centers: Sequence[str], *, stewards: bool = True
    ) -> Mapping[str, bytes | Refusal]:
        """Put one question to these centers; each one's release, or why there is none.

        Without `stewards`, a center whose steward has not decided is not waited for.
        """
        ...

    def close(self) -> None:
        """Let go of whatever the link holds."""
        ...


@dataclass(frozen=True, slots=True)
class Round(Generic[T]):
    """What the centers said to one question."""

    aggregates: Mapping[str, T]
    refusals: tuple[tuple[str, Refusal], ...]
    k: Mapping[str, int]  # the K in force at each center that answered
    nearest: tuple["Nearest", ...] = ()


@dataclass(slots=True)
class Coordinator:
    """Holds the link, and every release that arrived, in all conversations together.

    Where a whole center is missing, `on_missing` is called with what it refused; it may raise.
    """

    link: Link
    on_missing: Callable[[Sequence[tuple[str, Refusal]]], None] | None = None
    received: list[Received] = field(default_factory=list)
    closed: bool = False

    def converse(self) -> "Conversation":
        """A new conversation, for one analysis."""
        return Conversation(self)

    def close(self) -> None:
        """Let go of the link; what arrived is kept."""
        self.closed = True
        self.link.close()


@dataclass(slots=True)
class Conversation:
    """What one analysis asks, and all that it hears: rounds, refusals, releases, groups nearby.

    Each analysis has its own, so that two of them at the same time never mix.
    """

    coordinator: Coordinator
    rounds: int = 0
    refusals: list[tuple[str, Refusal]] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    nearest: list[Nearest] = field(default_factory=list)

    @property
    def centers(self) -> tuple[str, ...]:
        """The names of the centers that can be asked."""
        return self.coordinator.link.centers

    @property
    def ever_received(self) -> tuple[Received, ...]:
        """Every release that arrived so far, also in other conversations."""
        return tuple(self.coordinator.received)

    def ask(
        self,
        question: Question,
        expected: type[T],
        centers: Sequence[str] | None = None,
        *,
        whoever_answers: bool = False,
        stewards: bool = True,
    ) -> Round[T]:
        """Put a question to all centers (or these) in one round.

        With `whoever_answers` a missing center never stops it: it can be asked later. Without
        `stewards` no center is waited for whose steward has not decided.
        """
        if self.coordinator.closed:
            raise InputError(
                "the federation is closed and can no longer be asked. Hint: ask before close(), "
                "inside the `with`"
            )
        addressed = self.centers if centers is None else tuple(centers)
        payloads = self.coordinator.link.ask(encode(question), addressed, stewards=stewards)
        self.rounds += 1
        aggregates: dict[str, T] = {}
        refusals: list[tuple[str, Refusal]] = []
        k: dict[str, int] = {}
        nearest: list[Nearest] = []
        for center in addressed:
            payload = payloads[center]
            if isinstance(payload, Refusal):  # nothing left the center
                refusals.append((center, payload))
                continue
            self.keep(Received(center, question, payload))
            try:
                answer = decode_answer(payload)
                if answer.aggregate is not None and not isinstance(answer.aggregate, expected):
                    raise MessageError("the center answered another question")
                nearest += _nearest(center, answer)
            except MessageError:
                refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
                continue
            k[center] = answer.k
            if answer.aggregate is not None:
                aggregates[center] = answer.aggregate
            refusals += [(center, refusal) for refusal in answer.refusals]
        self.refusals += refusals
        self.nearest += nearest
        missing = [(center, refusal) for center, refusal in refusals if refusal.reason in MISSING]
        if missing and self.coordinator.on_missing is not None and not whoever_answers:
            self.coordinator.on_missing(missing)
        return Round(aggregates, tuple(refusals), k, tuple(nearest))

    def keep(self, release: Received) -> None:
        """Note what left a center."""
        self.received.append(release)
        self.coordinator.received.append(release)


def _nearest(center: str, answer: Answer) -> list[Nearest]:
    """The groups that an answer says are those of an earlier one; only what it tells has some."""
    labels = answer.aggregate.labels() if isinstance(answer.aggregate, Aggregate) else ()
    if not set(answer.nearest) <= set(labels):
        raise MessageError("the center names a group of which it tells nothing")
    return [Nearest(center, group, answer.k) for group in answer.nearest]
