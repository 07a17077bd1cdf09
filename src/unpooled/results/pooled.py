"""Two groups compared as if all people were pooled."""

from dataclasses import dataclass, replace
from typing import Any

from unpooled.maths.ranks.effect import Interval
from unpooled.maths.ranks.mann_whitney import TestResult
from unpooled.results.distribution import DistributionResult
from unpooled.results.interval import interval_dict
from unpooled.results.paradox import Paradox
from unpooled.results.record import Record


@dataclass(frozen=True, slots=True)
class PooledComparison:
    """Everybody compared: pairs of one center at the center, all others by the centers' tables."""

    test: TestResult
    effect: Interval  # P(Y > X) + ½P(Y = X) over all people, whatever their center
    shift: Interval | None  # Hodges and Lehmann's; None where everybody has the same value
    distribution: DistributionResult
    paradox: Paradox | None = None  # where it contradicts the effect within centers

    def recorded(self, record: Record) -> "PooledComparison":
        """The same, with how it came about."""
        return replace(self, distribution=replace(self.distribution, record=record))

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        shift = None if self.shift is None else interval_dict(self.shift)
        centers = [center.to_dict() for center in self.distribution.centers]
        return {"effect": interval_dict(self.effect), "shift": shift, "centers": centers}
