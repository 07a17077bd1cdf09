"""Describe a variable: n, missing, mean and SD per group, and Welch's t-test of two groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unpooled.analyses.asking import (
    Request,
    center_refusals,
    refusal_sentence,
    refuse,
    take_attendance,
)
from unpooled.analyses.table import refusals_text
from unpooled.cohort import Selection
from unpooled.coordinator import CenterRefusal, Coordinator
from unpooled.maths.moments import MeanSD, Welch, pool, telling_values, welch
from unpooled.messages import GroupMoments, Moments, MomentsQuestion
from unpooled.report.html import Html
from unpooled.report.text import columns_text, count, number, p_text

if TYPE_CHECKING:
    import altair

MEAN_NEEDS = 3
SD_NEEDS = 8

# --- at a center -------------------------------------------------------------------------------


def summarise_moments(selection: Selection) -> Moments:
    """Each group's moments, without what would give single people away."""
    return Moments(moments=tuple(_group_moments(selection, g) for g in selection.groups))


def _group_moments(selection: Selection, group: str) -> GroupMoments:
    values = selection.cohort.values(group)
    k = selection.rule.k
    moments = MeanSD.of(values)
    missing = selection.cohort.sizes[group].missing
    telling = telling_values(values, k)
    return GroupMoments(
        group=group,
        n=moments.n,
        missing=missing if missing == 0 or missing >= k else None,
        values=telling,
        mean=moments.mean if telling == 0 or telling >= MEAN_NEEDS else None,
        sd=moments.sd if telling == 0 or telling >= SD_NEEDS else None,
    )


# --- at the coordinator ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group over all centers; mean and SD are None where some center withheld them.

    `missing` leaves out the `missing_hidden` centers where 1..K−1 people have no value.
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


@dataclass(frozen=True, slots=True)
class DescribeResult:
    """n, missing, mean and SD per group; Welch's t-test where there are two groups."""

    value: str
    by: str | None
    where: str | None
    groups: tuple[GroupDescription, ...]
    welch: Welch | None
    centers: tuple[CenterDescription, ...]
    refusals: tuple[CenterRefusal, ...]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        test = self.welch
        return {
            "value": self.value,
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
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def chart(self) -> "altair.TopLevelMixin":
        """Mean and SD of each group, over all centers and at each of them."""
        from unpooled.report.charts import means

        rows = [(c.center, c.group, c.n, c.mean, c.sd) for c in self.centers]
        rows += [("all centers", g.group, g.n, g.mean, g.sd) for g in self.groups]
        return means(rows, self.value, self.by)

    def __str__(self) -> str:
        test = f"\n{self._sentence()}" if self.welch is not None else ""
        return (
            f"{self._title()}\n{columns_text(*self._columns())}{test}{refusals_text(self.refusals)}"
        )

    def _repr_html_(self) -> str:
        page = Html().heading(self._title()).table(*self._columns())
        if self.welch is not None:
            page = page.paragraph(self._sentence())
        return str(page.items("Refused", map(refusal_sentence, self.refusals)))

    def _title(self) -> str:
        by = f" by {self.by}" if self.by is not None else ""
        where = f", where {self.where}" if self.where is not None else ""
        centers = len({c.center for c in self.centers})
        return f"{self.value}{by}{where}: {count(centers, 'center')}"

    def _columns(self) -> tuple[list[str], list[list[str]]]:
        rows = [[g.group, str(g.n), _missing(g), number(g.mean), number(g.sd)] for g in self.groups]
        return ["group", "n", "missing", "mean", "SD"], rows

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
    return f"≥ {group.missing}" if group.missing_hidden else str(group.missing)


def run_describe(coordinator: Coordinator, request: Request) -> DescribeResult:
    """One round for who is there, one for the moments."""
    attendance = take_attendance(coordinator, request)
    question = MomentsQuestion(
        variable=request.variable,
        by=request.by,
        groups=attendance.groups if request.by is not None else None,
        where=request.where,
        k=request.k,
    )
    round_ = coordinator.ask(question, Moments, attendance.centers)
    refusals = (*attendance.refusals, *round_.refusals)
    if not round_.aggregates:
        refuse(refusals)
    centers = tuple(
        CenterDescription(center, m.group, m.n, m.missing, m.mean, m.sd)
        for center, said in round_.aggregates.items()
        for m in said.moments
    )
    groups = tuple(
        _combine(group, [c for c in centers if c.group == group]) for group in attendance.groups
    )
    return DescribeResult(
        value=request.variable,
        by=request.by,
        where=request.where,
        groups=groups,
        welch=_welch(groups),
        centers=centers,
        refusals=center_refusals(refusals),
    )


def _combine(group: str, centers: Sequence[CenterDescription]) -> GroupDescription:
    parts = [MeanSD(c.n, c.mean, c.sd) for c in centers if c.mean is not None and c.sd is not None]
    told = [c.missing for c in centers if c.missing is not None]
    whole = pool(parts) if parts and len(parts) == len(centers) else None
    n = sum(c.n for c in centers)
    means = [c.mean for c in centers if c.mean is not None]
    mean = (
        sum(c.n * m for c, m in zip(centers, means, strict=True)) / n
        if centers and len(means) == len(centers)
        else None
    )
    return GroupDescription(
        group=group,
        n=n,
        missing=sum(told),
        missing_hidden=len(centers) - len(told),
        mean=mean if whole is None else whole.mean,
        sd=None if whole is None else whole.sd,
    )


def _welch(groups: tuple[GroupDescription, ...]) -> Welch | None:
    moments = [MeanSD(g.n, g.mean, g.sd) for g in groups if g.mean is not None and g.sd is not None]
    if len(groups) != 2 or len(moments) != 2:
        return None
    return welch(moments[0], moments[1])
