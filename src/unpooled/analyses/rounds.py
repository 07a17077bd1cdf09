"""Several rounds over the same centers, for what is found step by step."""

from collections.abc import Callable
from typing import Any, TypeVar

from unpooled.analyses.asking import Request, explain
from unpooled.coordinator import Coordinator
from unpooled.errors import RefusedError
from unpooled.questions import MISSING, Reason, Refusal
from unpooled.results.refusals import center_refusals

T = TypeVar("T")

_GO_ON = MISSING | {Reason.WOULD_DIFFER}


class FewerCentersError(Exception):
    """A center stopped answering between two rounds, and the others go on without it.

    It went missing and the analyst said to go on; or one round more about its people would tell too
    much of them.
    """


def without_the_missing(fit: Callable[[], T]) -> T:
    """Fit in rounds; begin again with the centers that are left where one stops answering."""
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

    def would_refuse(self, said: Any, k: int) -> Refusal | None:
        """What a center will say to a later round, where its first answer shows that."""
        return None

    def ask(self, question: Any, expected: Any) -> list[Any]:
        """What each center says of the one group, in one round."""
        round_ = self._coordinator.ask(question, expected, self._centers)
        self.rounds += 1
        self.refusals += round_.refusals
        said = {}
        for center, told in round_.aggregates.items():
            refusal = self.would_refuse(told.groups[0], round_.k[center])
            if refusal is None:
                said[center] = told.groups[0]
            else:
                self.refusals.append((center, refusal))
        answered = tuple(said)
        if not answered:
            explain(self._coordinator, self.request, self.refusals)
        if self._centers is not None and answered != self._centers:
            silent = [center for center in self._centers if center not in answered]
            if all(r.reason in _GO_ON for center, r in round_.refusals if center in silent):
                self._centers = answered
                raise FewerCentersError
            raise RefusedError(
                f"{', '.join(silent)} stopped answering in the middle of the rounds",
                center_refusals(self.refusals),
            )
        self._centers = answered
        return list(said.values())
