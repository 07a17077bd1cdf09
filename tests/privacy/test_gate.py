"""The gate: only it makes a release, every answer says what it tells, and what breaks K raises."""

from collections.abc import Iterable, Iterator, Sequence
from types import new_class
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
import pytest

from unpooled.center import gate as gates
from unpooled.center.cohort.people import Rows, find_cohort
from unpooled.center.data.sources import open_source
from unpooled.center.data.variables import Variable
from unpooled.center.gate import Asked, Gate, Release
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    ANSWERS,
    Aggregate,
    Answer,
    Catalogue,
    CatalogueQuestion,
    Categories,
    CategoryQuestion,
    CellTable,
    CenterJoin,
    CenterTable,
    CohortQuestion,
    Disclosure,
    FollowUpQuestion,
    GroupCounts,
    GroupLevels,
    GroupMoments,
    GroupPools,
    GroupPowers,
    GroupRanks,
    GroupRanksQuestion,
    GroupStatuses,
    GroupTable,
    JoinQuestion,
    JointQuestion,
    LatticeQuestion,
    LatticeTables,
    LevelCount,
    Message,
    Moments,
    MomentsQuestion,
    Named,
    PairRanks,
    People,
    Powers,
    PowersQuestion,
    ProtocolCheckQuestion,
    ProtocolQuestion,
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
    Terms,
    encode,
)
from unpooled.center.questions.powers import NUMBERS
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import Ledger
from unpooled.center.rule.disclosure import TooClose
from unpooled.center.rule.memory import Memory, MemoryFile
from unpooled.errors import GateError, LedgerError

FREE = Policy(ad_hoc="free", paper_iteration=True)
KEY = CenterKey.from_seed(1, "Haifa")
TABLE = TableQuestion(variable="los")
JOIN = JoinQuestion(variable="los", edges=(2.0, 4.0))


def gate(rows: pl.DataFrame, policy: Policy = FREE, los: Variable | None = None) -> Gate:
    ledger = Ledger("Haifa", KEY)
    memory = Memory(policy.k, len(rows), MemoryFile("Haifa", None, ledger))
    return Gate("Haifa", policy, ledger, {"los": los or Variable(lower=0)}, memory)


def asked(door: Gate, question: Question, rows: pl.DataFrame) -> Asked | None:
    """The people whom a question means, beside all that the door let out."""
    whole = CatalogueQuestion | ProtocolQuestion | ProtocolCheckQuestion | JointQuestion
    if isinstance(question, whole):
        return None
    truth = Rows(open_source(rows), FREE, KEY.secret)
    return Asked(find_cohort(truth, question, Variable(lower=0)), door.memory.state)


def release(
    question: Question,
    aggregate: Aggregate | Catalogue,
    rows: pl.DataFrame | None = None,
    door: Gate | None = None,
) -> Release:
    people = SOME if rows is None else rows
    opened = door or gate(people)
    return opened.release(question, answer(aggregate=aggregate), asked(opened, question, people))


def answer(**fields: Any) -> Answer:
    return Answer(k=10, **fields)


# --- answers, and the people that they are about -------------------------------------------------


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
    missing: int | None = None,
    mean: float | None = 1.0,
    sd: float | None = 1.0,
    unit: float | None = None,
) -> Moments:
    group = GroupMoments(group="all", n=n, missing=missing, mean=mean, sd=sd, unit=unit)
    return Moments(moments=(group,))


def ranks(
    n_x: int = 10, u: float = 5.0, variance: float = 5.0, x: str = "a", y: str = "b"
) -> Ranks:
    return Ranks(x=x, y=y, n_x=n_x, n_y=10, u=u, variance=variance, effect_variance=0.1)


def group_ranks(
    n: tuple[int, ...] = (10, 12, 14),
    u: float = 20.0,
    variance: float = 5.0,
    pairs: tuple[str, ...] = ("ab", "ac", "bc"),
    rank_variance: float = 9.0,
    trend_variance: float | None = None,
) -> GroupRanks:
    return GroupRanks(
        groups=tuple(RankedGroup(group=g, n=people) for g, people in zip("abc", n, strict=False)),
        pairs=tuple(
            PairRanks(x=pair[0], y=pair[1], u=u, variance=variance, effect_variance=0.1)
            for pair in pairs
        ),
        rank_variance=rank_variance,
        trend_variance=trend_variance,
    )


def powers(
    n: int = 2 * NUMBERS, means: tuple[float, ...] = (1.0, 2.0), log_sum: float = 15.0
) -> Powers:
    group = GroupPowers(group="all", n=n, log_sum=log_sum, means=means, variances=(1.0, 2.0))
    return Powers(groups=(group,))


