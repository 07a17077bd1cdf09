"""What a center shares with a joint center: its people, counted at public points, in secret shares.

A center tells of its people alone or in a joint center, never both: else what it told alone, taken
from what the joint center tells, would leave the others, who may be fewer than K. So whoever took
part once is remembered, and what stands in the ledger decides.
"""

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.center.people import Cohort, RefusedQuestion, Rows, check_values
from unpooled.center.protocol import ProtocolRun
from unpooled.center.questions import (
    OTHER,
    CategoryQuestion,
    CohortQuestion,
    Grouping,
    LatticeQuestion,
    OutcomeQuestion,
    Reason,
    SurvivalQuestion,
)
from unpooled.center.questions.joint import (
    LEAST_MEMBERS,
    JointCategory,
    JointOutcome,
    JointPlan,
    JointQuestion,
    JointScale,
    JointShares,
    Part,
)
from unpooled.center.sealing import seal
from unpooled.maths.arrays import BoolArray, IntArray
from unpooled.maths.joint.cutting import DRAW, DRAWERS
from unpooled.maths.joint.shares import KEEPERS, split, to_bytes

Keepers = Mapping[str, str]  # name → the public key that a center knows


def check_joint(question: JointQuestion, center: str, keepers: Keepers, policy_k: int) -> None:
    """Refuse a joint center that is not such as the center takes part in."""
    members = question.members
    if center not in members or len(set(members)) < len(members):
        raise RefusedQuestion(Reason.UNREADABLE_QUESTION)
    if len(members) < LEAST_MEMBERS:
        raise RefusedQuestion(Reason.FEW_MEMBERS, limit=LEAST_MEMBERS)
    if len(question.keepers) != KEEPERS or keepers != {k.name: k.public for k in question.keepers}:
        raise RefusedQuestion(Reason.OTHER_KEEPERS)
    if question.plan.k < max(policy_k, question.protocol.k or 0):
        raise RefusedQuestion(Reason.UNREADABLE_QUESTION)


def is_same_joint(one: JointQuestion, other: JointQuestion) -> bool:
    """Whether two are the same release but for who is a member: keepers open one of them alone."""
    return (one.protocol, one.plan, one.keepers) == (other.protocol, other.plan, other.keepers)


@dataclass(slots=True)
class JointCount:
    """The people of a center at the points of a plan; `run` knows its columns."""

    run: ProtocolRun
    rows: Rows

    def shares(self, question: JointQuestion, center: str) -> JointShares:
        """The center's numbers, split, and each share sealed to its keeper."""
        vector = self.vector(question.plan, question.members.index(center))
        each = zip(question.keepers, split(vector), strict=True)
        return JointShares(
            sealed=tuple(
                seal(keeper.public, to_bytes(share), question.context(center, keeper.name))
                for keeper, share in each
            )
        )

    def vector(self, plan: JointPlan, place: int) -> IntArray:
        """All numbers that the center shares.

        The first two members draw where tables are cut, the first one tosses the coins; all others
        share zeros there.
        """
        blocks = self._blocks(plan)
        numbers = [np.bincount(blocks, minlength=plan.blocks)]
        for part, size in plan.sections():
            counted = np.concatenate([each.ravel() for each in self._counts(plan, part, blocks)])
            secret = np.zeros((2, (size - len(counted)) // 2), dtype=np.int64)
            if place < DRAWERS:
                secret[0] = _uniform(secret.shape[1], DRAW)
            if place == 0:
                secret[1] = _uniform(secret.shape[1], 1)
            numbers += [counted, secret.ravel()]
        return np.concatenate(numbers).astype(np.int64)

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
                known = np.where(lacking, 0, values).astype(np.int64)
                places = [part.level_names.index(name) for name in names]
                points = np.array(places)[known]
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
        declared = self.run.variables.get(part.variable)
        if isinstance(part, JointScale):
            declared = part.declared
        rows = self.run.without(part.variable, part.missing)
        everybody = {"": np.full(self.rows.size, True)}
        cohort = Cohort(rows, question, declared, None, everybody)
        check_values(rows, question, declared)
        return cohort

    def _donors(
        self, label: str, lacking: BoolArray, present: BoolArray
    ) -> IntArray | None:
        """Of whom each who lacks something has it, drawn by the key; None where nobody has it."""
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


def _uniform(size: int, most: int) -> IntArray:
    """Random numbers from 0 to 15, or to 1."""
    return np.frombuffer(secrets.token_bytes(size), np.uint8).astype(np.int64) & most
