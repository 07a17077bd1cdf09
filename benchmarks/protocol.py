"""How long does a protocol take, beside reading and sorting its columns?

    python -m benchmarks.protocol

Five centers of 10,000 people, 20 variables, three groupings crossed; processor time of this
process, in which all centers run. The ratio is to the time that reading each column and sorting it
takes.
"""

import time

import numpy as np
import polars as pl

from unpooled import Federation
from unpooled.center.data.sources import open_source
from unpooled.center.questions import Grouping, Protocol, ProtocolVariable

CENTERS, PEOPLE, VARIABLES = 5, 10_000, 20
NAMES = [f"v{number}" for number in range(VARIABLES)]


def hospital(seed: int) -> pl.DataFrame:
    """Lognormal values to two digits."""
    random = np.random.default_rng(seed)
    words = {
        "arm": random.choice(["control", "patient"], PEOPLE),
        "sex": random.choice(["F", "M"], PEOPLE),
        "age": random.integers(20, 90, PEOPLE),
    }
    values = {name: np.round(random.lognormal(1.0, 0.8, PEOPLE), 2) for name in NAMES}
    return pl.DataFrame({**words, **values})


def main() -> None:
    """Print both times, their ratio and the rounds."""
    people = {f"center {number}": hospital(number) for number in range(CENTERS)}
    start = time.process_time()
    for frame in people.values():
        source = open_source(frame)
        for name in NAMES:
            np.sort(source.values(name))
    reading = time.process_time() - start
    groups = (
        Grouping(name="arm"),
        Grouping(name="sex"),
        Grouping(name="age_band", of="age", cuts=(65.0,)),
    )
    variables = {name: ProtocolVariable(kind="number") for name in NAMES}
    plan = Protocol(title="Time", groups=groups, variables=variables)
    with Federation.local(people, k=10, seed=1) as fed:
        start = time.process_time()
        replies = fed.ask_protocol(plan)
        asking = time.process_time() - start
    print(f"reading and sorting {reading:.3f} s, protocol {asking:.2f} s: {asking / reading:.0f} x")
    print(f"rounds: {replies.rounds}")


if __name__ == "__main__":
    main()
