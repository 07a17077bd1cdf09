"""A center: rows, a policy, a ledger. It answers questions through its gate, and only so."""

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from unpooled.analyses.asking import summarise_catalogue, summarise_sizes
from unpooled.analyses.compare import summarise_ranks
from unpooled.analyses.describe import summarise_moments
from unpooled.analyses.groups import summarise_group_ranks, telling_groups
from unpooled.analyses.parallel import summarise_lattice
from unpooled.analyses.parts import ONE_CELL, table_parts
from unpooled.analyses.quantiles import summarise_losses, summarise_powers
from unpooled.analyses.survival import summarise_survival
from unpooled.analyses.table import summarise_join, summarise_table
from unpooled.center.approval import Steward
from unpooled.center.cohort import (
    Cohort,
    RefusedQuestion,
    Selection,
    find_cohort,
    rows_of,
    select,
    units_of,
    withhold,
)
from unpooled.center.frozen import FrozenOutcomes
from unpooled.center.gate import Gate, Release
from unpooled.center.keyed_boundaries import keyed_draws, keyed_weight
from unpooled.center.keys import CenterKey
from unpooled.center.ledger import Ledger
from unpooled.center.memory.definition import without_own
from unpooled.center.memory.history import WouldDiffer
from unpooled.center.memory.memory import DataChanged, Memory
from unpooled.center.memory.memory_file import MemoryFile, memory_path
from unpooled.center.memory.proposal import Group, Proposal
from unpooled.center.memory.tables import none_within
from unpooled.center.memory.units import Members
from unpooled.center.outcome import Outcome, find_outcome
from unpooled.center.policy import Policy, k_in_force, nobody_told, people_needed
from unpooled.data.sources import Source
from unpooled.data.variables import Variable
from unpooled.errors import GateError, HeldError, InputError, LedgerError, MessageError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.binning import Weight
from unpooled.maths.large import allocating
from unpooled.questions import (
    EVERYBODY,
    AboutPeople,
    Aggregate,
    Answer,
    CatalogueQuestion,
    CohortQuestion,
    FollowUpQuestion,
    GroupRanksQuestion,
    JoinQuestion,
    LatticeQuestion,
    LossQuestion,
    MomentsQuestion,
    OutcomeQuestion,
    PowersQuestion,
    Question,
    RanksQuestion,
    Reason,
    Refusal,
    SizesQuestion,
    SurvivalQuestion,
    TableQuestion,
    decode_answer,
    decode_question,
)
from unpooled.questions.readable import is_readable

_log = logging.getLogger(__name__)  # what went wrong stays at the center


_COARSER = (1, 2, 4, 8, 16, 64, 256, ONE_CELL)  # a table beside told sets may need to be


