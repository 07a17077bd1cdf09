"""A protocol at a center: people become blocks, and each question of it is answered by block.

Nothing here needs to be trusted but who belongs to which block: each part is judged at the gate,
together with the parts before it, and all of them leave together.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from unpooled.center.cohort.blocks import Levels, split_people
from unpooled.center.cohort.people import (
    NUMBERS,
    Cohort,
    RefusedQuestion,
    Rows,
    check_values,
    column_levels,
)
from unpooled.center.cohort.words import rows_chosen
from unpooled.center.data.sql import literal, quote
from unpooled.center.data.variables import Codebook, Variable
from unpooled.center.gate import Asked, Gate, Judged, blocks_name
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    MISSING_LEVEL,
    Answer,
    CategoryQuestion,
    Code,
    CohortQuestion,
    Grouping,
    OutcomeQuestion,
    Protocol,
    Reason,
    Refusal,
    SizesQuestion,
    block_levels,
    decode_answer,
    decode_question,
    encode,
    expand,
)
from unpooled.center.questions.category import MOST_LEVELS
from unpooled.center.questions.protocol import Kind, PartQuestion
from unpooled.center.records.ledger import Ledger
from unpooled.center.rule.disclosure import TooClose
from unpooled.center.rule.memory import Draft
from unpooled.maths.arrays import BoolArray

_log = logging.getLogger(__name__)  # what went wrong stays at the center

_COARSER = (1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0)  # times 2K people a block
FEW_VALUES = 10  # a number of fewer different whole values is a category

Blocks = dict[str, BoolArray]
Place = Literal["variable", "grouping"]
_PROTOCOLS = tuple(f'{{"ask":"{tag}"' for tag in ("protocol", "protocol-check", "joint"))


@dataclass(frozen=True, slots=True)
class Settled:
    """What the first protocol, check or joint center that names a column settles, answered or not.

    `codes` are those that mean "missing", of a column as a variable and as a grouping.
    """

    codes: dict[tuple[Place, str], tuple[Code, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger) -> "Settled":
        """What was settled before the center was opened; questions beyond the budget do not."""
        settled = cls()
        for entry in ledger:
            if entry.question.startswith(_PROTOCOLS):
                question = decode_question(entry.question.encode())
                reasons = {no.reason for no in decode_answer(entry.answer.encode()).refusals}
                if hasattr(question, "protocol") and Reason.BUDGET not in reasons:
                    settled.hear(question.protocol)
        return settled

    def hear(self, protocol: Protocol) -> None:
        """Settle what is new in a protocol."""
        for name, variable in protocol.variables.items():
            self.codes.setdefault(("variable", name), variable.missing)
        for outcome in protocol.survival:
            self.codes.setdefault(("variable", outcome.time), ())
        for grouping in (one for family in protocol.families() for one in family):
            self.codes.setdefault(("grouping", grouping.column), grouping.missing)

    def fits(self, place: Place, column: str, codes: tuple[Code, ...]) -> bool:
        """Whether these codes are those that were settled."""
        return self.codes.get((place, column), codes) == codes


def raised_k(k: int, wanted: int | None) -> int:
    """A center's K, doubled until it is no less than the K that a protocol wants.

    Were every K possible, whether an answer comes would count any set of people.

    Examples
    --------
    >>> raised_k(10, None), raised_k(10, 5), raised_k(10, 11), raised_k(5, 20)
    (10, 10, 20, 20)
    """
    while k < (wanted or 0):
        k *= 2
    return k


@dataclass(slots=True)
class ProtocolRun:
    """A protocol that is being answered; `parts` are judged already, each with those before.

    `asks` says whether a steward approves what leaves: then people may be grouped by any column,
    and codes that mean "missing" may be others than before.
    """

    protocol: Protocol
    rows: Rows
    gate: Gate
    variables: Codebook
    before: Mapping[bytes, bytes]  # earlier answers
    asks: bool
    settled: "Settled"
    parts: list[Judged] = field(default_factory=list)
    _families: dict[str, Blocks | RefusedQuestion] = field(default_factory=dict)
    _masked: dict[tuple[str, tuple[Code, ...]], Rows] = field(default_factory=dict)

    def answer(self) -> list[Judged]:
        """Answer every question of the protocol, in the order in which they are judged."""
        draft = self.gate.memory.state.at(self._policy.k)
        kinds = self._kinds()
        for question in expand(self.protocol, kinds):
            part = self._part(question, draft)
            self.parts.append(part)
            draft = part.draft
        return self.parts

    @property
    def _policy(self) -> Policy:
        return self.rows.policy

    @property
    def _number(self) -> int:
        """Of the next part, in the ledger."""
        return len(self.gate.ledger) + 1 + len(self.parts)

    # --- one part after the other -----------------------------------------------------------

    def _part(self, question: PartQuestion, draft: Draft) -> Judged:
        """A part of the answer, or why there is none."""
        asked: Asked | None = None
        try:
            cohort = self._cohort(question, draft)
            asked = Asked(cohort, draft)
            answer = self._answered(question, cohort, draft)
            return self.gate.judge(question, answer, asked, draft, self._number)
        except RefusedQuestion as refused:
            refusal, against = refused.refusal, None
        except TooClose as close:
            refusal = Refusal(reason=Reason.WOULD_ISOLATE, limit=self._policy.k)
            against = close.against
        except Exception:
            _log.info("a part of a protocol could not be answered: %s", question, exc_info=True)
            refusal, against = Refusal(reason=Reason.FAILED), None
        silent = Answer(k=self._policy.k, aggregate=None, refusals=(refusal,))
        return self.gate.judge(question, silent, None, draft, self._number, against)

    def _cohort(self, question: CohortQuestion, draft: Draft) -> Cohort:
        if self.rows.size < self._policy.k:  # before anything is looked at
            raise RefusedQuestion(Reason.TOO_SMALL, limit=self._policy.k)
        blocks = self._blocks(question.blocks or (), draft)
        self.check_columns(question)
        rows = self.without(question.variable, question.missing)
        return Cohort(rows, question, self._declared(question), None, blocks)

    def _declared(self, question: CohortQuestion) -> Variable:
        return self.variables.get(question.variable, Variable())

    def check_columns(self, question: CohortQuestion) -> None:
        """Refuse columns that the center lacks or does not allow, and several rows of a person."""
        used = [question.variable]
        if isinstance(question, OutcomeQuestion):
            used.append(question.event)
        for name in used:
            self._check_column(name)
        self._check_codes("variable", question.variable, question.missing)
        policy = self._policy
        together = policy.per_person is not None and not isinstance(question, OutcomeQuestion)
        if policy.person is not None and not together and self.rows.source.repeats(policy.person):
            raise RefusedQuestion(Reason.REPEATED_PERSON)

    def _check_column(self, name: str) -> None:
        if name not in self.rows.source.kinds:
            raise RefusedQuestion(Reason.UNKNOWN_VARIABLE, name)
        if not self._policy.allows(name):
            raise RefusedQuestion(Reason.NOT_ALLOWED, name)

    def _is_free(self) -> bool:
        """Whether people may be chosen in any words."""
        return self.asks or self._policy.ad_hoc == "free"

    def _check_codes(self, place: Place, column: str, codes: tuple[Code, ...]) -> None:
        """Refuse codes that mean "missing" where an earlier protocol had others.

        Whoever may change them chooses any set of people, and a refusal, or a check, says whether
        it has K.
        """
        if not self._is_free() and not self.settled.fits(place, column, codes):
            raise RefusedQuestion(Reason.OTHER_CODES, column)

    def _answered(self, question: CohortQuestion, cohort: Cohort, draft: Draft) -> Answer:
        declared, policy = self._declared(question), self._policy
        if not isinstance(question, SizesQuestion):
            draft = draft.about_rows(question.variable, rows_chosen(question, self.rows.varies))
            check_values(cohort.rows, question, declared)
            if isinstance(question, CategoryQuestion) and len(cohort.level_names()) > MOST_LEVELS:
                raise RefusedQuestion(Reason.TOO_MANY_LEVELS, question.variable)
        refusals = self._too_small(question, cohort)
        draft = draft.choose_blocks(
            blocks_name(question.blocks or ()), cohort.blocks or {}, self._number
        )
        terms = policy.terms(question, declared)
        from unpooled.center.proposal.summarise import Summary  # with all its mathematics

        summary = Summary(question, cohort, terms, draft, self._number, self.rows.secret)
        groups = list(cohort.groups)
        aggregate = summary.again(self.before.get(encode(question))) or summary.aggregate()
        refusals += [
            Refusal(reason=Reason.WOULD_ISOLATE, name=group, limit=policy.k)
            for group in groups
            if group not in cohort.groups
        ]
        return Answer(k=policy.k, aggregate=aggregate, refusals=tuple(refusals))

    def _too_small(self, question: CohortQuestion, cohort: Cohort) -> list[Refusal]:
        """Leave out blocks of too few people, or of which too few have a value."""
        least, refusals, kept = question.needs(self._policy.k), [], []
        for block in cohort.groups:
            if cohort.n(block) >= least:
                kept.append(block)
                continue
            nobody = self._policy.zero_cells and not cohort.n(block)
            reason = Reason.ALL_MISSING if nobody else Reason.TOO_SMALL
            refusals.append(Refusal(reason=reason, name=block, limit=least))
        cohort.only(kept)
        if not kept:
            alike = {refusal.reason for refusal in refusals}
            raise RefusedQuestion(
                Reason.ALL_MISSING if alike == {Reason.ALL_MISSING} else Reason.TOO_SMALL,
                limit=least,
            )
        return refusals

    # --- blocks -----------------------------------------------------------------------------

    def _blocks(self, groupings: tuple[Grouping, ...], draft: Draft) -> Blocks:
        """The people of each block of these groupings; the same for all questions by them."""
        name = blocks_name(groupings)
        if name not in self._families:
            try:
                self._families[name] = self._family(groupings, draft)
            except TooClose:
                self._families[name] = RefusedQuestion(Reason.WOULD_ISOLATE, limit=self._policy.k)
            except RefusedQuestion as refused:
                self._families[name] = refused
        blocks = self._families[name]
        if isinstance(blocks, RefusedQuestion):
            raise blocks
        return blocks

    def _family(self, groupings: tuple[Grouping, ...], draft: Draft) -> Blocks:
        """Blocks as they were released before, or else as fine as the rule allows."""
        for grouping in groupings:
            self.check_grouping(grouping)
        levels = [self.levels(grouping) for grouping in groupings]
        name, closest = blocks_name(groupings), TooClose()
        for blocks in self._ways(groupings, levels):
            try:
                draft.choose_blocks(name, blocks, self._number)
            except TooClose as close:
                closest = close
                continue
            return blocks
        raise closest

    def _ways(self, groupings: tuple[Grouping, ...], levels: list[Levels]) -> Iterator[Blocks]:
        before = self._told_before(groupings, levels)
        if before is not None:
            yield before
        last: list[str] = []
        for coarser in _COARSER:
            least = math.ceil(coarser * 2 * self._policy.k)
            blocks = split_people(levels, least, self.rows.size)
            if list(blocks) != last:
                yield blocks
            last = list(blocks)
            if len(blocks) == 1:
                return

    def _told_before(self, groupings: tuple[Grouping, ...], levels: list[Levels]) -> Blocks | None:
        """The blocks of the same groupings that were released before."""
        name = blocks_name(groupings)
        labels = [one.key[2] for one in self.gate.memory.state.sets if one.key[0] == name]
        if not labels:
            return None
        return {label: _members(label, levels, self.rows.size) for label in labels}

    def check_grouping(self, grouping: Grouping) -> None:
        """Whether people may be grouped so here, as far as columns and policy say."""
        rows, policy, column = self.rows, self._policy, grouping.column
        self._check_column(column)
        kinds = rows.source.kinds
        if grouping.cuts is not None and kinds[column] not in NUMBERS:
            raise RefusedQuestion(Reason.NOT_NUMERIC, column)
        self._check_codes("grouping", column, grouping.missing)
        if not self._is_free():
            allowed = policy.grouped_by()
            if column not in allowed:
                raise RefusedQuestion(Reason.ONLY_GROUPINGS, grouping.name)
            cuts = allowed[column]
            if (grouping.cuts is None) != (cuts is None) or not set(grouping.cuts or ()) <= set(
                cuts or ()
            ):
                raise RefusedQuestion(Reason.ONLY_GROUPINGS, grouping.name)
        if policy.person is not None:
            label = rows.label(column, grouping.cuts) if policy.per_person is not None else None
            if rows.source.repeats(policy.person, label):
                raise RefusedQuestion(Reason.REPEATED_PERSON, grouping.name)

    def levels(self, grouping: Grouping) -> Levels:
        """The level of each person; who has none of those that are named has "other"."""
        columns = column_levels(
            self.without(grouping.column, grouping.missing),
            grouping.column,
            grouping.levels,
            grouping.cuts,
            grouping.labels,
            completed=True,
        )
        if len(columns.names) > MOST_LEVELS:
            raise RefusedQuestion(Reason.TOO_MANY_LEVELS, grouping.name)
        names = list(dict.fromkeys((*columns.names_and_other, MISSING_LEVEL)))
        lacking = names.index(MISSING_LEVEL)
        codes = np.where(np.isnan(columns.code), lacking, columns.code).astype(np.int32)
        empty = dict(zip(columns.names_and_other, columns.empty, strict=False))
        empty.setdefault(MISSING_LEVEL, self._policy.zero_cells)
        return Levels(grouping, tuple(names), codes, tuple(empty[name] for name in names))

    # --- columns ----------------------------------------------------------------------------

    def without(self, column: str, codes: tuple[Code, ...]) -> Rows:
        """The rows with these values of a column missing."""
        if not codes or column not in self.rows.source.kinds:
            return self.rows
        if (column, codes) not in self._masked:
            source, label = self.rows.source, self.rows.label(column)
            written = ", ".join(literal(_written(code)) for code in codes)
            value = f"CASE WHEN {label} IN ({written}) THEN NULL ELSE {quote(column)} END"
            relation = f"(SELECT * REPLACE ({value} AS {quote(column)}) FROM {source.relation})"
            plain = self.rows.plain or self.rows
            masked = Rows(source.derived(relation), self._policy, self.rows.secret, plain)
            self._masked[column, codes] = masked
        return self._masked[column, codes]

    def _kinds(self) -> dict[str, Kind]:
        """What the variables are whose kind the protocol leaves open."""
        if self.rows.size < self._policy.k:
            return {}
        return {
            name: variable_kind(self.without(name, variable.missing), name)
            for name, variable in self.protocol.variables.items()
            if variable.kind is None
            and (self._is_free() or self.settled.fits("variable", name, variable.missing))
            and variable.levels is None
            and name in self.rows.source.kinds
            and self._policy.allows(name)
        }


def variable_kind(rows: Rows, name: str) -> Kind:
    """A category where a column has text, yes and no, or whole numbers of a few values.

    A value is one that K people have; fewer than K people may have others, so that none decides.
    """
    source, k = rows.source, rows.policy.k
    if source.kinds[name] in ("text", "boolean"):
        return "category"
    if source.kinds[name] not in NUMBERS:
        return "number"
    person = rows.policy.person
    people = "count(*)" if person is None else f"count(DISTINCT {quote(person)})"
    value = f"nullif(CAST({quote(name)} AS DOUBLE), 'NaN'::DOUBLE)"
    counts = f"SELECT {value} AS v, {people} AS n FROM {source.relation} GROUP BY 1"
    frequent, others = source.rows(
        f"SELECT count(*) FILTER (n >= {k} AND v = trunc(v)), "
        f"coalesce(sum(n) FILTER (n < {k} OR v <> trunc(v)), 0) "
        f"FROM ({counts}) WHERE v IS NOT NULL"
    )[0]
    return "category" if 0 < frequent < FEW_VALUES and others < k else "number"


def _members(label: str, levels: list[Levels], size: int) -> BoolArray:
    """Who belongs to a block, by its name."""
    people = np.full(size, True)
    for grouping, names in zip(levels, block_levels(label), strict=True):
        meant = [grouping.names.index(name) for name in names if name in grouping.names]
        people &= np.isin(grouping.of, meant)
    return people


def _written(code: Code) -> str:
    """A code as a level is written."""
    if isinstance(code, float) and code.is_integer() and abs(code) < 1e15:
        return str(int(code))
    return str(code)
