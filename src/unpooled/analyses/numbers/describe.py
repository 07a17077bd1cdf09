"""Describe a variable: n, missing, mean and SD per group, and Welch's t-test of two groups."""

from collections.abc import Iterable, Sequence

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.request import Request, refuse, take_attendance
from unpooled.center.questions import GroupMoments, Moments, MomentsQuestion
from unpooled.maths.moments import (
    MeanSD,
    Welch,
    pool,
    welch,
)
from unpooled.results.numbers.describe import CenterDescription, DescribeResult, GroupDescription
from unpooled.results.provenance.refusals import CenterRefusal, center_refusals


def run_describe(conversation: Conversation, request: Request) -> DescribeResult:
    """One round for who is there, one for the moments."""
    attendance = take_attendance(conversation, request)
    question = MomentsQuestion(**attendance.request.fields)
    round_ = conversation.ask(question, Moments, attendance.centers)
    refusals = (*attendance.refusals, *round_.refusals)
    if not round_.aggregates:
        refuse(refusals)
    moments = [
        (center, group.group, group)
        for center, m in round_.aggregates.items()
        for group in m.moments
    ]
    return combine_description(
        attendance.request, attendance.groups, moments, center_refusals(refusals), rounds=2
    )


def combine_description(
    request: Request,
    groups: Sequence[str],
    rows: Iterable[tuple[str, str, GroupMoments]],
    refusals: tuple[CenterRefusal, ...],
    rounds: int,
) -> DescribeResult:
    """From the moments of people at a center who belong to a group; there may be several."""
    parts: dict[tuple[str, str], list[GroupMoments]] = {}
    for center, group, moments in rows:
        parts.setdefault((group, center), []).append(moments)
    centers = tuple(
        CenterDescription(center, group, *_together(one), *_mean_sd(one))
        for (group, center), one in parts.items()
    )
    every = [
        [one for (g, _), some in parts.items() if g == group for one in some] for group in groups
    ]
    of_group = [[c for c in centers if c.group == group] for group in groups]
    described = tuple(map(_combine, groups, every, of_group))
    return DescribeResult(
        variable=request.variable,
        by=request.by,
        where=request.where,
        groups=described,
        welch=_welch(described, of_group),
        centers=centers,
        refusals=refusals,
        rounds=rounds,
    )


def _together(parts: Sequence[GroupMoments]) -> tuple[int, int | None]:
    """How many people, and how many have no value, where all parts tell."""
    missing = [part.missing for part in parts if part.missing is not None]
    return sum(part.n for part in parts), sum(missing) if len(missing) == len(parts) else None


def _mean_sd(parts: Sequence[GroupMoments]) -> tuple[float | None, float | None]:
    """Mean and SD of all parts together, as far as all tell them."""
    whole = [MeanSD(m.n, m.mean, m.sd) for m in parts if m.mean is not None and m.sd is not None]
    if whole and len(whole) == len(parts):
        pooled = pool(whole) if len(whole) > 1 else whole[0]
        return pooled.mean, pooled.sd
    means = [(m.n, m.mean) for m in parts if m.mean is not None]
    if not means or len(means) < len(parts):
        return None, None
    return sum(n * mean for n, mean in means) / sum(n for n, _ in means), None


def _with_both(centers: Sequence[CenterDescription]) -> MeanSD | None:
    """Mean and SD over the centers that give both."""
    whole = [MeanSD(c.n, c.mean, c.sd) for c in centers if c.mean is not None and c.sd is not None]
    return None if not whole else pool(whole) if len(whole) > 1 else whole[0]


def _combine(
    group: str, parts: Sequence[GroupMoments], centers: Sequence[CenterDescription]
) -> GroupDescription:
    mean, sd = _mean_sd(parts)
    with_both = _with_both(centers)
    if mean is None and with_both is not None:
        mean, sd = with_both.mean, with_both.sd
    return GroupDescription(
        group=group,
        n=sum(part.n for part in parts),
        missing=sum(part.missing for part in parts if part.missing is not None),
        missing_hidden=sum(center.missing is None for center in centers),
        mean=mean,
        sd=sd,
    )


def _welch(
    groups: Sequence[GroupDescription], centers: Sequence[Sequence[CenterDescription]]
) -> Welch | None:
    moments = [
        MeanSD(sum(c.n for c in some if c.mean is not None and c.sd is not None), g.mean, g.sd)
        for g, some in zip(groups, centers, strict=True)
        if g.mean is not None and g.sd is not None
    ]
    if len(groups) != 2 or len(moments) != 2:
        return None
    return welch(moments[0], moments[1])
