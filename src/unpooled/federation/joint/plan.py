"""The plan of a joint center: at which public points its members count people.

What the protocol leaves open is settled by what centers tell alone: how far a variable spreads,
which levels there are. So it is known of K people at least, and public.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any, TypeVar

from msgspec.structs import replace

from unpooled.center.data.variables import Codebook, Variable
from unpooled.center.questions import (
    MISSING_LEVEL,
    OTHER,
    Categories,
    CellTable,
    Grouping,
    LatticeTables,
    Protocol,
    ProtocolAnswer,
    ProtocolOutcome,
    ProtocolVariable,
    SurvivalTables,
    block_levels,
)
from unpooled.center.questions.joint import (
    MOST_POINTS,
    JointCategory,
    JointNumber,
    JointOutcome,
    JointPlan,
    JointScale,
    Part,
)
from unpooled.errors import JointError
from unpooled.maths.lattice.lattice import nice_number

Scaled = TypeVar("Scaled", bound=JointScale)

_SPREADS = 6  # a window of this many standard deviations, where limits are all that is known
_BEYOND = 3  # standard deviations that people may lie beyond the last released edge


@dataclass(frozen=True, slots=True)
class Public:
    """What is known to all before the joint center: the codebook, and what centers gave alone."""

    variables: Codebook
    answers: Mapping[str, ProtocolAnswer]

    def of(self, name: str, kind: type) -> list[Any]:
        """What was released of a variable in this form."""
        return [
            part.answer.aggregate
            for answer in self.answers.values()
            for part in answer.parts
            if part.question.variable == name and isinstance(part.answer.aggregate, kind)
        ]

    def declared(self, name: str, variable: ProtocolVariable) -> Variable:
        """What protocol and codebook say."""
        truth = self.variables.get(name, Variable())
        facts = {
            fact: getattr(variable, fact)
            for fact in ("resolution", "lower", "upper")
            if getattr(variable, fact) is not None
        }
        return replace(truth, **facts)


def joint_plan(protocol: Protocol, public: Public, k: int) -> JointPlan:
    """The plan for the groupings that are crossed; raises JointError where too little is known.

    Each column is counted once: an outcome comes before a variable, and before later outcomes.
    """
    family = next(protocol.families())
    groupings = tuple(_with_levels(grouping, at, public) for at, grouping in enumerate(family))
    outcomes, columns = list[Part](), set[str]()
    times = {outcome.time for outcome in protocol.survival}
    for outcome in protocol.survival:
        if columns.isdisjoint((outcome.time, outcome.event)):
            outcomes.append(_outcome(outcome, protocol, public))
            columns |= {outcome.time, outcome.event}
    parts = [
        _part(name, variable, public)
        for name, variable in protocol.variables.items()
        if name not in columns | times
    ]
    return JointPlan(k=k, groupings=groupings, parts=(*parts, *outcomes))


def _with_levels(grouping: Grouping, at: int, public: Public) -> Grouping:
    if grouping.names:
        return grouping
    labels = {
        label
        for answer in public.answers.values()
        for part in answer.parts
        if part.answer.aggregate is not None
        and (part.question.blocks or ())[at : at + 1] == (grouping,)
        for label in part.answer.aggregate.labels()
    }
    levels = {level for label in labels for level in block_levels(label)[at]}
    return replace(grouping, levels=_some(levels, f"groups: {grouping.name}"))


def _some(levels: Iterable[str], what: str) -> tuple[str, ...]:
    """Levels that somebody named, or an error."""
    some = tuple(sorted(set(levels) - {OTHER, MISSING_LEVEL}))
    if not some:
        raise JointError(
            f"{what}: no center tells alone which levels there are, so a joint center needs them "
            "declared in the protocol (levels)"
        )
    return some


def _part(name: str, variable: ProtocolVariable, public: Public) -> Part:
    named_alone = public.of(name, Categories)
    if variable.kind == "category" or variable.levels or (variable.kind is None and named_alone):
        named = (
            level
            for table in named_alone
            for group in table.groups
            for c in group.cells
            for level in c.levels
        )
        return JointCategory(
            variable=name,
            missing=variable.missing,
            levels=variable.levels or _some(named, name),
            ordered=variable.ordered,
        )
    declared, tables = public.declared(name, variable), public.of(name, LatticeTables)
    cells = [group.table for table in tables for group in table.groups]
    low, high = _window(name, declared, cells, [table.scale for table in tables])
    scale = declared.scale or _scale([table.scale for table in tables], low, high)
    rough = declared.scale is None and not tables

    def part(scale: float) -> JointNumber:
        return JointNumber(
            rough=rough,
            variable=name,
            missing=variable.missing,
            scale=scale,
            resolution=declared.resolution,
            lower=declared.lower,
            upper=declared.upper,
            low=low,
            high=high,
        )

    if rough:
        scale = 10.0 ** math.ceil(math.log10(10 * (high - low) / MOST_POINTS))
    return _few_points(part, scale, high - low)


def _outcome(outcome: ProtocolOutcome, protocol: Protocol, public: Public) -> JointOutcome:
    variable = protocol.variables.get(outcome.time, ProtocolVariable())
    declared = public.declared(outcome.time, variable)
    if outcome.event_is is None:
        raise JointError(
            f"{outcome.event}: in a small center all may have the same status, so a joint center "
            "needs event_is declared in the protocol: the value that means the event"
        )
    event_is = outcome.event_is
    scales = [table.scale for table in public.of(outcome.time, SurvivalTables)]

    def part(scale: float) -> JointOutcome:
        return JointOutcome(
            variable=outcome.time,
            missing=variable.missing,
            event=outcome.event,
            event_is=event_is,
            horizon=outcome.horizon,
            scale=scale,
            resolution=declared.resolution,
            lower=declared.lower,
            upper=declared.upper,
            low=0.0,
            high=outcome.horizon,
        )

    scale = declared.scale or _scale(scales, 0.0, outcome.horizon)
    return _few_points(part, scale, outcome.horizon)


def _scale(scales: Sequence[float], low: float, high: float) -> float:
    return median_low(scales) if scales else nice_number((high - low) / _SPREADS)


def _window(
    name: str, declared: Variable, tables: Sequence[CellTable], scales: Sequence[float]
) -> tuple[float, float]:
    """Between which numbers people are counted apart."""
    edges = [edge for table in tables for edge in table.edges]
    beyond = _BEYOND * max(scales, default=0.0)
    low = declared.lower if declared.lower is not None else min(edges, default=math.nan) - beyond
    high = declared.upper if declared.upper is not None else max(edges, default=math.nan) + beyond
    if not low < high:
        raise JointError(
            f"{name}: no center tells alone where its values lie, so a joint center needs them "
            "declared in the protocol (lower and upper)"
        )
    return low, high


def _few_points(part: Callable[[float], Scaled], scale: float, width: float) -> Scaled:
    """A part on a lattice that is not too fine."""
    while True:
        made = part(scale)
        if made.width <= MOST_POINTS:
            return made
        scale = max(2 * scale, 10 * width / MOST_POINTS)
