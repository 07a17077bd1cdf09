"""The gate: the one door of a center.

It encodes the answer, decodes those very bytes, judges what was decoded, writes memory and ledger,
and only then seals the bytes into a `Release`. There is no other way to make one and no switch to
skip it. An answer that breaks a rule raises; it is never trimmed into shape.

The gate knows no kind of answer. It asks each for the groups that it names, for what it tells about
which people, and for its own limits; it compares each count with the people who are declared, each
other number and each word with what was checked, and judges what is declared with all that left
before.

Where the steward wants to be asked, the judged bytes are held, neither recorded nor released, until
they have decided.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from typing import Any, get_args

import msgspec

from unpooled.center.approval.steward import Steward
from unpooled.center.cohort.people import Cohort, RefusedQuestion
from unpooled.center.cohort.words import condition, rows_chosen
from unpooled.center.data.variables import Codebook, Variable
from unpooled.center.data.where import columns, parse
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    ANSWERS,
    EVERYBODY,
    OTHER,
    Aggregate,
    Answer,
    Catalogue,
    CatalogueQuestion,
    CategoryQuestion,
    CellMoments,
    CohortQuestion,
    Grouping,
    JointQuestion,
    MomentsQuestion,
    OutcomeQuestion,
    ProtocolAnswer,
    ProtocolCheck,
    ProtocolCheckQuestion,
    ProtocolPart,
    ProtocolQuestion,
    Question,
    Reason,
    Refusal,
    SizesQuestion,
    decode_answer,
    decode_question,
    encode,
    expand,
)
from unpooled.center.questions.joint import LEAST_MEMBERS, JointNote, is_same_joint, share_words
from unpooled.center.questions.message import asked_about
from unpooled.center.questions.protocol import Kind as VariableKind
from unpooled.center.questions.protocol import PartQuestion
from unpooled.center.records.ledger import Kind, Ledger
from unpooled.center.records.signatures import (
    has_receipts,
    with_receipts,
    without_receipts,
)
from unpooled.center.rule.memory import Draft, Memory, answer_digest
from unpooled.errors import GateError, WhereError
from unpooled.maths.arrays import IntArray

Asking = Question | CohortQuestion | None

_SEAL = object()
_WORDS = {*get_args(CellMoments), "events", "censored", "both"}  # that any answer may have
_PLAIN = frozenset({int, float, str})  # all that an answer says
_NOT_COUNTS = frozenset({"spans"})  # whole numbers that speak of bins, not of people


@dataclass(frozen=True, slots=True)
class Release:
    """Bytes that may leave a center. Only the gate can make one."""

    center: str
    payload: bytes
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise GateError("only the gate makes a release")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about people, and the people it means; who was chosen is remembered.

    `draft` has the sets that words chose, judged already. What is recorded is remembered even
    where the answer is a refusal: it may have come of a look at their values.
    """

    cohort: Cohort
    draft: Draft
    against: int | None = None  # the earlier answer that stands against a group of it
    number: int | None = None  # of the answer in the ledger; None: the next


@dataclass(frozen=True, slots=True)
class Judged:
    """A part of a protocol that the gate has judged, together with all parts before it."""

    question: PartQuestion
    payload: bytes
    before: Draft
    draft: Draft
    against: int | None
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise GateError("only the gate judges a part of a protocol")


