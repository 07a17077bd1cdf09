"""Arithmetic on shares that the program of the keepers is written in."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpooled.federation.joint.computation.runtime import integers
from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.shares import FieldArray

MOST_PEOPLE = 2**24  # bounds the counts that are compared
_MOST_BITS = 92  # of a number, with its sign: the field has 127, a mask 30 more than the number


class InconsistentError(Exception):
    """Shares that do not fit together: somebody sent what no honest member sends."""


@dataclass(slots=True)
class Opened:
    """All numbers that were opened, in their order: what a keeper learns."""

    numbers: list[int] = field(default_factory=list)


class Secure:
    """Secret arrays, of which each keeper has shares."""

    def __init__(self, runtime: Any, opened: Opened | None = None) -> None:
        self._runtime = runtime
        self._array = integers(runtime, _MOST_BITS).array
        self._field = self._array.sectype.field
        self._opened = opened

    def shared(self, shares: FieldArray) -> Any:
        """A secret of which these are this keeper's shares."""
        return self._array(self._field.array(shares, check=False))

    def public(self, numbers: Any) -> Any:
        """Numbers that everybody knows, in the form of secrets."""
        return self._array(np.asarray(numbers, dtype=object))

    def joined(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """Arrays behind each other."""
        return self._runtime.np_concatenate(list(arrays), axis=axis)

    def sums_from_left(self, array: Any) -> Any:
        """The running sums of each row."""
        return self._runtime.np_cumsum(array, axis=1)

    def less(self, a: Any, b: Any, most: int = MOST_PEOPLE) -> Any:
        """Secret bits: a < b, of numbers that differ by no more than `most`."""
        bits = int(most).bit_length() + 1
        if bits > _MOST_BITS:
            raise InconsistentError("there are more people or points than can be compared")
        return self._runtime.np_sgn(a - b, l=bits, LT=True)

    def at_least(self, a: Any, b: Any, most: int = MOST_PEOPLE) -> Any:
        """Secret bits: a >= b."""
        return 1 - self.less(a, b, most)

    def row_products(self, a: Any, b: Any) -> Any:
        """The inner product of each row of a with that of b."""
        runtime, shares, kind = self._runtime, self._field, self._array

        @runtime.coroutine
        async def products(a, b):  # type: ignore[no-untyped-def] # MPyC reads annotations
            await runtime.returnType((kind, True, (a.shape[0],)))
            a, b = await runtime.gather(a, b)
            sums = (a.value * b.value).sum(axis=1)
            return await runtime._reshare(shares.array(sums % shares.modulus, check=False))

        return products(a, b)

    def row_sums(self, a: Any, weights: IntArray) -> Any:
        """The sum of each row with public weights."""
        return a @ self._field.array(weights.astype(object))

    def scaled(self, a: Any, weights: Any) -> Any:
        """Each number times a public one."""
        return a * self._field.array(np.asarray(weights).astype(object))

    async def open(self, secret: Any) -> IntArray:
        """The numbers, for every keeper."""
        numbers = np.array([int(x) for x in await self._runtime.output(secret)], dtype=np.int64)
        if self._opened is not None:
            self._opened.numbers += numbers.tolist()
        return numbers

    async def check_zero(self, secret: Any, of: str) -> None:
        """Raise unless all are zero; nothing more is learned of them."""
        factor = self._runtime._np_randoms(self._field, int(np.prod(secret.shape)))
        wrong = await self._runtime.output(secret * self._array(factor))
        if any(int(x) for x in wrong):
            raise InconsistentError(f"{of} do not add up")
