"""All that centers tell while somebody listens, as the gate has it: who is in which part."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from unpooled.center.cohort.people import Cohort
from unpooled.center.gate import Gate
from unpooled.center.questions import Aggregate, CohortQuestion
from unpooled.maths.arrays import BoolArray, FloatArray


@dataclass(slots=True)
class Overheard:
    """Sets that words chose, and what was told of each variable: people by part, with sums.

    `cohorts` are the people of each answer, with the values that few of them were given.
    """

    words: list[BoolArray] = field(default_factory=list)
    variables: dict[str, list[FloatArray]] = field(default_factory=dict)
    cohorts: list[Cohort] = field(default_factory=list)

    def equations(self) -> Iterator[tuple[str | None, list[FloatArray]]]:
        """Per variable, and of sets alone: what each told number adds up, person by person."""
        sets = [people.astype(np.float64) for people in self.words]
        yield None, sets
        for variable, part in self.variables.items():
            yield variable, [*sets, *part]

    def add(self, answer: Aggregate, question: CohortQuestion, cohort: Cohort) -> None:
        """One more answer."""
        self.cohorts.append(cohort)
        self.words += [cohort.members(group).copy() for group in answer.labels()]
        for each in answer.tells(question, cohort):
            for variable, numbers in each.numbers.items():
                one = self.variables.setdefault(variable, [])
                for part, sums in enumerate(numbers, 1):
                    people = (each.part == part).astype(np.float64)
                    values = np.nan_to_num(cohort.value())
                    one += [people * values**power for power in range(sums)]


@contextmanager
def overheard() -> Iterator[Overheard]:
    """What leaves any center from here on."""
    judge, result = Gate._judge_people, Overheard()

    def listens(gate: Gate, answer: Aggregate, question: CohortQuestion, asked: Any) -> Any:
        draft = judge(gate, answer, question, asked)
        result.add(answer, question, asked.cohort)
        return draft

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "_judge_people", listens)
        yield result
