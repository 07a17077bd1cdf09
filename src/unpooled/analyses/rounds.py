"""Several rounds over the same centers, for what is found step by step."""

from collections.abc import Callable
from typing import Any, TypeVar

from unpooled.analyses.asking import Request, explain
from unpooled.coordinator import Coordinator
from unpooled.errors import RefusedError
from unpooled.messages import MISSING, Refusal
from unpooled.results.refusals import center_refusals

T = TypeVar("T")


class FewerCentersError(Exception):
    """A center went missing between two rounds, and the analyst said to go on without it."""


def without_the_missing(fit: Callable[[], T]) -> T:
    """Fit in rounds; begin again with the centers that are left where one goes missing."""
    while True:
        try:
            return fit()
        except FewerCentersError:
            continue


class Asking:
    """Asks the same centers round after round; who answered the first must answer them all."""

    def __init__(self, coordinator: Coordinator, request: Request) -> None:
        self._coordinator = coordinator
        self.request = request
        self._centers: tuple[str, ...] | None = None
        self.refusals: list[tuple[str, Refusal]] = []
        self.rounds = 0

    def ask(self, question: Any, expected: Any) -> list[Any]:
        """What each center says of the one group, in one round."""
        round_ = self._coordinator.ask(question, expected, self._centers)
        self.rounds += 1
        self.refusals += round_.refusals
        answered = tuple(round_.aggregates)
        if not answered:
            explain(self._coordinator, self.request, self.refusals)
        if self._centers is not None and answered != self._centers:
            silent = [center for center in self._centers if center not in answered]
            if all(r.reason in MISSING for center, r in round_.refusals if center in silent):
                self._centers = answered
                raise FewerCentersError
            raise RefusedError(
                f"{', '.join(silent)} stopped answering in the middle of the rounds",
                center_refusals(self.refusals),
            )
        self._centers = answered
        return [said.groups[0] for said in round_.aggregates.values()]
