"""The coordinator: asks centers, keeps what they released, never sees a row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from unpooled.errors import InputError, MessageError
from unpooled.questions import (
    MISSING,
    Aggregate,
    Question,
    Reason,
    Refusal,
    decode_answer,
    encode,
)

T = TypeVar("T", bound=Aggregate)


class Link(Protocol):
    """How a question reaches centers: the same bytes in one process and over a network."""

    @property
    def centers(self) -> tuple[str, ...]:
        """The names of the centers that can be reached."""
        ...

    def ask(self, question: bytes, centers: Sequence[str]) -> Mapping[str, bytes | Refusal]:
        """Put one question to these centers; each one's release, or why there is none."""
        ...

    def close(self) -> None:
        """Let go of whatever the link holds."""
        ...


@dataclass(frozen=True, slots=True)
class Received:
    """A release as it arrived: the question, and the very bytes."""

    center: str
    question: Question
    payload: bytes


@dataclass(frozen=True, slots=True)
class Round(Generic[T]):
    """What the centers said to one question."""

    aggregates: Mapping[str, T]
    refusals: tuple[tuple[str, Refusal], ...]
    k: Mapping[str, int]  # the K in force at each center that answered


@dataclass(slots=True)
class Coordinator:
    """Asks over a link and remembers every release that arrived.

    Where a whole center is missing, `on_missing` is told; it may raise.
    """

    link: Link
    on_missing: Callable[[Sequence[tuple[str, Refusal]]], None] | None = None
    received: list[Received] = field(default_factory=list)
    closed: bool = False

    def ask(
        self, question: Question, expected: type[T], centers: Sequence[str] | None = None
    ) -> Round[T]:
        """Put a question to all centers (or these) in one round."""
        if self.closed:
            raise InputError(
                "the federation is closed and can no longer be asked. Hint: ask, draw and report "
                "before close(), inside the `with`"
            )
        asked = self.link.centers if centers is None else tuple(centers)
        payloads = self.link.ask(encode(question), asked)
        aggregates: dict[str, T] = {}
        refusals: list[tuple[str, Refusal]] = []
        k: dict[str, int] = {}
        for center in asked:
            payload = payloads[center]
            if isinstance(payload, Refusal):  # nothing left the center
                refusals.append((center, payload))
                continue
            self.received.append(Received(center, question, payload))
            try:
                answer = decode_answer(payload)
                if answer.aggregate is not None and not isinstance(answer.aggregate, expected):
                    raise MessageError("the center answered another question")
            except MessageError:
                refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
                continue
            k[center] = answer.k
            if answer.aggregate is not None:
                aggregates[center] = answer.aggregate
            refusals += [(center, refusal) for refusal in answer.refusals]
        missing = [(center, refusal) for center, refusal in refusals if refusal.reason in MISSING]
        if missing and self.on_missing is not None:
            self.on_missing(missing)
        return Round(aggregates, tuple(refusals), k)

    def close(self) -> None:
        """Let go of the link; what arrived is kept."""
        self.closed = True
        self.link.close()
