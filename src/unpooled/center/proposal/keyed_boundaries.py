"""Keyed boundaries: the same question always gives the same answer.

A boundary redrawn for every question gives the two data values around it away (100 repeats decode
98 % of them), and one weight shared by a whole table decodes integer data at once. So each
boundary's weight is a keyed hash of the center's secret, the variable and the two values. On a
lattice the places are public, and the hash draws after how many people boundaries come.
"""

import hashlib
import struct

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.cutting import Draws
from unpooled.maths.tables.binning import Weight


def keyed_weight(secret: bytes, variable: str) -> Weight:
    """A weight in the open (0, 1) that depends on the secret, the variable and the two values.

    Examples
    --------
    >>> weight = keyed_weight(b"secret", "los")
    >>> weight(1.0, 2.0) == weight(1.0, 2.0) != weight(1.0, 3.0)
    True
    """
    base = hashlib.blake2b(variable.encode(), key=secret[:64], digest_size=8)

    def weight(below: float, above: float) -> float:
        keyed = base.copy()
        keyed.update(struct.pack("<dd", below + 0.0, above + 0.0))  # -0.0 is 0.0
        return ((int.from_bytes(keyed.digest(), "little") >> 12) + 0.5) / 2.0**52

    return weight


def keyed_draws(secret: bytes, variable: str) -> Draws:
    """Numbers in [0, 1) that depend on the secret, the variable and the values.

    Examples
    --------
    >>> draws = keyed_draws(b"secret", "los")
    >>> values = np.array([1.0, 2.0])
    >>> draws(values, 3).round(2), draws(values, 3).round(2)
    (array([0.7 , 0.57, 0.95]), array([0.7 , 0.57, 0.95]))
    """
    base = hashlib.blake2b(variable.encode(), key=secret[:64], person=b"unpooled draws")

    def draws(values: FloatArray, n: int) -> FloatArray:
        keyed = base.copy()
        keyed.update((values + 0.0).astype("<f8").tobytes())  # -0.0 is 0.0
        bits = np.frombuffer(hashlib.shake_256(keyed.digest()).digest(8 * n), "<u8")
        return np.asarray((bits >> 12) / 2.0**52)

    return draws
