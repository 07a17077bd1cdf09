"""Whom a result is of: how many of the centers that were asked, and how many people."""

from collections.abc import Iterable
from dataclasses import dataclass

from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal
from unpooled.results.report.text import count, people_text


@dataclass(frozen=True, slots=True)
class Reach:
    """How many centers answered, of how many, and the people they answered for.

    Examples
    --------
    >>> print(Reach(9, 40, 726))
    over 9 of 40 centers, 726 people
    >>> print(Reach(5, 5, 1485), "|", Reach(1, 1, 992.93))
    over 5 centers, 1,485 people | over 1 center, about 993 people
    """

    answered: int
    every: int
    people: float

    @classmethod
    def of(
        cls,
        answered: Iterable[str],
        people: float,
        record: Record,
        refusals: Iterable[CenterRefusal],
    ) -> "Reach":
        """From who answered; who did not is in the record, or refused."""
        names = set(answered)
        every = names.union(record.centers, (refusal.center for refusal in refusals))
        return cls(len(names), len(every), people)

    @property
    def whole(self) -> bool:
        """Whether all centers answered."""
        return self.answered == self.every

    @property
    def centers_text(self) -> str:
        """How many centers."""
        every = count(self.every, "center")
        return every if self.whole else f"{self.answered} of {every}"

    @property
    def people_text(self) -> str:
        """How many people."""
        return people_text(self.people)

    def __str__(self) -> str:
        return f"over {self.centers_text}, {self.people_text}"
