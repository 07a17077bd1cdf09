"""Two groups compared as if all people were pooled."""

from dataclasses import dataclass
from typing import Any

from unpooled.maths.effect import Interval
from unpooled.maths.mann_whitney import TestResult
from unpooled.results.distribution import DistributionResult
from unpooled.results.interval import interval_dict


@dataclass(frozen=True, slots=True)
class PooledComparison:
    """Everybody compared: pairs of one center at the center, all others by the centers' tables."""

    test: TestResult
    effect: Interval  # P(Y > X) + ½P(Y = X) over all people, whatever their center
    shift: Interval | None  # Hodges and Lehmann's; None where everybody has the same value
    distribution: DistributionResult

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        shift = None if self.shift is None else interval_dict(self.shift)
        centers = [center.to_dict() for center in self.distribution.centers]
        return {"effect": interval_dict(self.effect), "shift": shift, "centers": centers}
