"""What a center can say about people: `Aggregate` is a closed union.

Each has a rule of its own at the gate.
"""

from typing import Literal

from unpooled.data.where import Kind
from unpooled.questions.message import Message


class Named(Message, frozen=True):
    """A variable's name and kind."""

    name: str
    kind: Kind


class Catalogue(Message, frozen=True, tag="catalogue", tag_field="say"):
    """The variables that may be asked for."""

    variables: tuple[Named, ...]


class Size(Message, frozen=True):
    """How many people of a group have a value."""

    group: str
    n: int


class Sizes(Message, frozen=True, tag="sizes", tag_field="say"):
    """How many people have a value, group by group."""

    sizes: tuple[Size, ...]


class GroupMoments(Message, frozen=True):
    """One group's count, mean and SD; None is what may not leave.

    `missing` is None when 1..K−1 people have no value, or nobody where that may not be told.
    `mean` and `sd` are None when the group takes so few values that they would give single people
    away. `values` is how many different values it takes if some of them belong to fewer than K
    people: 0 where none does, 1 where fewer than K people have such values, 8 for 8 or more.
    """

    group: str
    n: int
    missing: int | None
    values: int
    mean: float | None
    sd: float | None


class Moments(Message, frozen=True, tag="moments", tag_field="say"):
    """Count, missing, mean and SD, group by group."""

    moments: tuple[GroupMoments, ...]


class GroupCounts(Message, frozen=True):
    """One group's people, bin by bin."""

    group: str
    counts: tuple[int, ...]


class CenterTable(Message, frozen=True, tag="table", tag_field="say"):
    """The center's own table; bin b is (edges[b-1], edges[b]], the outer limits None where open."""

    lower: float | None
    edges: tuple[float, ...]  # interior
    upper: float | None
    groups: tuple[GroupCounts, ...]


class GroupPools(Message, frozen=True):
    """One group's people over runs of neighbouring bins."""

    group: str
    spans: tuple[int, ...]
    counts: tuple[int, ...]


class CenterJoin(Message, frozen=True, tag="join", tag_field="say"):
    """What a center adds to a table: new edges, and pools over the bins of the finer table."""

    lower: float | None
    splits: tuple[float, ...]
    upper: float | None
    groups: tuple[GroupPools, ...]


class Ranks(Message, frozen=True, tag="ranks", tag_field="say"):
    """How two groups of a center compare; `values_x`, `values_y` as `values` in `GroupMoments`."""

    n_x: int
    n_y: int
    values_x: int
    values_y: int
    u: float
    variance: float
    effect_variance: float


class CellTable(Message, frozen=True):
    """Exact counts of some people on a lattice; cell b is (edges[b-1], edges[b]], outer ones open.

    `means` and `sds` (with n) are None where they are not told; those of open cells are on a scale
    that ends at -1 and 1 (`maths.open_cells`), unless the SD is 0. Where they might be told,
    `values` is as in `GroupMoments`, and `dominated` says that one person carries most of the
    spread; it is False where `values` is 1..7, whatever they are.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    means: tuple[float | None, ...]
    sds: tuple[float | None, ...]
    values: tuple[int | None, ...]
    dominated: tuple[bool | None, ...]


class GroupTables(Message, frozen=True):
    """One group as tables of disjoint sets of people, who together are the group."""

    group: str
    tables: tuple[CellTable, ...]


class LatticeTables(Message, frozen=True, tag="lattice", tag_field="say"):
    """Each group's tables on one lattice: `scale`, `resolution` and the declared variable fix it.

    `scale` is the declared one, or else how far the variable spreads at the center, as the nearest
    number 1, 2 or 5 times a power of ten. `resolution` is the declared one, or else such a number
    of which nearly all values at the center are multiples. `lower` and `upper` are the limits that
    the center declares.
    """

    scale: float
    groups: tuple[GroupTables, ...]
    resolution: float | None = None
    lower: float | None = None
    upper: float | None = None


class RankedGroup(Message, frozen=True):
    """A group that is ranked among others; `values` as in `GroupMoments`."""

    group: str
    n: int
    values: int


class PairRanks(Message, frozen=True):
    """How two of the groups compare, as in `Ranks`."""

    x: str
    y: str
    u: float
    variance: float
    effect_variance: float


class GroupRanks(Message, frozen=True, tag="group-ranks", tag_field="say"):
    """How several groups of a center compare: a pair for each two of them.

    `rank_variance` is that of the ranks of everybody in these groups; `trend_variance` is that of
    the sum of all u if no group differs, None unless a trend was asked for.
    """

    groups: tuple[RankedGroup, ...]
    pairs: tuple[PairRanks, ...]
    rank_variance: float
    trend_variance: float | None


class GroupStatuses(Message, frozen=True):
    """One group's follow-up: tables of those with the event and of the censored, or of all.

    Where fewer than K people have one of the two statuses, or nobody where that may not be told,
    neither is: `either` then speaks for all of them, and `below` says which status it was.
    Tables are of disjoint sets of people.
    """

    group: str
    events: tuple[CellTable, ...] | None
    censored: tuple[CellTable, ...] | None
    either: tuple[CellTable, ...] | None
    below: Literal["events", "censored", "both"] | None


class SurvivalTables(Message, frozen=True, tag="survival", tag_field="say"):
    """Each group's follow-up on one lattice; `scale` and `resolution` as in `LatticeTables`.

    Times begin at 0 and end at the question's horizon, which closes the last cell.
    """

    scale: float
    groups: tuple[GroupStatuses, ...]
    resolution: float | None = None


class GroupPowers(Message, frozen=True):
    """One group: Σ sign(x) log(1+|x|), and per λ the transform's mean and variance (÷ n).

    `rare` people have a value that fewer than K share: 0, or enough of them.
    """

    group: str
    n: int
    values: int
    rare: int
    log_sum: float
    means: tuple[float, ...]
    variances: tuple[float, ...]


class Powers(Message, frozen=True, tag="powers", tag_field="say"):
    """The moments of the Yeo-Johnson transform, group by group."""

    groups: tuple[GroupPowers, ...]


class GroupLoss(Message, frozen=True):
    """One group: the loss at each point, and how many values lie below and at most at it."""

    group: str
    n: int
    loss: tuple[float, ...]
    below: tuple[float, ...]
    at_most: tuple[float, ...]


class Losses(Message, frozen=True, tag="loss", tag_field="say"):
    """The quantile loss, group by group; it gives single values away."""

    groups: tuple[GroupLoss, ...]


Aggregate = (
    Catalogue
    | Sizes
    | Moments
    | CenterTable
    | CenterJoin
    | Ranks
    | GroupRanks
    | LatticeTables
    | SurvivalTables
    | Powers
    | Losses
)
