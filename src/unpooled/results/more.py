"""How a result asks for what its report needs and nobody asked for yet."""

from collections.abc import Callable
from typing import Any


class More:
    """Asks on through the federation that gave the result, once; a stored copy cannot ask."""

    def __init__(self, ask: Callable[[], Any] | None = None) -> None:
        self._ask = ask
        self._answer: Any = None

    def __call__(self) -> Any:
        """The result with everything in it; None where there is nothing more, or no way to ask."""
        if self._answer is None and self._ask is not None:
            self._answer = self._ask()
        return self._answer

    def __reduce__(self) -> tuple[type["More"], tuple[()]]:
        return More, ()
