"""How a history grows: small steps, which a file keeps and a center takes again when it starts."""

from typing import assert_never

import msgspec
import numpy as np

from unpooled.maths.arrays import BoolArray
from unpooled.memory.history import History


class Tell(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="tell"):
    """A set was spoken for."""

    people: int  # the number of the set
    k: int
    open_base: bool
    repeats: bool


Step = Tell


def take(history: History, step: Step, people: BoolArray) -> History:
    """The history after one more step, about these people."""
    match step:
        case Tell():
            return history.tell(
                padded(people, len(history.block)),
                step.k,
                open_base=step.open_base,
                repeats=step.repeats,
            )
        case _:
            assert_never(step)


def padded(people: BoolArray, size: int) -> BoolArray:
    """The set among people who came later."""
    return people if len(people) == size else np.pad(people, (0, size - len(people)))
