"""How a history grows: small steps, which a file keeps and a center takes again when it starts."""

from collections.abc import Callable
from typing import assert_never

import msgspec
import numpy as np

from unpooled.center.memory.history import History
from unpooled.center.memory.tables import Values, opened, parted, with_edges
from unpooled.maths.arrays import BoolArray


class Tell(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="tell"):
    """A set was spoken for."""

    people: int  # the number of the set
    k: int
    open_base: bool
    repeats: bool


class Open(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="open"):
    """A set was made ready to be told in a table."""

    people: int
    k: int


class Edges(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="edges"):
    """The first table of a block was told."""

    block: int
    edges: tuple[float, ...]


Step = Tell | Open | Edges


def take(history: History, step: Step, sets: Callable[[int], BoolArray], values: Values) -> History:
    """The history after one more step; `sets` gives the people of a set, among all there are."""
    match step:
        case Tell():
            return parted(history, values).tell(
                sets(step.people), step.k, open_base=step.open_base, repeats=step.repeats
            )
        case Open():
            return opened(history, sets(step.people), step.k)
        case Edges():
            return with_edges(history, step.block, np.array(step.edges), values)
        case _:
            assert_never(step)
