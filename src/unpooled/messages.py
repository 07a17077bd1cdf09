"""What crosses between coordinator and centers: questions one way, answers the other.

Both are JSON, so that a steward can read the very bytes that leave. `Aggregate` is a closed union:
the only things that a center can say, each with a rule of its own at the gate.
"""

from enum import StrEnum
from typing import Literal

import msgspec

from unpooled.errors import MessageError
from unpooled.where import Kind

Limits = Literal["open", "natural", "buffer"]
CellMoments = Literal["none", "tails", "all"]  # which cells tell mean and SD
EVERYBODY = "all"  # the one group of a question without `by`


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A frozen message; unknown fields are an error."""


# --- questions ---------------------------------------------------------------------------------


class CatalogueQuestion(Message, frozen=True, tag="catalogue", tag_field="ask"):
    """Which variables are there?"""


class CohortQuestion(Message, frozen=True):
    """A question about one variable of some people, in groups."""

    variable: str
    by: str | None = None
    groups: tuple[str, ...] | None = None  # None: every group with at least K people
    where: str | None = None
    k: int | None = None  # may raise the policy's K, never lower it


class SizesQuestion(CohortQuestion, frozen=True, tag="sizes", tag_field="ask"):
    """How many people have a value, in each group?"""


class MomentsQuestion(CohortQuestion, frozen=True, tag="moments", tag_field="ask"):
    """Count, missing values, mean and standard deviation of each group."""


class TableQuestion(CohortQuestion, frozen=True, tag="table", tag_field="ask"):
    """The center's own K-anonymous table; begins a chain."""

    room: int | None = None  # how many bins there may be; None: as many as K allows
    limits: Limits = "open"


class JoinQuestion(CohortQuestion, frozen=True, tag="join", tag_field="ask", kw_only=True):
    """What the center adds to a table with these edges."""

    edges: tuple[float, ...]  # interior edges, ascending
    lower: float | None = None  # outer limits so far, None where open
    upper: float | None = None
    room: int | None = None  # how many bins may be added
    limits: Limits = "open"


class RanksQuestion(CohortQuestion, frozen=True, tag="ranks", tag_field="ask"):
    """How do two groups compare, person by person? `groups` are x and y, in this order."""


class LatticeQuestion(CohortQuestion, frozen=True, tag="lattice", tag_field="ask"):
    """Each group's own table on the public lattice of the variable."""

    moments: CellMoments | None = None  # may ask for fewer than the policy tells, never for more


class GroupRanksQuestion(CohortQuestion, frozen=True, tag="group-ranks", tag_field="ask"):
    """How do several groups compare, person by person? `ordered` asks for their trend as well."""

    ordered: bool = False


class PowersQuestion(CohortQuestion, frozen=True, tag="powers", tag_field="ask", kw_only=True):
    """The moments of the Yeo-Johnson transform of each group at these λ."""

    lambdas: tuple[float, ...]
    digits: int | None = None  # None: exact


class LossQuestion(CohortQuestion, frozen=True, tag="loss", tag_field="ask", kw_only=True):
    """The quantile loss of each group at these points, each tried for the p beside it."""

    points: tuple[float, ...]
    p: tuple[float, ...]


class OutcomeQuestion(CohortQuestion, frozen=True, kw_only=True):
    """A question about times to an event; `variable` is the time."""

    event: str  # the column that says who had the event
    event_is: str | None = None  # the value that means it; None: 1 of 0/1, 2 of 1/2, or True


class FollowUpQuestion(OutcomeQuestion, frozen=True, tag="follow-up", tag_field="ask"):
    """How long are people followed up? Count, missing values, mean and SD of each group's times."""


class SurvivalQuestion(OutcomeQuestion, frozen=True, tag="survival", tag_field="ask", kw_only=True):
    """Tables of each group's event times and censoring times, cut at a public horizon."""

    horizon: float


AboutPeople = (
    SizesQuestion
    | MomentsQuestion
    | TableQuestion
    | JoinQuestion
    | RanksQuestion
    | LatticeQuestion
    | GroupRanksQuestion
    | FollowUpQuestion
    | SurvivalQuestion
    | PowersQuestion
    | LossQuestion
)
Question = CatalogueQuestion | AboutPeople


# --- aggregates --------------------------------------------------------------------------------


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

    `means` and `sds` (with n) are None where they are not told. Where they might be, `values` is
    as in `GroupMoments`, and `dominated` says that one person carries most of the spread; it is
    False where `values` is 1..7, whatever they are.
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
    """Each group's tables on one lattice, which `scale` and the declared variable fix.

    `scale` is the declared one, or else how far the variable spreads at the center, as the nearest
    number 1, 2 or 5 times a power of ten.
    """

    scale: float
    groups: tuple[GroupTables, ...]


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
    """Each group's follow-up on one lattice; `scale` as in `LatticeTables`.

    Times begin at 0 and end at the question's horizon, which closes the last cell.
    """

    scale: float
    groups: tuple[GroupStatuses, ...]


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


# --- refusals and answers ----------------------------------------------------------------------


