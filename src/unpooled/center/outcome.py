"""An outcome at a center: how long its people are followed up, and who of them had the event.

People count who have both a time and a status. A person is one row: several rows of one person
have no common time and status, whatever the policy does with single values.
"""

from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np

from unpooled.center.cohort import Cohort, RefusedQuestion, find_cohort, label_sql
from unpooled.center.policy import Policy
from unpooled.data.missing_words import UNKNOWN_WORDS, words_sql
from unpooled.data.sources import Source
from unpooled.data.sql import literal
from unpooled.data.variables import Variable
from unpooled.maths.arrays import FloatArray
from unpooled.questions import OutcomeQuestion, Reason

_YES = {"no": "yes", "No": "Yes", "NO": "YES", "f": "t", "F": "T", "False": "True"}
_CODES = {  # every value of the event column → the one that means the event
    frozenset({"0"}): "1",
    frozenset({"0", "1"}): "1",
    frozenset({"2"}): "2",
    frozenset({"1", "2"}): "2",
    **{frozenset({yes}): yes for yes in _YES.values()},
    **{frozenset({no}): yes for no, yes in _YES.items()},
    **{frozenset({no, yes}): yes for no, yes in _YES.items()},
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """All people of a question, and apart those with the event and the censored ones."""

    people: Cohort
    events: Cohort
    censored: Cohort

    def times(self, group: str, horizon: float) -> tuple[FloatArray, FloatArray]:
        """A group's sorted event and censoring times; who is left at the horizon is censored."""
        (events,), (censored,) = self.events.values([group]), self.censored.values([group])
        late = int(np.count_nonzero(events > horizon))
        cut = np.concatenate((np.minimum(censored, horizon), np.full(late, horizon)))
        return events[: len(events) - late], np.sort(cut)


def find_outcome(
    source: Source, question: OutcomeQuestion, policy: Policy, declared: Variable
) -> Outcome:
    """Check what is asked for, and say which people it means.

    Times are judged on the whole column, also those of people without a status: no choice of an
    event can find whose time breaks a rule.
    """
    _check_event(source, question, policy)
    had = _had_event(source, question)
    if policy.per_person is not None:  # whatever it does with single values: refuse repeated rows
        find_cohort(source, question, msgspec.structs.replace(policy, per_person=None), declared)
    find = partial(find_cohort, source, question, policy, declared)
    people = find(known=f"{had} IS NOT NULL")
    least, _ = source.extremes(question.variable)
    if least is not None and least < 0:
        raise RefusedQuestion(Reason.NEGATIVE_TIME, question.variable)
    return Outcome(people, events=find(among=had), censored=find(among=f"NOT {had}"))


def _check_event(source: Source, question: OutcomeQuestion, policy: Policy) -> None:
    for name in (question.variable, question.event):
        if name not in source.kinds:
            raise RefusedQuestion(Reason.UNKNOWN_VARIABLE, name)
        if not policy.allows(name):
            raise RefusedQuestion(Reason.NOT_ALLOWED, name)


def _had_event(source: Source, question: OutcomeQuestion) -> str:
    """SQL for whether a row has the event; NULL where that is missing, as where a word says so.

    The whole column says how it is coded, so that no choice of people can change what counts.
    """
    label = label_sql(source, question.event)
    meant = question.event_is
    if source.kinds[question.event] == "text" and meant not in UNKNOWN_WORDS:
        label = f"(CASE WHEN {label} NOT IN {words_sql(UNKNOWN_WORDS)} THEN {label} END)"
    if meant is None:
        codes = f"SELECT DISTINCT {label} AS code FROM {source.relation}"
        found = source.rows(f"SELECT code FROM ({codes}) WHERE code IS NOT NULL LIMIT 4")
        meant = _CODES.get(frozenset(code for (code,) in found))
        if meant is None:
            raise RefusedQuestion(Reason.UNCLEAR_EVENT, question.event)
    return f"({label} = {literal(meant)})"
