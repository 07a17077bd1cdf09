"""A center's own policy: what may leave. Its defaults fail closed."""

from itertools import pairwise
from math import isfinite
from typing import Literal

import msgspec

from unpooled.center.data.variables import Variable
from unpooled.center.questions import CellMoments, CohortQuestion, LatticeQuestion, Limits, Terms
from unpooled.center.questions.powers import GRID
from unpooled.errors import InputError

SMALLEST_K = 3  # no disclosure threshold in use anywhere is lower

PerPerson = Literal["mean", "first", "max"]
Joint = Literal["no", "small", "all"]
AdHoc = Literal["none", "groupings", "free"]


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a center lets out.

    Attributes
    ----------
    k
        Every released number describes at least this many people.
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
        ones ("tails": extreme cells and gaps between people), or "all".
    ad_hoc
        Which single questions are answered: "none" (protocols only), "groupings" (groups and
        conditions over declared groupings), or "free": any condition. Whoever may choose any
        condition learns from each refusal that a set is near to an earlier one.
    groupings
        The columns that people may be grouped by and selected on, each with the cut points of a
        number, or none. None: none is declared, so that single questions are about everybody.
    refusals_a_day
        After so many answers of a day that refused something, be it one group, or that were near to
        an earlier one or shut later ones out, nothing is answered until the next, in UTC; None: no
        end.
    joint
        Whose people count in a joint center, by secret shares, where a protocol is asked with one:
        nobody's ("no"), those of a center that is too small ("small": fewer than 2K people in all,
        or of a level of the first grouping), or everybody's ("all"). They are then not told of
        alone any more.
    paper_iteration
        Whether moments of the Yeo-Johnson transform at several λ may be told, for the paper's own
        method. Of whole numbers they can be decoded to every person's value.

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
    ad_hoc: AdHoc = "groupings"
    groupings: dict[str, tuple[float, ...]] | None = None
    refusals_a_day: int | None = None
    joint: Joint = "small"
    paper_iteration: bool = False

    def __post_init__(self) -> None:
        try:
            for field in msgspec.structs.fields(self):
                msgspec.convert(getattr(self, field.name), field.type)
        except msgspec.ValidationError as error:
            raise InputError(f"{field.name}: {error}") from error
        if self.k < SMALLEST_K:
            raise InputError(f"k must be at least {SMALLEST_K}, got {self.k}")
        if self.per_person is not None and self.person is None:
            raise InputError("per_person needs person, the column that names the person")
        if self.refusals_a_day is not None and self.refusals_a_day < 1:
            raise InputError(f"refusals_a_day must be at least 1, got {self.refusals_a_day}")
        for name, cuts in (self.groupings or {}).items():
            if not all(map(isfinite, cuts)) or any(a >= b for a, b in pairwise(cuts)):
                raise InputError(
                    f"groupings: the cut points of {name} must ascend, got {list(cuts)}"
                )
            if not self.allows(name):
                raise InputError(
                    f"groupings: {name} may not be asked for, by this policy's own word"
                )

    def allows(self, name: str) -> bool:
        """Whether a column may be used in a question."""
        if name == self.person:
            return False
        return self.variables is None or name in self.variables

    def is_joint(self, *, small: bool) -> bool:
        """Whether the people of a center, be it too small or not, count in a joint center.

        Examples
        --------
        >>> Policy().is_joint(small=True), Policy().is_joint(small=False)
        (True, False)
        """
        return self.joint == "all" or (self.joint == "small" and small)

    def grouped_by(self) -> dict[str, tuple[float, ...] | None]:
        """The declared groupings: column → the cut points of a number, None for whole levels."""
        return {name: cuts or None for name, cuts in (self.groupings or {}).items()}

    def terms(self, question: CohortQuestion, declared: Variable) -> Terms:
        """What the answer to a question must keep to."""
        moments = self.moments
        if isinstance(question, LatticeQuestion) and question.moments is not None:
            order: tuple[CellMoments, ...] = ("none", "tails", "all")
            moments = min(moments, question.moments, key=order.index)
        lambdas = GRID if self.paper_iteration and question.where is None else ()
        return Terms(self.k, self.zero_cells, self.limits, moments, lambdas, declared)
