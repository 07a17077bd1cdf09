"""Joint tables for tests: members who count, and the processes of the three keepers."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from hypothesis import strategies as st

from unpooled.center.sealing import SealKey
from unpooled.federation.joint.keeper import CutTask, KeeperInput, KeeperOutput
from unpooled.federation.joint.program import CountShares, Opened, cut_tables
from unpooled.federation.joint.runtime import Alone
from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.cutting import DRAW, JointCells, joint_cells
from unpooled.maths.joint.shares import FieldArray, added, split, to_bytes


@dataclass(frozen=True)
class Members:
    """Counts of members (member × table × point), and what they draw together."""

    counts: IntArray
    draws: IntArray
    coins: IntArray

    @property
    def pooled(self) -> IntArray:
        """The counts of everybody."""
        return np.asarray(self.counts.sum(axis=0))

    def cells(self, k: int, least: Sequence[int]) -> list[JointCells | None]:
        """The rule on pooled rows."""
        return [
            joint_cells(counts, k, self.draws[i], self.coins[i])
            if counts.sum() >= least[i]
            else None
            for i, counts in enumerate(self.pooled)
        ]

    def vectors(self) -> Iterator[IntArray]:
        """What each member splits; the first two draw, as it were."""
        half = self.draws // 2
        for i, counts in enumerate(self.counts):
            draws = [half, self.draws - half][i] if i < 2 else np.zeros_like(half)
            coins = self.coins if i == 0 else np.zeros_like(half)
            people = counts.sum(axis=1)
            yield np.concatenate((counts.ravel(), draws.ravel(), coins.ravel(), people))


@st.composite
def members(draw: st.DrawFn, tables: int = 2) -> Members:
    """Few points or many, heaps, empty members."""
    points = draw(st.integers(2, 24))
    shape = (draw(st.integers(3, 5)), tables, points)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = rng.poisson(draw(st.floats(0, 6)), shape)
    counts[:, :, rng.integers(points)] += rng.integers(0, draw(st.integers(1, 40)), shape[:2])
    counts[rng.random(shape[0]) < 0.2] = 0
    draws = rng.integers(0, DRAW + 1, (2, tables, points)).sum(axis=0)
    return Members(counts, draws, rng.integers(0, 2, (tables, points)))


def drawn(rng: np.random.Generator, counts: IntArray) -> Members:
    """Members with these counts, and draws of their own."""
    draws = rng.integers(0, DRAW + 1, (2, *counts.shape[1:])).sum(axis=0)
    return Members(counts, draws, rng.integers(0, 2, counts.shape[1:]))


def cut_alone(
    own: Members, k: int, least: Sequence[int], opened: Opened | None = None
) -> list[JointCells | None]:
    """The program with one party."""
    numbers = own.pooled.astype(object)
    shares = CountShares(
        numbers, numbers.sum(axis=1), own.draws.astype(object), own.coins.astype(object)
    )
    with Alone() as alone:
        return alone.run(cut_tables(alone.runtime, shares, k, least, opened))


def ports() -> list[tuple[str, int]]:
    """Three addresses on this machine that nobody uses."""
    some = [socket.socket() for _ in range(3)]
    for one in some:
        one.bind(("127.0.0.1", 0))
    found = [("127.0.0.1", one.getsockname()[1]) for one in some]
    for one in some:
        one.close()
    return found


KEYS = tuple(SealKey(bytes([i]) * 32) for i in (1, 2, 3))


def keeper_inputs(
    own: Members, k: int, least: Sequence[int], patience: float = 20.0
) -> list[KeeperInput]:
    """What the three keepers get."""
    shares: list[list[FieldArray]] = [split(vector) for vector in own.vectors()]
    task = CutTask(k=k, least=tuple(least), points=own.counts.shape[2])
    addresses = tuple(ports())
    return [
        KeeperInput(
            task=task,
            place=place,
            names=("Bern", "Haifa", "Oslo"),
            addresses=addresses,
            publics=tuple(key.public for key in KEYS),
            private=bytes([place + 1]) * 32,
            run=b"a run of the tests",
            shares=to_bytes(added([vectors[place] for vectors in shares])),
            patience=patience,
        )
        for place in range(3)
    ]


def start(own: KeeperInput) -> "subprocess.Popen[bytes]":
    """The process of a keeper."""
    process = subprocess.Popen(
        [sys.executable, "-m", "unpooled.federation.joint.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.msgpack.encode(own))
    process.stdin.close()
    return process


def output(process: "subprocess.Popen[bytes]") -> KeeperOutput:
    """What a keeper says in the end."""
    assert process.stdout is not None
    assert process.stderr is not None
    said, errors = process.stdout.read(), process.stderr.read().decode()
    process.wait(60)
    process.stdout.close()
    process.stderr.close()
    assert said, errors
    return msgspec.msgpack.decode(said, type=KeeperOutput)
