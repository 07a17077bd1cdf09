"""Describe a variable: n, missing, mean and SD per group, and Welch's t-test of two groups."""

from collections.abc import Sequence

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.request import Request, refuse, take_attendance
from unpooled.center.questions import Moments, MomentsQuestion
from unpooled.maths.moments import (
    MeanSD,
    Welch,
    pool,
    welch,
)
from unpooled.results.describe import CenterDescription, DescribeResult, GroupDescription
from unpooled.results.refusals import center_refusals


def run_describe(conversation: Conversation, request: Request) -> DescribeResult:
    """One round for who is there, one for the moments."""
    attendance = take_attendance(conversation, request)
    question = MomentsQuestion(**attendance.request.fields)
    round_ = conversation.ask(question, Moments, attendance.centers)
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
        variable=request.variable,
        by=request.by,
        where=request.where,
        groups=groups,
        welch=_welch(groups),
        centers=centers,
        refusals=center_refusals(refusals),
        rounds=2,
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
