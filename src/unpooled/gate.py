"""The gate: the one door of a center.

It encodes the answer, decodes those very bytes, judges what was decoded against the policy, writes
the ledger, and only then seals the bytes into a `Release`. There is no other way to make one and no
switch to skip it. An answer that breaks the policy raises; it is never trimmed into shape.
"""

from contextlib import suppress
from dataclasses import InitVar, dataclass
from itertools import pairwise
from math import inf, isfinite
from typing import assert_never

from unpooled.errors import GateError, WhereError
from unpooled.ledger import Kind, Ledger
from unpooled.messages import (
    Aggregate,
    Answer,
    Catalogue,
    CatalogueQuestion,
    CenterJoin,
    CenterTable,
    JoinQuestion,
    Limits,
    Losses,
    Moments,
    Powers,
    PowersQuestion,
    Question,
    Ranks,
    Sizes,
    TableQuestion,
    decode_answer,
    encode,
)
from unpooled.policy import MEAN_NEEDS, SD_NEEDS, Policy, people_for_powers
from unpooled.where import columns, parse

_SEAL = object()


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
class Gate:
    """A center's one door, with its policy and its ledger."""

    center: str
    policy: Policy
    ledger: Ledger

    def release(self, question: Question | None, answer: Answer) -> Release:
        """Judge, record, and only then seal. A question that could not be read is None."""
        payload = encode(answer)
        judge(decode_answer(payload), question, self.policy)
        kind: Kind = "refusal" if answer.aggregate is None else "release"
        self.ledger.append(kind, b"null" if question is None else encode(question), payload)
        return Release(self.center, payload, _SEAL)


def judge(answer: Answer, question: Question | None, policy: Policy) -> None:
    """Raise GateError unless everything in the answer may leave."""
    if answer.k != k_in_force(question, policy):
        raise GateError("the K that is told must be the K that is in force")
    names = _names(question)
    for refusal in answer.refusals:
        if refusal.name is not None and refusal.name not in names:
            raise GateError("a refusal may name only what the question named")
    if answer.aggregate is not None:
        if question is None:
            raise GateError("a question that could not be read has no answer")
        _judge_aggregate(answer.aggregate, question, policy)


def k_in_force(question: Question | None, policy: Policy) -> int:
    """The policy's K, or the question's where that is higher."""
    asked = getattr(question, "k", None)
    return policy.k if asked is None else max(policy.k, asked)


def _judge_aggregate(aggregate: Aggregate, question: Question, policy: Policy) -> None:
    cells = _Cells(k_in_force(question, policy), policy.zero_cells)
    match aggregate:
        case Catalogue():
            _judge_catalogue(aggregate, policy)
        case Sizes():
            cells.check(*(size.n for size in aggregate.sizes))
        case Moments():
            _judge_moments(aggregate, cells)
        case CenterTable():
            _judge_table(aggregate, question, policy, cells)
        case CenterJoin():
            _judge_join(aggregate, question, policy, cells)
        case Ranks():
            _judge_ranks(aggregate, cells)
        case Powers():
            _judge_powers(aggregate, question, policy, cells)
        case Losses():
            if not policy.quantile_loss:
                raise GateError("the policy does not allow the quantile loss")
            cells.check_people(*(group.n for group in aggregate.groups))
        case _:
            assert_never(aggregate)


@dataclass(frozen=True, slots=True)
class _Cells:
    k: int
    zeros: bool

    def check(self, *counts: int) -> None:
        for count in counts:
            if count < 0 or (count < self.k and (count > 0 or not self.zeros)):
                raise GateError(f"a cell must speak for 0 or at least {self.k} people")

    def check_people(self, *counts: int) -> None:
        if min(counts) < self.k:
            raise GateError(f"a statistic must speak for at least {self.k} people")


def _names(question: Question | None) -> set[str]:
    """Every name that the question itself uses; a refusal may repeat no other."""
    if question is None or isinstance(question, CatalogueQuestion):
        return set()
    used = {question.variable, *(question.groups or ())}
    if question.by is not None:
        used.add(question.by)
    if question.where is not None:
        with suppress(WhereError):
            used.update(columns(parse(question.where)))
    return used


