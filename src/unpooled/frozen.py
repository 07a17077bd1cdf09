"""Which outcomes a center has told, so that no second table cuts the same people's times anew.

Two tables of the same people, cut in other places or into other groups, can be subtracted: on
whole numbers that isolates 1..K−1 people at most boundaries. So survival is told in one grouping,
under one condition, up to one horizon; and of one variable either survival or plain tables. Arms
hold different people, so more groups of the same grouping may follow.
"""

from unpooled.ledger import Ledger
from unpooled.messages import (
    FollowUpQuestion,
    JoinQuestion,
    LatticeQuestion,
    LossQuestion,
    OutcomeQuestion,
    Question,
    SurvivalQuestion,
    TableQuestion,
    decode_question,
)

_CUTS = TableQuestion | JoinQuestion | LatticeQuestion | LossQuestion  # tell counts at places


class FrozenOutcomes:
    """The first survival release of each time variable, and the variables told in tables."""

    def __init__(self) -> None:
        self._outcomes: dict[str, SurvivalQuestion] = {}
        self._tables: set[str] = set()

    @classmethod
    def of(cls, ledger: Ledger) -> "FrozenOutcomes":
        """What a ledger says was told."""
        frozen = cls()
        for entry in ledger:
            if entry.kind == "release":
                frozen.told(decode_question(entry.question.encode()))
        return frozen

    def allows(self, question: Question) -> bool:
        """Whether an answer could not be subtracted from what was told.

        Examples
        --------
        >>> frozen = FrozenOutcomes()
        >>> by_arm = SurvivalQuestion(variable="time", event="died", by="arm", horizon=60.0)
        >>> frozen.told(by_arm)
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

    def told(self, question: Question) -> None:
        """Note that the question was answered."""
        if isinstance(question, SurvivalQuestion):
            self._outcomes.setdefault(question.variable, question)
        elif isinstance(question, _CUTS):
            self._tables.add(question.variable)


def _people(question: OutcomeQuestion) -> tuple[str | None, ...]:
    """What says whose outcome it is; which of its groups does not matter."""
    return question.event, question.event_is, question.by, question.where


def _cut(question: SurvivalQuestion) -> tuple[float | None, ...]:
    """What says where the times are cut."""
    return question.horizon, question.k
