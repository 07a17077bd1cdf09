"""The answer of a joint center to a protocol: what the keepers opened, in the form of all answers.

It keeps to the limits that every center's answer keeps to.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unpooled.center.data.variables import Variable
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Answer,
    Categories,
    CategoryQuestion,
    CellTable,
    CohortQuestion,
    GroupLevels,
    GroupMoments,
    GroupStatuses,
    GroupTable,
    LatticeQuestion,
    LatticeTables,
    LevelCount,
    Moments,
    MomentsQuestion,
    Protocol,
    ProtocolAnswer,
    ProtocolPart,
    Reason,
    Refusal,
    Size,
    Sizes,
    SizesQuestion,
    SurvivalQuestion,
    SurvivalTables,
    block_label,
    expand,
)
from unpooled.center.questions.joint import (
    JointCategory,
    JointNumber,
    JointOutcome,
    JointPlan,
    JointScale,
)
from unpooled.federation.joint.computation.program import CellMoments, JointNumbers, PartNumbers
from unpooled.maths.joint.cutting import JointCells
from unpooled.maths.joint.levels import fine_blocks


def joint_answer(protocol: Protocol, plan: JointPlan, numbers: JointNumbers | None) -> Answer:
    """All parts of the protocol; those by side groupings are refused: they would cross others."""
    kinds = {
        part.variable: "category" if isinstance(part, JointCategory) else "number"
        for part in plan.parts
        if not isinstance(part, JointOutcome)
    }
    main, answers = next(protocol.families()), _Answers(plan, numbers)
    parts = []
    for question in expand(protocol, kinds):  # type: ignore[arg-type]
        if question.blocks == main:
            parts.append(ProtocolPart(question=question, answer=answers.of(question)))
        else:
            parts.append(
                ProtocolPart(question=question, answer=_none(plan.k, Reason.SIDE_GROUPING))
            )
    return Answer(k=plan.k, aggregate=ProtocolAnswer(k=plan.k, parts=tuple(parts)))


def _none(k: int, reason: Reason, limit: int | None = None) -> Answer:
    return Answer(k=k, aggregate=None, refusals=(Refusal(reason=reason, limit=limit),))


class _Answers:
    """The answers to the questions of a protocol, one after the other."""

    def __init__(self, plan: JointPlan, numbers: JointNumbers | None) -> None:
        self._k, self._numbers = plan.k, numbers
        fine = fine_blocks([len(names) for names in plan.names])
        self._blocks = [
            block_label(
                [names[level] for level in np.unique(fine[list(rows), at])]
                for at, names in enumerate(plan.names)
            )
            for rows in (numbers.blocks if numbers is not None else ())
        ]
        opened = numbers.parts if numbers is not None else [None] * len(plan.parts)
        self._parts: dict[tuple[type, str, str | None], Any] = {
            (type(part), part.variable, getattr(part, "event", None)): (part, some)
            for part, some in zip(plan.parts, opened, strict=True)
        }

    def of(self, question: CohortQuestion) -> Answer:
        """The answer to one question."""
        least = question.needs(self._k)
        if self._numbers is None:
            return _none(self._k, Reason.TOO_SMALL, 2 * self._k)
        if not self._is_counted(question):  # its column is, in another way
            return _none(self._k, Reason.WOULD_ISOLATE, self._k)
        aggregate: Any
        match question:
            case SizesQuestion():
                each = zip(self._blocks, self._numbers.people, strict=True)
                aggregate = Sizes(sizes=tuple(Size(group=g, n=n) for g, n in each))
                declared = Variable()
            case MomentsQuestion():
                part, some = self._number(question.variable)
                aggregate, declared = self._moments(some), part.declared
            case LatticeQuestion():
                part, some = self._number(question.variable)
                aggregate, declared = self._tables(part, some), part.declared
            case CategoryQuestion():
                part, some = self._parts[JointCategory, question.variable, None]
                aggregate, declared = self._levels(part, some), Variable()
            case SurvivalQuestion():
                part, some = self._parts[JointOutcome, question.variable, question.event]
                aggregate, declared = self._statuses(part, some), part.declared
            case _:
                raise TypeError(f"a joint center does not answer {type(question).__name__}")
        labels = list(aggregate.labels())
        if not labels:
            return _none(self._k, Reason.TOO_SMALL, least)
        policy = Policy(k=self._k, moments="all", zero_cells=False)
        aggregate.limits(question, policy.terms(question, declared))
        refusals = tuple(
            Refusal(reason=Reason.TOO_SMALL, name=block, limit=least)
            for block in self._blocks
            if block not in labels
        )
        return Answer(k=self._k, aggregate=aggregate, refusals=refusals)

    def _is_counted(self, question: CohortQuestion) -> bool:
        """Whether the plan has it."""
        event = question.event if isinstance(question, SurvivalQuestion) else None
        kinds = {
            MomentsQuestion: JointNumber,
            LatticeQuestion: JointNumber,
            CategoryQuestion: JointCategory,
            SurvivalQuestion: JointOutcome,
        }
        kind = kinds.get(type(question))
        if kind is None:
            return True
        part, _ = self._parts.get((kind, question.variable, event), (None, None))
        horizon = question.horizon if isinstance(question, SurvivalQuestion) else None
        return part is not None and horizon in (None, getattr(part, "horizon", None))

    def _number(self, variable: str) -> tuple[JointNumber, PartNumbers]:
        """A number as it was released, on the scale that was agreed on."""
        part, some = self._parts[JointNumber, variable, None]
        return part if some.scale is None else part.at_scale(some.scale), some

    def _each(self, some: Sequence[Any], missing: Sequence[int]) -> Iterator[tuple[str, Any, Any]]:
        """Blocks of which something is released, with how many lack a value where they are K."""
        for block, one, lacking in zip(self._blocks, some, missing, strict=True):
            if one is not None:
                yield block, one, lacking or None

    def _moments(self, opened: PartNumbers) -> Moments:
        both = [
            None if table is None else (table.people, moments)
            for table, moments in zip(opened.tables, opened.moments, strict=True)
        ]
        return Moments(
            moments=tuple(
                GroupMoments(
                    group=block,
                    n=n,
                    missing=lacking,
                    mean=None if moments is None else moments.mean,
                    sd=None if moments is None else moments.sd,
                )
                for block, (n, moments), lacking in self._each(both, opened.missing)
            )
        )

    def _tables(self, part: JointNumber, opened: PartNumbers) -> LatticeTables:
        return LatticeTables(
            scale=part.scale,
            moments="all",
            groups=tuple(
                GroupTable(group=block, table=_cell_table(part, *both))
                for block, both, _ in self._each(
                    _with_cells(opened.tables, opened.cells), opened.missing
                )
            ),
            resolution=part.resolution,
            lower=part.lower,
            upper=part.upper,
        )

    def _levels(self, part: JointCategory, opened: PartNumbers) -> Categories:
        names = part.level_names
        return Categories(
            groups=tuple(
                GroupLevels(
                    group=block,
                    cells=tuple(
                        LevelCount(levels=tuple(names[level] for level in cell), count=count)
                        for cell, count in zip(levels.cells, levels.counts, strict=True)
                    ),
                    missing=lacking,
                )
                for block, levels, lacking in self._each(opened.levels, opened.missing)
            )
        )

    def _statuses(self, part: JointOutcome, opened: PartNumbers) -> SurvivalTables:
        blocks = len(self._blocks)
        by_status = _with_cells(opened.tables, opened.cells)
        of_all = _with_cells(opened.either, opened.either_cells)
        groups = []
        for at, block in enumerate(self._blocks):
            events, censored, either = (
                None if both is None else _cell_table(part, *both)
                for both in (by_status[at], by_status[blocks + at], of_all[at])
            )
            if events is not None or either is not None:
                groups.append(
                    GroupStatuses(
                        group=block,
                        events=events,
                        censored=censored,
                        either=either,
                        below=opened.below[at],
                    )
                )
        return SurvivalTables(scale=part.scale, groups=tuple(groups), resolution=part.resolution)


def _with_cells(
    tables: Sequence[JointCells | None], moments: Sequence[CellMoments | None]
) -> list[tuple[JointCells, CellMoments] | None]:
    """Tables with the moments of their cells."""
    pairs = zip(tables, moments, strict=True)
    return [None if cells is None or given is None else (cells, given) for cells, given in pairs]


def _cell_table(part: JointScale, cells: JointCells, given: CellMoments) -> CellTable:
    edges = part.edges[list(cells.edges)].tolist()
    return CellTable(edges=tuple(edges), counts=cells.counts, means=given.means, sds=given.sds)
