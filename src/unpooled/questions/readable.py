"""Which questions have a meaning, beyond being well formed."""

from math import inf

from unpooled.questions import (
    GroupRanksQuestion,
    OutcomeQuestion,
    Question,
    RanksQuestion,
    SurvivalQuestion,
)

MOST_GROUPS = 1000  # that a question may name: each costs time, whoever is in it


def is_readable(question: Question) -> bool:
    """Whether the question can have an answer at any center.

    Examples
    --------
    >>> is_readable(RanksQuestion(variable="crp", by="arm", groups=("a", "a")))
    False
    """
    if len(getattr(question, "groups", None) or ()) > MOST_GROUPS:
        return False
    match question:
        case RanksQuestion(by=by, groups=groups):
            return by is not None and groups is not None and len(groups) == len(set(groups)) == 2
        case GroupRanksQuestion(by=by, groups=groups):
            several = groups is None or len(groups) == len(set(groups)) >= 2
            return by is not None and several
        case OutcomeQuestion(variable=time, event=event, groups=groups):
            horizon = question.horizon if isinstance(question, SurvivalQuestion) else 1.0
            return event != time and groups != () and 0 < horizon < inf
        case _:
            return True