def _judge_catalogue(catalogue: Catalogue, policy: Policy) -> None:
    if not all(policy.allows(variable.name) for variable in catalogue.variables):
        raise GateError("a catalogue may list only the variables that the policy allows")


def _judge_moments(moments: Moments, cells: _Cells) -> None:
    for group in moments.moments:
        cells.check_people(group.n)
        cells.check(*(() if group.missing is None else (group.missing,)))
        few = group.values if group.values else SD_NEEDS
        if few < MEAN_NEEDS and group.mean is not None:
            raise GateError(f"a mean needs {MEAN_NEEDS} different values")
        if few < SD_NEEDS and group.sd is not None:
            raise GateError(f"a standard deviation needs {SD_NEEDS} different values")
        if not all(isfinite(x) for x in (group.mean, group.sd) if x is not None):
            raise GateError("moments must be finite")


def _judge_ranks(ranks: Ranks, cells: _Cells) -> None:
    cells.check_people(ranks.n_x, ranks.n_y)
    if 0 < ranks.values < SD_NEEDS:
        raise GateError(f"rank statistics need {SD_NEEDS} different values")
    if not abs(ranks.u) <= ranks.n_x * ranks.n_y:
        raise GateError("u must not exceed the number of pairs")
    if not (0 <= ranks.variance < inf and 0 <= ranks.effect_variance < inf):
        raise GateError("variances must be finite and not negative")


def _judge_powers(powers: Powers, question: Question, policy: Policy, cells: _Cells) -> None:
    if not isinstance(question, PowersQuestion):
        raise GateError("powers were not asked for")
    asked = len(question.lambdas)
    if not 1 <= asked <= policy.powers or not all(-1 <= lam <= 2 for lam in question.lambdas):
        raise GateError(f"at least one and at most {policy.powers} powers in [-1, 2] may be told")
    for group in powers.groups:
        cells.check_people(group.n)
        if group.n < people_for_powers(cells.k, asked):
            raise GateError(f"{asked} powers need {people_for_powers(cells.k, asked)} people")
        if 0 < group.values < SD_NEEDS:
            raise GateError(f"powers need {SD_NEEDS} different values")
        if not len(group.means) == len(group.variances) == asked:
            raise GateError("each power must have one mean and one variance")
        if not all(map(isfinite, (group.log_sum, *group.means, *group.variances))):
            raise GateError("moments must be finite")


def _judge_table(table: CenterTable, question: Question, policy: Policy, cells: _Cells) -> None:
    if not isinstance(question, TableQuestion):
        raise GateError("a table was not asked for")
    _judge_limits(question.limits, table.lower, table.upper, policy)
    _judge_edges(table.edges)
    for group in table.groups:
        if len(group.counts) != len(table.edges) + 1:
            raise GateError("a table must have one count per bin")
        cells.check(*group.counts, sum(group.counts))


def _judge_join(join: CenterJoin, question: Question, policy: Policy, cells: _Cells) -> None:
    if not isinstance(question, JoinQuestion):
        raise GateError("a join was not asked for")
    _judge_limits(question.limits, join.lower, join.upper, policy)
    _judge_edges(join.splits)
    edges = sorted({*question.edges, *join.splits})
    if len(edges) != len(question.edges) + len(join.splits):
        raise GateError("a split must not repeat an edge")
    split = set(join.splits)
    parts = {b for b, edge in enumerate(edges) if edge in split}
    parts |= {b + 1 for b in parts}
    for group in join.groups:
        cells.check(*group.counts, sum(group.counts))
        if sum(group.spans) != len(edges) + 1 or min(group.spans, default=1) < 1:
            raise GateError("pools must cover every bin once")
        start = 0
        for span in group.spans:
            if span > 1 and not parts.isdisjoint(range(start, start + span)):
                raise GateError("a part of a split bin must not be pooled with other bins")
            start += span


def _judge_limits(asked: Limits, lower: float | None, upper: float | None, policy: Policy) -> None:
    if asked not in policy.limits:
        raise GateError(f"the policy does not allow {asked} outer limits")
    if asked == "open" and (lower is not None or upper is not None):
        raise GateError("open outer limits must stay open")


def _judge_edges(edges: tuple[float, ...]) -> None:
    if not all(map(isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise GateError("edges must be finite and ascend")
