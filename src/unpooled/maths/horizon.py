"""A public horizon for follow-up times, agreed from what the centers tell of all their people."""

import math
from collections.abc import Sequence

from unpooled.maths.moments import MeanSD, pool

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
