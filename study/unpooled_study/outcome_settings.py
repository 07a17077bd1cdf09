"""What is simulated of outcomes in two groups: times to an event, and proportions."""

from typing import ClassVar

import msgspec

OUTCOME_METHODS = ("pooled", "alone", "joint")
"""Everybody's rows; what centers tell alone; the same with a joint center for what they cannot."""


class SurvivalSetting(msgspec.Struct, frozen=True, tag="survival", forbid_unknown_fields=True):
    """Exponential times, followed up to `follow_up`, `dropout` of the people lost before, evenly.

    Centers' log hazards have SD `center_sd`, their log hazard ratios SD `effect_sd`. A simulation
    gives the log p-value of the log-rank test within centers by each method, then by each method
    the error of the median of group x and of group y (NaN: not reached).
    """

    n_x: tuple[int, ...]
    n_y: tuple[int, ...]
    ratio: float
    median: float
    follow_up: float
    dropout: float = 0.0
    center_sd: float = 0.0
    effect_sd: float = 0.0
    k: int = 10

    methods: ClassVar[tuple[str, ...]] = OUTCOME_METHODS

    @property
    def columns(self) -> int:
        """How many numbers a simulation gives."""
        return 3 * len(OUTCOME_METHODS)

    @property
    def name(self) -> str:
        """What simulations are seeded by; the same people for every K."""
        return (
            f"survival {_sizes(self.n_x)} {_sizes(self.n_y)} ratio {self.ratio:g} median "
            f"{self.median:g} follow-up {self.follow_up:g} dropout {self.dropout:g} "
            f"center {self.center_sd:g} effect {self.effect_sd:g}"
        )


class ProportionSetting(msgspec.Struct, frozen=True, tag="proportion", forbid_unknown_fields=True):
    """People who have something or not; SDs are of the centers' log odds and log odds ratios.

    A simulation gives the log p-value of the Cochran-Mantel-Haenszel test by each method, then by
    each method the error of the difference of risks within centers (NaN: none).
    """

    n_x: tuple[int, ...]
    n_y: tuple[int, ...]
    p_x: float
    p_y: float
    center_sd: float = 0.0
    effect_sd: float = 0.0
    k: int = 10

    methods: ClassVar[tuple[str, ...]] = OUTCOME_METHODS

    @property
    def columns(self) -> int:
        """How many numbers a simulation gives."""
        return 2 * len(OUTCOME_METHODS)

    @property
    def name(self) -> str:
        """What simulations are seeded by; the same people for every K."""
        return (
            f"proportion {_sizes(self.n_x)} {_sizes(self.n_y)} p {self.p_x:g} {self.p_y:g} "
            f"center {self.center_sd:g} effect {self.effect_sd:g}"
        )


def _sizes(sizes: tuple[int, ...]) -> str:
    return "+".join(map(str, sizes))
