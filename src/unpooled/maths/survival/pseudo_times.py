"""Pseudo-times of an arm: the released tables of its events and censorings as single people.

Separate tables for events and for censorings keep both in their order; joint ones protect no
better. On gridded times people go back on their grid, since ties count.

References
----------
.. [1] Bhatia, Davis (2000), American Mathematical Monthly 107, 353-357.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.density.placing import Placed, place
from unpooled.maths.lattice.cell_moments import units
from unpooled.maths.lattice.lattice import (
    WHOLE,
    Lattice,
    LatticeTable,
    nearest_multiples,
    one_value,
)
from unpooled.maths.survival.follow_up import FollowUp

Below = Literal["events", "censored", "both"]
"""Which status had fewer than K people, so that none was told."""

NEAREST = 40  # people of known status: fewer are noisy, more are far away in time


def event_shares(
    times: FloatArray, known: FloatArray, events: FloatArray, below: Below, k: int
) -> FloatArray:
    """The chance of the event for each of these times, from ascending known times.

    Examples
    --------
    >>> known, events = np.arange(80.0), np.arange(80) % 2
    >>> shares = event_shares(np.arange(30.0), known, events, "events", 10)
    >>> bool(1 <= shares.sum() < 10)
    True
    """
    local = _local_shares(times, known, events)
    return _shifted(local, _expected(local, below, k))


def _local_shares(times: FloatArray, known: FloatArray, events: FloatArray) -> FloatArray:
    """Shares among the nearest, drawn to ½ by one person so that none is 0 or 1."""
    if not len(known):
        raise ValueError("known must hold at least one person, got none")
    near = min(NEAREST, len(known))
    reached = np.concatenate(([0.0], np.cumsum(events)))
    first = np.clip(np.searchsorted(known, times) - near, 0, len(known) - near)
    for _ in range(near):  # move the window on while that brings it nearer
        beyond = np.minimum(first + near, len(known) - 1)
        nearer = (first + near < len(known)) & (known[beyond] - times < times - known[first])
        if not nearer.any():
            break
        first = first + nearer
    return (reached[first + near] - reached[first] + 0.5) / (near + 1)


def _expected(shares: FloatArray, below: Below, k: int) -> float:
    """The mean number of events, given that 1..K−1 people have (or lack) the event."""
    n = len(shares)
    if below == "censored":
        return n - _expected(1 - shares, "events", k)
    most = min(k - 1, n - 1)
    least = max(1, n - k + 1) if below == "both" else 1
    chance = np.zeros(most + 1)
    chance[0] = 1.0
    for share in shares:  # the first terms of the Poisson-binomial distribution
        chance[1:] = chance[1:] * (1 - share) + chance[:-1] * share
        chance[0] *= 1 - share
    possible = chance[least:]
    if not possible.sum() > 0:
        return float(most)
    return float(possible @ np.arange(least, most + 1) / possible.sum())


def _shifted(shares: FloatArray, total: float) -> FloatArray:
    """The same shares moved on the logit scale, so that they add up to `total`."""
    logit = np.log(shares / (1 - shares))
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        if np.sum(1 / (1 + np.exp(-logit - middle))) < total:
            low = middle
        else:
            high = middle
    return np.asarray(1 / (1 + np.exp(-logit - (low + high) / 2)))


Tables = tuple[LatticeTable, ...]


@dataclass(frozen=True, slots=True)
class ArmTables:
    """What one center tells of one arm: both statuses, or one table of all and which was below K.

    The tables of a status speak for different people each; mostly there is one.
    """

    k: int
    events: Tables = ()
    censored: Tables = ()
    either: Tables = ()
    below: Below | None = None

    def __post_init__(self) -> None:
        if bool(self.either) == bool(self.events or self.censored):
            raise ValueError("an arm must have tables by status or of either, not both")
        if bool(self.either) != (self.below is not None):
            raise ValueError("below must be told with either, and only then")

    @property
    def tables(self) -> Tables:
        """All of them."""
        return (*self.events, *self.censored, *self.either)

    @property
    def people(self) -> int:
        """How many people they speak for."""
        return sum(table.people for table in self.tables)


def known_share(arm: Mapping[int, ArmTables]) -> float:
    """The share of an arm's people whose status was released."""
    known = sum(tables.people for tables in arm.values() if tables.below is None)
    return known / sum(tables.people for tables in arm.values())


