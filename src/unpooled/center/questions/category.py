"""How many people have each level of a category, in each group?"""

from collections.abc import Iterable, Sequence

from unpooled.center.questions.message import (
    OTHER,
    Aggregate,
    CohortQuestion,
    Disclosure,
    Message,
    People,
    Terms,
    in_levels,
)
from unpooled.errors import GateError

MOST_LEVELS = 200  # that a question may name


class CategoryQuestion(CohortQuestion, frozen=True, tag="category", tag_field="ask"):
    """How many people have each level? Without `levels`, those that K people have are named."""

    levels: tuple[str, ...] | None = None
    ordered: bool = False

    @property
    def has_meaning(self) -> bool:
        """Its levels differ, and are not too many."""
        levels = self.levels or ()
        differ = len(set(levels)) == len(levels) <= MOST_LEVELS and self.levels != ()
        return super().has_meaning and differ


class LevelCount(Message, frozen=True):
    """How many people have one of these levels; several are merged, since one has too few."""

    levels: tuple[str, ...]
    count: int


class GroupLevels(Message, frozen=True):
    """One group by its levels.

    Fewer than K people without a value are drawn into the others: then `missing` is None.
    """

    group: str
    cells: tuple[LevelCount, ...]
    missing: int | None

    @property
    def n(self) -> int:
        """How many people count as having a level."""
        return sum(cell.count for cell in self.cells)


class Categories(Aggregate, frozen=True, tag="category", tag_field="say"):
    """How many people have each level, group by group; whoever has no named level has "other"."""

    groups: tuple[GroupLevels, ...]

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [group.group for group in self.groups]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """A count of each cell of levels and group."""
        named = {*people.level_names(), OTHER}
        for group in self.groups:
            if not named.issuperset(level for cell in group.cells for level in cell.levels):
                raise GateError("a level of fewer than K people must not be named")
            cells = [(cell.levels, cell.count) for cell in group.cells]
            yield in_levels(people, group.group, question.variable, cells, group.missing)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """A cell has K people, or nobody; each level is in one cell."""
        assert isinstance(question, CategoryQuestion)  # the gate looked
        zeros = terms.zeros and question.where is None
        for group in self.groups:
            terms.check_people(group.n, *(() if group.missing is None else (group.missing,)))
            for cell in group.cells:
                terms.check_cells(cell.count)
                if cell.count == 0 and not zeros:
                    raise GateError("that nobody has a level must not be said")
            levels = [level for cell in group.cells for level in cell.levels]
            if len(set(levels)) < len(levels) or not all(cell.levels for cell in group.cells):
                raise GateError("each level must be in one cell")
            if question.levels is not None and {*levels, OTHER} != {*question.levels, OTHER}:
                raise GateError("the levels of an answer must be those that were asked for")
        return ()

    def sentence(self) -> str:
        """What a steward reads."""
        return "; ".join(
            f"{group.group} "
            + ", ".join(f"{' or '.join(cell.levels)} {cell.count}" for cell in group.cells)
            for group in self.groups
        )