@dataclass(frozen=True, slots=True)
class Gate:
    """A center's one door, with its policy and its ledger."""

    center: str
    policy: Policy
    ledger: Ledger
    variables: Codebook
    memory: Memory
    steward: Steward | None = None  # None: what the policy allows leaves unasked
    keepers: Mapping[str, str] = field(default_factory=dict)  # of joint centers: name → public key
    shared: list[JointQuestion] = field(default_factory=list)  # what its people count in

    def release(
        self,
        question: Asking,
        answer: Answer,
        asked: Asked | None = None,
        ticket: str | None = None,
        against: int | None = None,
    ) -> Release:
        """Judge, record, and only then seal. A question that could not be read is None.

        Raises `HeldError` while the steward has not decided, and `TooClose` where the answer tells
        too much together with earlier ones; a coarser one may not. `against` is the earlier answer
        that stands against a question, for the record.
        """
        payload = encode(answer)
        if against is None and asked is not None:
            against = asked.against
        draft = self._judged(decode_answer(payload), question, asked)
        if self._approved(question, payload, ticket):
            released = self._recorded(question, answer, payload, draft, ticket, against)
        else:
            released = self._refused(question, ticket)
        self._settle(question, payload)
        return released

    def judge(
        self,
        question: PartQuestion,
        answer: Answer,
        asked: Asked | None,
        before: Draft,
        number: int,
        against: int | None = None,
    ) -> Judged:
        """Judge a part of a protocol, together with those before it; raises as `release` does."""
        payload = encode(answer)
        draft = before
        if asked is not None:
            draft = before.recorded_now()
            if not isinstance(question, SizesQuestion):  # it looks at nobody's value
                words = rows_chosen(question, asked.cohort.rows.varies)
                draft = draft.about_rows(question.variable, words)
            beside = Asked(asked.cohort, draft, number=number)
            draft = self._judged(decode_answer(payload), question, beside) or draft
        else:
            self._judged(decode_answer(payload), question, None)
        return Judged(question, payload, before, draft, against, _SEAL)

    def release_protocol(
        self,
        question: ProtocolQuestion,
        parts: Sequence[Judged],
        shuts_out: Sequence[str] = (),
        ticket: str | None = None,
    ) -> Release:
        """Let a whole protocol out: one approval, and a line in ledger and memory for each part.

        The last line is of the whole, as it leaves.
        """
        together = self._together(question, parts)
        whole = Answer(k=self.policy.k, aggregate=together, shuts_out=tuple(shuts_out))
        answer = self.ledger.signed(whole, question.protocol, self.center)
        payload = encode(answer)
        if self._approved(question, payload, ticket):
            for part in parts:
                part_answer = decode_answer(part.payload)
                recorded = part.question, part_answer, part.payload, part.draft
                self._recorded(*recorded, None, part.against)
            released = self._recorded(question, answer, payload, None, ticket, None)
        else:
            released = self._refused(question, ticket)
        self._settle(question, payload)
        return released

    def release_again(
        self, question: ProtocolQuestion, payload: bytes, ticket: str | None
    ) -> Release:
        """What a protocol was answered before, once more: it tells nothing new.

        The steward may have changed their mind since.
        """
        same = _bytes(question).decode(), payload.decode()
        if not any((entry.question, entry.answer) == same for entry in self.ledger):
            raise GateError("this did not leave before")
        if self._approved(question, payload, ticket):
            answer = decode_answer(payload)
            released = self._recorded(question, answer, payload, None, ticket, None)
        else:
            released = self._refused(question, ticket)
        self._settle(question, payload)
        return released

    def release_check(
        self,
        question: ProtocolCheckQuestion,
        parts: Sequence[Judged],
        ticket: str | None = None,
    ) -> Release:
        """Let out what a protocol would be given, without any of it; nothing counts as released."""
        check = ProtocolCheck.of(self._together(question, parts))
        answer = Answer(k=self.policy.k, aggregate=check)
        payload = encode(answer)
        if self._approved(question, payload, ticket):
            released = self._recorded(question, answer, payload, None, ticket, None)
        else:
            released = self._refused(question, ticket)
        self._settle(question, payload)
        return released

    def _together(
        self, question: ProtocolQuestion | ProtocolCheckQuestion, parts: Sequence[Judged]
    ) -> ProtocolAnswer:
        self._check_parts(question, parts)
        answered = (
            ProtocolPart(question=part.question, answer=decode_answer(part.payload))
            for part in parts
        )
        return ProtocolAnswer(k=self.policy.k, parts=tuple(answered))

    def _check_parts(
        self, question: ProtocolQuestion | ProtocolCheckQuestion, parts: Sequence[Judged]
    ) -> None:
        """The parts are the questions of the protocol, each judged with those before it."""
        protocol = question.protocol
        kinds = {
            part.question.variable: kind_of(part.question)
            for part in parts
            if isinstance(part.question, CategoryQuestion | MomentsQuestion)
        }
        if tuple(part.question for part in parts) != expand(protocol, kinds):
            raise GateError("the parts of an answer must be those of the protocol")
        before = self.memory.state.at(self.policy.k)
        for part in parts:
            if not part.before.tells_as(before):
                raise GateError(
                    "each part of a protocol must be judged together with those before it"
                )
            before = part.draft

    def _approved(
        self, question: Asking, payload: bytes, ticket: str | None, words: Sequence[str] = ()
    ) -> bool:
        """Whether it may leave; raises `HeldError` while the steward has not decided.

        `words` say at the center what the payload alone does not show.
        """
        return self.steward is None or self.steward.approves(
            _bytes(question), payload, ticket, words
        )

    def _settle(self, question: Asking, payload: bytes) -> None:
        if self.steward is not None:
            self.steward.settle(_bytes(question), payload)

    def _refused(self, question: Asking, ticket: str | None) -> Release:
        no = Refusal(reason=Reason.REFUSED_BY_STEWARD)
        refused = Answer(k=self.policy.k, aggregate=None, refusals=(no,))
        self._judged(refused, question, None)
        return self._recorded(question, refused, encode(refused), None, ticket, None)

    # --- a joint center ---------------------------------------------------------------------

    def check_joint(self, question: JointQuestion, *, small: bool) -> None:
        """Raise RefusedQuestion where the center's people may not count in this joint center.

        A center tells of its people alone or in a joint center, never both, and in one alone: what
        one tells, taken from the other, would leave people who may be fewer than K. With other
        members the same may be asked again: keepers open it once.
        """
        from unpooled.maths.joint.shares import (
            KEEPERS,
        )  # here and below: where a joint one is asked

        members, policy = question.members, self.policy
        if self.center not in members or len(set(members)) < len(members):
            raise RefusedQuestion(Reason.UNREADABLE_QUESTION)
        if question.plan.k < max(policy.k, question.protocol.k or 0):
            raise RefusedQuestion(Reason.UNREADABLE_QUESTION)
        if len(members) < LEAST_MEMBERS:
            raise RefusedQuestion(Reason.FEW_MEMBERS, limit=LEAST_MEMBERS)
        named = {keeper.name: keeper.public for keeper in question.keepers}
        if len(question.keepers) != KEEPERS or dict(self.keepers) != named:
            raise RefusedQuestion(Reason.OTHER_KEEPERS)
        if self.spoke_alone():
            raise RefusedQuestion(Reason.ANSWERED_ALONE)
        if not all(is_same_joint(question, earlier) for earlier in self.shared):
            raise RefusedQuestion(Reason.OTHER_JOINT)
        if not policy.is_joint(small=small):  # the one that looks at people: after all others
            raise RefusedQuestion(Reason.NOT_JOINT)

    def spoke_alone(self) -> bool:
        """Whether anything left that tells of the center's people alone."""
        about = (CatalogueQuestion, JointQuestion, ProtocolCheckQuestion)
        return any(
            entry.kind == "release"
            and not isinstance(decode_question(entry.question.encode()), about)
            for entry in self.ledger
        )

    def release_shares(
        self,
        question: JointQuestion,
        numbers: IntArray,
        people: int,
        secret: bytes,
        sign: Callable[[bytes], bytes],
        ticket: str | None = None,
        *,
        small: bool,
    ) -> Release:
        """Split, sign and seal a center's numbers to the keepers: so they leave, or not at all.

        The same numbers are split and sealed alike, so that a steward decides on what leaves.
        """
        from unpooled.center.records.sealing import sealed_shares

        self.check_joint(question, small=small)
        plan = question.plan
        if len(numbers) != question.length(self.center) or numbers.min(initial=0) < 0:
            raise GateError("what is shared must be the counts that the plan names")
        if int(numbers[: plan.blocks].sum()) != people:
            raise GateError("everybody must be counted once")
        shares = sealed_shares(question, self.center, numbers, secret, sign)
        answer = Answer(k=self.policy.k, aggregate=shares)
        payload = encode(answer)
        if self._approved(question, payload, ticket, list(share_words(plan, numbers))):
            released = self._recorded(question, answer, payload, None, ticket, None)
            self.shared.append(question)
        else:
            released = self._refused(question, ticket)
        self._settle(question, payload)
        return released

    def release_opened(
        self,
        question: JointQuestion,
        answer: Answer,
        record: Ledger,
        keys: Sequence[bytes] = (),
    ) -> Release:
        """Let out what a keeper opened with the others, or why nothing was; once in their ledger.

        What it tells speaks of the members' people, not of the center's own. `keys` are those of
        the members' receipts for it.
        """
        protocol = question.protocol
        answer = record.signed(answer, protocol, self.center)
        answer = with_receipts(answer, protocol, self.center, keys)
        payload, raw = encode(answer), encode(question)
        if not isinstance(decode_answer(payload).aggregate, ProtocolAnswer | None):
            raise GateError("a joint center answers a protocol")
        if answer.k < LEAST_MEMBERS or answer.k != question.plan.k:
            raise GateError("the K of a joint center must be that of its plan")
        before = any((e.question, e.answer) == (raw.decode(), payload.decode()) for e in record)
        if not before:
            record.append("refusal" if answer.aggregate is None else "release", raw, payload)
        return Release(self.center, payload, _SEAL)

    def release_held(self, question: JointQuestion) -> Release:
        """Say that a keeper holds the members' shares, and nothing else."""
        return Release(self.center, encode(Answer(k=question.plan.k, aggregate=None)), _SEAL)

    def note_opened(self, note: JointNote, record: Callable[[], Ledger], secret: bytes) -> Release:
        """Write down what a joint center with this one's people said, in its own ledger of these.

        The keepers' receipts show that they said so: nobody else can make them.
        """
        from unpooled.center.records.sealing import receipt_key

        question, answer = note.question, decode_answer(note.answer.encode())
        keys = {
            keeper.name: receipt_key(question, keeper.name, secret) for keeper in question.keepers
        }
        fits = question in self.shared and has_receipts(
            answer, question.protocol, question.members.index(self.center), keys
        )
        if fits:
            raw, payload = encode(question), encode(without_receipts(answer))
            ledger, same = record(), (raw.decode(), payload.decode())
            if not any((entry.question, entry.answer) == same for entry in ledger):
                ledger.append("release", raw, payload)
        refusals = () if fits else (Refusal(reason=Reason.WRONG_RECEIPT),)
        reply = Answer(k=self.policy.k, aggregate=None, refusals=refusals)
        return Release(self.center, encode(reply), _SEAL)

    def repeat(self, question: Asking, ticket: str | None) -> Release | None:
        """The release that a question with this ticket had before; it is not recorded again."""
        entry = None if ticket is None else self.ledger.find(_bytes(question), ticket)
        return None if entry is None else Release(self.center, entry.answer.encode(), _SEAL)

    def _judged(self, answer: Answer, question: Asking, asked: Asked | None) -> Draft | None:
        """What would be released, in full; raises unless all of it may leave."""
        if answer.k != self.policy.k:
            raise GateError("the K of an answer must be the K that is in force")
        self._judge_refusals(answer, question, None if asked is None else asked.cohort)
        aggregate: Any = answer.aggregate
        if self.shared and not isinstance(aggregate, Catalogue | None):
            raise GateError("people who count in a joint center must not be described alone")
        if aggregate is None:
            if answer.nearest:
                raise GateError("a group that was not asked for must not be named")
            return None if asked is None else asked.draft
        if isinstance(aggregate, Catalogue) and isinstance(question, CatalogueQuestion):
            aggregate.check(self.policy.allows)
            return None
        if not set(answer.shuts_out) <= {EVERYBODY, *(self.policy.groupings or ())}:
            raise GateError("an answer may say only of declared groupings that it shuts them out")
        if not isinstance(question, CohortQuestion) or type(aggregate) is not ANSWERS.get(
            type(question)
        ):
            raise GateError("this was not asked for")
        if asked is None:
            raise GateError("an answer about people must say who they are")
        self._judge_labels(aggregate, question, asked.cohort)
        if not set(answer.nearest) <= set(aggregate.labels()):
            raise GateError("a group that was not asked for must not be named")
        declared = self.variables.get(question.variable, Variable())
        checked = aggregate.limits(question, self.policy.terms(question, declared))
        _judge_rest(aggregate, question, asked.cohort, checked)
        return self._judge_people(aggregate, question, asked)

    def _judge_refusals(self, answer: Answer, question: Asking, cohort: Cohort | None) -> None:
        names, k = _names(question), self.policy.k
        if cohort is not None and cohort.blocks is not None:
            names |= set(cohort.blocks)
        needed = question.needs(k) if isinstance(question, CohortQuestion) else k
        limits = {None, k, needed, self.policy.refusals_a_day}
        if isinstance(question, JointQuestion):
            limits.add(LEAST_MEMBERS)
        for refusal in answer.refusals:
            if refusal.name is not None and refusal.name not in names:
                raise GateError("a refusal may name only what the question named")
            if refusal.limit not in limits:
                raise GateError("a refusal may tell only the limit of a rule")

    def _judge_labels(self, aggregate: Aggregate, question: CohortQuestion, cohort: Cohort) -> None:
        """Only variables that the policy allows, only groups that were asked for, and each once."""
        groups = set(question.groups or ()) if question.by is not None else set()
        if not all(self.policy.allows(name) for name in _columns(question)):
            raise GateError("the policy does not allow this variable")
        labels = list(aggregate.labels())
        if len(set(labels)) < len(labels) or not labels:
            raise GateError("a group must be named once")
        asked = {EVERYBODY} if question.by is None else groups or set(cohort.groups)
        if question.blocks is not None:
            asked = set(cohort.blocks or ())
        if not set(labels) <= asked & set(cohort.groups):
            raise GateError("a group that was not asked for must not be named")

    def _judge_people(self, aggregate: Aggregate, question: CohortQuestion, asked: Asked) -> Draft:
        """The counts are those of the people that are declared; and the rule allows them."""
        cohort, draft, words = asked.cohort, asked.draft, condition(question.where)
        number = asked.number or len(self.ledger) + 1
        if question.blocks is not None:
            draft = draft.choose_blocks(blocks_name(question.blocks), cohort.blocks or {}, number)
        else:
            for group in aggregate.labels():
                key = (question.by, question.cuts, group)
                draft = draft.choose(key, words, cohort.members(group), number)
        disclosures = list(aggregate.tells(question, cohort))
        declared: Counter[int] = Counter()
        for disclosure in disclosures:
            disclosure.check()
            declared.update(count for count in disclosure.counts if count is not None)
        draft = draft.tell_all(
            disclosures, number, cohort.value, blocks=question.blocks is not None
        )
        if Counter(_whole_numbers(msgspec.to_builtins(aggregate))) - declared:
            raise GateError("a count that is said must be declared")
        return draft

    def _recorded(
        self,
        question: Asking,
        answer: Answer,
        payload: bytes,
        draft: Draft | None,
        ticket: str | None,
        against: int | None,
    ) -> Release:
        raw, number = _bytes(question), len(self.ledger) + 1
        about = _about(question)
        if about is not None:
            self.memory.record(number, answer_digest(raw, payload), about, draft, against)
        kind: Kind = "refusal" if answer.aggregate is None else "release"
        self.ledger.append(kind, raw, payload, ticket)
        if about is not None:
            self.memory.remember(number, about, draft, against)
        return Release(self.center, payload, _SEAL)


