"""The memory of a center: judges each answer beside all earlier ones about the same variable."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from unpooled.center.memory.definition import Words
from unpooled.center.memory.history import History, WouldDiffer
from unpooled.center.memory.memory_file import (
    Line,
    MemoryFile,
    answer_digest,
    packed,
    packed_units,
    unpacked,
    with_units,
)
from unpooled.center.memory.powers import Powered, merged
from unpooled.center.memory.proposal import Group, Proposal, Remembered, propose
from unpooled.center.memory.remainders import Summed, with_more
from unpooled.center.memory.speaking import cells_told, missing_told, moments_told, people_told
from unpooled.center.memory.steps import take
from unpooled.center.memory.tables import Values
from unpooled.center.memory.units import Units
from unpooled.errors import GateError
from unpooled.maths.arrays import FloatArray
from unpooled.questions import Answer, CohortQuestion, Question


class DataChanged(Exception):  # noqa: N818 - not an error of the program but a judgement
    """The data of a variable are not those that earlier answers spoke of."""


class Column(Protocol):
    """A center's data, as far as its memory must know them."""

    def fingerprint(self, variable: str) -> str:
        """Changes when the data do."""
        ...

    def values(self, variable: str) -> FloatArray:
        """The value in each row, NaN where there is none."""
        ...


class Memory:
    """What a center's answers have spoken for, variable by variable."""

    def __init__(self, k: int, file: MemoryFile, column: Column) -> None:
        self._k = k
        self._file = file
        self._column = column
        self._variables: dict[str, Remembered] = {}
        self._fingerprints: dict[str, str] = {}

    def propose(
        self,
        question: CohortQuestion,
        k: int,
        nobody: Units,
        groups: Sequence[Group],
        *,
        missing: bool = False,
        table: int | None = None,
        rows: Words = frozenset(),
    ) -> Proposal:
        """Which of the groups may be answered.

        `nobody` says what a person is, `rows` the words that chose some rows of a person, or only
        those with a status. Other words than those of the first answer would give a second value
        of the same people, or tell whether somebody lacks a status.
        """
        before = self._recall(question.variable, nobody)
        if before.rows not in (None, rows):
            raise WouldDiffer
        people = [m for g in groups for m in (g.present, g.missing, g.among) if m is not None]
        units = before.units.including(people)
        before = replace(before.grown(units), rows=rows)
        values = self._values_of(question.variable, units)
        return propose(question, k, before, groups, values, missing=missing, table=table)

    def judge(
        self, answer: Answer, question: Question | None, proposal: Proposal | None
    ) -> Proposal | None:
        """What would be told, in full; GateError unless it is what was proposed, to these people.

        Raises WouldDiffer where new edges of a table tell too much beside earlier answers.
        """
        if answer.aggregate is None or question is None:
            return None
        told, missing = people_told(answer.aggregate, question), missing_told(answer.aggregate)
        if not told:
            return None
        if proposal is None or proposal.variable != getattr(question, "variable", None):
            raise GateError("an answer about people must be judged beside earlier ones")
        for expected, said in ((proposal.people, told), (proposal.missing, missing)):
            for group, n in said.items():
                if group not in expected or np.count_nonzero(expected[group]) != n:
                    raise GateError("an answer must speak for the people that are remembered")
        judged = proposal.with_tables(cells_told(answer.aggregate, question))
        return judged.with_sums(moments_told(answer.aggregate))

    def record(self, proposal: Proposal, number: int, question: bytes, answer: bytes) -> None:
        """Put on disk what the answer with this number in the ledger speaks for."""
        if not self._file.kept:
            return
        draft, after = proposal.draft, proposal.after
        known = self._variables[proposal.variable].units
        line = Line(
            number=number,
            digest=answer_digest(question, answer),
            variable=proposal.variable,
            fingerprint=self._fingerprints[proposal.variable],
            units=packed_units(after.units, known.size),
            rows=tuple(sorted(after.rows or ())),
            sets=tuple(packed(people) for people in draft.sets),
            steps=draft.steps,
            words=tuple((tuple(sorted(words)), told.hex()) for words, told in draft.words),
            condition=tuple(sorted(proposal.condition)),
            powers=tuple((packed(p.people), tuple(sorted(p.lambdas))) for p in draft.powers),
            sums=tuple((packed(told.people), told.values) for told in draft.sums),
        )
        self._file.append(line)

    def remember(self, proposal: Proposal) -> None:
        """Take the answer for told."""
        self._variables[proposal.variable] = proposal.after

    def _values_of(self, variable: str, units: Units) -> Values:
        if units.values is None:
            return lambda: self._column.values(variable)
        return lambda: units.values if units.values is not None else np.zeros(0)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _recall(self, variable: str, nobody: Units) -> Remembered:
        if variable not in self._variables:
            if self._file.kept and variable not in self._fingerprints:
                self._fingerprints[variable] = self._column.fingerprint(variable)
            empty = History.empty(nobody.size, self._k)
            found = Remembered(nobody, empty, {}, frozenset())
            for line in self._file.lines.get(variable, ()):
                if line.fingerprint != self._fingerprints[variable]:
                    raise DataChanged
                found = _relived(found, line, self._values_of)
            self._variables[variable] = found
        return self._variables[variable]


def _relived(before: Remembered, line: Line, values: Callable[[str, Units], Values]) -> Remembered:
    """What the center knew after the answer of a line."""
    units = with_units(before.units, line)
    before = before.grown(units)
    history = before.history
    sets = [unpacked(text, units.size) for text in line.sets]
    for step in line.steps:
        people, known = (lambda number: sets[number - before.sets]), values(line.variable, units)
        history = take(history, step, people, known)
    powers = (Powered(unpacked(text, units.size), frozenset(at)) for text, at in line.powers)
    sums = [Summed(unpacked(text, units.size), values) for text, values in line.sums]
    words = {frozenset(words): bytes.fromhex(told) for words, told in line.words}
    return Remembered(
        units,
        history,
        {**before.told, **words},
        before.conditions | {frozenset(line.condition)},
        before.sets + len(sets),
        frozenset(line.rows),
        merged(before.powers, powers),
        with_more(before.sums, sums),
    )
