"""The follow-up of one arm: when people leave, and how many of them with the event.

People may count in parts: somebody of unknown status is so likely to have had the event. At the
same time, events come before censorings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unpooled.maths.arrays import BoolArray, FloatArray, IntArray, read_only
from unpooled.maths.moments import MeanSD, pool

_ROUNDING = 1e-9  # people: what is left of sums of parts


@dataclass(frozen=True, slots=True)
class FollowUp:
    """People who leave at ascending times, how many of them with the event, and their center.

    Where statuses are estimates, `drawn` has how far draws of the events differ from `events`: a
    row per time, a column per draw; no column where all statuses are exact.
    """

    times: FloatArray
    people: FloatArray
    events: FloatArray
    centers: IntArray
    drawn: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        for name in ("times", "people", "events"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        if not self.drawn.size:
            object.__setattr__(self, "drawn", np.zeros((len(self.times), 0)))
        columns = (self.people, self.events, self.centers, self.drawn)
        if any(len(column) != len(self.times) for column in columns):
            raise ValueError("times, people, events, centers and drawn must be equally long")
        if not len(self.times):
            raise ValueError("times must hold at least one person, got none")
        if not np.isfinite(self.times).all() or np.any(self.times[1:] < self.times[:-1]):
            raise ValueError("times must be finite and ascend")
        if self.times[0] < 0:
            raise ValueError(f"times must not be negative, got {self.times[0]:g}")
        if np.any(self.events < 0) or np.any(self.events > self.people + _ROUNDING):
            raise ValueError("events must lie between 0 and the people who leave")

    @classmethod
    def of(
        cls,
        times: FloatArray,
        events: FloatArray,
        people: FloatArray | None = None,
        centers: IntArray | None = None,
        drawn: FloatArray | None = None,
    ) -> "FollowUp":
        """In any order; every row one person of one center unless told otherwise.

        Examples
        --------
        >>> FollowUp.of(np.array([3.0, 1.0]), np.array([1, 0])).times
        array([1., 3.])
        """
        order = np.argsort(times, kind="stable")
        whole = np.ones(len(times)) if people is None else people
        one = np.zeros(len(times), dtype=np.int64) if centers is None else centers
        rest = np.zeros((len(times), 0)) if drawn is None else drawn
        return cls(times[order], whole[order], np.asarray(events)[order], one[order], rest[order])

    @property
    def total(self) -> float:
        """How many people are followed up."""
        return float(self.people.sum())

    @property
    def event_total(self) -> float:
        """How many of them have the event."""
        return float(self.events.sum())

    def part(self, chosen: BoolArray) -> "FollowUp | None":
        """Those of the rows that are chosen; None where there are none."""
        if not chosen.any():
            return None
        return FollowUp(
            self.times[chosen],
            self.people[chosen],
            self.events[chosen],
            self.centers[chosen],
            self.drawn[chosen],
        )

    @property
    def exact(self) -> bool:
        """Whether every status was told."""
        return not self.drawn.size

    def in_strata(self, codes: IntArray) -> "FollowUp":
        """The same people, compared within these strata in place of centers."""
        return replace(self, centers=codes)

    def until(self, end: float) -> "FollowUp":
        """The same people, followed up to `end` at most: who has left by then keeps the event.

        Examples
        --------
        >>> FollowUp.of(np.array([1.0, 3.0]), np.array([1, 1])).until(2.0).events
        array([1., 0.])
        """
        inside = self.times <= end
        times = np.minimum(self.times, end)
        events = np.where(inside, self.events, 0.0)
        return FollowUp(times, self.people, events, self.centers, self.drawn * inside[:, None])

    def at_risk(self, times: FloatArray) -> FloatArray:
        """How many people are still there just before each time."""
        gone = np.concatenate(([0.0], np.cumsum(self.people)))
        left = gone[-1] - gone[np.searchsorted(self.times, times, "left")]
        return np.where(left < _ROUNDING, 0.0, left)

    def events_at(self, times: FloatArray) -> FloatArray:
        """How many events happen at each of these ascending times."""
        place = np.searchsorted(times, self.times)
        here = place < len(times)
        here[here] = times[place[here]] == self.times[here]
        return np.bincount(place[here], self.events[here], len(times)).astype(np.float64)


def event_times(arms: Sequence[FollowUp]) -> FloatArray:
    """The ascending times at which somebody has the event."""
    return np.unique(np.concatenate([arm.times[arm.events > _ROUNDING] for arm in arms]))


def stack(arms: Sequence[FollowUp]) -> FollowUp:
    """The people of several arms as one; their draws must be of the same statuses."""
    draws = max(arm.drawn.shape[1] for arm in arms)
    return FollowUp.of(
        np.concatenate([arm.times for arm in arms]),
        np.concatenate([arm.events for arm in arms]),
        np.concatenate([arm.people for arm in arms]),
        np.concatenate([arm.centers for arm in arms]),
        np.concatenate([_draws(arm, draws) for arm in arms]),
    )


def _draws(arm: FollowUp, draws: int) -> FloatArray:
    return np.zeros((len(arm.times), draws)) if arm.exact else arm.drawn


def draw_sums(arms: Sequence[FollowUp], weights: Sequence[FloatArray]) -> FloatArray:
    """How far draws of Σ weight · events over all arms differ from what is expected.

    A number per draw; a weight may have several columns, which then are the rows of the answer.

    Examples
    --------
    >>> arm = FollowUp(np.arange(2.0), np.ones(2), np.ones(2) / 2, np.zeros(2), np.eye(2) / 2)
    >>> draw_sums([arm], [np.array([1.0, 3.0])])
    array([0.5, 1.5])
    """
    draws = max(arm.drawn.shape[1] for arm in arms)
    parts = [w.T @ _draws(arm, draws) for arm, w in zip(arms, weights, strict=True)]
    return np.asarray(sum(parts))


def draw_covariance(sums: FloatArray) -> FloatArray:
    """The covariance of rows over their draws; 0 without draws.

    Examples
    --------
    >>> draw_covariance(np.array([[1.0, -1.0]]))
    array([[2.]])
    """
    if sums.shape[-1] < 2:
        return np.zeros((len(sums), len(sums)))
    return np.atleast_2d(np.cov(sums))


def strata(arms: Sequence[FollowUp]) -> list[tuple[int, list[FollowUp | None]]]:
    """Center by center, the people of each arm; None where an arm has none there."""
    codes = np.unique(np.concatenate([arm.centers for arm in arms]))
    return [(int(code), [arm.part(arm.centers == code) for arm in arms]) for code in codes]


_REACH = 4.0  # SDs beyond the mean: of exponential times 1 in 150 lies further out


def agreed_horizon(parts: Sequence[MeanSD]) -> float:
    """The first of 1, 2, 5 times a power of ten, 4 SD beyond the mean of all people.

    Follow-up beyond it is cut there, as a study is that ends.

    Examples
    --------
    >>> agreed_horizon([MeanSD(100, 300.0, 210.0)])
    2000.0
    """
    whole = pool(parts)
    reach = whole.mean + _REACH * whole.sd
    if not reach > 0:
        raise ValueError("follow-up must be longer than 0, got 0 for everybody")
    power = 10.0 ** math.floor(math.log10(reach))
    return next(power * digit for digit in (1.0, 2.0, 5.0, 10.0) if power * digit >= reach)
