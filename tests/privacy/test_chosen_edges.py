"""Edges of the asker's choice: a fine lattice must not give order statistics away."""

import numpy as np
import pytest

from unpooled.center.proposal.keyed_boundaries import keyed_weight
from unpooled.maths.arrays import FloatArray
from unpooled.maths.tables import chain
from unpooled.maths.tables.binning import Rule
from unpooled.maths.tables.chain import join

LATTICE = np.arange(0.0, 120.0, 0.1)


def ages(seed: int = 1) -> FloatArray:
    random = np.random.default_rng(seed)
    return np.sort(np.append(random.normal(60, 12, 56).clip(30, 95), 103.0))


def told_edges(values: FloatArray, k: int) -> FloatArray:
    """The edges at which one join with a fine lattice tells how many people lie below."""
    joined = join([values], LATTICE, Rule(k=k), keyed_weight(b"secret", "age"))
    edges = np.union1d(LATTICE, joined.splits)
    return edges[np.cumsum(joined.pools[0].spans)[:-1] - 1]


def exact(values: FloatArray, edges: FloatArray) -> int:
    """How many told edges lie within the lattice's step of a data value on both sides of a gap.

    With every empty bin told, both ends of each gap are known to a step.
    """
    return sum(bool((np.abs(values - edge) < 0.1).any()) for edge in edges)


def test_the_extremes_stay_hidden_whatever_k_is_asked_for() -> None:
    values = ages()
    assert len(told_edges(values, len(values))) == 0
    for k in (10, 20, 28):
        edges = told_edges(values, k)
        assert edges.min() > np.sort(values)[k - 1] - 0.1
        assert edges.max() < values[-1]


def test_an_edge_tells_no_more_than_an_own_boundary() -> None:
    """The told edge is the lattice point nearest to the boundary that the center would choose."""
    values = ages()
    weight = keyed_weight(b"secret", "age")
    for edge in told_edges(values, 10):
        passed = int((values <= edge).sum())
        a, v = float(values[passed - 1]), float(values[passed])
        w = weight(a, v)
        assert abs(edge - (w * a + (1 - w) * v)) <= 0.1


def test_with_empty_bins_told_the_order_statistics_are_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rule taken out: pools end at the first edge that makes them legal."""
    hidden = exact(ages(), told_edges(ages(), 10))
    monkeypatch.setattr(chain, "_end_in_gap", lambda end, *_: end)
    edges = told_edges(ages(), 10)
    assert exact(ages(), edges) == len(edges) > hidden