def _judge_rest(
    aggregate: Aggregate, question: CohortQuestion, cohort: Cohort, checked: Iterable[float]
) -> None:
    """No number that is no count but those that its limits looked at; no word that is not public.

    So a kind of answer that has one more field cannot leave before somebody thinks of it.
    """
    each = list(_leaves(aggregate))
    if not _PLAIN.issuperset(map(type, each)):
        raise GateError("an answer says numbers and words, nothing else")
    numbers = Counter(leaf for leaf in each if isinstance(leaf, float))
    if numbers - Counter(map(float, checked or ())):
        raise GateError("a number that is said must be one that its limits check")
    levels = cohort.level_names() if isinstance(question, CategoryQuestion) else ()
    words = {*_WORDS, OTHER, *aggregate.labels(), *levels}
    if not words.issuperset(leaf for leaf in each if isinstance(leaf, str)):
        raise GateError("a word that is none of the question's must not be named")


def _leaves(tree: object) -> Iterator[object]:
    """Every number and every word in an aggregate, but the names of its fields."""
    match tree:
        case msgspec.Struct():
            yield from _leaves([getattr(tree, name) for name in tree.__struct_fields__])
        case dict():
            yield from _leaves([*tree, *tree.values()])
        case list() | tuple() | set() | frozenset():
            for part in tree:
                if type(part) in _PLAIN:
                    yield part
                else:
                    yield from _leaves(part)
        case None:
            return
        case _:
            yield tree


