"""Which outcomes a center has told, so that no second table cuts the same people's times anew.

Two tables of the same people, cut in other places or into other groups, can be subtracted: on
whole numbers that isolates 1..K−1 people at most boundaries. So survival is told in one grouping,
under one condition, up to one horizon; and the columns of time and status serve either survival or
other questions: a condition on the times cuts them anew, and the number of events of everybody
gives away the arm that had too few to tell. An outcome of other columns is such a question, too, if
it is grouped by these or selects on them. Arms hold different people, so more groups of the same
grouping may follow. What was told of a group stays: had somebody's status changed since, two
answers would show whose.
"""

from contextlib import suppress

from unpooled.center.ledger import Ledger
from unpooled.data.where import columns, parse
from unpooled.errors import WhereError
from unpooled.questions import (
    Answer,
    CatalogueQuestion,
    CohortQuestion,
    GroupStatuses,
    OutcomeQuestion,
    Question,
    SurvivalQuestion,
    SurvivalTables,
    decode_answer,
    decode_question,
)

_About = tuple[str | None, ...]  # words that say which outcome is meant; () is none


class FrozenOutcomes:
    """The first survival release of each time variable, and the columns used otherwise."""

    def __init__(self) -> None:
        self._outcomes: dict[str, tuple[SurvivalQuestion, int]] = {}  # and the K in force
        self._groups: dict[tuple[str, str], GroupStatuses] = {}  # time and group → what was told
        self._used: dict[_About, set[str]] = {}

    @classmethod
    def of(cls, ledger: Ledger) -> "FrozenOutcomes":
        """What a ledger says was told."""
        frozen = cls()
        for entry in ledger:
            if entry.kind == "release":
                answer = decode_answer(entry.answer.encode())
                frozen.told(decode_question(entry.question.encode()), answer)
        return frozen

    def allows(self, question: Question, k: int) -> bool:
        """Whether an answer with this K in force could not be subtracted from what was told.

        Examples
        --------
        >>> from unpooled.questions import SizesQuestion
        >>> frozen = FrozenOutcomes()
        >>> by_arm = SurvivalQuestion(variable="time", event="died", by="arm", horizon=60.0)
        >>> frozen.told(by_arm, Answer(k=10, aggregate=SurvivalTables(scale=1.0, groups=())))
        >>> died = SizesQuestion(variable="crp", where="died == 1")
        >>> [frozen.allows(q, 10) for q in (by_arm, died, SizesQuestion(variable="crp"))]
        [True, False, True]
        """
        if isinstance(question, CatalogueQuestion):
            return True
        first = self._outcomes.get(question.variable)
        if first is not None and isinstance(question, OutcomeQuestion):
            told, told_k = first
            return _people(told) == _people(question) and (
                not isinstance(question, SurvivalQuestion)
                or (told.horizon, told_k) == (question.horizon, k)  # say where times are cut
            )
        if {c for columns in _uses(question).values() for c in columns} & self._frozen:
            return False
        # all but survival tell of sets, which the memory judges
        return not isinstance(question, SurvivalQuestion) or not (
            {question.variable, question.event} & self._used_otherwise(question)
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
            self._outcomes.setdefault(question.variable, (question, answer.k))
            self._groups.update(_groups(question, answer))
        if not isinstance(question, CatalogueQuestion):
            for about, used in _uses(question).items():
                self._used.setdefault(about, set()).update(used)

    @property
    def _frozen(self) -> set[str]:
        """The columns of time and status of all that was told."""
        return {c for told, _ in self._outcomes.values() for c in (told.variable, told.event)}

    def _used_otherwise(self, question: SurvivalQuestion) -> set[str]:
        """The columns that were used for something else than this outcome."""
        own = _uses(question)
        return {c for about, used in self._used.items() if about not in own for c in used}


def _uses(question: CohortQuestion) -> dict[_About, set[str]]:
    """The columns whose values decide the answer, by the outcome that may use them again.

    That is: its times for any outcome of them, which the memory judges; the event for outcomes of
    these times and this event; groups and condition for the same people's outcome alone.
    """
    chosen = set() if question.by is None else {question.by}
    if question.where is not None:
        with suppress(WhereError):
            chosen.update(columns(parse(question.where)))
    if not isinstance(question, OutcomeQuestion):
        return {(): chosen | {question.variable}}
    time, event = question.variable, question.event
    return {(time,): {time}, (time, event): {event}, (time, *_people(question)): chosen}


def _groups(question: Question, answer: Answer) -> list[tuple[tuple[str, str], GroupStatuses]]:
    if not isinstance(question, SurvivalQuestion) or not isinstance(
        answer.aggregate, SurvivalTables
    ):
        return []
    return [((question.variable, group.group), group) for group in answer.aggregate.groups]


def _people(question: OutcomeQuestion) -> tuple[str | None, ...]:
    """What says whose outcome it is; which of its groups does not matter."""
    return question.event, question.event_is, question.by, question.where
