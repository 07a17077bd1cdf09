"""A center: rows, a policy, a ledger. It answers questions through its gate, and only so."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from unpooled.analyses.asking import summarise_catalogue, summarise_sizes
from unpooled.analyses.compare import summarise_ranks
from unpooled.analyses.describe import summarise_moments
from unpooled.analyses.groups import summarise_group_ranks, telling_groups
from unpooled.analyses.parallel import summarise_lattice
from unpooled.analyses.quantiles import summarise_losses, summarise_powers
from unpooled.analyses.table import summarise_join, summarise_table
from unpooled.boundary import keyed_weight
from unpooled.cohort import Cohort, RefusedQuestion, Selection, find_cohort, select
from unpooled.errors import InputError, LedgerError, MessageError
from unpooled.gate import Gate, Release
from unpooled.keys import CenterKey
from unpooled.ledger import Ledger
from unpooled.maths.binning import Weight
from unpooled.messages import (
    AboutPeople,
    Aggregate,
    Answer,
    CatalogueQuestion,
    CohortQuestion,
    GroupRanksQuestion,
    JoinQuestion,
    LatticeQuestion,
    LossQuestion,
    MomentsQuestion,
    PowersQuestion,
    Question,
    RanksQuestion,
    Reason,
    Refusal,
    SizesQuestion,
    TableQuestion,
    decode_question,
)
from unpooled.policy import Policy, k_in_force
from unpooled.sources import Source
from unpooled.variables import Variable

_log = logging.getLogger(__name__)  # what went wrong stays at the center


class Center:
    """Answers questions about its own people.

    The rows are taken to stay as they are while the center is open: the people of the last
    question are kept sorted, since the next question is mostly about them too.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        policy: Policy,
        key: CenterKey,
        variables: Mapping[str, Variable] | None = None,
        ledger: Path | None = None,
    ) -> None:
        if policy.person is not None and policy.person not in source.kinds:
            columns = ", ".join(source.kinds)
            raise InputError(
                f"person must name a column of {name}, got {policy.person!r}. There are: {columns}"
            )
        self.name = name
        self.ledger = Ledger(name, key, ledger)
        self._source = source
        self._policy = policy
        self._secret = key.secret
        self._variables = dict(variables or {})
        self._gate = Gate(name, policy, self.ledger, self._variables)
        self._last: tuple[object, Cohort] | None = None

    def answer(self, payload: bytes) -> Release:
        """Answer a question with a release: an aggregate, refusals, or both.

        Every exception becomes a typed refusal, since ordinary messages quote data; the detail
        goes to the center's own log. Only a ledger that cannot be written stops the answer
        altogether: nothing leaves that is not recorded.
        """
        try:
            question = decode_question(payload)
        except MessageError:
            _log.info("%s: a question could not be read", self.name, exc_info=True)
            return self._refuse(None, Refusal(reason=Reason.UNREADABLE_QUESTION))
        try:
            return self._gate.release(question, self._summarise(question))
        except RefusedQuestion as refused:
            return self._refuse(question, refused.refusal)
        except LedgerError:
            raise
        except Exception:
            _log.info("%s: a question could not be answered", self.name, exc_info=True)
            return self._refuse(question, Refusal(reason=Reason.FAILED))

    def _refuse(self, question: Question | None, refusal: Refusal) -> Release:
        k = k_in_force(question, self._policy)
        return self._gate.release(question, Answer(k=k, aggregate=None, refusals=(refusal,)))

    def _summarise(self, question: Question) -> Answer:
        k = k_in_force(question, self._policy)
        if isinstance(question, CatalogueQuestion):
            return Answer(k=k, aggregate=summarise_catalogue(self._source, self._policy))
        selection = select(self._cohort(question), question, self._policy)
        if isinstance(question, GroupRanksQuestion):
            selection = telling_groups(selection, question)
        alone = isinstance(question, RanksQuestion | GroupRanksQuestion)  # one has no answer
        answered = len(selection.groups) >= (2 if alone else 1)
        aggregate = self._aggregate(question, selection) if answered else None
        return Answer(k=k, aggregate=aggregate, refusals=selection.refusals)

    def _aggregate(
        self,
        question: AboutPeople,
        selection: Selection,
    ) -> Aggregate:
        match question:
            case SizesQuestion():
                return summarise_sizes(selection)
            case MomentsQuestion():
                return summarise_moments(selection)
            case TableQuestion():
                self._check_limits(question)
                return summarise_table(question, selection, self._weight(question))
            case JoinQuestion():
                self._check_limits(question)
                return summarise_join(question, selection, self._weight(question))
            case RanksQuestion():
                return summarise_ranks(selection)
            case LatticeQuestion():
                return summarise_lattice(question, selection, self._policy)
            case GroupRanksQuestion():
                return summarise_group_ranks(selection, question.ordered)
            case PowersQuestion():
                return summarise_powers(question, selection, self._policy)
            case LossQuestion():
                return summarise_losses(question, selection, self._policy)
            case _:
                assert_never(question)

    def _cohort(self, question: CohortQuestion) -> Cohort:
        key = (question.variable, question.by, question.where)
        if self._last is None or self._last[0] != key:
            declared = self._variables.get(question.variable, Variable())
            self._last = (key, find_cohort(self._source, question, self._policy, declared))
        return self._last[1]

    def _weight(self, question: CohortQuestion) -> Weight:
        return keyed_weight(self._secret, question.variable)

    def _check_limits(self, question: TableQuestion | JoinQuestion) -> None:
        if question.limits not in self._policy.limits:
            raise RefusedQuestion(Reason.NOT_ALLOWED)