def raw_name(question: CohortQuestion) -> str:
    """What a kind of question is called."""
    return str(type(question).__struct_config__.tag)


def kind_of(question: CohortQuestion) -> VariableKind:
    """What a question of a protocol takes its variable for."""
    return "category" if isinstance(question, CategoryQuestion) else "number"


def _about(question: Asking) -> str | None:
    """What the memory calls a question about people."""
    if isinstance(question, ProtocolQuestion):
        return f"protocol {question.protocol.title}"
    if isinstance(question, ProtocolCheckQuestion):
        return f"check of protocol {question.protocol.title}"
    if isinstance(question, JointQuestion):
        return f"a joint center for {question.protocol.title}"
    if isinstance(question, CohortQuestion):
        return f"{raw_name(question)} of {asked_about(question)}"
    return None


def blocks_name(blocks: Sequence[Grouping]) -> str:
    """What the memory calls groupings that are crossed."""
    return "blocks " + msgspec.json.encode(list(blocks)).decode()


def _bytes(question: Asking) -> bytes:
    return b"null" if question is None else encode(question)


def _names(question: Asking) -> set[str]:
    """Every name that the question itself uses; a refusal may repeat no other."""
    if isinstance(question, JointQuestion):
        groupings = question.plan.groupings
        used = {part.variable for part in question.plan.parts}
        return used | {name for g in groupings for name in (g.name, g.column)}
    if not isinstance(question, CohortQuestion):
        return set()
    grouped_by = {grouping.name for grouping in question.blocks or ()}
    return _columns(question) | grouped_by | set(question.groups or ())


def _columns(question: CohortQuestion) -> set[str]:
    """Every column that a question uses."""
    used = {question.variable, *(grouping.column for grouping in question.blocks or ())}
    if question.by is not None:
        used.add(question.by)
    if isinstance(question, OutcomeQuestion):
        used.add(question.event)
    if question.where is not None:
        with suppress(WhereError):
            used.update(columns(parse(question.where)))
    return used


def _whole_numbers(tree: object) -> Iterator[int]:
    """Every whole number in an aggregate; what counts anybody must be one."""
    match tree:
        case bool():
            return
        case int():
            yield tree
        case dict():
            for name, part in tree.items():
                if name not in _NOT_COUNTS:
                    yield from _whole_numbers(part)
        case list() | tuple():
            for part in tree:
                if type(part) is int:
                    yield part
                else:
                    yield from _whole_numbers(part)
