"""Keyed boundaries: the same question always gives the same answer.

A boundary redrawn for every question gives the two data values around it away (100 repeats decode
98 % of them), and one weight shared by a whole table decodes integer data at once. So each
boundary's weight is a keyed hash of the center's secret, the variable and the two values.
"""

import hashlib
import struct

from unpooled.maths.binning import Weight


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
