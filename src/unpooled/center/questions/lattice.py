"""Tables on a public lattice: each group's own cells, with counts and perhaps means and SDs."""

from collections.abc import Iterable, Sequence
from math import isfinite

import numpy as np

from unpooled.center.data.variables import Variable
from unpooled.center.questions.message import (
    Aggregate,
    CellMoments,
    CohortQuestion,
    Disclosure,
    Message,
    People,
    Terms,
    ascending,
    in_cells,
    numbers_in,
)
from unpooled.errors import GateError
from unpooled.maths.lattice.cells import is_rounded, nowhere, telling_cells
from unpooled.maths.lattice.lattice import Lattice, nice_number, usual_resolutions


class LatticeQuestion(CohortQuestion, frozen=True, tag="lattice", tag_field="ask"):
    """Each group's own table on the public lattice of the variable."""

    moments: CellMoments | None = None  # may ask for fewer than the policy tells, never for more

    def needs(self, k: int) -> int:
        """Two cells of K."""
        return 2 * k


class CellTable(Message, frozen=True):
    """Exact counts of some people on a lattice; cell b is (edges[b-1], edges[b]], outer ones open.

    `means` and `sds` (with n) are None where they are not released; those of open cells are on a
    scale that ends at -1 and 1 (`maths.lattice.cells`), unless the SD is 0: then all share the
    value.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    means: tuple[float | None, ...]
    sds: tuple[float | None, ...]

    def numbers(self) -> list[int]:
        """How many numbers each cell tells; one value that all share is public with the count."""
        return [
            1 if sd == 0 else 1 + (mean is not None) + (sd is not None)
            for mean, sd in zip(self.means, self.sds, strict=True)
        ]

    def measures(self) -> list[float]:
        """Every number that is no count."""
        return numbers_in(self.edges, self.means, self.sds)

    def check(self, lattice: Lattice, moments: CellMoments, k: int, needed: int) -> None:
        """Raise GateError unless cells, edges and moments are such as may leave."""
        cells = len(self.counts)
        if len(self.edges) != cells - 1 or not len(self.means) == len(self.sds) == cells:
            raise GateError("a table must have one count and one entry of each kind per cell")
        if min(self.counts) < k:
            raise GateError(f"a cell must describe at least {k} people")
        if sum(self.counts) < needed:
            raise GateError(f"a table must describe at least {needed} people")
        self._check_edges(lattice)
        self._check_moments(lattice, moments)

    def _check_edges(self, lattice: Lattice) -> None:
        ascending(self.edges)
        sides = set(lattice.atom_sides.ravel().tolist())
        points = lattice.snap(np.array(self.edges)).tolist()
        for edge, point in zip(self.edges, points, strict=True):
            if edge not in sides and edge != point:
                raise GateError("edges must be points of the public lattice")
            if not lattice.lower <= edge < lattice.upper:
                raise GateError("edges must lie within the declared limits")

    def _check_moments(self, lattice: Lattice, moments: CellMoments) -> None:
        edges, counts = np.array(self.edges), np.array(self.counts)
        low, high = lattice.mean_limits(edges)
        limits = lattice.limits(edges)
        may = telling_cells(edges, lattice.step, moments)
        for cell, (mean, sd) in enumerate(zip(self.means, self.sds, strict=True)):
            if mean is None and sd is None:
                continue
            if not may[cell]:
                raise GateError("the policy does not allow the moments of this cell")
            if mean is None or not all(isfinite(x) for x in (mean, sd) if x is not None):
                raise GateError("moments must be finite, an SD together with a mean")
            if sd == 0:
                if not limits[cell] <= mean <= limits[cell + 1]:
                    raise GateError("a shared value must lie in its cell")
                continue
            if nowhere(edges, lattice):
                raise GateError("a cell without limits must not tell moments")
            if not low[cell] <= mean <= high[cell]:
                raise GateError("a mean must lie in its cell, or on the scale of an open one")
            if sd is not None and not 0 < sd <= high[cell] - low[cell]:
                raise GateError("an SD must be that of a cell, on a scale that ends")
        means, sds = (
            np.array([np.nan if x is None else x for x in some]) for some in (self.means, self.sds)
        )
        if not is_rounded(edges, lattice, counts, means, sds):
            raise GateError("moments must be rounded to a part of the cell and of their own error")


class GroupTable(Message, frozen=True):
    """One group's table."""

    group: str
    table: CellTable


class LatticeTables(Aggregate, frozen=True, tag="lattice", tag_field="say"):
    """Each group's table on one lattice: `scale`, `resolution` and the declared variable fix it.

    `scale` is the declared one, or else how far the variable spreads at the center, as the nearest
    number 1, 2 or 5 times a power of ten. `resolution` is the declared one, or else such a number
    of which nearly all values at the center are multiples. `lower` and `upper` are the limits that
    the center declares. `moments` says which cells tell mean and SD, if enough people allow it.
    """

    scale: float
    moments: CellMoments
    groups: tuple[GroupTable, ...]
    resolution: float | None = None
    lower: float | None = None
    upper: float | None = None

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [group.group for group in self.groups]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """Up to three numbers of each cell and group."""
        for group in self.groups:
            table = group.table
            cells = table.edges, table.counts, table.numbers()
            yield in_cells(people, group.group, question.variable, *cells)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Cells of K people on the public lattice, with moments where the policy says so."""
        declared = terms.declared
        check_facts(self.scale, self.resolution, declared)
        if (self.lower, self.upper) != (declared.lower, declared.upper):
            raise GateError("the limits of a lattice must be the declared ones")
        if self.moments != terms.moments:
            raise GateError("which cells tell moments must be what is in force")
        lattice = declared.lattice(self.scale, self.resolution)
        for group in self.groups:
            group.table.check(lattice, terms.moments, terms.k, question.needs(terms.k))
        tables = (number for group in self.groups for number in group.table.measures())
        return numbers_in(self.scale, self.resolution, self.lower, self.upper, tables)

    def sentence(self) -> str:
        """What a steward reads."""
        return ", ".join(
            f"{group.group} {sum(group.table.counts)} in {len(group.table.counts)} cells"
            for group in self.groups
        )


def check_facts(
    scale: float, resolution: float | None, declared: Variable, horizon: float | None = None
) -> None:
    """Scale and resolution are the declared ones, or such as everybody might have named."""
    if declared.scale is not None:
        if scale != declared.scale:
            raise GateError("the lattice must be that of the declared scale")
    elif not 0 < scale < float("inf") or scale != nice_number(scale):
        raise GateError("the scale of a lattice must be 1, 2 or 5 times a power of ten")
    if declared.resolution is not None:
        if resolution != declared.resolution:
            raise GateError("the lattice must be that of the declared resolution")
    elif resolution is not None and (
        resolution not in usual_resolutions(scale) or not declared.may_have(resolution, horizon)
    ):
        raise GateError("a resolution must be a usual one that fits what is declared")
