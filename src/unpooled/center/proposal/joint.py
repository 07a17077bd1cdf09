"""What a center shares with a joint center: its people, counted at public points, in secret shares.

Nothing here needs to be trusted but who is counted where: the gate splits and seals the counts.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import shake_256

import numpy as np

from unpooled.center.cohort.people import Cohort, RefusedQuestion, Rows, check_values
from unpooled.center.data.variables import Variable
from unpooled.center.proposal.protocol import ProtocolRun
from unpooled.center.questions import (
    OTHER,
    CategoryQuestion,
    CohortQuestion,
    Grouping,
    LatticeQuestion,
    Reason,
    SurvivalQuestion,
)
from unpooled.center.questions.joint import (
    JointCategory,
    JointOutcome,
    JointPlan,
    JointScale,
    Part,
)
from unpooled.maths.arrays import BoolArray, IntArray
from unpooled.maths.joint.cutting import DRAW, DRAWERS


@dataclass(slots=True)
class JointCount:
    """The people of a center at the points of a plan; `run` knows its columns."""

    run: ProtocolRun
    rows: Rows
    seed: bytes  # of what the center draws

    def vector(self, plan: JointPlan, place: int) -> IntArray:
        """All numbers that the center shares.

        The first two members draw where tables are cut, the first one tosses the coins.
        """
        blocks = self._blocks(plan)
        numbers, draws = [np.bincount(blocks, minlength=plan.blocks)], list[IntArray]()
        for part, size in plan.sections():
            numbers += [each.ravel() for each in self._counts(plan, part, blocks)]
            if part.is_cut and place < DRAWERS:
                half, label = size // 2, f"{len(draws)} {part.variable}"
                draws.append(self._uniform(half, DRAW, label))
                coins = self._uniform(half, 1, label)
                draws.append(coins if place == 0 else 0 * coins)
        return np.concatenate([*numbers, *draws]).astype(np.int64)

    # --- blocks -----------------------------------------------------------------------------

    def _blocks(self, plan: JointPlan) -> IntArray:
        """The combination of levels of each person."""
        code = np.zeros(self.rows.size, dtype=np.int64)
        for grouping, names in zip(plan.groupings, plan.names, strict=True):
            self.run.check_grouping(grouping)
            code = code * len(names) + self._level(grouping, names)
        return code

    def _level(self, grouping: Grouping, names: Sequence[str]) -> IntArray:
        levels = self.run.levels(grouping)
        place = np.array([names.index(n) if n in names else -1 for n in levels.names])
        level = place[levels.of]
        lacking = level < 0
        donors = self._donors(f"group {grouping.name}", lacking, ~lacking)
        if donors is None:
            raise RefusedQuestion(Reason.ALL_MISSING, grouping.name)
        level[lacking] = level[donors]
        return level

    # --- values -----------------------------------------------------------------------------

    def _counts(self, plan: JointPlan, part: Part, blocks: IntArray) -> Iterator[IntArray]:
        """Everybody by block, table and point, those without a value as drawn; then these alone."""
        tables, points, lacking = self._places(part)
        shape = plan.blocks, part.tables, part.width
        at = np.ravel_multi_index((blocks, tables, points), shape)
        for some in (slice(None), lacking):
            yield np.bincount(at[some], minlength=int(np.prod(shape)))

    def _places(self, part: Part) -> tuple[IntArray, IntArray, BoolArray]:
        """The table and the point of each person, and who lacks a value."""
        cohort = self._cohort(part)
        values = cohort.known_values()
        tables = np.zeros(len(values), dtype=np.int64)
        lacking = np.isnan(values)
        match part:
            case JointCategory():
                names = dict.fromkeys((*cohort.level_names(), OTHER))
                numbers = np.where(lacking, 0, values).astype(np.int64)
                places = [part.level_names.index(name) for name in names]
                points = np.array(places)[numbers]
            case JointScale():
                times = values
                if isinstance(part, JointOutcome):
                    late = values > part.horizon
                    tables = np.where((cohort.status() == 1) & ~late, 0, 1)
                    times = np.minimum(values, part.horizon)
                points = np.searchsorted(part.edges, np.where(lacking, 0.0, times), "left")
        donors = self._donors(part.variable, lacking, ~lacking)
        if donors is None:  # nobody has one: anywhere, by the key
            draws = _keyed(self.rows.secret, part.variable, np.flatnonzero(lacking))
            points[lacking], tables[lacking] = draws % part.width, draws % part.tables
        else:
            points[lacking], tables[lacking] = points[donors], tables[donors]
        return tables, points, lacking

    def _cohort(self, part: Part) -> Cohort:
        question: CohortQuestion
        match part:
            case JointCategory():
                question = CategoryQuestion(
                    variable=part.variable, levels=part.levels, missing=part.missing
                )
            case JointOutcome():
                question = SurvivalQuestion(
                    variable=part.variable,
                    event=part.event,
                    event_is=part.event_is,
                    horizon=part.horizon,
                    missing=part.missing,
                )
            case _:
                question = LatticeQuestion(variable=part.variable, missing=part.missing)
        self.run.check_columns(question)
        declared = self.run.variables.get(part.variable, Variable())  # the center's own limits
        rows = self.run.without(part.variable, part.missing)
        everybody = {"": np.full(self.rows.size, True)}
        cohort = Cohort(rows, question, declared, None, everybody)
        check_values(rows, question, declared)
        return cohort

    def _uniform(self, size: int, most: int, label: str) -> IntArray:
        """Random numbers from 0 to 15, or to 1, that follow from the key and what is counted."""
        drawn = shake_256(self.seed + bytes([most]) + label.encode()).digest(size)
        return np.frombuffer(drawn, np.uint8).astype(np.int64) & most

    def _donors(self, label: str, lacking: BoolArray, present: BoolArray) -> IntArray | None:
        """Whose value each who lacks one gets, drawn by the key; None where nobody has it."""
        those, people = np.flatnonzero(present), np.flatnonzero(lacking)
        if not len(people):
            return people
        if not len(those):
            return None
        draws = _keyed(self.rows.secret, label, people)
        return np.asarray(those[draws % len(those)])


def _keyed(secret: bytes, label: str, people: IntArray) -> IntArray:
    """A number for each person that nobody without the key can know, always the same."""
    key = hashlib.blake2b(label.encode(), key=secret[:64], person=b"unpooled joined")
    draws = np.zeros(len(people), dtype=np.int64)
    for place, person in enumerate(people.tolist()):
        keyed = key.copy()
        keyed.update(person.to_bytes(8, "little"))
        draws[place] = int.from_bytes(keyed.digest()[:7], "little")
    return draws
