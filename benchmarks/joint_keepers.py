"""How long three keepers take, in processes of their own on loopback.

python benchmarks/joint_keepers.py [--quick]: 30 members, a number at 512 points in 8 blocks, 24,000
people; then fewer blocks and fewer people, and the exponents of the time in both.
"""

import resource
import socket
import subprocess
import sys
import time

import msgspec
import numpy as np

from unpooled.center.questions.joint import JointNumber, JointPlan
from unpooled.center.questions.message import Grouping
from unpooled.center.records.sealing import SealKey
from unpooled.federation.joint.keepers.carried import framed, frames
from unpooled.federation.joint.keepers.keeper import KeeperInput, KeeperOutput
from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.cutting import DRAW
from unpooled.maths.joint.shares import FieldArray, added, split, to_bytes

MEMBERS, POINTS, K = 30, 512, 10


def plan(blocks: int) -> JointPlan:
    """A number at 512 points, in 1, 2, 4 or 8 blocks."""
    groupings = tuple(Grouping(name=f"g{i}", cuts=(0.5,)) for i in range(int(np.log2(blocks))))
    part = JointNumber(
        variable="x",
        scale=10.0,
        resolution=1.0,
        lower=0.0,
        upper=POINTS - 1.0,
        low=0.0,
        high=POINTS - 1.0,
    )
    assert part.width == POINTS
    return JointPlan(k=K, groupings=groupings, parts=(part,))


def vectors(made: JointPlan, people: int, rng: np.random.Generator) -> list[IntArray]:
    """What each member counts and draws."""
    spread = np.diff(np.linspace(0, 1, POINTS + 1) ** 1.5)
    share = people // (MEMBERS * made.blocks)
    result = []
    for member in range(MEMBERS):
        counts = rng.multinomial(share, spread / spread.sum(), size=made.blocks)
        lacking = rng.binomial(counts, 0.02)
        parts = [counts.sum(axis=1), counts.ravel(), lacking.ravel()]
        if member < 2:
            parts += [rng.integers(0, DRAW + 1, counts.size)]
            parts += [rng.integers(0, 2, counts.size) * (member == 0)]
        result.append(np.concatenate(parts))
    return result


def ports() -> list[tuple[str, int]]:
    """Three free addresses on this machine."""
    some = [socket.socket() for _ in range(3)]
    for one in some:
        one.bind(("127.0.0.1", 0))
    free = [("127.0.0.1", one.getsockname()[1]) for one in some]
    for one in some:
        one.close()
    return free


def run(blocks: int, people: int) -> float:
    """Three keepers; their processor time in seconds, which other work hardly changes."""
    made, rng = plan(blocks), np.random.default_rng(1)
    began = time.perf_counter()
    totals: list[FieldArray] | None = None
    for vector in vectors(made, people, rng):
        rest = np.zeros(made.length - len(vector), dtype=object)
        shares = [np.concatenate((share, rest)) for share in split(vector)]
        pairs = None if totals is None else zip(totals, shares, strict=True)
        totals = shares if pairs is None else [added(pair) for pair in pairs]
    sharing = time.perf_counter() - began
    keys = [SealKey(bytes([i]) * 32) for i in (1, 2, 3)]
    addresses = tuple(ports())
    processes = []
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    before = used.ru_utime + used.ru_stime
    began = time.perf_counter()
    for place in range(3):
        given = KeeperInput(
            plan=made,
            place=place,
            names=("A", "B", "C"),
            addresses=addresses,
            publics=tuple(key.public for key in keys),
            private=bytes([place + 1]) * 32,
            run=b"a run of the benchmark",
            shares=to_bytes(totals[place]),  # type: ignore[index]
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "unpooled.federation.joint.keepers.keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(framed(place, msgspec.msgpack.encode(given)))
        process.stdin.close()
        processes.append(process)
    outputs = []
    for process in processes:
        assert process.stdout is not None
        ((_, answer),) = frames(process.stdout.read())
        outputs.append(msgspec.msgpack.decode(answer, type=KeeperOutput))
        process.wait()
    whole = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory, processor = used.ru_maxrss / 1024, used.ru_utime + used.ru_stime - before
    numbers = outputs[0].numbers
    assert numbers is not None, outputs[0].problem
    cells = sum(len(table.counts) for table in numbers.parts[0].tables if table is not None)
    print(
        f"{blocks} blocks, {people:,} people: shares of {MEMBERS} members {sharing:.1f} s, keepers "
        f"{whole:.1f} s ({processor:.1f} s of processor time by all three), {cells} cells, "
        f"{outputs[0].sent / 1e6:.0f} MB sent by each, at most {memory:.0f} MB of memory",
        flush=True,
    )
    return processor


def main() -> None:
    """The full size, then exponents."""
    if "--quick" in sys.argv:
        run(2, 3000)
        return
    full = run(8, 24_000)
    fewer_blocks = run(2, 6_000)
    fewer_people = run(8, 6_000)
    print(
        f"people ×4: time × {full / fewer_people:.2f}, exponent "
        f"{np.log(full / fewer_people) / np.log(4):.2f}"
    )
    print(
        f"blocks and people ×4: time × {full / fewer_blocks:.2f}, exponent "
        f"{np.log(full / fewer_blocks) / np.log(4):.2f}"
    )


if __name__ == "__main__":
    main()
