"""The rules of the gate: what each aggregate must keep to, whoever made it.

A new aggregate without a rule fails type checking, by the last case of `_judge_aggregate`.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf, isfinite
from typing import assert_never

from unpooled.center.lattice_rule import judge_lattice, judge_survival
from unpooled.center.policy import Policy, k_in_force, nobody_told, people_for_powers, people_needed
from unpooled.data.variables import Codebook, Variable
from unpooled.data.where import columns, parse
from unpooled.errors import GateError, WhereError
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS
from unpooled.questions import (
    EVERYBODY,
    Aggregate,
    Answer,
    Catalogue,
    CatalogueQuestion,
    CenterJoin,
    CenterTable,
    CohortQuestion,
    FollowUpQuestion,
    GroupRanks,
    GroupRanksQuestion,
    JoinQuestion,
    LatticeQuestion,
    LatticeTables,
    Limits,
    Losses,
    LossQuestion,
    Moments,
    MomentsQuestion,
    OutcomeQuestion,
    Powers,
    PowersQuestion,
    Question,
    Ranks,
    RanksQuestion,
    Sizes,
    SizesQuestion,
    SurvivalQuestion,
    SurvivalTables,
    TableQuestion,
)

ANSWERS: dict[type[Question], type[Aggregate]] = {
    CatalogueQuestion: Catalogue,
    SizesQuestion: Sizes,
    MomentsQuestion: Moments,
    TableQuestion: CenterTable,
    JoinQuestion: CenterJoin,
    RanksQuestion: Ranks,
    LatticeQuestion: LatticeTables,
    GroupRanksQuestion: GroupRanks,
    FollowUpQuestion: Moments,
    SurvivalQuestion: SurvivalTables,
    PowersQuestion: Powers,
    LossQuestion: Losses,
}


def judge(
    answer: Answer,
    question: Question | None,
    policy: Policy,
    declared: Codebook,
    told: frozenset[float] = frozenset(),
) -> None:
    """Raise GateError unless everything in the answer may leave.

    `told` are edges that left before and may leave again.
    """
    k = k_in_force(question, policy)
    if answer.k != k:
        raise GateError("the K that is told must be the K that is in force")
    names, limits = _names(question), {None, k, _people_for(question, k)}
    for refusal in answer.refusals:
        if refusal.name is not None and refusal.name not in names:
            raise GateError("a refusal may name only what the question named")
        if refusal.limit not in limits:
            raise GateError("a refusal may tell only the limit of a rule")
    if answer.aggregate is not None:
        if question is None or not isinstance(answer.aggregate, ANSWERS[type(question)]):
            raise GateError("this was not asked for")
        _judge_labels(answer.aggregate, question, policy)
        _judge_aggregate(answer.aggregate, question, policy, declared, told)


def _people_for(question: Question | None, k: int) -> int:
    if isinstance(question, PowersQuestion):
        return people_for_powers(k, len(question.lambdas))
    return people_needed(question, k)


def _judge_labels(aggregate: Aggregate, question: Question, policy: Policy) -> None:
    """Only variables that the policy allows, only groups that were asked for, and each once."""
    if isinstance(question, CatalogueQuestion):
        return
    groups = set(question.groups or ()) if question.by is not None else set()
    if not all(policy.allows(name) for name in _names(question) - groups):
        raise GateError("the policy does not allow this variable")
    parts = (getattr(aggregate, field, ()) for field in ("sizes", "moments", "groups"))
    told = [part.group for field in parts for part in field]
    labels = set(told)
    if len(labels) < len(told):
        raise GateError("a group must be told once")
    asked = {EVERYBODY} if question.by is None else groups
    if (question.by is None or question.groups is not None) and not labels <= asked:
        raise GateError("a group that was not asked for must not be named")


def _judge_aggregate(
    aggregate: Aggregate,
    question: Question,
    policy: Policy,
    declared: Codebook,
    told: frozenset[float],
) -> None:
    cells = _Cells(k_in_force(question, policy), policy.zero_cells)
    match aggregate:
        case Catalogue():
            _judge_catalogue(aggregate, policy)
        case Sizes():
            cells.check_people(*(size.n for size in aggregate.sizes))
        case Moments():
            assert isinstance(question, CohortQuestion)  # judged before
            _judge_moments(aggregate, _Cells(cells.k, nobody_told(question, policy)))
        case CenterTable():
            _judge_table(aggregate, question, policy, cells, declared)
        case CenterJoin():
            _judge_join(aggregate, question, policy, cells, declared)
        case Ranks():
            _judge_ranks(aggregate, cells)
        case LatticeTables():
            assert isinstance(question, LatticeQuestion)  # judged before
            own = declared.get(question.variable, Variable())
            judge_lattice(aggregate, question, policy, own, told)
        case GroupRanks():
            _judge_group_ranks(aggregate, question, cells)
        case SurvivalTables():
            assert isinstance(question, SurvivalQuestion)  # judged before
            own = declared.get(question.variable, Variable())
            judge_survival(aggregate, question, policy, own)
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
        if min(counts, default=0) < self.k:
            raise GateError(f"a statistic must speak for at least {self.k} people")


def _names(question: Question | None) -> set[str]:
    """Every name that the question itself uses; a refusal may repeat no other."""
    if question is None or isinstance(question, CatalogueQuestion):
        return set()
    used = {question.variable, *(question.groups or ())}
    if question.by is not None:
        used.add(question.by)
    if isinstance(question, OutcomeQuestion):
        used.add(question.event)
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
        _judge_values(group.values)
        few = group.values if group.values else SD_NEEDS
        if few < MEAN_NEEDS and group.mean is not None:
            raise GateError(f"a mean needs {MEAN_NEEDS} different values")
        if few < SD_NEEDS and group.sd is not None:
            raise GateError(f"a standard deviation needs {SD_NEEDS} different values")
        if not all(isfinite(x) for x in (group.mean, group.sd) if x is not None):
            raise GateError("moments must be finite")


def _judge_values(*values: int) -> None:
    if not all(0 <= different <= SD_NEEDS for different in values):
        raise GateError(f"different values are counted up to {SD_NEEDS}")


def _judge_ranks(ranks: Ranks, cells: _Cells) -> None:
    cells.check_people(ranks.n_x, ranks.n_y)
    _judge_values(ranks.values_x, ranks.values_y)
    if any(0 < values < SD_NEEDS for values in (ranks.values_x, ranks.values_y)):
        raise GateError(f"rank statistics need {SD_NEEDS} different values")
    if not abs(ranks.u) <= ranks.n_x * ranks.n_y:
        raise GateError("u must not exceed the number of pairs")
    if not (0 <= ranks.variance < inf and 0 <= ranks.effect_variance < inf):
        raise GateError("variances must be finite and not negative")


def _judge_group_ranks(ranks: GroupRanks, question: Question, cells: _Cells) -> None:
    assert isinstance(question, GroupRanksQuestion)  # judged before
    sizes = {group.group: group.n for group in ranks.groups}
    cells.check_people(*sizes.values())
    _judge_values(*(group.values for group in ranks.groups))
    if any(0 < group.values < SD_NEEDS for group in ranks.groups):
        raise GateError(f"rank statistics need {SD_NEEDS} different values in every group")
    if len(sizes) < 2:
        raise GateError("ranks must be of at least two groups")
    if [(pair.x, pair.y) for pair in ranks.pairs] != list(combinations(sizes, 2)):
        raise GateError("there must be one pair for each two groups")
    if not all(abs(pair.u) <= sizes[pair.x] * sizes[pair.y] for pair in ranks.pairs):
        raise GateError("u must not exceed the number of pairs")
    if ranks.trend_variance is not None and not question.ordered:
        raise GateError("the variance of a trend was not asked for")
    told = [v for pair in ranks.pairs for v in (pair.variance, pair.effect_variance)]
    told += [ranks.rank_variance, ranks.trend_variance or 0.0]
    if not all(0 <= variance < inf for variance in told):
        raise GateError("variances must be finite and not negative")


def _judge_powers(powers: Powers, question: Question, policy: Policy, cells: _Cells) -> None:
    assert isinstance(question, PowersQuestion)  # judged before
    asked = len(question.lambdas)
    if not 1 <= asked <= policy.powers or not all(-1 <= lam <= 2 for lam in question.lambdas):
        raise GateError(f"at least one and at most {policy.powers} powers in [-1, 2] may be told")
    for group in powers.groups:
        cells.check_people(group.n)
        _judge_values(group.values)
        if group.n < people_for_powers(cells.k, asked):
            raise GateError(f"{asked} powers need {people_for_powers(cells.k, asked)} people")
        if 0 < group.rare < people_for_powers(cells.k, asked):
            raise GateError("powers must speak for enough people of rare values")
        if 0 < group.values < SD_NEEDS:
            raise GateError(f"powers need {SD_NEEDS} different values")
        if not len(group.means) == len(group.variances) == asked:
            raise GateError("each power must have one mean and one variance")
        if not all(map(isfinite, (group.log_sum, *group.means, *group.variances))):
            raise GateError("moments must be finite")


def _judge_table(
    table: CenterTable, question: Question, policy: Policy, cells: _Cells, declared: Codebook
) -> None:
    assert isinstance(question, TableQuestion)  # judged before
    own = declared.get(question.variable, Variable())
    _judge_limits(question.limits, policy, (table.lower, own.lower), (table.upper, own.upper))
    _judge_edges(table.edges)
    for group in table.groups:
        if len(group.counts) != len(table.edges) + 1:
            raise GateError("a table must have one count per bin")
        cells.check(*group.counts, sum(group.counts))


def _judge_join(
    join: CenterJoin, question: Question, policy: Policy, cells: _Cells, declared: Codebook
) -> None:
    assert isinstance(question, JoinQuestion)  # judged before
    own = declared.get(question.variable, Variable())
    lower = join.lower, own.lower, question.lower
    _judge_limits(question.limits, policy, lower, (join.upper, own.upper, question.upper))
    _judge_edges(join.splits)
    edges = sorted({*question.edges, *join.splits})
    if len(edges) != len(question.edges) + len(join.splits):
        raise GateError("a split must not repeat an edge")
    for group in join.groups:
        cells.check(*group.counts, sum(group.counts))
        if sum(group.spans) != len(edges) + 1 or min(group.spans, default=1) < 1:
            raise GateError("pools must cover every bin once")
        if len(group.spans) != len(group.counts):
            raise GateError("each pool must have one count")
        if 0 in group.counts[1:-1]:
            raise GateError("empty bins inside must not be told apart")


def _judge_limits(
    asked: Limits, policy: Policy, lower: tuple[float | None, ...], upper: tuple[float | None, ...]
) -> None:
    """Each tuple: the limit that is told, then those that are public already."""
    if asked not in policy.limits:
        raise GateError(f"the policy does not allow {asked} outer limits")
    for told, *public in (lower, upper):
        if told is None or asked == "buffer":
            continue
        if asked == "open":
            raise GateError("open outer limits must stay open")
        if told not in public:
            raise GateError("natural outer limits must be the declared ones")


def _judge_edges(edges: tuple[float, ...]) -> None:
    if not all(map(isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise GateError("edges must be finite and ascend")
