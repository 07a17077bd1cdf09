"""Small hospitals for tests of joint centers, and a protocol for them."""

import numpy as np
import polars as pl

from unpooled.center.questions import (
    Grouping,
    Protocol,
    ProtocolOutcome,
    ProtocolVariable,
)

PROTOCOL = Protocol(
    title="CRP in sepsis",
    k=5,
    groups=(
        Grouping(name="arm", levels=("control", "patient")),
        Grouping(name="age_band", of="age", cuts=(65,)),
    ),
    variables={
        "crp": ProtocolVariable(kind="number", resolution=1, lower=0, upper=120),
        "stage": ProtocolVariable(kind="category", levels=("I", "II", "III"), ordered=True),
    },
    survival=(ProtocolOutcome(time="months", event="died", event_is="1", horizon=36),),
)


def hospital(rng: np.random.Generator, people: int) -> pl.DataFrame:
    """People with some missing values."""
    arm = rng.choice(["control", "patient"], people)
    crp = np.round(rng.gamma(2, 10, people) + 8 * (arm == "patient")).clip(0, 120)
    crp[rng.random(people) < 0.05] = np.nan
    return pl.DataFrame(
        {
            "arm": arm,
            "age": rng.integers(20, 90, people),
            "crp": crp,
            "stage": rng.choice(["I", "II", "III"], people, p=[0.6, 0.35, 0.05]),
            "months": rng.integers(0, 40, people),
            "died": rng.integers(0, 2, people),
        }
    )


def hospitals(seed: int, large: int, small: int) -> dict[str, pl.DataFrame]:
    """Some large hospitals, and some of 1 to 9 people."""
    rng = np.random.default_rng(seed)
    sizes = {f"large {i}": 60 for i in range(large)}
    sizes |= {f"small {i}": int(rng.integers(1, 10)) for i in range(small)}
    return {name: hospital(rng, people) for name, people in sizes.items()}
