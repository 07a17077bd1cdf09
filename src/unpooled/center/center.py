"""A center: rows, a policy, a ledger. It answers questions through its gate, and only so."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path

import msgspec

from unpooled.center.approval.steward import Steward
from unpooled.center.cohort.blocks import split_people
from unpooled.center.cohort.people import (
    Cohort,
    RefusedQuestion,
    Rows,
    check_persons,
    check_values,
    find_cohort,
)
from unpooled.center.cohort.words import condition, is_plain, rows_chosen, uses_itself
from unpooled.center.data.sources import Source
from unpooled.center.data.variables import Variable
from unpooled.center.gate import Asked, Asking, Gate, Judged, Release
from unpooled.center.policy import Policy
from unpooled.center.proposal.protocol import ProtocolRun, Settled, raised_k
from unpooled.center.questions import (
    EVERYBODY,
    Answer,
    Catalogue,
    CatalogueQuestion,
    CohortQuestion,
    GroupRanksQuestion,
    JointQuestion,
    Named,
    PowersQuestion,
    Protocol,
    ProtocolAnswer,
    ProtocolCheck,
    ProtocolCheckQuestion,
    ProtocolQuestion,
    RanksQuestion,
    Reason,
    Refusal,
    block_levels,
    decode_answer,
    decode_question,
    encode,
)
from unpooled.center.questions.joint import JointNote
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import Ledger
from unpooled.center.rule.disclosure import TooClose
from unpooled.center.rule.fingerprint import people_fingerprint
from unpooled.center.rule.memory import Draft, Key, Memory, MemoryFile, from_bits, memory_path
from unpooled.errors import GateError, HeldError, InputError, LedgerError, MessageError
from unpooled.maths.arrays import BoolArray
from unpooled.maths.big_arrays import allocating

_JOINT = '{"ask":"joint"'  # so a question about a joint center begins
_NOTE = b'{"ask":"joint-note"'
_log = logging.getLogger(__name__)  # what went wrong stays at the center

_UNCOUNTED = frozenset({Reason.WAITING_FOR_STEWARD, Reason.REFUSED_BY_STEWARD, Reason.BUDGET})


class Center:
    """Answers questions about its own people.

    The rows are taken to stay as they are while the center is open.
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
        keepers: Mapping[str, str] | None = None,
        sign_shares: Callable[[bytes], bytes] | None = None,  # None: by the key of the ledger
    ) -> None:
        if policy.person is not None and policy.person not in source.kinds:
            columns = ", ".join(source.kinds)
            raise InputError(
                f"person must name a column of {name}, got {policy.person!r}. There are: {columns}"
            )
        self.name = name
        self.steward = steward
        self.ledger = Ledger(name, key, ledger)
        self._rows = Rows(source, policy, key.secret)
        self._policy = policy
        self._key, self._secret = key, key.secret
        self._sign_shares = sign_shares or key.sign
        self._joint_ledger: Ledger | None = None
        self._variables = dict(variables or {})
        try:
            self._memory = self._remembered(ledger)
        except LedgerError:
            self.ledger.close()
            raise
        about = self._variables, self._memory, steward, dict(keepers or {}), self._shared()
        self._gate = Gate(name, policy, self.ledger, *about)
        self._answers = {
            entry.question.encode(): entry.answer.encode()
            for entry in self.ledger
            if entry.kind == "release"
        }
        self._settled = Settled.of(self.ledger)
        self._turn = threading.Lock()
        self._refused: tuple[str, int] = self._refused_today()
        self._levels: dict[str, list[tuple[Key, BoolArray]]] = {}
        self._open: set[str] | None = None  # groupings, and everybody, that can still be released

    def answer(
        self, payload: bytes, ticket: str | None = None, asker: str | None = None
    ) -> Release:
        """Answer a question with a release: an aggregate, refusals, or both.

        Every exception becomes a typed refusal, since ordinary messages quote data; the detail
        goes to the center's own log. Only a ledger that cannot be written stops the answer
        altogether: nothing leaves that is not recorded. `HeldError` is raised while the steward has
        not decided. A question that comes again with the same `ticket` gets the same release.
        `asker` is the analyst's name, for the record.
        """
        if payload.startswith(_NOTE):
            return self._noted(payload)
        # each answer is judged together with the one before
        with self._turn, allocating(self._rows.source.allocate):
            before = len(self.ledger)
            self.ledger.asker = asker
            if self.steward is not None:
                self.steward.asker = asker
            released = self._answer(payload, ticket)
            if len(self.ledger) > before:  # not where it was repeated
                self._count(released)
            return released

    def release_opened(
        self, question: JointQuestion, answer: Answer, record: Ledger, keys: Sequence[bytes] = ()
    ) -> Release:
        """What a keeper of a joint center lets out, through the gate."""
        with self._turn:
            return self._gate.release_opened(question, answer, record, keys)

    def release_held(self, question: JointQuestion) -> Release:
        """Word of a keeper that members' shares came."""
        return self._gate.release_held(question)

    def _noted(self, payload: bytes) -> Release:
        """Write down what a joint center said that the center's people count in."""
        try:
            note = msgspec.json.decode(payload, type=JointNote)
            with self._turn:
                return self._gate.note_opened(note, self._joint_record, self._secret)
        except (msgspec.MsgspecError, MessageError):
            _log.info("%s: a question could not be read", self.name, exc_info=True)
            with self._turn:
                return self._refuse(None, Refusal(reason=Reason.UNREADABLE_QUESTION), None)

    def _joint_record(self) -> Ledger:
        """The center's ledger of joint centers, next to its own; made when it is needed."""
        if self._joint_ledger is None:
            beside = self.ledger.path
            path = None if beside is None else beside.with_suffix(".joint.ledger")
            self._joint_ledger = Ledger(self.name, self._key, path)
        return self._joint_ledger

    def close(self) -> None:
        """Let go of the files, so that another process may write them."""
        self.ledger.close()
        if self._joint_ledger is not None:
            self._joint_ledger.close()
        self._memory.close()

    def _remembered(self, ledger: Path | None) -> Memory:
        path = None if ledger is None else memory_path(ledger)
        people = partial(people_fingerprint, self._rows.source, self._policy)
        file = MemoryFile(self.name, path, self.ledger, people)
        try:
            return Memory(self._policy.k, self._rows.size, file)
        except LedgerError:
            file.close()
            raise

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
        asked: Asked | None = None
        try:
            self._check_budget()
            if isinstance(question, CatalogueQuestion):
                return self._gate.release(question, self._catalogue(), ticket=ticket)
            if isinstance(question, ProtocolQuestion | ProtocolCheckQuestion | JointQuestion):
                self._settled.hear(question.protocol)
            if isinstance(question, JointQuestion):
                return self._share(question, ticket)
            if self._gate.shared:
                raise RefusedQuestion(Reason.JOINED)
            if isinstance(question, ProtocolQuestion):
                return self._respond_to_protocol(question, ticket)
            if isinstance(question, ProtocolCheckQuestion):
                return self._respond_to_check(question, ticket)
            if question.in_protocol:
                raise RefusedQuestion(Reason.UNREADABLE_QUESTION)
            asked, refusals = self._choose(question)
            return self._respond(question, asked, refusals, ticket)
        except RefusedQuestion as refused:
            return self._refuse(question, refused.refusal, ticket, asked)
        except TooClose as close:
            self._note(question, close)
            return self._refuse(question, self._isolates(None), ticket, asked, close.against)
        except (LedgerError, HeldError):
            raise
        except Exception:
            _log.info("%s: a question could not be answered", self.name, exc_info=True)
            return self._refuse(question, Refusal(reason=Reason.FAILED), ticket, asked)

    # --- a protocol -------------------------------------------------------------------------

    def _respond_to_protocol(self, question: ProtocolQuestion, ticket: str | None) -> Release:
        """All parts together; the same protocol again gets the same bytes."""
        if self._memory.changed or not self._rows.source.unchanged():
            raise RefusedQuestion(Reason.DATA_CHANGED)
        before = self._answers.get(encode(question))
        if before is not None:
            return self._gate.release_again(question, before, ticket)
        k = raised_k(self._policy.k, question.protocol.k)
        if question.joint and self._may_join(question.protocol, k):
            raise RefusedQuestion(Reason.JOINED)
        gate, parts = self._judged_parts(question.protocol, k)
        state = parts[-1].draft if parts else self._memory.state
        shuts_out = self._still_open() - self._still_open(state.at(self._policy.k))
        released = gate.release_protocol(question, parts, sorted(shuts_out), ticket)
        self._open = self._still_open() - shuts_out
        answer = decode_answer(released.payload)
        if answer.aggregate is not None:
            self._answers[encode(question)] = released.payload
            self._answers |= {encode(p.question): p.payload for p in parts}
        return released

    def _respond_to_check(self, question: ProtocolCheckQuestion, ticket: str | None) -> Release:
        """What would be released: the protocol is answered in full, and only its outline leaves."""
        if self._memory.changed or not self._rows.source.unchanged():
            raise RefusedQuestion(Reason.DATA_CHANGED)
        k = raised_k(self._policy.k, question.protocol.k)
        if question.joint and self._may_join(question.protocol, k):
            raise RefusedQuestion(Reason.JOINED)
        gate, parts = self._judged_parts(question.protocol, k)
        return gate.release_check(question, parts, ticket)

    def _judged_parts(self, protocol: Protocol, k: int) -> tuple[Gate, list[Judged]]:
        """Each part, judged together with those before it at this K, and the gate that did so."""
        policy = msgspec.structs.replace(self._policy, k=k)
        rows, gate = self._rows, self._gate
        if k > self._policy.k:
            rows, gate = Rows(rows.source, policy, rows.secret, rows), replace(gate, policy=policy)
        asks = self.steward is not None
        about = self._variables, self._answers, asks, self._settled
        run = ProtocolRun(protocol, rows, gate, *about)
        parts = run.answer()
        if not self._rows.source.unchanged():  # while they were read
            raise RefusedQuestion(Reason.DATA_CHANGED)
        return gate, parts

    # --- a joint center ---------------------------------------------------------------------

    def _may_join(self, protocol: Protocol, k: int) -> bool:
        """Whether the center's people count in a joint center, where there is one."""
        if not self._gate.keepers or self._gate.spoke_alone():
            return False
        return self._policy.is_joint(small=self._is_small(protocol, k))

    def _is_small(self, protocol: Protocol, k: int) -> bool:
        """Whether there are fewer than 2K people, or of some level of the first grouping."""
        if self._rows.size < 2 * k:
            return True
        first = next(protocol.families())[:1]
        if not first:
            return False
        run = self._run(protocol)
        try:
            run.check_grouping(first[0])
            levels = run.levels(first[0])
        except RefusedQuestion:
            return False  # the protocol's answer says why
        blocks = split_people([levels], 2 * k, self._rows.size)
        return any(len(block_levels(label)[0]) > 1 for label in blocks)

    def _run(self, protocol: Protocol) -> ProtocolRun:
        asks = self.steward is not None
        about = self._gate, self._variables, self._answers, asks, self._settled
        return ProtocolRun(protocol, self._rows, *about)

    def _share(self, question: JointQuestion, ticket: str | None) -> Release:
        """The center's people at the points of the plan, as shares."""
        if self._memory.changed or not self._rows.source.unchanged():
            raise RefusedQuestion(Reason.DATA_CHANGED)
        rows, gate = self._rows, self._gate
        k = raised_k(self._policy.k, question.protocol.k)  # the plan's would count them by halves
        small = self._is_small(question.protocol, k)
        gate.check_joint(question, small=small)
        run = self._run(question.protocol)
        seed = blake2b(encode(question), key=self._secret, person=b"unpooled drawers").digest()
        from unpooled.center.proposal.joint import JointCount  # where one is asked for

        numbers = JointCount(run, rows, seed).vector(
            question.plan, question.members.index(self.name)
        )
        if not rows.source.unchanged():  # while they were read
            raise RefusedQuestion(Reason.DATA_CHANGED)
        keys = self._secret, self._sign_shares
        return gate.release_shares(question, numbers, rows.size, *keys, ticket, small=small)

    def _shared(self) -> list[JointQuestion]:
        """The joint centers that the center's people count in, by its ledger."""
        entries = (
            decode_question(entry.question.encode())
            for entry in self.ledger
            if entry.kind == "release" and entry.question.startswith(_JOINT)
        )
        return [question for question in entries if isinstance(question, JointQuestion)]

    # --- people, by words alone -------------------------------------------------------------

    def _choose(self, question: CohortQuestion) -> tuple[Asked, list[Refusal]]:
        """The groups that may be answered for, judged with all earlier ones, and the others."""
        if not question.has_meaning:
            raise RefusedQuestion(Reason.UNREADABLE_QUESTION)
        if self._memory.changed or not self._rows.source.unchanged():
            raise RefusedQuestion(Reason.DATA_CHANGED)
        if isinstance(question, RanksQuestion | GroupRanksQuestion) and uses_itself(question):
            raise RefusedQuestion(Reason.OWN_VARIABLE, question.variable)
        if isinstance(question, PowersQuestion) and question.where is not None:
            raise RefusedQuestion(Reason.NOT_ALLOWED)
        cohort = self._cohort(question)
        refusals = self._too_small(question, cohort)
        if cohort.groups:
            check_persons(self._rows, question)
        draft = self._memory.state.about_rows(
            question.variable, rows_chosen(question, self._rows.varies)
        )
        nearest, against = self._nearest(question, cohort, draft), None
        for group in sorted(cohort.groups, key=lambda g: -int(cohort.members(g).sum())):
            try:
                draft = self._chosen(question, cohort, group, draft, nearest=group in nearest)
            except TooClose as close:
                if question.by is None:
                    raise
                self._note(question, close)
                against = close.against
                named = group if question.groups is not None else None
                refusals.append(self._isolates(named))
                cohort.only([name for name in cohort.groups if name != group])
        cohort.nearest = tuple(group for group in nearest if group in cohort.groups)
        return Asked(cohort, draft, against), list(dict.fromkeys(refusals))

    def _cohort(self, question: CohortQuestion) -> Cohort:
        return find_cohort(self._rows, question, self._declared(question))

    def _declared(self, question: CohortQuestion) -> Variable:
        return self._variables.get(question.variable, Variable())

    def _too_small(self, question: CohortQuestion, cohort: Cohort) -> list[Refusal]:
        """Leave out groups of too few people, whoever has a value."""
        least, refusals, kept = question.needs(self._policy.k), [], []
        for group in cohort.groups:
            if int(cohort.members(group).sum()) >= least:
                kept.append(group)
            elif question.by is None:
                raise RefusedQuestion(Reason.TOO_SMALL, limit=least)
            elif question.groups is not None:  # a group that nobody named stays unnamed
                refusals.append(Refusal(reason=Reason.TOO_SMALL, name=group, limit=least))
        if not kept and not refusals:
            raise RefusedQuestion(Reason.TOO_SMALL, limit=least)
        cohort.only(kept)
        return refusals

    def _nearest(self, question: CohortQuestion, cohort: Cohort, draft: Draft) -> list[str]:
        """Under a condition, answer as before for groups that differ by fewer than K people.

        So the answer is the same whether the condition leaves out nobody or a few. Words that were
        answered before are answered as they were then.
        """
        if question.where is None:
            return []
        names, words = [], condition(question.where)
        everybody = self._cohort(msgspec.structs.replace(question, where=None))
        for group in cohort.groups:
            members, key = cohort.members(group), (question.by, question.cuts, group)
            before = draft.recorded(key, words)
            if before is not None:
                cohort.put(group, from_bits(before.people, self._rows.size))
                names += [group] if before.nearest else []
                continue
            near = draft.nearest(key, members, self._policy.k)
            whole = everybody.groups.get(group)
            if near is None and whole is not None:
                near = whole if int((whole ^ members).sum()) < self._policy.k else None
            if near is not None:
                cohort.put(group, near)
                names.append(group)
        return names

    def _chosen(
        self,
        question: CohortQuestion,
        cohort: Cohort,
        group: str,
        draft: Draft,
        *,
        nearest: bool,
    ) -> Draft:
        """The draft with the people of a group; raises TooClose.

        What follows from earlier answers tells nothing new of them, but that it does is a word
        about whoever a condition was written for: it is refused like what differs by a few.
        """
        key, words = (question.by, question.cuts, group), condition(question.where)
        people = cohort.members(group)
        number = len(self.ledger) + 1
        free = nearest or is_plain(question.where) or draft.recorded(key, words) is not None
        if not free and draft.follows(people):
            raise TooClose
        return draft.choose(key, words, people, number, nearest=nearest)

    # --- their values -----------------------------------------------------------------------

    def _respond(
        self, question: CohortQuestion, asked: Asked, refusals: list[Refusal], ticket: str | None
    ) -> Release:
        cohort, k = asked.cohort, self._policy.k
        ranked = isinstance(question, RanksQuestion | GroupRanksQuestion)
        if len(cohort.groups) < (2 if ranked else 1):
            silent = Answer(k=k, aggregate=None, refusals=tuple(refusals))
            return self._gate.release(question, silent, asked, ticket)
        check_values(self._rows, question, self._declared(question))
        refusals += self._without_values(question, cohort)
        if len(cohort.groups) < (2 if ranked else 1):
            silent = Answer(k=k, aggregate=None, refusals=tuple(refusals))
            return self._gate.release(question, silent, asked, ticket)
        terms = self._policy.terms(question, self._declared(question))
        number = len(self.ledger) + 1
        groups = list(cohort.groups)
        from unpooled.center.proposal.summarise import Summary  # with all its mathematics

        summary = Summary(question, cohort, terms, asked.draft, number, self._secret)
        before = self._answers.get(encode(question))
        again = summary.again(before)
        aggregate = again or summary.aggregate()
        named = question.groups is not None
        refusals += [
            Refusal(reason=Reason.FEW_VALUES, name=group if named else None)
            for group in groups
            if group not in cohort.groups
        ]
        if not self._rows.source.unchanged():  # while they were read
            raise RefusedQuestion(Reason.DATA_CHANGED)
        shuts_out = self._still_open() - self._still_open(summary.draft)
        if before is not None and again is not None:  # it did so then
            shuts_out |= set(decode_answer(before).shuts_out)
        answer = Answer(
            k=k,
            aggregate=aggregate,
            refusals=tuple(dict.fromkeys(refusals)),
            nearest=tuple(group for group in cohort.nearest if group in cohort.groups),
            shuts_out=tuple(sorted(shuts_out)),
        )
        released = self._gate.release(question, answer, asked, ticket)
        self._open = self._still_open() - set(answer.shuts_out)
        self._answers[encode(question)] = released.payload
        return released

    def _still_open(self, draft: Draft | None = None) -> set[str]:
        """What can still be answered for: everybody, and each declared grouping whole."""
        if draft is None and self._open is not None:
            return self._open
        state = self._memory.state if draft is None else draft
        names = {EVERYBODY, *(self._policy.groupings or ())} if self._open is None else self._open
        still = {name for name in names if self._can_tell(name, state)}
        if draft is None:
            self._open = still
        return still

    def _can_tell(self, name: str, draft: Draft) -> bool:
        number = len(self.ledger) + 1
        try:
            for key, people in self._grouping(name):
                draft = draft.choose(key, frozenset(), people, number)
        except TooClose:
            return False
        return True

    def _grouping(self, name: str) -> list[tuple[Key, BoolArray]]:
        """The people of each level of a grouping that has enough of them, or everybody."""
        if name not in self._levels:
            everybody = name == EVERYBODY and name not in (self._policy.groupings or ())
            cuts = None if everybody else (self._policy.groupings or {})[name] or None
            by = None if everybody else name
            question = CohortQuestion(variable=name, by=by, cuts=cuts)
            groups = Cohort(self._rows, question, Variable(), None).groups
            k = self._policy.k
            self._levels[name] = [
                ((by, cuts, g), who) for g, who in groups.items() if int(who.sum()) >= k
            ]
        return self._levels[name]

    def _without_values(self, question: CohortQuestion, cohort: Cohort) -> list[Refusal]:
        """Leave out groups of which too few have a value."""
        least, refusals, kept = question.needs(self._policy.k), [], []
        for group in cohort.groups:
            if cohort.n(group) >= least:
                kept.append(group)
                continue
            none = self._policy.zero_cells and question.where is None and not cohort.n(group)
            reason = Reason.ALL_MISSING if none and question.by is None else Reason.TOO_SMALL
            if question.by is None:
                raise RefusedQuestion(reason, limit=least)
            named = group if question.groups is not None else None
            refusals.append(Refusal(reason=reason, name=named, limit=least))
        cohort.only(kept)
        return refusals

    def _catalogue(self) -> Answer:
        kinds = self._rows.source.kinds.items()
        named = tuple(  # that nobody has decimals is not said: one person may be the first
            Named(name=name, kind="float" if kind == "integer" else kind)
            for name, kind in kinds
            if self._policy.allows(name)
        )
        return Answer(k=self._policy.k, aggregate=Catalogue(variables=named))

    # --- refusals ---------------------------------------------------------------------------

    def _isolates(self, name: str | None) -> Refusal:
        return Refusal(reason=Reason.WOULD_ISOLATE, name=name, limit=self._policy.k)

    def _note(self, question: Asking, close: TooClose) -> None:
        """Say in the center's own log which earlier answer stands against which people."""
        if close.against is not None:
            earlier = self._memory.about(close.against)
            _log.info(
                "%s: %s would isolate people together with entry %s, %s",
                self.name,
                question,
                close.against,
                earlier,
            )

    def _refuse(
        self,
        question: Asking,
        refusal: Refusal,
        ticket: str | None,
        asked: Asked | None = None,
        against: int | None = None,
    ) -> Release:
        answer = Answer(k=self._policy.k, aggregate=None, refusals=(refusal,))
        try:
            return self._gate.release(question, answer, asked, ticket, against)
        except GateError:  # it says more than a refusal may: not even that nothing came may tell
            _log.info("%s: a refusal broke a rule of the gate", self.name, exc_info=True)
            failed = (Refusal(reason=Reason.FAILED),)
            bare = msgspec.structs.replace(answer, refusals=failed)
            return self._gate.release(question, bare, ticket=ticket)

    # --- the budget of refusals -------------------------------------------------------------

    def _check_budget(self) -> None:
        """Refuse once too many questions of today were refused: refusals tell, too."""
        most, (day, refused) = self._policy.refusals_a_day, self._refused
        if most is not None and day == _today() and refused >= most:
            raise RefusedQuestion(Reason.BUDGET, limit=most)

    def _count(self, released: Release) -> None:
        """Count an answer that refuses something, or hints at the people of earlier ones."""
        today, (day, refused) = _today(), self._refused
        before = refused if day == today else 0
        self._refused = (today, before + _refuses(released.payload))

    def _refused_today(self) -> tuple[str, int]:
        today = _today()
        if self._policy.refusals_a_day is None:
            return today, 0
        entries = (entry for entry in self.ledger if entry.time.startswith(today))
        return today, sum(
            _refuses(entry.answer.encode()) for entry in entries if not _is_part(entry.question)
        )


def _refuses(payload: bytes) -> bool:
    """Whether an answer says more than its numbers do: a refusal, be it of one group, or a hint.

    What counts is a reason that may tell something, that people are those of an earlier set, or
    that others are shut out. A protocol is one answer, however many of its parts are refused. The
    check of one says what is merged and refused, and nothing else.
    """
    answer = decode_answer(payload)
    if isinstance(answer.aggregate, ProtocolCheck):
        return True
    answers = [answer]
    if isinstance(answer.aggregate, ProtocolAnswer):
        answers += [part.answer for part in answer.aggregate.parts]
    return any(
        one.nearest or one.shuts_out or any(no.reason not in _UNCOUNTED for no in one.refusals)
        for one in answers
    )


def _is_part(question: str) -> bool:
    """Whether an entry of the ledger is a part of a protocol, which has an entry as a whole."""
    if question == "null":
        return False
    asked = decode_question(question.encode())
    return isinstance(asked, CohortQuestion) and asked.in_protocol


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")