def known_until(arm: Iterable[ArmTables], lattice: Lattice) -> float:
    """The last time of which the tables say that somebody was followed up so long.

    That is the last boundary, behind which K people are, or what the moments of a last cell need:
    people from `low` to t with mean m have a variance of at most (t − m)(m − low) [1]_. How far
    beyond they go, up to the horizon, nobody told.

    Examples
    --------
    >>> times = LatticeTable([20.0], [10, 10], [9.0, 24.0], [3.0, 2.0])
    >>> round(known_until([ArmTables(10, (times,))], Lattice(1.0, lower=0.0, upper=40.0)), 2)
    24.86
    """
    return max(_known_until(table, lattice) for own in arm for table in own.tables)


def _known_until(table: LatticeTable, lattice: Lattice) -> float:
    edge = float(table.edges[-1]) if len(table.edges) else lattice.lower
    if one_value(np.array([edge]), np.array([lattice.upper]))[0]:
        return lattice.upper
    last = max(edge, _told_until(table, edge, lattice))
    if lattice.resolution is not None:  # nobody leaves between two possible times
        beyond = math.ceil(last / lattice.resolution - WHOLE) * lattice.resolution
        last = float(nearest_multiples(np.array([beyond]), lattice.resolution)[0])
    return min(last, lattice.upper)


def _told_until(table: LatticeTable, low: float, lattice: Lattice) -> float:
    """The least t of all moments that are rounded to the told ones."""
    mean, sd = float(table.means[-1]), float(table.sds[-1])
    if math.isnan(mean) or sd == 0:
        return low if math.isnan(mean) else mean
    unit = units(table.edges, lattice, table.counts, table.sds)
    half = float(unit.mean[-1]) / 2
    if math.isnan(sd):
        return mean - half
    least = max(sd - float(unit.sd[-1]), 0.0)  # more than half of it, where the unit changes
    above = min(max(least, mean - half - low), mean + half - low)  # a + s²/a is least at a = s
    return low + above + least**2 / above if above > 0 else low


def pseudo_times(arm: Mapping[int, ArmTables], lattice: Lattice) -> FollowUp:
    """The follow-up of one arm, from the tables of its centers by their numbers.

    Examples
    --------
    >>> early, late = (LatticeTable([], [10], [t], [0.8]) for t in (2.0, 5.0))
    >>> lattice = Lattice(1.0, lower=0.0, upper=9.0)
    >>> arm = pseudo_times({7: ArmTables(10, (early,), (late,))}, lattice)
    >>> arm.total, arm.event_total, arm.centers[0]
    (20.0, 10.0, np.int64(7))
    """
    events, at_events = _placed({c: t.events for c, t in arm.items()}, lattice)
    censored, at_censored = _placed({c: t.censored for c, t in arm.items()}, lattice)
    times = np.concatenate((events.values, censored.values))
    people = np.concatenate((events.weights, censored.weights))
    had = np.concatenate((events.weights, np.zeros(len(censored.values))))
    centers = np.concatenate((at_events, at_censored))
    order = np.argsort(times, kind="stable")
    known = times[order], (had / people)[order]
    parts = [(times, people, had, centers)]
    for center, tables in arm.items():
        if tables.below is not None:
            parts.append(_of_unknown_status(center, tables, tables.below, known, lattice))
    times, people, had, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
    return FollowUp.of(times, had, people, codes)


def _of_unknown_status(
    center: int,
    tables: ArmTables,
    below: Below,
    known: tuple[FloatArray, FloatArray],
    lattice: Lattice,
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    placed, centers = _placed({center: tables.either}, lattice)
    shares = event_shares(placed.values, *known, below, tables.k)
    return placed.values, placed.weights, placed.weights * shares, centers


def _placed(tables: Mapping[int, Tables], lattice: Lattice) -> tuple[Placed, IntArray]:
    """People of these tables, and the number of each one's center."""
    code = np.array([c for c, own in tables.items() for _ in own], dtype=np.int64)
    flat = [table for own in tables.values() for table in own]
    if not flat:
        none = np.empty(0)
        return Placed(none, none, code, none.astype(np.bool_)), code
    placed = place(flat, lattice, refilled=False)
    if lattice.resolution is not None:
        placed = placed.on_grid(lattice.resolution)
    return placed, code[placed.centers]
