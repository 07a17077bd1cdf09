"""How the cost of the bare maths, sorting included, grows with the number of people.

The slope of log time over log n: 1 is linear, 2 quadratic. Sorting alone is measured as well: it
has more than 1, from n log n and from arrays that outgrow the caches. Sizes are measured one after
the other, not side by side, so processor time is what counts; the maths runs in one thread.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.federated_table import bins_text
from benchmarks.five_centers import NAMES, arrays, bare_maths
from benchmarks.side_by_side import Ratio, Row, least_cpu
from unpooled.maths.arrays import FloatArray

SIZES = {10**5: 9, 10**6: 5, 10**7: 2}  # people in all → how often measured

Centers = dict[str, list[FloatArray]]


def rows() -> Iterator[Row]:
    """With 1,000 bins and with as many as K allows; sorting alone, to compare."""
    drawn = {n: arrays(n // len(NAMES)) for n in SIZES}
    for max_bins in (1_000, None):
        maths = partial(bare_maths, max_bins=max_bins)
        compared = f"exponent of n, bare maths, n = 10⁵ … 10⁷, {bins_text(max_bins)}"
        yield Row("growth", compared, _exponent(maths, drawn), target=1.1)
    yield Row("growth", "exponent of n, np.sort alone", _exponent(_sort, drawn))


def _sort(centers: Centers) -> object:
    return [[np.sort(values) for values in groups] for groups in centers.values()]


def _exponent(work: Callable[[Centers], object], drawn: dict[int, Centers]) -> Ratio:
    """The fitted slope; its spread is that of the slopes between neighbouring sizes."""
    times = [least_cpu(partial(work, drawn[n]), rounds) for n, rounds in SIZES.items()]
    x, y = np.log(list(drawn)), np.log(times)
    slopes = np.diff(y) / np.diff(x)
    return Ratio(float(np.polyfit(x, y, 1)[0]), float(slopes.min()), float(slopes.max()))