class Reason(StrEnum):
    """Why a center does not answer, in whole or for a group."""

    TOO_SMALL = "too-small"
    ABSENT = "absent"
    ALL_MISSING = "all-missing"
    UNKNOWN_VARIABLE = "unknown-variable"
    NOT_NUMERIC = "not-numeric"
    NOT_FINITE = "not-finite"
    NOT_ALLOWED = "not-allowed"
    K_BELOW_POLICY = "k-below-policy"
    REPEATED_PERSON = "repeated-person"
    BAD_WHERE = "bad-where"
    FEW_VALUES = "few-values"
    UNCLEAR_EVENT = "unclear-event"
    NEGATIVE_TIME = "negative-time"
    WOULD_DIFFER = "would-differ"
    DATA_CHANGED = "data-changed"
    FEW_CELLS = "few-cells"
    TOO_MANY_POWERS = "too-many-powers"
    LOSS_OFF = "loss-off"
    NO_LIMITS = "no-limits"
    OUTSIDE_LIMITS = "outside-limits"
    UNREADABLE_QUESTION = "unreadable-question"
    UNREADABLE_ANSWER = "unreadable-answer"
    FAILED = "failed"
    NOT_CONNECTED = "not-connected"
    NO_ANSWER = "no-answer"
    WAITING_FOR_STEWARD = "waiting-for-steward"
    REFUSED_BY_STEWARD = "refused-by-steward"


MISSING = frozenset(  # the center as a whole is missing, whatever its people and its policy are
    {
        Reason.UNREADABLE_ANSWER,
        Reason.FAILED,
        Reason.NOT_CONNECTED,
        Reason.NO_ANSWER,
        Reason.WAITING_FOR_STEWARD,
        Reason.REFUSED_BY_STEWARD,
    }
)

RULES: dict[Reason, str] = {
    Reason.TOO_SMALL: "fewer than {limit} people",
    Reason.ABSENT: "no people",
    Reason.ALL_MISSING: "no one has a value",
    Reason.UNKNOWN_VARIABLE: "the center has no such variable",
    Reason.NOT_NUMERIC: "the variable holds something other than numbers",
    Reason.NOT_FINITE: "the variable holds infinite values; code them as missing",
    Reason.NOT_ALLOWED: "the center's policy does not allow it",
    Reason.K_BELOW_POLICY: "the center's policy asks for K of at least {limit}",
    Reason.REPEATED_PERSON: (
        "more than one row per person; the policy can say per_person = mean, first or max"
    ),
    Reason.BAD_WHERE: "the condition does not fit the center's variables",
    Reason.FEW_VALUES: (
        "the groups take so few different values that the answer would give single people away; "
        "a table can be asked for"
    ),
    Reason.UNCLEAR_EVENT: (
        "the event column is not coded 0/1, 1/2 or true/false throughout; event_is can say which "
        "value means the event"
    ),
    Reason.NEGATIVE_TIME: (
        "times must not be negative; count them from the start of each person's follow-up"
    ),
    Reason.WOULD_DIFFER: (
        "beside earlier answers about this variable it could tell on fewer than {limit} people; "
        "ask for what was answered before, in the same words"
    ),
    Reason.DATA_CHANGED: (
        "the center's data changed since it answered about this variable; its steward decides"
    ),
    Reason.FEW_CELLS: "one or two open cells without means do not say where their people are",
    Reason.TOO_MANY_POWERS: "so many powers ask for at least {limit} people in the group",
    Reason.LOSS_OFF: (
        "the quantile loss gives every single value away after enough questions; "
        "only the center's policy can turn it on, with quantile_loss = true"
    ),
    Reason.NO_LIMITS: "no natural limits are declared for the variable",
    Reason.OUTSIDE_LIMITS: "values lie outside the limits that are declared for the variable",
    Reason.UNREADABLE_QUESTION: "the question could not be read",
    Reason.UNREADABLE_ANSWER: "the center's answer could not be read",
    Reason.FAILED: "the center could not answer; its own log says why",
    Reason.NOT_CONNECTED: "the center is not connected to the coordinator",
    Reason.NO_ANSWER: "the center did not answer within {limit} seconds",
    Reason.WAITING_FOR_STEWARD: (
        "the center's steward did not decide within {limit} seconds; the answer waits there, and "
        "the same question can be asked again later"
    ),
    Reason.REFUSED_BY_STEWARD: "the center's steward refused it",
}


class Refusal(Message, frozen=True):
    """A center's typed no: a reason, the limit that applies, the name that the question used."""

    reason: Reason
    name: str | None = None  # the group or variable of the question that is meant
    limit: int | None = None

    @property
    def rule(self) -> str:
        """The rule in words; never anything from the data."""
        return RULES[self.reason].format(limit=self.limit)


class Answer(Message, frozen=True):
    """All that a center says: the K in force, an aggregate or none, and what it refuses."""

    k: int
    aggregate: Aggregate | None
    refusals: tuple[Refusal, ...] = ()


_ENCODER = msgspec.json.Encoder(order="deterministic")
_QUESTIONS: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
_ANSWERS = msgspec.json.Decoder(Answer)


def encode(message: Question | Answer) -> bytes:
    """The message as JSON bytes, always the same for the same message."""
    return _ENCODER.encode(message)


def decode_question(payload: bytes) -> Question:
    """Read a question back, strictly."""
    try:
        return _QUESTIONS.decode(payload)
    except msgspec.MsgspecError as error:
        raise MessageError(f"these bytes are not a question: {error}") from error


def decode_answer(payload: bytes) -> Answer:
    """Read an answer back, strictly."""
    try:
        return _ANSWERS.decode(payload)
    except msgspec.MsgspecError as error:
        raise MessageError(f"these bytes are not an answer: {error}") from error
