"""What a coordinator can ask of a center."""

from unpooled.questions.message import CellMoments, Limits, Message


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
    event_is: str | None = None  # the value that means it; None: as usual, such as 1 of 0/1


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
