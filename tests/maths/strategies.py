"""Groups of people for property tests: ties, integers, tiny, empty, disjoint, up to four groups."""

import numpy as np
from hypothesis import strategies as st

from unpooled.maths.arrays import FloatArray
from unpooled.maths.tables.binning import Rule

values = st.one_of(
    st.integers(-4, 12).map(float),
    st.floats(-1e3, 1e3, allow_nan=False),
    st.floats(-1e-300, 1e-300, allow_nan=False),
    st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def one_group(draw: st.DrawFn, k: int, zeros: bool) -> FloatArray:
    """A sorted group with 0 or at least k people."""
    size = draw(st.one_of(st.integers(k, k + 2), st.integers(k, 5 * k)))
    if zeros and draw(st.integers(0, 7)) == 0:
        size = 0
    shift = draw(st.sampled_from([0.0, 0.0, 3.0, 100.0]))
    pool = draw(st.lists(values, min_size=1, max_size=max(1, min(size, 40))))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))  # a draw for each is slow
    # adding zero turns -0.0 into 0.0, as a sum with a shift does
    return np.sort(random.choice(np.array(pool, dtype=np.float64), size) + shift)


@st.composite
def centers(draw: st.DrawFn, most_centers: int = 1) -> tuple[list[list[FloatArray]], Rule]:
    """Some centers with the same number of groups, and a rule."""
    k = draw(st.integers(3, 20))
    zeros = draw(st.sampled_from([True, True, True, False]))
    groups = draw(st.integers(1, 4))
    bin_ = draw(st.sampled_from([1, 1, k, 3 * k, 200]))
    many = draw(st.integers(1, most_centers))
    people = [[draw(one_group(k, zeros)) for _ in range(groups)] for _ in range(many)]
    return people, Rule(k=k, bin=bin_, zeros=zeros)
