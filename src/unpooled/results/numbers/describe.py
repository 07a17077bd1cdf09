"""A description, as the analyst holds it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unpooled.maths.moments import Welch
from unpooled.results.provenance.record import Reach, Record
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences
from unpooled.results.report.text import number, p_text
from unpooled.results.result import Result, subject

DRAWN = (
    "fewer than K people without a value at a center are not counted as missing: each counts with "
    "a value drawn from others there"
)

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group over all centers; mean and SD are of the centers that give them, None without any.

    `missing` leaves out the `missing_hidden` centers where fewer than K people have no value.
    """

    group: str
    n: int
    missing: int
    missing_hidden: int
    mean: float | None
    sd: float | None

    def to_dict(self) -> dict[str, Any]:
        """The group as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class CenterDescription:
    """One group at one center, as it was released."""

    center: str
    group: str
    n: int
    missing: int | None
    mean: float | None
    sd: float | None

    def to_dict(self) -> dict[str, Any]:
        """The center's group as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class DescribeResult(Result):
    """n, missing, mean and SD per group; Welch's t-test where there are two groups."""

    variable: str
    by: str | None
    where: str | None
    groups: tuple[GroupDescription, ...]
    welch: Welch | None
    centers: tuple[CenterDescription, ...]
    refusals: tuple[CenterRefusal, ...]
    rounds: int
    record: Record = field(default_factory=Record)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        test = self.welch
        return {
            "value": self.variable,
            "by": self.by,
            "where": self.where,
            "groups": [group.to_dict() for group in self.groups],
            "welch": None
            if test is None
            else {
                "statistic": test.statistic,
                "df": test.df,
                "p_value": test.p_value,
                "log10_p": test.log10_p,
                "difference": {"estimate": test.difference, "low": test.low, "high": test.high},
            },
            "centers": [center.to_dict() for center in self.centers],
            "notes": self.record.notes,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
            "rounds": self.rounds,
        }

    def chart(self) -> "altair.TopLevelMixin":
        """Mean and SD of each group, over all centers and at each of them."""
        from unpooled.results.charts.charts import means

        rows = [(c.center, c.group, c.n, c.mean, c.sd) for c in self.centers]
        overall = "all centers" if self.reach.whole else self.reach.centers_text
        rows += [(overall, g.group, g.n, g.mean, g.sd) for g in self.groups]
        return means(rows, self.record.label(self.variable), self.by)

    def sections(self) -> list[Section]:
        """What it shows, with a chart."""
        figure = Figure(self.chart(), "Mean ± SD of each group, at each center and over all.")
        return [Section("Description", self.parts(), [figure])]

    @property
    def answer(self) -> str:
        """The means, and how they differ."""
        means = ", ".join(
            f"{number(g.mean)} in {g.group}" if self.by is not None else number(g.mean)
            for g in self.groups
            if g.mean is not None
        )
        unit = self.record.unit(self.variable)
        differ = "" if self.welch is None else f" ({self._sentence()})"
        return f"The mean of {self.variable}{unit} is {means}{differ}, {self.reach}."

    def picture(self) -> Figure | None:
        """The means, at each center and over all."""
        return Figure(self.chart(), "Mean ± SD of each group, at each center and over all.")

    def parts(self) -> list[Part]:
        """The groups, and how they differ."""
        test = [] if self.welch is None else [self._sentence()]
        rows = [[g.group, str(g.n), _missing(g), number(g.mean), number(g.sd)] for g in self.groups]
        grid = Grid(["group", "n", "missing", "mean", "SD"], rows)
        return [grid, Sentences(test), Remarks.notes(self.notes())]

    def records(self) -> list[dict[str, Any]]:
        """A row per group."""
        return [{"variable": self.variable, **group.to_dict()} for group in self.groups]

    def notes(self) -> list[str]:
        """What some centers withheld, and why."""
        hidden = any(group.missing_hidden for group in self.groups)
        given = {group.group for group in self.groups if group.sd is not None}
        return ([DRAWN] if hidden else []) + [
            f"{c.center}, {c.group}: {'mean and SD' if c.mean is None else 'SD'} withheld, too few "
            "different values of too few people"
            + (f"; mean and SD over all are without these {c.n}" if c.group in given else "")
            for c in self.centers
            if c.sd is None
        ]

    @property
    def title(self) -> str:
        """What is described."""
        return f"{subject(self.variable, self.by, self.where)}: {self.reach}"

    @property
    def reach(self) -> Reach:
        """Whom it is of: people who have a value."""
        people = sum(group.n for group in self.groups)
        people_of: dict[str, float] = {}
        for center in self.centers:
            people_of[center.center] = people_of.get(center.center, 0) + center.n
        return Reach.of(people_of, people, self.record, self.refusals, people_of)

    def _sentence(self) -> str:
        test = self.welch
        if test is None:
            return ""
        x, y = self.groups
        return (
            f"{y.group} − {x.group}: {number(test.difference)} "
            f"(95 % interval {number(test.low)} to {number(test.high)}), "
            f"Welch t = {number(test.statistic)}, p {p_text(test.log10_p)}"
        )


def _missing(group: GroupDescription) -> str:
    """A hidden center may have nobody without a value."""
    if not group.missing_hidden:
        return str(group.missing)
    return f"≥ {group.missing}" if group.missing else "few"
