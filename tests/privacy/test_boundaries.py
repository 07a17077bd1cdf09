"""Attacks on boundaries: repeats, a weight shared by a table, and extremes."""

import numpy as np

from unpooled.center.proposal.keyed_boundaries import keyed_weight
from unpooled.maths.arrays import FloatArray
from unpooled.maths.tables.binning import Rule, Weight, cut, place_boundaries

K = 10


def ask(values: FloatArray, weight: Weight) -> FloatArray:
    cuts = cut([values], Rule(k=K))
    return place_boundaries(cuts.below, cuts.above, weight)


def decoded(values: FloatArray, weight: Weight, repeats: int) -> float:
    """Share of boundary values that repeats give away to a twentieth of the gap around them."""
    asked = np.array([ask(values, weight) for _ in range(repeats)])
    cuts = cut([values], Rule(k=K))
    return float(np.mean(asked.min(axis=0) - cuts.below < 0.05 * (cuts.above - cuts.below)))


def test_repeats_give_nothing_away_with_keyed_weights_and_nearly_all_with_fresh_ones() -> None:
    random = np.random.default_rng(2)
    values = np.sort(random.gamma(4, 1, 300))
    fresh = np.random.default_rng(9)
    assert decoded(values, lambda _a, _v: float(fresh.uniform()), 100) > 0.9
    keyed = keyed_weight(b"secret", "los")
    assert decoded(values, keyed, 100) == decoded(values, keyed, 1) < 0.2


def test_one_weight_for_a_whole_table_decodes_integers_and_keyed_weights_do_not() -> None:
    values = np.repeat(np.arange(0.0, 93.0, 3.0), K)

    def decodes(weight: Weight) -> bool:
        """All boundaries lie at the same fraction above an integer: the weight is known."""
        fractions = np.mod(ask(values, weight), 3.0)
        return bool(np.ptp(fractions) < 1e-9)

    assert decodes(lambda _a, _v: 0.37)
    assert not decodes(keyed_weight(b"secret", "los"))


def test_weights_depend_on_secret_variable_and_both_values() -> None:
    weight = keyed_weight(b"secret", "los")
    others = {
        weight(1.0, 2.0),
        weight(1.0, 3.0),
        weight(0.0, 2.0),
        keyed_weight(b"another", "los")(1.0, 2.0),
        keyed_weight(b"secret", "age")(1.0, 2.0),
    }
    assert len(others) == 5
    assert weight(0.0, 1.0) == weight(-0.0, 1.0)


def test_weights_are_uniform_in_the_open_interval() -> None:
    weight = keyed_weight(b"secret", "los")
    drawn = np.array([weight(float(i), i + 1.0) for i in range(20_000)])
    assert drawn.min() > 0
    assert drawn.max() < 1
    assert np.histogram(drawn, bins=10, range=(0, 1))[0].min() > 1800
