"""A joint center whose keepers talk through the engine: real processes, on loopback.

python -m benchmarks.joint_network [PEOPLE [CENTERS]]: a coordinator and centers that all count
jointly, three of them keepers without addresses; a number at 512 points in 8 blocks. Prints how
long a run takes from question to book, and the processor time of all processes meanwhile.
"""

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from tests.network.networks import Network, free_port, run

from unpooled import Federation
from unpooled.center.questions import Grouping, Protocol, ProtocolVariable

POINTS = 512
PLAN = Protocol(
    title="time of a joint center",
    k=10,
    groups=tuple(Grouping(name=f"g{i}", cuts=(0.5,)) for i in range(3)),
    variables={
        "x": ProtocolVariable(kind="number", resolution=1, lower=0, upper=POINTS - 1),
    },
)


def hospital(seed: int, people: int) -> pl.DataFrame:
    """People in eight blocks, of a number with a long tail."""
    rng = np.random.default_rng(seed)
    x = np.floor(POINTS * rng.random(people) ** 1.5).clip(0, POINTS - 1)
    return pl.DataFrame({"x": x} | {f"g{i}": rng.integers(0, 2, people) for i in range(3)})


def network(folder: Path, people: int, centers: int) -> Network:
    """The federation, not started yet."""
    names = tuple(f"c{i}" for i in range(centers))
    made = Network(folder, names)
    folder.mkdir(exist_ok=True)
    listed = ", ".join(f'"{name}"' for name in names)
    keepers = "".join(f'\n[[keepers]]\nname = "{name}"\n' for name in names[:3])
    made.toml.write_text(
        f'name = "trial"\ncenters = [{listed}]\n\n'
        f'[coordinator]\naddress = "localhost"\nport = {free_port()}\n{keepers}'
    )
    run("federation", "init", made.toml)
    for place, name in enumerate(names):
        hospital(place, people // centers).write_csv(made.kit(name) / "data.csv")
        made.write_center(
            name, 'data = "data.csv"', '[policy]\nk = 10\nad_hoc = "free"\njoint = "all"'
        )
    return made


def processor_seconds() -> float:
    """What all processes below this one have used so far."""
    ticks, parents, used = os.sysconf("SC_CLK_TCK"), {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        used[int(entry.name)] = sum(map(int, fields[11:15])) / ticks
    mine = {os.getpid()}
    for _ in range(12):
        mine |= {child for child, parent in parents.items() if parent in mine}
    return sum(used[process] for process in mine if process in used)


def main(people: int = 24_000, centers: int = 3) -> None:
    """One run, timed."""
    with TemporaryDirectory() as folder:
        made = network(Path(folder) / "joint", people, centers)
        try:
            made.start_all()
            with Federation.connect(made.toml, timeout=400, joint=True) as fed:
                fed.catalogue()  # a job is open
                before, began = processor_seconds(), time.perf_counter()
                book = fed.run(PLAN)
                seconds, used = time.perf_counter() - began, processor_seconds() - before
            assert book.members, book.no_joint
            print(
                f"{len(book.members)} members, {people:,} people, 8 blocks, {POINTS} points: "
                f"{seconds:.1f} s from question to book, {used:.1f} s of processor time"
            )
        finally:
            made.end_all()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
