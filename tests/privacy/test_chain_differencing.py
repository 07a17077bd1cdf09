"""The differencing attack on the chain: subtract what a split is known to hold from its pool."""

import numpy as np
import pytest

from tests.golden import cases
from tests.maths.test_binning import half
from tests.maths.test_joining import first_table, golden_table
from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.tables import chain
from unpooled.maths.tables.binning import Rule
from unpooled.maths.tables.chain import Join, join

K = 10
SIZES = (307, 250, 208, 172, 143, 118, 98, 81, 67, 56)  # the paper's ten centers


def small_counts(joined: Join, interior: FloatArray) -> list[tuple[int, int]]:
    """What a curious coordinator learns from a one-group join: pools with 1..K−1 people inside.

    A bin is split only into parts of at least K people each. So a pool that swallowed some parts
    of a split, and that has fewer than 2K people, has 1..K−1 people in its other bins.
    """
    edges = np.union1d(interior, joined.splits)
    split = np.isin(np.append(edges, np.inf), joined.splits)
    parts = split | np.append(False, split[:-1])
    (pools,) = joined.pools
    claims = []
    start = 0
    for span, count in zip(pools.spans.tolist(), pools.counts.tolist(), strict=True):
        inside = parts[start : start + span]
        if span > 1 and inside.any() and not inside.all() and count < 2 * K:
            claims.append((start, start + span))
        start += span
    return claims


def true_small_counts(
    values: FloatArray, joined: Join, interior: FloatArray, claims: list[tuple[int, int]]
) -> int:
    """How many claims are right: the bins of the pool that are no parts hold 1..K−1 people."""
    edges = np.concatenate(([-np.inf], np.union1d(interior, joined.splits), [np.inf]))
    counts: IntArray = np.diff([int((values <= edge).sum()) for edge in edges])
    split = np.isin(edges[1:], joined.splits)
    parts = split | np.append(False, split[:-1])
    return sum(0 < counts[a:b][~parts[a:b]].sum() < K for a, b in claims)


def federations() -> list[tuple[FloatArray, FloatArray]]:
    """Each center of many paper-like federations, with the table that it joins."""
    met = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        people = [np.sort(random.gamma(4, 1, n) * np.exp(random.normal(0, 0.05))) for n in SIZES]
        table = first_table([people[0]], Rule(k=K))
        for values in people[1:]:
            met.append((values, table.edges[1:-1]))
            joined = join([values], table.edges[1:-1], Rule(k=K), half)
            table = chain.reallocate(table, joined, table.groups, (-np.inf, np.inf))
    return met


def test_the_attack_finds_nothing() -> None:
    for values, interior in federations():
        joined = join([values], interior, Rule(k=K), half)
        claims = small_counts(joined, interior)
        assert true_small_counts(values, joined, interior, claims) == 0


def test_the_attack_succeeds_without_the_undo(monkeypatch: pytest.MonkeyPatch) -> None:
    met = federations()
    monkeypatch.setattr(chain, "undo_pooled_splits", lambda proposal, *_: proposal)
    claimed = right = 0
    for values, interior in met:
        joined = join([values], interior, Rule(k=K), half)
        claims = small_counts(joined, interior)
        claimed += len(claims)
        right += true_small_counts(values, joined, interior, claims)
    assert claimed > 5
    assert right == claimed


def test_the_golden_leak_is_closed() -> None:
    (case,) = (c for c in cases("join") if c["flags"] == ["DIFFERENCING_LEAK"])
    table, (x, _) = golden_table(case)
    joined = join([x], table.edges[1:-1], Rule(k=K), half)
    assert joined.splits.tolist() == []
    assert joined.pools[0].counts.tolist() == [25, 10]
