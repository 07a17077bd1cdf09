"""A table on the lattice is answered after the chain, whose edges are no points of the lattice."""

import numpy as np
import polars as pl

from unpooled import Federation
from unpooled.results.numbers.quantiles import QuantilesResult


def test_quantiles_are_answered_after_the_chain_s_table() -> None:
    random = np.random.default_rng(0)
    rows = pl.DataFrame(
        {
            "crp": random.gamma(2, 3, 600).round(2),
            "arm": random.choice(["a", "b"], 600),
            "hospital": ["Bern"] * 300 + ["Haifa"] * 300,
        }
    )
    with Federation.split(rows, center="hospital", k=10, seed=1) as fed:
        fed.compare("crp", by="arm", method="table")
        result = fed.quantiles("crp", p=0.5, by="arm", groups=("a", "b"))
    assert isinstance(result, QuantilesResult)
    assert result.refusals == ()
    for group, quantile in zip(("a", "b"), result.quantiles, strict=True):
        median = float(np.median(rows.filter(pl.col("arm") == group)["crp"].to_numpy()))
        assert quantile.low is not None
        assert quantile.high is not None
        assert quantile.low < median < quantile.high
