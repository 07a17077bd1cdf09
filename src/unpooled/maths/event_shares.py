"""How likely people of unknown status had the event, from people of known status.

A center with fewer than K events (or censorings) in an arm tells the times of all its people
together, and which of the two was below K. Each of its people gets the share of events among the
nearest people whose status is known, shifted so that the sum is the expected number of events,
given what was below K.
"""

from typing import Literal

import numpy as np

from unpooled.maths.arrays import FloatArray

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
