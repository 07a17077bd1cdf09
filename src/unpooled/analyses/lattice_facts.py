"""What fixes a lattice where nothing is declared: how far a column spreads, how it is rounded.

Both are those of the whole column, so that no choice of people moves the lattice; they are 1, 2 or
5 times a power of ten, so that they tell nothing about one person.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from unpooled.center.cohort import Selection
from unpooled.center.policy import Policy
from unpooled.maths.lattice import is_multiple, nice_number, usual_resolutions
from unpooled.questions import LatticeTables, SurvivalTables

_MANY = 5  # K people: of 50, 41 are even by chance in three of a million columns
_NORMAL = 1.349  # the middle half of a normal distribution, in standard deviations


class LatticeFacts(NamedTuple):
    """A variable's scale, and the number of which its values are multiples, if there is one."""

    scale: float
    resolution: float | None


def center_facts(
    selection: Selection, variable: str, policy: Policy, horizon: float | None = None
) -> LatticeFacts:
    """What is declared or, where it is not, found in the center's column.

    Fewer than K people may have other values than multiples of the resolution; means of several
    rows have none. K is the policy's own, which no question moves. Of few people half may be even
    by chance, so theirs is a power of ten. A horizon, where all stand who are followed up longer,
    must be a multiple too.
    """
    declared, source = selection.cohort.declared, selection.cohort.source
    scale = declared.scale or _scale(source.spread(variable, 2 * policy.k))
    if declared.resolution is not None or policy.per_person == "mean":
        return LatticeFacts(scale, declared.resolution)
    usual = [number for number in usual_resolutions(scale) if declared.may_have(number, horizon)]
    found = source.resolution(variable, usual, policy.k, policy.person)
    if found is not None and source.filled(variable) < _MANY * policy.k:
        usual = [number for number in usual if is_multiple(math.log10(number), 1.0)]
        found = source.resolution(variable, usual, policy.k, policy.person)
    return LatticeFacts(scale, found)


def _scale(spread: float) -> float:
    return nice_number(spread / _NORMAL) if spread > 0 else 1.0


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
