"""How far a question is, while it is asked."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The centers that a question was put to, and where it stands; printed, it is a line.

    Examples
    --------
    >>> print(Progress(("Haifa", "Oslo", "Porto"), ("Haifa",), ("Porto",)))
    1 of 3 centers answered, waiting for Porto's steward
    """

    asked: tuple[str, ...]
    answered: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()  # for their stewards

    def __str__(self) -> str:
        every = f"{len(self.answered)} of {len(self.asked)} centers answered"
        stewards = ", ".join(f"{name}'s" for name in self.waits)
        plural = "s" if len(self.waits) > 1 else ""
        return f"{every}, waiting for {stewards} steward{plural}" if self.waits else every


Show = Callable[[Progress], None]
