"""A center's own policy: what may leave. Its defaults fail closed."""

from typing import Literal, get_args

import msgspec

from unpooled.errors import InputError
from unpooled.questions import (
    CellMoments,
    CohortQuestion,
    LatticeQuestion,
    Limits,
    Question,
    SurvivalQuestion,
)

SMALLEST_K = 3  # no disclosure threshold in use anywhere is lower

MOST_POWERS = 7  # more moments of one group come close to a system that can be solved for people

PerPerson = Literal["mean", "first", "max"]


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a center lets out.

    Attributes
    ----------
    k
        Every released number speaks for at least this many people. A question may raise it.
    variables
        The columns that may be asked for, grouped by or selected on; None: every column.
    person
        The column that names the person a row belongs to. K counts people, not rows.
    per_person
        How several rows of one person become one value; None: where there are such, all is refused.
    zero_cells
        Whether "nobody" may be said of a cell.
    limits
        The outer limits that a table may have. `buffer` gives the extremes away (the maximum to
        .001 SD was seen), so it must be allowed by name.
    moments
        Which cells of a table on a lattice tell their mean and standard deviation: "none", the wide
        ones ("tails": extreme cells and gaps between people), or "all". With "tails", records are
        as private as in the paper's table; with "all" they are not.
    powers
        How many λ one question about the Yeo-Johnson transform may have, all in [−1, 2].
    power_digits
        To how many digits the transform's moments are rounded; None: exact.
    quantile_loss
        Whether the quantile loss may be asked for. It recovers all values from enough questions,
        so it is off.

    Examples
    --------
    >>> Policy(k=5).limits
    ('open', 'natural')
    >>> Policy(k=2)
    Traceback (most recent call last):
        ...
    unpooled.errors.InputError: k must be at least 3, got 2
    """

    k: int = 10
    variables: tuple[str, ...] | None = None
    person: str | None = None
    per_person: PerPerson | None = None
    zero_cells: bool = True
    limits: tuple[Limits, ...] = ("open", "natural")
    moments: CellMoments = "tails"
    powers: int = 7
    power_digits: int | None = None
    quantile_loss: bool = False

    def __post_init__(self) -> None:
        try:
            for field in msgspec.structs.fields(self):
                msgspec.convert(getattr(self, field.name), field.type)
        except msgspec.ValidationError as error:
            raise InputError(f"{field.name}: {error}") from error
        if self.k < SMALLEST_K:
            raise InputError(f"k must be at least {SMALLEST_K}, got {self.k}")
        if not 1 <= self.powers <= MOST_POWERS:
            raise InputError(f"powers must lie in 1..{MOST_POWERS}, got {self.powers}")
        if self.power_digits is not None and self.power_digits < 3:
            raise InputError(f"power_digits must be at least 3, got {self.power_digits}")
        if self.per_person is not None and self.person is None:
            raise InputError("per_person needs person, the column that names the person")

    def allows(self, name: str) -> bool:
        """Whether a column may be used in a question."""
        if name == self.person:
            return False
        return self.variables is None or name in self.variables


def people_for_powers(k: int, powers: int) -> int:
    """How many people a group needs before so many powers may be told: two for each number."""
    return max(3 * k, 2 * (2 * powers + 1))


def people_needed(question: Question | CohortQuestion | None, k: int) -> int:
    """How many people a group needs: K, or two cells of K on a lattice."""
    return 2 * k if isinstance(question, LatticeQuestion) else k


def nobody_told(question: CohortQuestion, policy: Policy) -> bool:
    """Whether "nobody" may be told apart from "fewer than K".

    Not of people that the question chose, by a condition or as groups: it would tell on one.
    """
    return policy.zero_cells and question.where is None and question.by is None


def empty_status_told(question: SurvivalQuestion, policy: Policy) -> bool:
    """Whether "nobody had the event", or was censored, may be told of an arm."""
    return policy.zero_cells and question.where is None


_FEWEST_FIRST: tuple[CellMoments, ...] = get_args(CellMoments)


def moments_in_force(question: LatticeQuestion, policy: Policy) -> CellMoments:
    """The policy's choice, or the question's where that tells less."""
    asked = policy.moments if question.moments is None else question.moments
    return min(asked, policy.moments, key=_FEWEST_FIRST.index)


def k_in_force(question: Question | CohortQuestion | None, policy: Policy) -> int:
    """The policy's K, or the question's where that is higher."""
    asked = getattr(question, "k", None)
    return policy.k if asked is None else max(policy.k, asked)
