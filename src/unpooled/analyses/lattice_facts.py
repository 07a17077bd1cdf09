"""What fixes a lattice over several centers: the finest scale, and a common resolution."""

from collections.abc import Sequence
from typing import NamedTuple

from unpooled.maths.lattice import is_multiple, usual_resolutions
from unpooled.questions import LatticeTables, SurvivalTables


class LatticeFacts(NamedTuple):
    """A variable's scale, and the number of which its values are multiples, if there is one."""

    scale: float
    resolution: float | None


def common_facts(said: Sequence[LatticeTables | SurvivalTables]) -> LatticeFacts:
    """The finest scale of all, and the coarsest number of which everybody's values are multiples.

    What an analyst alone declares, and no center checked, is not believed.
    """
    scale = min(tables.scale for tables in said)
    numbers = [tables.resolution for tables in said if tables.resolution is not None]
    if len(numbers) < len(said):
        return LatticeFacts(scale, None)
    finest = min(numbers)
    for number in (finest, *usual_resolutions(finest)):
        if all(is_multiple(own, number) for own in numbers):
            return LatticeFacts(scale, number)
    return LatticeFacts(scale, None)
