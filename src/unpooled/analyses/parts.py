"""The tables that a center may tell of a group: block by block, with the edges that are fixed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.center.cohort import Selection
from unpooled.center.memory.proposal import Proposal
from unpooled.maths import large
from unpooled.maths.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class TablePart:
    """Sorted values of people whose table may have these edges only; None: any."""

    values: FloatArray
    edges: FloatArray | None


ONE_CELL = 2**30  # so many times coarser than K allows: a table that tells nobody apart

Parts = Mapping[str, Sequence[TablePart]]


def table_parts(selection: Selection, proposal: Proposal) -> Parts:
    """The parts of each group; most groups have one, which is the whole group."""
    found: dict[str, list[TablePart]] = {}
    for group in selection.groups:
        parts = proposal.parts[group]
        if len(parts) == 1:
            values = selection.cohort.values([group])
        else:
            everybody = proposal.draft.values()
            values = [large.chosen(everybody, part.people) for part in parts]
            for some in values:
                some.sort()
        found[group] = [TablePart(v, p.edges) for v, p in zip(values, parts, strict=True)]
    return found


def fixed_edges(parts: Sequence[TablePart]) -> FloatArray | None:
    """The edges that all parts of a group have in common; None where none is fixed."""
    fixed = [part.edges for part in parts if part.edges is not None]
    if not fixed:
        return None
    common = fixed[0]
    for edges in fixed[1:]:
        common = np.intersect1d(common, edges)
    return common