@dataclass(frozen=True, slots=True)
class _Data:
    """The rows, as the memory must know them."""

    source: Source
    policy: Policy

    def fingerprint(self, variable: str) -> str:
        person, rule = self.policy.person, self.policy.per_person
        found = self.source.fingerprint(variable, *(() if person is None else (person,)))
        return found if rule is None else f"{found}, {rule} of each person"

    def values(self, variable: str) -> FloatArray:
        return self.source.values(variable)


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
        steward: Steward | None = None,
    ) -> None:
        if policy.person is not None and policy.person not in source.kinds:
            columns = ", ".join(source.kinds)
            raise InputError(
                f"person must name a column of {name}, got {policy.person!r}. There are: {columns}"
            )
        self.name = name
        self.steward = steward
        self.ledger = Ledger(name, key, ledger)
        self._source = source
        self._policy = policy
        self._secret = key.secret
        self._variables = dict(variables or {})
        try:
            file = MemoryFile(name, None if ledger is None else memory_path(ledger), self.ledger)
        except LedgerError:
            self.ledger.close()
            raise
        self._memory = Memory(policy.k, file, _Data(source, policy))
        self._gate = Gate(name, policy, self.ledger, self._variables, self._memory, steward)
        self._turn = threading.Lock()
        self._frozen = FrozenOutcomes.of(self.ledger)
        self._last: tuple[object, Cohort] | None = None

    def answer(self, payload: bytes, ticket: str | None = None) -> Release:
        """Answer a question with a release: an aggregate, refusals, or both.

        Every exception becomes a typed refusal, since ordinary messages quote data; the detail
        goes to the center's own log. Only a ledger that cannot be written stops the answer
        altogether: nothing leaves that is not recorded. `HeldError` is raised while the steward has
        not decided. A question that comes again with the same `ticket` gets the same release.
        """
        # each answer is judged beside the one before
        with self._turn, allocating(self._source.allocate):
            return self._answer(payload, ticket)

    def close(self) -> None:
        """Let go of the files, so that another process may write them."""
        self.ledger.close()
        self._memory.close()

    def _answer(self, payload: bytes, ticket: str | None) -> Release:
        try:
            question = decode_question(payload)
        except MessageError:
            _log.info("%s: a question could not be read", self.name, exc_info=True)
            unreadable = Refusal(reason=Reason.UNREADABLE_QUESTION)
            return self._gate.repeat(None, ticket) or self._refuse(None, unreadable, ticket)
        repeated = self._gate.repeat(question, ticket)
        if repeated is not None:
            return repeated
        try:
            return self._release(question, ticket)
        except RefusedQuestion as refused:
            return self._refuse(question, refused.refusal, ticket)
        except (LedgerError, HeldError):
            raise
        except Exception:
            _log.info("%s: a question could not be answered", self.name, exc_info=True)
            return self._refuse(question, Refusal(reason=Reason.FAILED), ticket)

    def _release(self, question: Question, ticket: str | None) -> Release:
        if not is_readable(question):
            raise RefusedQuestion(Reason.UNREADABLE_QUESTION)
        k = k_in_force(question, self._policy)
        if not self._frozen.allows(question, k):
            raise RefusedQuestion(Reason.WOULD_DIFFER, limit=k)
        release = self._respond(question, ticket)
        answer = decode_answer(release.payload)
        if answer.aggregate is not None:  # the steward may say no
            self._frozen.told(question, answer)
        return release

    def _refuse(self, question: Question | None, refusal: Refusal, ticket: str | None) -> Release:
        k = k_in_force(question, self._policy)
        answer = Answer(k=k, aggregate=None, refusals=(refusal,))
        try:
            return self._gate.release(question, answer, ticket=ticket)
        except GateError:  # it says more than a refusal may: not even that nothing came may tell
            _log.info("%s: a refusal broke a rule of the gate", self.name, exc_info=True)
            bare = Answer(k=k, aggregate=None, refusals=(Refusal(reason=Reason.FAILED),))
            return self._gate.release(question, bare, ticket=ticket)

    def _respond(self, question: Question, ticket: str | None) -> Release:
        k = k_in_force(question, self._policy)
        if isinstance(question, CatalogueQuestion):
            catalogue = summarise_catalogue(self._source, self._policy)
            answer = Answer(k=k, aggregate=catalogue)
            return self._gate.release(question, answer, ticket=ticket)
        outcome = self._outcome(question) if isinstance(question, OutcomeQuestion) else None
        cohort = self._cohort(question) if outcome is None else outcome.people
        selection = select(cohort, question, self._policy)
        if isinstance(question, GroupRanksQuestion):
            selection = telling_groups(selection, question)
        proposal = self._propose(question, selection)
        selection = withhold(selection, question, proposal)
        alone = isinstance(question, RanksQuestion | GroupRanksQuestion)  # one has no answer
        answered = len(selection.groups) >= (2 if alone else 1)
        if not answered:
            silent = Answer(k=k, aggregate=None, refusals=selection.refusals)
            return self._gate.release(question, silent, ticket=ticket)
        for coarser in _COARSER:
            aggregate = self._aggregate(question, selection, outcome, proposal, coarser)
            answer = Answer(k=k, aggregate=aggregate, refusals=selection.refusals)
            if not self._frozen.repeats(question, answer):
                raise RefusedQuestion(Reason.DATA_CHANGED)
            with suppress(WouldDiffer):
                return self._gate.release(question, answer, proposal, ticket)
        raise RefusedQuestion(Reason.WOULD_DIFFER, limit=k)

    def _propose(self, question: AboutPeople, selection: Selection) -> Proposal:
        """For whom an answer may speak, beside all that was told before."""
        members = selection.cohort.members(selection.groups)
        nobody = units_of(self._source, self._policy)
        rows = rows_of(self._source, question, self._policy)
        among = {} if rows else self._among(question, selection.groups)  # with rows: all have them
        groups = [
            Group(name, *some, among.get(name))
            for name, some in zip(selection.groups, members, strict=True)
        ]
        missing = isinstance(question, MomentsQuestion | FollowUpQuestion)
        k = selection.rule.k
        tables = TableQuestion | JoinQuestion | LatticeQuestion
        table = people_needed(question, k) if isinstance(question, tables) else None
        try:
            proposal = self._memory.propose(
                question, k, nobody, groups, missing=missing, table=table, rows=rows
            )
            self._check_survival(question, proposal)
            return proposal
        except WouldDiffer:
            raise RefusedQuestion(Reason.WOULD_DIFFER, limit=k) from None
        except DataChanged:
            raise RefusedQuestion(Reason.DATA_CHANGED, question.variable) from None

    def _among(self, question: AboutPeople, groups: Sequence[str]) -> dict[str, Members]:
        """From whom each group was chosen, where the variable itself chose some of them."""
        whole = without_own(question)
        if whole is None:
            return {}
        declared = self._variables.get(question.variable, Variable())
        cohort = find_cohort(self._source, whole, self._policy, declared)
        if whole.by != question.by:
            ((everybody, _),) = cohort.members([EVERYBODY])
            return dict.fromkeys(groups, everybody)
        members = cohort.members(groups)
        return {group: present for group, (present, _) in zip(groups, members, strict=True)}

    def _check_survival(self, question: AboutPeople, proposal: Proposal) -> None:
        """Raise where a set would part the people of survival's tables, which have own cells."""
        if isinstance(question, SurvivalQuestion):
            history = proposal.draft.history
            if not all(none_within(history, people) for people in proposal.people.values()):
                raise WouldDiffer
        elif proposal.draft.steps and self._frozen.has_outcome(question.variable):
            raise WouldDiffer

    def _aggregate(
        self,
        question: AboutPeople,
        selection: Selection,
        outcome: Outcome | None,
        proposal: Proposal,
        coarser: int,
    ) -> Aggregate:
        match question:
            case SizesQuestion():
                return summarise_sizes(selection)
            case MomentsQuestion() | FollowUpQuestion():
                return summarise_moments(selection, nobody_told(question, self._policy))
            case SurvivalQuestion():
                assert outcome is not None  # found before
                draws = keyed_draws(self._secret, question.variable)
                return summarise_survival(question, selection, outcome, self._policy, draws)
            case TableQuestion():
                self._check_limits(question)
                parts = table_parts(selection, proposal)
                return summarise_table(question, selection, self._weight(question), parts, coarser)
            case JoinQuestion():
                self._check_limits(question)
                parts = table_parts(selection, proposal)
                return summarise_join(question, selection, self._weight(question), parts, coarser)
            case RanksQuestion():
                return summarise_ranks(selection)
            case LatticeQuestion():
                parts = table_parts(selection, proposal)
                draws = keyed_draws(self._secret, question.variable)
                return summarise_lattice(question, selection, self._policy, draws, parts, coarser)
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

    def _outcome(self, question: OutcomeQuestion) -> Outcome:
        declared = self._variables.get(question.variable, Variable())
        return find_outcome(self._source, question, self._policy, declared)

    def _weight(self, question: CohortQuestion) -> Weight:
        return keyed_weight(self._secret, question.variable)

    def _check_limits(self, question: TableQuestion | JoinQuestion) -> None:
        if question.limits not in self._policy.limits:
            raise RefusedQuestion(Reason.NOT_ALLOWED)
