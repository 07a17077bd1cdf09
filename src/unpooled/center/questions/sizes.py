"""How many people have a value, in each group?"""

from collections.abc import Iterable, Sequence

from unpooled.center.questions.message import (
    Aggregate,
    CohortQuestion,
    Disclosure,
    Message,
    People,
    Terms,
    whole,
)


class SizesQuestion(CohortQuestion, frozen=True, tag="sizes", tag_field="ask"):
    """How many people have a value, in each group?"""


class Size(Message, frozen=True):
    """How many people of a group have a value; fewer than K without one are counted too."""

    group: str
    n: int


class Sizes(Aggregate, frozen=True, tag="sizes", tag_field="say"):
    """How many people have a value, group by group."""

    sizes: tuple[Size, ...]

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [size.group for size in self.sizes]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """A count of each group."""
        for size in self.sizes:
            yield from whole(people, size.group, question.variable, size.n, None)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Each group has K people."""
        terms.check_people(*(size.n for size in self.sizes))
        return ()

    def sentence(self) -> str:
        """What a steward reads."""
        return ", ".join(f"{size.group} {size.n}" for size in self.sizes)