def cells(
    *counts: int,
    edges: tuple[float, ...] = (1.0, 2.0, 4.0),
    scale: float = 2.0,
    resolution: float | None = None,
    lower: float | None = 0.0,
    moments: Literal["none", "tails", "all"] = "tails",
    **answers: tuple[Any, ...],
) -> LatticeTables:
    """Tables on the lattice of tenths of 2, from 0 on."""
    columns = dict.fromkeys(("means", "sds"), (None,) * len(counts))
    part = CellTable(edges=edges[: len(counts) - 1], counts=counts, **{**columns, **answers})
    return LatticeTables(
        scale=scale,
        moments=moments,
        groups=(GroupTable(group="all", table=part),),
        resolution=resolution,
        lower=lower,
    )


def first_cell(mean: float | None, sd: float | None) -> Any:
    """What a table of two cells tells of the first."""
    return {"means": (mean, None), "sds": (sd, None)}


def last_cell(mean: float, sd: float) -> Any:
    """What a table of two cells tells of the last: on the scale that ends at −1 and 1."""
    return {"means": (None, mean), "sds": (None, sd)}


def survival(
    scale: float = 2.0, resolution: float | None = None, **parts: tuple[int, ...] | str | int | None
) -> SurvivalTables:
    """Statuses on the lattice of tenths of 2 from 0 to 9; each part is a table of these counts."""
    answers: dict[str, Any] = dict.fromkeys(("events", "censored", "either", "below"))
    for name, part in parts.items():
        answers[name] = cells(*part).groups[0].table if isinstance(part, tuple) else part
    groups = (GroupStatuses(group="all", **answers),)
    return SurvivalTables(scale=scale, groups=groups, resolution=resolution)


STAGE = CategoryQuestion(variable="stage", levels=("I", "II", "III"), ordered=True)


def stages(
    cells: dict[str, int] | None = None, missing: int | None = None, group: str = "all"
) -> Categories:
    """Levels, those of a cell in one string, and how many people have them."""
    answers = tuple(
        LevelCount(levels=tuple(levels.split()), count=n) for levels, n in (cells or {}).items()
    )
    return Categories(groups=(GroupLevels(group=group, cells=answers, missing=missing),))


def within(edges: Sequence[float], counts: Sequence[int]) -> list[float]:
    """Different values of so many people in each cell."""
    first = edges[0] if len(edges) else 1.0
    limits = [first - 0.9, *edges, (edges[-1] if len(edges) else 0.0) + 4.0]
    return [
        float(value)
        for low, high, n in zip(limits[:-1], limits[1:], counts, strict=True)
        for value in np.linspace(low, high, n + 1)[1:]
    ]


def described(
    question: Question, aggregate: Any
) -> Iterator[tuple[str, Sequence[float | None], int]]:
    """Each group's values, and whether its people had the event."""
    match aggregate:
        case Sizes() | Powers() | GroupRanks():
            for group in aggregate.labels():
                (n,) = (
                    part.n
                    for part in getattr(aggregate, PARTS[type(aggregate)])
                    if part.group == group
                )
                yield group, within((), (n,)), 0
        case Moments(moments=(group,)):
            yield group.group, [*within((), (group.n,)), *[None] * (group.missing or 0)], 0
        case Ranks():
            yield aggregate.x, within((), (aggregate.n_x,)), 0
            yield aggregate.y, within((), (aggregate.n_y,)), 0
        case CenterTable(groups=(group,)):
            yield group.group, within(aggregate.edges, group.counts), 0
        case CenterJoin(groups=(group,)):
            assert isinstance(question, JoinQuestion)
            edges = sorted({*question.edges, *aggregate.splits})
            ends = [edges[end - 1] for end in np.cumsum(group.spans)[:-1]]
            yield group.group, within(ends, group.counts), 0
        case LatticeTables(groups=(group,)):
            yield group.group, within(group.table.edges, group.table.counts), 0
        case Categories(groups=(group,)):
            yield group.group, within((), (group.n,)), 0
        case SurvivalTables(groups=(group,)):
            for status, part in group.tables():
                yield group.group, within(part.edges, part.counts), int(status == 1)
            yield group.group, [9.0] * (group.followed or 0), 0


