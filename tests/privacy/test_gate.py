"""The gate: only it makes a release, every aggregate has a rule, and what breaks K raises."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import polars as pl
import pytest

from unpooled.center.gate import Gate, Release
from unpooled.center.keys import CenterKey
from unpooled.center.ledger import Ledger
from unpooled.center.memory.memory import Memory
from unpooled.center.memory.memory_file import MemoryFile
from unpooled.center.memory.proposal import Group, Proposal
from unpooled.center.memory.speaking import people_told
from unpooled.center.memory.units import Members, Units
from unpooled.center.policy import Policy
from unpooled.data.sources import open_source
from unpooled.data.variables import Variable
from unpooled.errors import GateError, LedgerError
from unpooled.questions import (
    Aggregate,
    Answer,
    Catalogue,
    CatalogueQuestion,
    CellTable,
    CenterJoin,
    CenterTable,
    FollowUpQuestion,
    GroupCounts,
    GroupLoss,
    GroupMoments,
    GroupPools,
    GroupPowers,
    GroupRanks,
    GroupRanksQuestion,
    GroupStatuses,
    GroupTables,
    JoinQuestion,
    LatticeQuestion,
    LatticeTables,
    Losses,
    LossQuestion,
    Moments,
    MomentsQuestion,
    Named,
    PairRanks,
    Powers,
    PowersQuestion,
    Question,
    RankedGroup,
    Ranks,
    RanksQuestion,
    Reason,
    Refusal,
    Size,
    Sizes,
    SizesQuestion,
    SurvivalQuestion,
    SurvivalTables,
    TableQuestion,
)

TABLE = TableQuestion(variable="los")
JOIN = JoinQuestion(variable="los", edges=(2.0, 4.0))


def gate(policy: Policy | None = None, los: Variable | None = None) -> Gate:
    ledger = Ledger("Haifa", CenterKey.from_seed(1, "Haifa"))
    memory = Memory(
        10,
        MemoryFile("Haifa", None, ledger),
        open_source(pl.DataFrame({"los": [1.0], "age": [1.0]})),
    )
    declared = {"los": los or Variable(lower=0)}
    return Gate("Haifa", policy or Policy(), ledger, declared, memory)


def proposal(question: Question, aggregate: Aggregate) -> Proposal | None:
    """For whom an answer would speak: for other people in each group, none of them told before."""
    if isinstance(question, CatalogueQuestion):
        return None
    groups, end = [], 0
    for name, n in people_told(aggregate, question).items():
        people = np.arange(end, end + n)
        groups.append(Group(name, Members(people), Members(people[:0])))
        end += n
    return gate().memory.propose(question, 10, Units(end), groups, table=10)


def answer(question: Question | None = None, **fields: Any) -> Answer:
    return Answer(k=max(10, getattr(question, "k", None) or 0), **fields)


def table(*counts: int, edges: tuple[float, ...] | None = None, **limits: float) -> CenterTable:
    inner = tuple(range(1, len(counts))) if edges is None else edges
    outer = {"lower": None, "upper": None, **limits}
    return CenterTable(
        edges=tuple(map(float, inner)), groups=(GroupCounts(group="all", counts=counts),), **outer
    )


def pools(spans: tuple[int, ...], counts: tuple[int, ...], *splits: float) -> CenterJoin:
    groups = (GroupPools(group="all", spans=spans, counts=counts),)
    return CenterJoin(lower=None, splits=splits, upper=None, groups=groups)


def moments(
    n: int = 50,
    missing: int | None = 0,
    values: int = 0,
    mean: float | None = 1.0,
    sd: float | None = 1.0,
) -> Moments:
    group = GroupMoments(group="all", n=n, missing=missing, values=values, mean=mean, sd=sd)
    return Moments(moments=(group,))


def ranks(n_x: int = 10, values_y: int = 0, u: float = 3.0, variance: float = 5.0) -> Ranks:
    return Ranks(
        n_x=n_x,
        n_y=10,
        values_x=0,
        values_y=values_y,
        u=u,
        variance=variance,
        effect_variance=0.1,
    )


def group_ranks(
    n: tuple[int, ...] = (10, 12, 14),
    values: int = 0,
    u: float = 3.0,
    variance: float = 5.0,
    pairs: tuple[str, ...] = ("ab", "ac", "bc"),
    rank_variance: float = 9.0,
    trend_variance: float | None = None,
) -> GroupRanks:
    groups = zip("abc", n, (0, 0, values), strict=False)
    return GroupRanks(
        groups=tuple(RankedGroup(group=g, n=people, values=v) for g, people, v in groups),
        pairs=tuple(
            PairRanks(x=pair[0], y=pair[1], u=u, variance=variance, effect_variance=0.1)
            for pair in pairs
        ),
        rank_variance=rank_variance,
        trend_variance=trend_variance,
    )


def powers(
    n: int = 30, values: int = 0, rare: int = 0, means: tuple[float, ...] = (1.0, 2.0)
) -> Powers:
    group = GroupPowers(
        group="all",
        n=n,
        values=values,
        rare=rare,
        log_sum=1.0,
        means=means,
        variances=(1.0, 2.0),
    )
    return Powers(groups=(group,))


def cells(
    *counts: int,
    edges: tuple[float, ...] = (1.0, 2.0, 4.0),
    scale: float = 2.0,
    resolution: float | None = None,
    lower: float | None = 0.0,
    **told: tuple[Any, ...],
) -> LatticeTables:
    """Tables on the lattice of tenths of 2, from 0 on; units: 1/50 of outer cells, 1/10 of inner.

    The last cell is open: its moments are those of v, in units of 1/1000.
    """
    nothing = (None,) * len(counts)
    columns = dict.fromkeys(("means", "sds", "values", "dominated"), nothing)
    table = CellTable(edges=edges[: len(counts) - 1], counts=counts, **{**columns, **told})
    groups = (GroupTables(group="all", tables=(table,)),)
    return LatticeTables(scale=scale, groups=groups, resolution=resolution, lower=lower)


def first_cell(mean: float | None, sd: float | None, values: int = 8, one: bool = False) -> Any:
    """What a table of two cells tells of the first."""
    return {
        "means": (mean, None),
        "sds": (sd, None),
        "values": (values, None),
        "dominated": (one, None),
    }


def last_cell(mean: float, sd: float) -> Any:
    """What a table of two cells tells of the last."""
    return {
        "means": (None, mean),
        "sds": (None, sd),
        "values": (None, 8),
        "dominated": (None, False),
    }


def survival(
    scale: float = 2.0, resolution: float | None = None, **parts: tuple[int, ...] | str | None
) -> SurvivalTables:
    """Statuses on the lattice of tenths of 2 from 0 to 9; each part is a table of these counts."""
    told: dict[str, Any] = dict.fromkeys(("events", "censored", "either", "below"))
    for name, part in parts.items():
        tables = cells(*part).groups[0].tables if isinstance(part, tuple) and part else ()
        told[name] = part if isinstance(part, str) or part is None else tables
    groups = (GroupStatuses(group="all", **told),)
    return SurvivalTables(scale=scale, groups=groups, resolution=resolution)


FOLLOW_UP = FollowUpQuestion(variable="los", event="died")
SURVIVAL = SurvivalQuestion(variable="los", event="died", horizon=9.0)
LATTICE = LatticeQuestion(variable="los")
NO_MOMENTS = LatticeQuestion(variable="los", moments="none")
INNER: Any = {
    "means": (None, 1.5, None),
    "values": (None, 8, None),
    "dominated": (None, False, None),
}
RANKS = RanksQuestion(variable="los", by="arm", groups=("a", "b"))
GROUPS = GroupRanksQuestion(variable="los", by="arm", groups=("a", "b", "c"))
TREND = GroupRanksQuestion(variable="los", by="arm", groups=("a", "b", "c"), ordered=True)
POWERS = PowersQuestion(variable="los", lambdas=(0.0, 1.0))
LOSSES = Losses(groups=(GroupLoss(group="all", n=30, loss=(1.0,), below=(1.0,), at_most=(1.0,)),))
LEGAL: list[tuple[Question, Aggregate]] = [
    (CatalogueQuestion(), Catalogue(variables=(Named(name="los", kind="float"),))),
    (SizesQuestion(variable="los"), Sizes(sizes=(Size(group="all", n=10),))),
    (MomentsQuestion(variable="los"), moments()),
    (TABLE, table(10, 0, 12)),
    (JOIN, pools((2, 1), (10, 12))),
    (TableQuestion(variable="los", limits="natural"), table(10, 10, lower=0.0)),
    (JOIN, pools((1, 1, 1, 1), (10, 12, 11, 10), 3.0)),
    (RANKS, ranks()),
    (GROUPS, group_ranks()),
    (GROUPS, group_ranks((10, 12), pairs=("ab",))),
    (TREND, group_ranks(trend_variance=7.0)),
    (POWERS, powers()),
    (FOLLOW_UP, moments()),
    (SURVIVAL, survival(events=(10, 12), censored=(11,))),
    (SURVIVAL, survival(events=(), censored=(10, 10))),
    (SURVIVAL, survival(either=(11,), below="both")),
    (LATTICE, cells(10, 10, 12)),
    (LATTICE, cells(20)),
    (LATTICE, cells(10, 10, **first_cell(0.52, 0.3))),
    (LATTICE, cells(10, 10, **first_cell(0.52, 0.01))),  # half a unit stands for less
    (LATTICE, cells(10, 10, **first_cell(0.123, 0.0, values=0))),  # one value, shared by all
    (LATTICE, cells(10, 10, **last_cell(0.125, 0.1))),
]

ILLEGAL: list[tuple[Question, Aggregate, str]] = [
    (LATTICE, cells(10, 10, **last_cell(0.1255, 0.1)), "rounded"),
    (LATTICE, cells(10, 10, **last_cell(5.0, 0.1)), "a scale that ends"),
    (LATTICE, cells(10, 10, **last_cell(-0.125, 0.1)), "a scale that ends"),
    (LATTICE, cells(10, 10, **last_cell(0.125, 2.0)), "a scale that ends"),
    (FOLLOW_UP, moments(n=9), "at least 10"),
    (FOLLOW_UP, survival(events=(10,), censored=(11,)), "not asked for"),
    (SURVIVAL, survival(events=(10, 9), censored=(11,)), "at least 10"),
    (SURVIVAL, survival(events=(9,), censored=(11,)), "at least 10"),
    (SURVIVAL, survival(events=(), censored=()), "0 or at least 10"),
    (SURVIVAL, survival(events=(10,), censored=None), "both statuses must be told"),
    (SURVIVAL, survival(events=(10,), censored=(11,), either=(21,)), "both statuses"),
    (SURVIVAL, survival(events=(10,), either=(21,), below="censored"), "neither is told"),
    (SURVIVAL, survival(below="events"), "neither is told"),
    (SURVIVAL, survival(either=(19,), below="both"), "cannot have fewer than 10 of so many"),
    (SURVIVAL, survival(scale=3.0, events=(10,), censored=(11,)), "power of ten"),
    (
        SurvivalQuestion(variable="los", event="died", horizon=0.0),
        survival(events=(10,), censored=(11,)),
        "horizon must be positive",
    ),
    (
        SurvivalQuestion(variable="los", event="died", horizon=1.0),
        survival(events=(10, 10), censored=(11,)),
        "within the declared limits",
    ),
    (
        SurvivalQuestion(variable="los", event="died", horizon=9.3),
        survival(events=(10,), censored=(11,), resolution=1.0),
        "a usual one",
    ),
    (LATTICE, cells(10, 9, 12), "at least 10"),
    (LATTICE, cells(10, 0, 12), "at least 10"),
    (LATTICE, cells(19), "at least 20"),
    (LatticeQuestion(variable="los", k=20), cells(20, 19), "at least 20"),
    (LATTICE, cells(10, 10, edges=(1.03,)), "points of the public lattice"),
    (LATTICE, cells(10, 10, edges=(-1.0,)), "within the declared limits"),
    (LATTICE, cells(10, 10, 10, edges=(2.0, 1.0)), "ascend"),
    (LATTICE, cells(10, 10, edges=()), "one count"),
    (LATTICE, cells(10, 10, edges=(1.03,), scale=0.3), "power of ten"),
    (LATTICE, cells(10, 10, edges=(0.5,), resolution=0.3), "a usual one"),
    (LATTICE, cells(10, 10, edges=(0.5,), resolution=0.0), "a usual one"),
    (LATTICE, cells(10, 10, edges=(500.0,), resolution=1000.0), "a usual one"),
    (LATTICE, cells(10, 10, edges=(1.0,), resolution=1.0), "points of the public lattice"),
    (LATTICE, cells(10, 10, means=(0.5,)), "one entry"),
    (LATTICE, cells(10, 10, 10, **INNER), "does not allow the moments"),
    (
        LatticeQuestion(variable="los", moments="none"),
        cells(10, 10, **first_cell(0.5, None)),
        "mom",
    ),
    (LATTICE, cells(10, 10, means=(0.5, None)), "how many values"),
    (LATTICE, cells(10, 10, **first_cell(0.5, None, values=2)), "a mean needs 3"),
    (LATTICE, cells(10, 10, **first_cell(0.5, None, values=1)), "a mean needs 3"),
    (LATTICE, cells(10, 10, **first_cell(0.5, 0.3, values=7)), "deviation needs 8"),
    (LATTICE, cells(10, 10, **first_cell(None, 0.3)), "deviation needs 8"),
    (LATTICE, cells(10, 10, **first_cell(0.5, 0.3, one=True)), "one person"),
    (LATTICE, cells(10, 10, **first_cell(0.5, None, values=7, one=True)), "of few values"),
    (LATTICE, cells(10, 10, **first_cell(None, None, values=1, one=True)), "of few values"),
    (LATTICE, cells(10, 10, **first_cell(0.513, 0.3)), "rounded"),
    (LATTICE, cells(10, 10, **first_cell(0.5, 0.313)), "rounded"),
    (LATTICE, cells(10, 10, **first_cell(0.5, 0.0)), "enough people share"),
    (LATTICE, cells(10, 10, **first_cell(77.1, 0.0, values=0)), "lie in its cell"),
    (LATTICE, cells(10, 10, **first_cell(0.5, None, values=123)), "counted up to 8"),
    (LATTICE, cells(10, 10, **first_cell(0.5, None, values=-5)), "counted up to 8"),
    (LATTICE, LatticeTables(scale=2.0, lower=0.0, groups=cells(10, 10).groups * 2), "told once"),
    (LATTICE, cells(10, 10, **first_cell(0.5, -0.02)), "finite"),
    (
        LATTICE,
        LatticeTables(scale=2.0, lower=0.0, groups=(GroupTables(group="all", tables=()),)),
        "a table",
    ),
    (LATTICE, cells(10, 10, lower=None), "the declared ones"),
    (SizesQuestion(variable="los"), Sizes(sizes=(Size(group="all", n=9),)), "at least 10"),
    (SizesQuestion(variable="los", k=20), Sizes(sizes=(Size(group="all", n=19),)), "at least 20"),
    (SizesQuestion(variable="los"), Sizes(sizes=(Size(group="all", n=-10),)), "at least 10"),
    (MomentsQuestion(variable="los"), moments(n=9), "at least 10"),
    (MomentsQuestion(variable="los"), moments(missing=3), "at least 10"),
    (MomentsQuestion(variable="los", where="los > 1"), moments(missing=0), "at least 10"),
    (
        SurvivalQuestion(variable="los", event="died", horizon=9.0, where="los > 1"),
        survival(events=(), censored=(10, 10)),
        "at least 10",
    ),
    (MomentsQuestion(variable="los"), moments(values=2, sd=None), "a mean needs 3"),
    (MomentsQuestion(variable="los"), moments(values=7), "deviation needs 8"),
    (TABLE, table(10, 9), "at least 10"),
    (TABLE, table(10, 1, 10), "at least 10"),
    (TABLE, table(10, 10, edges=(1.0, 2.0)), "one count per bin"),
    (TABLE, table(10, 10, 10, edges=(2.0, 1.0)), "ascend"),
    (TABLE, table(10, 10, lower=0.0), "must stay open"),
    (TableQuestion(variable="los", limits="buffer"), table(10, 10, upper=9.5), "buffer"),
    (JOIN, table(10, 10), "not asked for"),
    (TABLE, pools((3,), (10,)), "not asked for"),
    (JOIN, pools((2, 1), (10, 3)), "at least 10"),
    (JOIN, pools((2,), (10,)), "cover every bin"),
    (JOIN, pools((1, 1, 1), (10, 0, 10)), "told apart"),
    (JOIN, pools((1, 2), (10, 10, 10)), "one count"),
    (JOIN, pools((1, 1, 1), (10, 10, 10), 2.0), "must not repeat"),
    (RANKS, ranks(n_x=9, u=5.0), "at least 10"),
    (RANKS, ranks(values_y=7), "need 8 different values"),
    (RANKS, ranks(u=101.0), "number of pairs"),
    (RANKS, ranks(variance=-1.0), "not negative"),
    (GROUPS, group_ranks((10, 9, 14)), "at least 10"),
    (GROUPS, group_ranks(values=7), "need 8 different values in every group"),
    (GROUPS, group_ranks(values=1), "need 8 different values in every group"),
    (GROUPS, group_ranks(u=121.0), "number of pairs"),
    (GROUPS, group_ranks(variance=-1.0), "not negative"),
    (GROUPS, group_ranks(rank_variance=-1.0), "not negative"),
    (GROUPS, group_ranks(pairs=("ab", "ac")), "one pair for each two"),
    (GROUPS, group_ranks((10, 12), pairs=("ab", "ac")), "one pair for each two"),
    (GROUPS, group_ranks((10,), pairs=()), "at least two"),
    (GROUPS, group_ranks(trend_variance=7.0), "was not asked for"),
    (TREND, group_ranks(trend_variance=-7.0), "not negative"),
    (GROUPS, ranks(), "not asked for"),
    (RANKS, group_ranks(), "not asked for"),
    (GroupRanksQuestion(variable="los", by="arm", groups=("a", "b")), group_ranks(), "be named"),
    (GroupRanksQuestion(variable="los", by="arm", k=20), group_ranks(), "at least 20"),
    (POWERS, powers(n=29), "2 powers need 30 people"),
    (POWERS, powers(values=2), "need 8 different values"),
    (POWERS, powers(values=8, rare=29), "rare values"),
    (MomentsQuestion(variable="los"), moments(values=1), "a mean needs 3"),
    (MomentsQuestion(variable="los"), moments(values=99), "counted up to 8"),
    (MomentsQuestion(variable="los"), moments(values=-5, mean=None, sd=None), "counted up to 8"),
    (RANKS, ranks(values_y=99), "counted up to 8"),
    (RANKS, ranks(values_y=-5), "counted up to 8"),
    (GROUPS, group_ranks(values=99), "counted up to 8"),
    (POWERS, powers(values=-5), "counted up to 8"),
    (SizesQuestion(variable="los"), moments(), "not asked for"),
    (SizesQuestion(variable="los"), Sizes(sizes=(Size(group="Smith", n=10),)), "not be named"),
    (
        SizesQuestion(variable="los", by="arm", groups=("a",)),
        Sizes(sizes=(Size(group="Smith", n=10),)),
        "not be named",
    ),
    (TableQuestion(variable="los", limits="natural"), table(10, 10, lower=0.5), "declared"),
    (POWERS, powers(means=(1.0,)), "one mean and one variance"),
    (TABLE, powers(), "not asked for"),
    (PowersQuestion(variable="los", lambdas=(3.0, 1.0)), powers(), r"in \[-1, 2\]"),
    (PowersQuestion(variable="los", lambdas=(0.0,) * 8), powers(), "at most 7 powers"),
    (LossQuestion(variable="los", points=(1.0,), p=(0.5,)), LOSSES, "quantile loss"),
]


TOLD_TWICE = [
    (question, aggregate, field)
    for question, aggregate in [
        *LEGAL,
        (LossQuestion(variable="los", points=(1.0,), p=(0.5,)), LOSSES),
    ]
    for field in ("sizes", "moments", "groups")
    if hasattr(aggregate, field)
]


@pytest.mark.parametrize(("question", "aggregate", "field"), TOLD_TWICE)
def test_no_group_is_told_twice(question: Question, aggregate: Any, field: str) -> None:
    """Its second number would be judged as if of other people: the memory knows one of them."""
    parts = getattr(aggregate, field)
    twice = msgspec.structs.replace(aggregate, **{field: (*parts, parts[0])})
    door = gate(Policy(quantile_loss=True))
    with pytest.raises(GateError, match="told once"):
        door.release(question, answer(question, aggregate=twice), proposal(question, aggregate))
    assert len(door.ledger) == 0


@pytest.mark.parametrize(("question", "aggregate"), LEGAL)
def test_what_keeps_the_rules_leaves_and_is_recorded(
    question: Question, aggregate: Aggregate
) -> None:
    door = gate()
    told = answer(question, aggregate=aggregate)
    release = door.release(question, told, proposal(question, aggregate))
    (entry,) = door.ledger
    assert entry.answer.encode() == release.payload
    assert entry.kind == "release"


@pytest.mark.parametrize(("question", "aggregate", "rule"), ILLEGAL)
def test_what_breaks_a_rule_raises_and_nothing_is_recorded(
    question: Question, aggregate: Aggregate, rule: str
) -> None:
    door = gate()
    with pytest.raises(GateError, match=rule):
        door.release(question, answer(question, aggregate=aggregate))
    assert len(door.ledger) == 0


def test_a_policy_may_forbid_to_say_nobody() -> None:
    with pytest.raises(GateError, match="at least 10"):
        gate(Policy(zero_cells=False)).release(TABLE, answer(aggregate=table(10, 0)))


def test_all_moments_leave_only_where_the_policy_says_so() -> None:
    inner = cells(10, 10, 10, **INNER)
    told = proposal(LATTICE, inner)
    gate(Policy(moments="all")).release(LATTICE, answer(aggregate=inner), told)
    fewer = LatticeQuestion(variable="los", moments="tails")
    with pytest.raises(GateError, match="does not allow the moments"):
        gate(Policy(moments="all")).release(fewer, answer(aggregate=inner))
    more = LatticeQuestion(variable="los", moments="all")
    with pytest.raises(GateError, match="does not allow the moments"):
        gate().release(more, answer(aggregate=inner))


def test_a_declared_scale_fixes_the_lattice() -> None:
    door = gate(los=Variable(scale=3.0, atoms=(0.0,)))
    inside = cells(10, 10, edges=(0.4,), scale=3.0, lower=None)
    sides = cells(10, 10, 10, edges=(-5e-324, 0.0), scale=3.0, lower=None)  # an atom's two sides
    for said in (inside, sides):
        door.release(LATTICE, answer(aggregate=said), proposal(LATTICE, said))
    with pytest.raises(GateError, match="declared scale"):
        door.release(LATTICE, answer(aggregate=cells(10, 10, edges=(0.4,), scale=2.0)))


def test_the_loss_leaves_only_where_the_policy_turned_it_on() -> None:
    question = LossQuestion(variable="los", points=(1.0,), p=(0.5,))
    door = gate(Policy(quantile_loss=True))
    door.release(question, answer(aggregate=LOSSES), proposal(question, LOSSES))


def test_the_k_that_is_told_is_the_k_in_force() -> None:
    with pytest.raises(GateError, match="K that is told"):
        gate().release(TABLE, Answer(k=5, aggregate=table(10)))


def test_a_catalogue_lists_only_what_the_policy_allows() -> None:
    door = gate(Policy(variables=("age",)))
    catalogue = Catalogue(variables=(Named(name="los", kind="float"),))
    with pytest.raises(GateError, match="policy allows"):
        door.release(CatalogueQuestion(), answer(aggregate=catalogue))


def test_a_refusal_repeats_only_what_the_question_named() -> None:
    door = gate()
    question = SizesQuestion(variable="los", by="arm", groups=("a",), where="age > 1")
    for name in ("los", "arm", "a", "age", None):
        refusal = Refusal(reason=Reason.TOO_SMALL, name=name, limit=10)
        door.release(question, answer(question, aggregate=None, refusals=(refusal,)))
    smith = Refusal(reason=Reason.TOO_SMALL, name="Smith")
    with pytest.raises(GateError, match="only what the question named"):
        door.release(question, answer(question, aggregate=None, refusals=(smith,)))


def test_a_refusal_tells_only_the_limit_of_a_rule() -> None:
    seven = Refusal(reason=Reason.TOO_SMALL, limit=7)
    with pytest.raises(GateError, match="only the limit"):
        gate().release(TABLE, answer(aggregate=None, refusals=(seven,)))


def test_a_variable_that_the_policy_does_not_allow_never_leaves() -> None:
    with pytest.raises(GateError, match="does not allow this variable"):
        gate(Policy(variables=("age",))).release(TABLE, answer(aggregate=table(10)))


def test_a_release_cannot_be_made_by_hand() -> None:
    with pytest.raises(GateError, match="only the gate"):
        Release("Haifa", b"{}", object())
    with pytest.raises(TypeError):
        Release("Haifa", b"{}")  # type: ignore[call-arg]
    release = gate().release(TABLE, answer(aggregate=table(10)), proposal(TABLE, table(10)))
    with pytest.raises(AttributeError):
        release.payload = b"more"  # type: ignore[misc]


def test_nothing_leaves_that_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    door = gate()

    def full(*_: object) -> None:
        raise LedgerError("no space left on device")

    monkeypatch.setattr(door.ledger, "append", full)
    with pytest.raises(LedgerError):
        door.release(TABLE, answer(aggregate=table(10)), proposal(TABLE, table(10)))


def test_an_answer_about_people_is_judged_beside_earlier_ones() -> None:
    door = gate()
    with pytest.raises(GateError, match="beside earlier ones"):
        door.release(TABLE, answer(aggregate=table(10)))
    with pytest.raises(GateError, match="people that are remembered"):
        door.release(TABLE, answer(aggregate=table(10)), proposal(TABLE, table(11)))
    age = TableQuestion(variable="age")
    with pytest.raises(GateError, match="beside earlier ones"):
        door.release(TABLE, answer(aggregate=table(10)), proposal(age, table(10)))
    assert len(door.ledger) == 0


def test_every_aggregate_is_tried_above() -> None:
    kinds = set(get_args(Aggregate))
    assert {type(aggregate) for _, aggregate in LEGAL} | {Losses} == kinds
    assert {type(aggregate) for _, aggregate, _ in ILLEGAL} | {Catalogue} == kinds


def test_an_aggregate_without_a_rule_fails_type_checking(tmp_path: Path) -> None:
    package = tmp_path / "unpooled"
    shutil.copytree(Path(__file__).parents[2] / "src" / "unpooled", package)
    messages = package / "messages" / "aggregates.py"
    text = messages.read_text()
    union = "\nAggregate = (\n    Catalogue"
    assert union in text
    messages.write_text(
        text.replace(
            union,
            f'\nclass Extremes(Message, tag="extremes", tag_field="say"):\n    '
            f"highest: float\n\n{union} | Extremes",
        )
    )
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-incremental",
            "--follow-imports=silent",
            "--ignore-missing-imports",
            str(package / "rules.py"),
        ],
        cwd=tmp_path,
        env={"MYPYPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "assert_never" in checked.stdout
    assert "Extremes" in checked.stdout
