"""Shares: two of three give the secret, one says nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unpooled.center.records.sealing import SealKey, seal
from unpooled.errors import SealError
from unpooled.maths.joint.shares import (
    PRIME,
    are_shares,
    from_bytes,
    recombine,
    split,
    to_bytes,
)


@given(st.lists(st.integers(-(2**100), 2**100), min_size=1, max_size=5))
def test_any_two_of_three_shares_give_the_secrets(secrets: list[int]) -> None:
    shares = split(np.array(secrets, dtype=object))
    for pair in ((0, 1), (0, 2), (1, 2)):
        result = recombine({place + 1: shares[place] for place in pair})
        assert result.tolist() == secrets


def test_one_share_is_uniform_whatever_the_secret_is() -> None:
    for secret in (0, 1, 9, 10**6):
        for share in split(np.full(20_000, secret)):
            unit = (share / PRIME).astype(np.float64)
            assert stats.kstest(unit, "uniform").pvalue > 1e-9
            low = np.array([int(x) & 255 for x in share])
            assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > 1e-9


def test_without_the_random_slope_a_share_would_be_the_secret() -> None:
    shares = split(np.array([7, 3]), source=bytes)  # no randomness
    assert [share.tolist() for share in shares] == [[7, 3]] * 3


@given(st.lists(st.integers(0, 2**128 - 1), min_size=1, max_size=4))
def test_shares_cross_as_bytes_and_numbers_outside_the_field_are_seen(numbers: list[int]) -> None:
    result = from_bytes(to_bytes(np.array(numbers, dtype=object)))
    assert result.tolist() == numbers
    assert are_shares(result) == (max(numbers) < PRIME)


def test_a_sealed_message_opens_for_its_key_in_its_context_alone() -> None:
    key, other = SealKey(b"1" * 32), SealKey(b"2" * 32)
    sealed = seal(key.public, b"counts", b"crp")
    assert key.open(sealed, b"crp") == b"counts"
    assert sealed != seal(key.public, b"counts", b"crp")
    for holder, message, context in (
        (other, sealed, b"crp"),
        (key, sealed, b"ldl"),
        (key, sealed[:-1] + bytes([sealed[-1] ^ 1]), b"crp"),
        (key, bytes([sealed[0] ^ 1]) + sealed[1:], b"crp"),
        (key, sealed[:20], b"crp"),
    ):
        with pytest.raises(SealError):
            holder.open(message, context)
