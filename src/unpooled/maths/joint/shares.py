"""Secrets as shares of Shamir, one for each keeper: one share alone says nothing.

A number s of the field of order p becomes the values of s + a·x at x = 1, 2, 3, with a drawn
uniformly [1]_. Any two of them give s; one is uniform, whatever s is.

References
----------
.. [1] Shamir (1979). How to share a secret. Communications of the ACM 22, 612-613.
"""

import secrets
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import IntArray

PRIME = 2**127 - 1  # Mersenne's: room for sums of squares and for the masks of comparisons
KEEPERS = 3
BYTES = 16  # of a share

FieldArray = npt.NDArray[np.object_]
"""Whole numbers of any length, modulo PRIME."""

Source = Callable[[int], bytes]
"""So many random bytes."""


def split(
    numbers: IntArray | FieldArray, keepers: int = KEEPERS, source: Source = secrets.token_bytes
) -> list[FieldArray]:
    """The shares of whole numbers for each keeper; a single keeper gets the numbers themselves.

    Examples
    --------
    >>> one, two, three = split(np.array([7, -2]))
    >>> recombine({1: one, 2: two}), recombine({2: two, 3: three})
    (array([7, -2], dtype=object), array([7, -2], dtype=object))
    """
    values = np.asarray(numbers).astype(object) % PRIME
    if keepers == 1:
        return [values]
    if keepers != KEEPERS:
        raise ValueError(f"keepers must be 1 or {KEEPERS}, got {keepers}")
    slopes = _uniform(values.size, source).reshape(values.shape)
    return [(values + slopes * x) % PRIME for x in range(1, keepers + 1)]


def _uniform(size: int, source: Source) -> FieldArray:
    """Uniform numbers of the field; 127 bits that are all set are drawn again."""
    drawn: FieldArray = from_bytes(source(BYTES * size)) & PRIME
    for place in np.flatnonzero(drawn == PRIME):
        while drawn[place] == PRIME:
            drawn[place] = int.from_bytes(source(BYTES), "little") & PRIME
    return drawn


def recombine(shares: dict[int, FieldArray]) -> FieldArray:
    """The secrets of two shares or more, by keeper from 1; those above PRIME/2 are negative."""
    places = sorted(shares)[:2]
    if len(places) < 2:
        raise ValueError("shares must be of two keepers at least, got one")
    a, b = places
    inverse = pow(b - a, -1, PRIME)
    secret = (shares[a] * b - shares[b] * a) * inverse % PRIME
    return signed(secret)


def signed(numbers: FieldArray) -> FieldArray:
    """Numbers of the field as whole numbers around 0."""
    return np.where(numbers > PRIME // 2, numbers - PRIME, numbers)


def added(vectors: Sequence[FieldArray]) -> FieldArray:
    """The sum of shares, which is the share of the sum."""
    total = vectors[0]
    for vector in vectors[1:]:
        total = total + vector
    return np.asarray(total % PRIME)


def to_bytes(shares: FieldArray) -> bytes:
    """Shares as bytes, 16 each."""
    return b"".join(int(share).to_bytes(BYTES, "little") for share in shares.ravel())


def from_bytes(payload: bytes) -> FieldArray:
    """Numbers of 16 bytes; it is not looked whether they are of the field."""
    halves = np.frombuffer(payload, "<u8").astype(object)
    return np.asarray(halves[0::2] + (halves[1::2] << 64))


def are_shares(numbers: FieldArray) -> bool:
    """Whether all are numbers of the field."""
    return bool((numbers < PRIME).all())
