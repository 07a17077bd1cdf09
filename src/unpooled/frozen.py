"""Which outcomes a center has told, so that no second table cuts the same people's times anew.

Two tables of the same people, cut in other places or into other groups, can be subtracted: on
whole numbers that isolates 1..K−1 people at most boundaries. So survival is told in one grouping,
under one condition, up to one horizon; and the columns of time and status serve either survival or
other questions: a condition on the times cuts them anew, and the number of events of everybody
gives away the arm that had too few to tell. Arms hold different people, so more groups of the same
grouping may follow. What was told of a group stays: had somebody's status changed since, two
answers would show whose.
"""

from contextlib import suppress

from unpooled.errors import WhereError
from unpooled.ledger import Ledger
from unpooled.messages import (
    Answer,
    CatalogueQuestion,
    CohortQuestion,
    FollowUpQuestion,
    GroupStatuses,
    OutcomeQuestion,
    Question,
    SurvivalQuestion,
    SurvivalTables,
    decode_answer,
    decode_question,
)
from unpooled.where import columns, parse


class FrozenOutcomes:
    """The first survival release of each time variable, and the columns used otherwise."""

    def __init__(self) -> None:
        self._outcomes: dict[str, SurvivalQuestion] = {}
        self._groups: dict[tuple[str, str], GroupStatuses] = {}  # time and group → what was told
        self._used: set[str] = set()

    @classmethod
    def of(cls, ledger: Ledger) -> "FrozenOutcomes":
        """What a ledger says was told."""
        frozen = cls()
        for entry in ledger:
            if entry.kind == "release":
                answer = decode_answer(entry.answer.encode())
                frozen.told(decode_question(entry.question.encode()), answer)
        return frozen

    def allows(self, question: Question) -> bool:
        """Whether an answer could not be subtracted from what was told.

        Examples
        --------
        >>> from unpooled.messages import SizesQuestion
        >>> frozen = FrozenOutcomes()
        >>> by_arm = SurvivalQuestion(variable="time", event="died", by="arm", horizon=60.0)
        >>> frozen.told(by_arm, Answer(k=10, aggregate=SurvivalTables(scale=1.0, groups=())))
        >>> died = SizesQuestion(variable="crp", where="died == 1")
        >>> frozen.allows(by_arm), frozen.allows(died), frozen.allows(SizesQuestion(variable="crp"))
        (True, False, True)
        """
        if isinstance(question, CatalogueQuestion):
            return True
        if not isinstance(question, OutcomeQuestion):
            return not (_used(question) & self._frozen)
        first = self._outcomes.get(question.variable)
        fine = isinstance(question, SurvivalQuestion)  # else moments, which the memory judges
        if first is None:
            taken = self._frozen | (self._used if fine else set())
            return not ({question.variable, question.event} & taken)
        return _people(first) == _people(question) and (
            not isinstance(question, SurvivalQuestion) or _cut(first) == _cut(question)
        )

    def has_outcome(self, variable: str) -> bool:
        """Whether survival was told of a time variable."""
        return variable in self._outcomes

    def repeats(self, question: Question, answer: Answer) -> bool:
        """Whether the answer says the same as before of every group that was told."""
        return all(
            self._groups.get(key, group) == group for key, group in _groups(question, answer)
        )

    def told(self, question: Question, answer: Answer) -> None:
        """Note what was answered."""
        if isinstance(question, SurvivalQuestion):
            self._outcomes.setdefault(question.variable, question)
            self._groups.update(_groups(question, answer))
        elif not isinstance(question, FollowUpQuestion | CatalogueQuestion):
            self._used |= _used(question)

    @property
    def _frozen(self) -> set[str]:
        """The columns of time and status of all that was told."""
        return {c for first in self._outcomes.values() for c in (first.variable, first.event)}


def _used(question: CohortQuestion) -> set[str]:
    """The columns whose values decide the answer."""
    used = {question.variable, *([] if question.by is None else [question.by])}
    if question.where is not None:
        with suppress(WhereError):
            used.update(columns(parse(question.where)))
    return used


def _groups(question: Question, answer: Answer) -> list[tuple[tuple[str, str], GroupStatuses]]:
    if not isinstance(question, SurvivalQuestion) or not isinstance(
        answer.aggregate, SurvivalTables
    ):
        return []
    return [((question.variable, group.group), group) for group in answer.aggregate.groups]


def _people(question: OutcomeQuestion) -> tuple[str | None, ...]:
    """What says whose outcome it is; which of its groups does not matter."""
    return question.event, question.event_is, question.by, question.where


def _cut(question: SurvivalQuestion) -> tuple[float | None, ...]:
    """What says where the times are cut."""
    return question.horizon, question.k
