"""The memory of a center: judges each answer beside all earlier ones about the same variable."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unpooled.errors import GateError
from unpooled.memory.history import History
from unpooled.memory.memory_file import (
    Line,
    MemoryFile,
    answer_digest,
    packed,
    packed_keys,
    unpacked,
    with_units,
)
from unpooled.memory.proposal import Group, Proposal, Remembered, propose
from unpooled.memory.speaking import missing_told, people_told
from unpooled.memory.steps import take
from unpooled.memory.units import Units
from unpooled.messages import Answer, CohortQuestion, Question


class DataChanged(Exception):  # noqa: N818 - not an error of the program but a judgement
    """The data of a variable are not those that earlier answers spoke of."""


class Memory:
    """What a center's answers have spoken for, variable by variable."""

    def __init__(self, k: int, file: MemoryFile, fingerprint: Callable[[str], str]) -> None:
        self._k = k
        self._file = file
        self._fingerprint = fingerprint
        self._variables: dict[str, Remembered] = {}
        self._fingerprints: dict[str, str] = {}

    def propose(
        self,
        question: CohortQuestion,
        k: int,
        nobody: Units,
        groups: Sequence[Group],
        with_missing: bool,
    ) -> Proposal:
        """Which of the groups may be answered; `nobody` says what a unit is."""
        before = self._recall(question.variable, nobody)
        units = before.units.including([m for g in groups for m in (g.present, g.missing)])
        grown = before.history.grown(units.size, units.share)
        before = replace(before, units=units, history=grown)
        return propose(question, k, before, groups, with_missing)

    def judge(self, answer: Answer, question: Question | None, proposal: Proposal | None) -> None:
        """Raise GateError unless the answer speaks for those people that were proposed."""
        if answer.aggregate is None or question is None:
            return
        told, missing = people_told(answer.aggregate, question), missing_told(answer.aggregate)
        if not told:
            return
        if proposal is None or proposal.variable != getattr(question, "variable", None):
            raise GateError("an answer about people must be judged beside earlier ones")
        for expected, said in ((proposal.people, told), (proposal.missing, missing)):
            for group, n in said.items():
                if group not in expected or np.count_nonzero(expected[group]) != n:
                    raise GateError("an answer must speak for the people that are remembered")

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
            size=after.units.size,
            share=after.units.share,
            units=_new_units(after.units, known.size),
            sets=tuple(packed(people) for people in draft.sets),
            steps=draft.steps,
            words=tuple((tuple(sorted(words)), told.hex()) for words, told in draft.words),
            condition=tuple(sorted(proposal.condition)),
        )
        self._file.append(line)

    def remember(self, proposal: Proposal) -> None:
        """Take the answer for told."""
        self._variables[proposal.variable] = proposal.after

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _recall(self, variable: str, nobody: Units) -> Remembered:
        if variable not in self._variables:
            if self._file.kept and variable not in self._fingerprints:
                self._fingerprints[variable] = self._fingerprint(variable)
            empty = History.empty(nobody.size, self._k, nobody.share)
            found = Remembered(nobody, empty, {}, frozenset())
            for line in self._file.lines.get(variable, ()):
                if line.fingerprint != self._fingerprints[variable]:
                    raise DataChanged
                found = _relived(found, line)
            self._variables[variable] = found
        return self._variables[variable]


def _new_units(units: Units, known: int) -> tuple[str, str] | None:
    if units.keys is None or units.owners is None:
        return None
    return packed_keys(units.keys[known:]), packed_keys(units.owners[known:])


def _relived(before: Remembered, line: Line) -> Remembered:
    """What the center knew after the answer of a line."""
    units = with_units(before.units, line)
    history = before.history.grown(units.size, units.share)
    sets = [unpacked(text, units.size) for text in line.sets]
    for step in line.steps:
        history = take(history, step, sets[step.people - before.sets])
    words = {frozenset(words): bytes.fromhex(told) for words, told in line.words}
    return Remembered(
        units,
        history,
        {**before.told, **words},
        before.conditions | {frozenset(line.condition)},
        before.sets + len(sets),
    )
