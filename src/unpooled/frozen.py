"""Which outcomes a center has told, so that no second table cuts the same people's times anew.

Two tables of the same people, cut in other places or into other groups, can be subtracted: on
whole numbers that isolates 1..K−1 people at most boundaries. So survival is told in one grouping,
under one condition, up to one horizon; and of one variable either survival or plain tables. Arms
hold different people, so more groups of the same grouping may follow. What was told of a group
stays: had somebody's status changed since, two answers would show whose.
"""

from unpooled.ledger import Ledger
from unpooled.messages import (
    Answer,
    FollowUpQuestion,
    GroupStatuses,
    JoinQuestion,
    LatticeQuestion,
    LossQuestion,
    OutcomeQuestion,
    Question,
    SurvivalQuestion,
    SurvivalTables,
    TableQuestion,
    decode_answer,
    decode_question,
)

_CUTS = TableQuestion | JoinQuestion | LatticeQuestion | LossQuestion  # tell counts at places


class FrozenOutcomes:
    """The first survival release of each time variable, and the variables told in tables."""

    def __init__(self) -> None:
        self._outcomes: dict[str, SurvivalQuestion] = {}
        self._groups: dict[tuple[str, str], GroupStatuses] = {}  # time and group → what was told
        self._tables: set[str] = set()

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
        >>> frozen = FrozenOutcomes()
        >>> by_arm = SurvivalQuestion(variable="time", event="died", by="arm", horizon=60.0)
        >>> frozen.told(by_arm, Answer(k=10, aggregate=SurvivalTables(scale=1.0, groups=())))
        >>> frozen.allows(by_arm), frozen.allows(TableQuestion(variable="time"))
        (True, False)
        """
        match question:
            case FollowUpQuestion():
                first = self._outcomes.get(question.variable)
                return first is None or _people(first) == _people(question)
            case SurvivalQuestion():
                first = self._outcomes.get(question.variable)
                if first is None:
                    return question.variable not in self._tables
                return _people(first) == _people(question) and _cut(first) == _cut(question)
            case TableQuestion() | JoinQuestion() | LatticeQuestion() | LossQuestion():
                return question.variable not in self._outcomes
            case _:
                return True

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
        elif isinstance(question, _CUTS):
            self._tables.add(question.variable)


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