def people(question: Question, aggregate: Aggregate | Catalogue) -> pl.DataFrame:
    """People whom an answer describes."""
    rows = [
        (value, group, died)
        for group, part, died in described(question, aggregate)
        for value in part
    ]
    schema = {"los": pl.Float64, "arm": pl.String, "died": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    stage = [] if not isinstance(aggregate, Categories) else levels(aggregate)
    return frame.with_row_index("id").with_columns(
        age=pl.lit(40.0),
        stage=pl.Series([*stage, *["I"] * (len(rows) - len(stage))], dtype=pl.String),
    )


def levels(aggregate: Categories) -> list[str]:
    """Each person's level, the first of their cell."""
    return [cell.levels[0] for cell in aggregate.groups[0].cells for _ in range(cell.count)]


PARTS: dict[type[Message], str] = {
    Sizes: "sizes",
    Moments: "moments",
    **dict.fromkeys((GroupRanks, CenterTable, CenterJoin, LatticeTables), "groups"),
    **dict.fromkeys((Powers, SurvivalTables, Categories), "groups"),
}
SOME = pl.DataFrame(
    {
        "id": range(60),
        "los": np.linspace(0.1, 8.0, 60),
        "arm": ["a", "b", "c"] * 20,
        "died": [0, 1] * 30,
        "age": [40.0] * 60,
        "stage": ["I", "II"] * 30,
    }
)
FOLLOW_UP = FollowUpQuestion(variable="los", event="died")
SURVIVAL = SurvivalQuestion(variable="los", event="died", horizon=9.0)
LATTICE = LatticeQuestion(variable="los")
NO_MOMENTS = LatticeQuestion(variable="los", moments="none")
INNER: Any = {"means": (None, 1.5, None)}
RANKS = RanksQuestion(variable="los", by="arm", groups=("a", "b"))
GROUPS = GroupRanksQuestion(variable="los", by="arm", groups=("a", "b", "c"))
TREND = GroupRanksQuestion(variable="los", by="arm", groups=("a", "b", "c"), ordered=True)
POWERS = PowersQuestion(variable="los", lambdas=(0.0, 1.0))
LEGAL: list[tuple[Question, Aggregate | Catalogue]] = [
    (CatalogueQuestion(), Catalogue(variables=(Named(name="los", kind="float"),))),
    (SizesQuestion(variable="los"), Sizes(sizes=(Size(group="all", n=10),))),
    (MomentsQuestion(variable="los"), moments()),
    (MomentsQuestion(variable="los"), moments(missing=12)),
    (MomentsQuestion(variable="los"), moments(sd=None, unit=0.005)),
    (MomentsQuestion(variable="los"), moments(mean=None, sd=None)),
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
    (SURVIVAL, survival(events=None, censored=(10, 10))),
    (SURVIVAL, survival(either=(11,), below="both")),
    (SURVIVAL, survival(either=(11,), below="both", followed=10)),
    (LATTICE, cells(10, 10, 12)),
    (LATTICE, cells(20)),
    (LATTICE, cells(10, 10, **first_cell(0.52, 0.3))),
    (LATTICE, cells(10, 10, **first_cell(0.52, 0.01))),
    (LATTICE, cells(10, 10, **first_cell(0.123, 0.0))),  # one value, shared by all
    (LATTICE, cells(10, 10, **last_cell(0.124, 0.1))),
    (LATTICE, cells(10, 10, **first_cell(0.52, None))),
    (STAGE, stages({"I": 10, "II III": 12})),
    (STAGE, stages({"I": 10, "II": 12, "III": 0})),
]

ILLEGAL: list[tuple[Question, Aggregate, str]] = [
    (STAGE, stages({"I": 10, "II": 9, "III": 12}), "at least 10"),
    (STAGE, stages({"I II III": 9}), "at least 10"),
    (STAGE, stages({"I": 10, "II III": 12}, missing=3), "at least 10"),
    (STAGE, stages({"I II": 10, "II III": 12}), "in one cell"),
    (STAGE, stages({"I": 10, "II": 12}), "those that were asked for"),
    (STAGE, stages({"I": 10, "II": 12, "III Smith": 11}), "those that were asked for"),
    (CategoryQuestion(variable="stage"), stages({"I": 30, "II Smith": 30}), "must not be named"),
    (
        CategoryQuestion(variable="stage", where="los > 1"),
        stages({"I": 10, "II": 0}),
        "nobody has a level must not be said",
    ),
    (LATTICE, cells(10, 10, **last_cell(0.1255, 0.1)), "rounded"),
    (LATTICE, cells(10, 10, **last_cell(5.0, 0.1)), "scale of an open one"),
    (LATTICE, cells(10, 10, **last_cell(-0.125, 0.1)), "scale of an open one"),
    (LATTICE, cells(10, 10, **last_cell(0.125, 2.0)), "a scale that ends"),
    (FOLLOW_UP, moments(n=9), "at least 10"),
    (FOLLOW_UP, survival(events=(10,), censored=(11,)), "not asked for"),
    (SURVIVAL, survival(events=(10, 9), censored=(11,)), "at least 10"),
    (SURVIVAL, survival(events=(9,), censored=(11,)), "at least 10"),
    (SURVIVAL, survival(events=None, censored=None), "both statuses must be given"),
    (SURVIVAL, survival(events=(10,), censored=(11,), either=(21,)), "both statuses"),
    (SURVIVAL, survival(events=(10,), either=(21,), below="censored"), "neither may be given"),
    (SURVIVAL, survival(below="events"), "neither may be given"),
    (
        SurvivalQuestion(variable="los", event="died", horizon=9.0, where="los > 1"),
        survival(events=None, censored=(10, 10)),
        "nobody has a status must not be said",
    ),
    (SURVIVAL, survival(either=(19,), below="both"), "cannot have fewer than 10 people among 19"),
    (SURVIVAL, survival(either=(11,), below="both", followed=9), "at least 10"),
    (SURVIVAL, survival(events=(10,), censored=(11,), followed=10), "are in their table"),
    (SURVIVAL, survival(scale=3.0, events=(10,), censored=(11,)), "power of ten"),
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
    (NO_MOMENTS, cells(10, 10, moments="none", **first_cell(0.5, None)), "does not allow the mom"),
    (NO_MOMENTS, cells(10, 10, moments="tails"), "what is in force"),
    (LATTICE, cells(10, 10, moments="all"), "what is in force"),
    (LATTICE, cells(10, 10, **first_cell(None, 0.3)), "an SD together with a mean"),
    (LATTICE, cells(10, 10, **first_cell(0.513, 0.3)), "rounded"),
    (LATTICE, cells(10, 10, **first_cell(0.5, 0.313)), "rounded"),
    (LATTICE, cells(10, 10, **first_cell(77.1, 0.0)), "lie in its cell"),
    (LATTICE, cells(10, 10, **first_cell(0.5, -0.02)), "that of a cell"),
    (LATTICE, cells(10, 10, lower=None), "the declared ones"),
    (SizesQuestion(variable="los"), Sizes(sizes=(Size(group="all", n=9),)), "at least 10"),
    (SizesQuestion(variable="los"), Sizes(sizes=(Size(group="all", n=-10),)), "at least 10"),
    (MomentsQuestion(variable="los"), moments(n=9), "at least 10"),
    (MomentsQuestion(variable="los"), moments(missing=3), "at least 10"),
    (MomentsQuestion(variable="los"), moments(missing=0), "at least 10"),
    (MomentsQuestion(variable="los", where="los > 1"), moments(missing=0), "at least 10"),
    (MomentsQuestion(variable="los"), moments(mean=1.001), "rounded"),
    (MomentsQuestion(variable="los"), moments(sd=1.001), "rounded"),
    (MomentsQuestion(variable="los"), moments(mean=None), "rounded"),
    (MomentsQuestion(variable="los"), moments(sd=None), "rounded"),
    (MomentsQuestion(variable="los"), moments(mean=1.001, sd=None, unit=0.005), "rounded"),
    (MomentsQuestion(variable="los"), moments(sd=None, unit=0.003), "rounded"),
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
    (JOIN, pools((1, 1, 1), (10, 0, 10)), "must not be separated"),
    (JOIN, pools((1, 2), (10, 10, 10)), "one count"),
    (JOIN, pools((1, 1, 1), (10, 10, 10), 2.0), "must not repeat"),
    (RANKS, ranks(n_x=9), "at least 10"),
    (RANKS, ranks(x="b", y="a"), "the two groups that were asked for"),
    (RANKS, ranks(u=101.0), "number of pairs"),
    (RANKS, ranks(variance=-1.0), "not negative"),
    (RANKS, ranks(u=4.0), "rounded"),
    (RANKS, ranks(variance=5.01), "rounded"),
    (GROUPS, group_ranks((10, 9, 14)), "at least 10"),
    (GROUPS, group_ranks(u=121.0), "number of pairs"),
    (GROUPS, group_ranks(variance=-1.0), "not negative"),
    (GROUPS, group_ranks(rank_variance=-1.0), "not negative"),
    (GROUPS, group_ranks(rank_variance=9.001), "rounded"),
    (TREND, group_ranks(trend_variance=7.001), "rounded"),
    (GROUPS, group_ranks(pairs=("ab", "ac")), "one pair for each two"),
    (GROUPS, group_ranks((10, 12), pairs=("ab", "ac")), "one pair for each two"),
    (GROUPS, group_ranks((10,), pairs=()), "at least two"),
    (GROUPS, group_ranks(trend_variance=7.0), "was not asked for"),
    (TREND, group_ranks(trend_variance=-7.0), "not negative"),
    (GROUPS, ranks(), "not asked for"),
    (RANKS, group_ranks(), "not asked for"),
    (GroupRanksQuestion(variable="los", by="arm", groups=("a", "b")), group_ranks(), "be named"),
    (POWERS, powers(n=2 * NUMBERS - 1), f"need {2 * NUMBERS} people"),
    (POWERS, powers(n=9), "at least 10"),
    (POWERS, powers(log_sum=15.001), "of 4 digits"),
    (POWERS, powers(means=(1.0, 2.0001)), "of 4 digits"),
    (SizesQuestion(variable="los"), moments(), "not asked for"),
    (SizesQuestion(variable="los"), Sizes(sizes=()), "named once"),
    (SizesQuestion(variable="los"), Sizes(sizes=(Size(group="Smith", n=10),)), "not be named"),
    (
        SizesQuestion(variable="los", by="arm", groups=("a",)),
        Sizes(sizes=(Size(group="Smith", n=10),)),
        "not be named",
    ),
    (TableQuestion(variable="los", limits="natural"), table(10, 10, lower=0.5), "declared"),
    (POWERS, powers(means=(1.0,)), "one mean and one variance"),
    (TABLE, powers(), "not asked for"),
    (PowersQuestion(variable="los", lambdas=(3.0, 1.0)), powers(), "moments at these λ"),
    (PowersQuestion(variable="los", lambdas=()), powers(means=()), "moments at these λ"),
    (PowersQuestion(variable="los", lambdas=(0.0, 1.0), where="id >= 0"), powers(), "condition"),
]

DESCRIBED = [(question, legal) for question, legal in LEGAL if isinstance(legal, Aggregate)]
TOLD_TWICE = [(q, legal, PARTS[type(legal)]) for q, legal in DESCRIBED if type(legal) in PARTS]


@pytest.mark.parametrize(("question", "aggregate", "field"), TOLD_TWICE)
def test_no_group_is_told_twice(question: Question, aggregate: Any, field: str) -> None:
    """Two tables of the same people would be one finer table of them."""
    parts = getattr(aggregate, field)
    twice = msgspec.structs.replace(aggregate, **{field: (*parts, parts[0])})
    rows = people(question, aggregate)
    door = gate(rows)
    with pytest.raises(GateError, match="named once"):
        release(question, twice, rows, door)
    assert len(door.ledger) == 0


@pytest.mark.parametrize(("question", "aggregate"), LEGAL)
def test_what_keeps_the_rules_leaves_and_is_recorded(
    question: Question, aggregate: Aggregate | Catalogue
) -> None:
    rows = people(question, aggregate)
    door = gate(rows)
    released = release(question, aggregate, rows, door)
    (entry,) = door.ledger
    assert entry.answer.encode() == released.payload
    assert entry.kind == "release"


@pytest.mark.parametrize(("question", "aggregate", "rule"), ILLEGAL)
def test_what_breaks_a_rule_raises_and_nothing_is_recorded(
    question: Question, aggregate: Aggregate, rule: str
) -> None:
    door = gate(SOME)
    with pytest.raises(GateError, match=rule):
        release(question, aggregate, door=door)
    assert len(door.ledger) == 0


@pytest.mark.parametrize(("question", "aggregate"), DESCRIBED)
@pytest.mark.parametrize("more", [1, 10])
def test_a_count_is_that_of_the_people_who_are_there(
    question: Question, aggregate: Aggregate, more: int
) -> None:
    rows = people(question, aggregate)
    rows = pl.concat([rows, rows[:more]])
    door = gate(rows)
    with pytest.raises(GateError, match="must be that of the people"):
        release(question, aggregate, rows, door)
    assert len(door.ledger) == 0


def test_a_policy_may_forbid_to_say_nobody() -> None:
    aggregate = table(10, 0)
    door = gate(people(TABLE, aggregate), Policy(ad_hoc="free", zero_cells=False))
    with pytest.raises(GateError, match="at least 10"):
        release(TABLE, aggregate, people(TABLE, aggregate), door)
    alone = survival(events=None, censored=(10, 10))
    door = gate(people(SURVIVAL, alone), Policy(ad_hoc="free", zero_cells=False))
    with pytest.raises(GateError, match="nobody has a status must not be said"):
        release(SURVIVAL, alone, people(SURVIVAL, alone), door)


def test_all_moments_leave_only_where_the_policy_says_so() -> None:
    inner = cells(10, 10, 10, moments="all", **INNER)
    rows = people(LATTICE, inner)
    release(LATTICE, inner, rows, gate(rows, Policy(ad_hoc="free", moments="all")))
    more = LatticeQuestion(variable="los", moments="all")
    with pytest.raises(GateError, match="what is in force"):
        release(more, inner, rows)
    fewer = LatticeQuestion(variable="los", moments="tails")
    less = msgspec.structs.replace(inner, moments="tails")
    with pytest.raises(GateError, match="does not allow the moments"):
        release(fewer, less, rows, gate(rows, Policy(ad_hoc="free", moments="all")))


def test_a_declared_scale_fixes_the_lattice() -> None:
    inside = cells(10, 10, edges=(0.4,), scale=3.0, lower=None)
    sides = cells(10, 10, 10, edges=(-5e-324, 0.0), scale=3.0, lower=None)  # an atom's two sides
    declared = Variable(scale=3.0, atoms=(0.0,))
    for each, values in (
        (inside, [0.3, 0.5]),
        (sides, [-1.0, 0.0, 1.0]),
    ):
        rows = pl.DataFrame({"los": np.repeat(values, 10)})
        release(LATTICE, each, rows, gate(rows, los=declared))
    with pytest.raises(GateError, match="declared scale"):
        release(LATTICE, cells(10, 10, edges=(0.4,), scale=2.0), rows, gate(rows, los=declared))


def test_powers_leave_only_where_the_policy_turned_the_papers_iteration_on() -> None:
    rows = people(POWERS, powers())
    release(POWERS, powers(), rows)
    with pytest.raises(GateError, match="does not allow moments at these λ"):
        release(POWERS, powers(), rows, gate(rows, Policy(ad_hoc="free")))


def test_the_k_that_is_told_is_the_k_in_force() -> None:
    door = gate(SOME)
    with pytest.raises(GateError, match="K of an answer"):
        door.release(TABLE, Answer(k=5, aggregate=table(60)), asked(door, TABLE, SOME))


def test_a_catalogue_lists_only_what_the_policy_allows() -> None:
    catalogue = Catalogue(variables=(Named(name="los", kind="float"),))
    with pytest.raises(GateError, match="policy allows"):
        release(CatalogueQuestion(), catalogue, door=gate(SOME, Policy(variables=("age",))))


def test_a_refusal_repeats_only_what_the_question_named() -> None:
    door = gate(SOME)
    question = SizesQuestion(variable="los", by="arm", groups=("a",), where="age > 1")
    for name in ("los", "arm", "a", "age", None):
        refusal = Refusal(reason=Reason.TOO_SMALL, name=name, limit=10)
        door.release(question, answer(aggregate=None, refusals=(refusal,)))
    smith = Refusal(reason=Reason.TOO_SMALL, name="Smith")
    with pytest.raises(GateError, match="only what the question named"):
        door.release(question, answer(aggregate=None, refusals=(smith,)))


def test_a_refusal_tells_only_the_limit_of_a_rule() -> None:
    seven = Refusal(reason=Reason.TOO_SMALL, limit=7)
    with pytest.raises(GateError, match="only the limit"):
        gate(SOME).release(TABLE, answer(aggregate=None, refusals=(seven,)))


@pytest.mark.parametrize("answers", [None, Sizes(sizes=(Size(group="all", n=60),))])
def test_only_a_group_that_is_answered_is_said_to_be_answered_as_before(
    answers: Aggregate | None,
) -> None:
    question, door = SizesQuestion(variable="los", where="id >= 0"), gate(SOME)
    aggregate = answer(aggregate=answers, nearest=("Smith",))
    with pytest.raises(GateError, match="must not be named"):
        door.release(question, aggregate, asked(door, question, SOME))
    assert len(door.ledger) == 0


def test_a_variable_that_the_policy_does_not_allow_never_leaves() -> None:
    with pytest.raises(GateError, match="does not allow this variable"):
        release(TABLE, table(60), door=gate(SOME, Policy(ad_hoc="free", variables=("age",))))


def test_a_release_cannot_be_made_by_hand() -> None:
    with pytest.raises(GateError, match="only the gate"):
        Release("Haifa", b"{}", object())
    with pytest.raises(TypeError):
        Release("Haifa", b"{}")  # type: ignore[call-arg]
    released = release(TABLE, table(60))
    with pytest.raises(AttributeError):
        released.payload = b"more"  # type: ignore[misc]


def test_nothing_leaves_that_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    door = gate(SOME)

    def full(*_: object) -> None:
        raise LedgerError("no space left on device")

    monkeypatch.setattr(door.ledger, "append", full)
    with pytest.raises(LedgerError):
        release(TABLE, table(60), door=door)


def test_an_answer_about_people_says_who_they_are() -> None:
    door = gate(SOME)
    with pytest.raises(GateError, match="must say who they are"):
        door.release(TABLE, answer(aggregate=table(60)))
    assert len(door.ledger) == 0


def test_an_answer_about_people_is_judged_beside_earlier_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sixty people, then all but one of them: both counts are legal by themselves."""
    fewer = SizesQuestion(variable="los", where="id != 0")

    def sizes_of(n: int) -> Sizes:
        return Sizes(sizes=(Size(group="all", n=n),))

    def attack(door: Gate) -> None:
        release(SizesQuestion(variable="los"), sizes_of(60), door=door)
        release(fewer, sizes_of(59), door=door)

    door = gate(SOME)
    with pytest.raises(TooClose):
        attack(door)
    assert len(door.ledger) == 1
    release(fewer, sizes_of(59), door=gate(SOME))
    monkeypatch.setattr(Memory, "remember", lambda *_: None)  # the rule taken out
    attack(gate(SOME))


ALIKE = pl.DataFrame({"los": [0.0] * 40 + [3.0] * 2})
OUTLYING = pl.DataFrame({"los": [*np.linspace(1, 2, 59), 900.0]})


def test_a_mean_does_not_leave_where_nearly_all_are_alike() -> None:
    """42 times the mean is the sum of two people, however it is rounded."""
    question, plain = MomentsQuestion(variable="los"), moments(42, mean=None, sd=None)
    for each in (moments(42, sd=None, unit=0.005), moments(42)):
        with pytest.raises(TooClose):
            release(question, each, ALIKE)
    release(question, plain, ALIKE)
    with pytest.raises(TooClose):
        release(LATTICE, cells(42, means=(0.05,), sds=(None,)), ALIKE)
    release(LATTICE, cells(42), ALIKE)


def test_a_mean_does_not_leave_that_one_person_makes() -> None:
    question = MomentsQuestion(variable="los")
    with pytest.raises(GateError, match="of one person"):
        release(question, moments(60, mean=15.0, sd=100.0), OUTLYING)
    release(question, moments(60, mean=None, sd=None), OUTLYING)


@pytest.mark.parametrize("aggregate", [moments(60), moments(60, sd=None, unit=0.005)])
def test_a_mean_of_many_values_is_declared_as_a_sum(aggregate: Moments) -> None:
    """Not as a count of those at the top, though twelve people share the highest value."""
    rows = pl.DataFrame({"los": [*np.linspace(1, 2, 48), *[3.0] * 12]})
    question = MomentsQuestion(variable="los")
    people = asked(gate(rows), question, rows)
    assert people is not None
    declared = [each.numbers["los"] for each in aggregate.tells(question, people.cohort)]
    assert max(map(max, declared)) == (2 if aggregate.moments[0].sd is None else 3)


def test_every_kind_of_answer_is_tried_above() -> None:
    kinds = set(ANSWERS.values())
    assert {type(each) for _, each in DESCRIBED} == kinds
    assert {type(each) for _, each, _ in ILLEGAL} == kinds
    assert {kind for kind in Aggregate.kinds if kind.__module__.startswith("unpooled.")} == kinds


# --- an answer of a new kind ---------------------------------------------------------------------

MUST = ("labels", "tells", "limits", "sentence")


def of_a_new_kind(says: Iterable[str]) -> type[Aggregate]:
    methods = {name: lambda *_: () for name in says}
    extremes = new_class(
        "Extremes", (Aggregate,), {"frozen": True}, lambda space: space.update(methods)
    )
    assert issubclass(extremes, Aggregate)
    return extremes


@pytest.mark.parametrize("silent", MUST)
def test_an_answer_that_does_not_say_what_it_tells_cannot_be_defined(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Aggregate, "kinds", [])
    with pytest.raises(TypeError, match=f"Extremes must say its {silent}"):
        of_a_new_kind(name for name in MUST if name != silent)
    assert Aggregate.kinds == []
    whole_kind = of_a_new_kind(MUST)
    assert Aggregate.kinds == [whole_kind]


def test_a_kind_inherits_from_no_other_what_it_tells() -> None:
    with pytest.raises(TypeError, match="must say its labels, tells, limits, sentence"):

        class More(Sizes, frozen=True):
            highest: float


class Total(Message, frozen=True):
    """How many of a group died."""

    group: str
    n: int
    deaths: int


class Totals(Aggregate, frozen=True, tag="totals", tag_field="say"):
    """How many died, as somebody might add it who forgets the rule."""

    totals: tuple[Total, ...]

    def labels(self) -> Sequence[str]:
        return [total.group for total in self.totals]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        raise NotImplementedError

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        return ()

    def sentence(self) -> str:
        return "deaths"


class Said(Answer, frozen=True):
    """An answer that may be of totals."""

    aggregate: Totals | None


def counted(people: People, aggregate: Total) -> Disclosure:
    return Disclosure(people.members(aggregate.group).astype(np.int32), (aggregate.n,))


class Declared:
    """What totals may declare of whom."""

    @staticmethod
    def nothing(
        aggregate: Totals, question: CohortQuestion, people: People
    ) -> Iterator[Disclosure]:
        """The deaths are kept back."""
        for total in aggregate.totals:
            yield counted(people, total)

    @staticmethod
    def truth(aggregate: Totals, question: CohortQuestion, people: People) -> Iterator[Disclosure]:
        """The dead of each group, and all others."""
        for total in aggregate.totals:
            members, died = people.members(total.group), people.value() == 1
            part = np.where(members, np.where(died, 1, 2), 0).astype(np.int32)
            counts = total.deaths, None
            yield Disclosure(part, counts, {question.variable: (1, 1)})
            yield counted(people, total)

    @staticmethod
    def others(aggregate: Totals, question: CohortQuestion, people: People) -> Iterator[Disclosure]:
        """Everybody in the place of the dead."""
        for total in aggregate.totals:
            part = people.members(total.group).astype(np.int32)
            yield Disclosure(part, (total.deaths,), {question.variable: (1,)})
            yield counted(people, total)

    @staticmethod
    def silence(
        aggregate: Totals, question: CohortQuestion, people: People
    ) -> Iterator[Disclosure]:
        """People without a count, so that the count fits any."""
        for total in aggregate.totals:
            yield Disclosure(people.members(total.group).astype(np.int32), (None,))

    @staticmethod
    def nobody(aggregate: Totals, question: CohortQuestion, people: People) -> Iterator[Disclosure]:
        """Parts of nobody, whose counts are those that are said."""
        for total in aggregate.totals:
            part = np.zeros(len(people.members(total.group)), dtype=np.int32)
            yield Disclosure(part, (total.n, total.deaths))


TOTALS = MomentsQuestion(variable="died", by="arm")
ARMS = pl.DataFrame(
    {"arm": ["A"] * 60 + ["B"] * 60, "died": [1] * 20 + [0] * 40 + [1] * 2 + [0] * 58}
)


def deaths_told(
    declared: Any, monkeypatch: pytest.MonkeyPatch, deaths: Sequence[tuple[str, int]]
) -> bool:
    """Whether a center that says totals, and declares them so, lets them out."""
    decoder = msgspec.json.Decoder(Said)
    answers: dict[Any, Any] = ANSWERS
    monkeypatch.setitem(answers, MomentsQuestion, Totals)
    monkeypatch.setattr(gates, "decode_answer", decoder.decode)
    monkeypatch.setattr(Totals, "tells", declared)
    totals = Totals(totals=tuple(Total(group=group, n=60, deaths=n) for group, n in deaths))
    aggregate: Any = Said(k=10, aggregate=totals)
    door = gate(ARMS)
    released = door.release(TOTALS, aggregate, asked(door, TOTALS, ARMS))
    return released.payload == encode(aggregate) and len(door.ledger) == 1


@pytest.mark.parametrize(
    "declared", [Declared.nothing, Declared.others, Declared.silence, Declared.nobody]
)
def test_two_deaths_in_arm_b_do_not_leave_undeclared(
    declared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GateError, match="a count"):
        deaths_told(declared, monkeypatch, [("A", 20), ("B", 2)])


def test_two_deaths_in_arm_b_do_not_leave_declared_as_those_of_arm_a(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same two numbers are said, of the wrong people."""
    with pytest.raises(GateError, match="must be that of the people"):
        deaths_told(Declared.truth, monkeypatch, [("A", 2), ("B", 20)])


def test_two_deaths_in_arm_b_do_not_leave_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooClose):
        deaths_told(Declared.truth, monkeypatch, [("A", 20), ("B", 2)])
    assert deaths_told(Declared.truth, monkeypatch, [("A", 20)])


def test_without_its_rules_the_gate_lets_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_whole_numbers", lambda _: iter(()))
    assert deaths_told(Declared.nothing, monkeypatch, [("A", 20), ("B", 2)])


class Reading(Message, frozen=True):
    """What somebody may add about a group, in other shapes than a count."""

    group: str
    n: int
    deaths: float | str | bool | tuple[float, ...] | dict[str, float]


class Readings(Aggregate, frozen=True, tag="readings", tag_field="say"):
    """Deaths in such a shape that no count is to be seen."""

    readings: tuple[Reading, ...]

    def labels(self) -> Sequence[str]:
        return [reading.group for reading in self.readings]

    def tells(self, question: CohortQuestion, people: People) -> Iterator[Disclosure]:
        for reading in self.readings:
            yield Disclosure(people.members(reading.group).astype(np.int32), (reading.n,))

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        return ()

    def sentence(self) -> str:
        return "deaths"


class Read(Answer, frozen=True):
    """An answer that may be of readings."""

    aggregate: Readings | None


SHAPES = [2.0, 0.03333333333333333, "2", "two deaths", True, (2.0,), {"deaths": 2.0}, {"2": 1.0}]


def read_out(shape: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a center lets deaths out in this shape."""
    answers: dict[Any, Any] = ANSWERS
    monkeypatch.setitem(answers, MomentsQuestion, Readings)
    monkeypatch.setattr(gates, "decode_answer", msgspec.json.Decoder(Read).decode)
    answer: Any = Read(k=10, aggregate=Readings(readings=(Reading(group="B", n=60, deaths=shape),)))
    door = gate(ARMS)
    return bool(door.release(TOTALS, answer, asked(door, TOTALS, ARMS)).payload)


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_two_deaths_do_not_leave_as_what_is_no_whole_number(
    shape: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only whole numbers were compared with what was declared: all eight left."""
    with pytest.raises(GateError, match=r"that is said must be|must not be named|nothing else"):
        read_out(shape, monkeypatch)
    monkeypatch.setattr(gates, "_judge_rest", lambda *_: None)
    assert read_out(shape, monkeypatch)
