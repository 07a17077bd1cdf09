"""The program with one party, and the processes of three keepers, for tests."""

import socket
import subprocess
import sys

import msgspec
import numpy as np

from tests.joint.pooled import People
from unpooled.center.records.sealing import SealKey
from unpooled.federation.joint.computation.program import JointNumbers, joint_numbers
from unpooled.federation.joint.computation.runtime import Alone
from unpooled.federation.joint.computation.secure import Opened, Secure
from unpooled.federation.joint.keepers.keeper import KeeperInput, KeeperOutput
from unpooled.maths.joint.shares import FieldArray, added, split, to_bytes

KEYS = tuple(SealKey(bytes([i]) * 32) for i in (1, 2, 3))


def numbers_alone(part: People, opened: Opened | None = None) -> JointNumbers | None:
    """The program with one party."""
    vector = np.sum(list(part.vectors()), axis=0).astype(object)
    with Alone() as alone:
        return alone.run(joint_numbers(Secure(alone.runtime, opened), part.plan, vector))


def ports() -> list[tuple[str, int]]:
    """Three addresses on this machine that nobody uses."""
    some = [socket.socket() for _ in range(3)]
    for one in some:
        one.bind(("127.0.0.1", 0))
    result = [("127.0.0.1", one.getsockname()[1]) for one in some]
    for one in some:
        one.close()
    return result


def keeper_inputs(part: People, patience: float = 20.0) -> list[KeeperInput]:
    """What the three keepers get."""
    shares: list[list[FieldArray]] = [split(vector) for vector in part.vectors()]
    addresses = tuple(ports())
    return [
        KeeperInput(
            plan=part.plan,
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


def start(part: KeeperInput) -> "subprocess.Popen[bytes]":
    """The process of a keeper."""
    process = subprocess.Popen(
        [sys.executable, "-m", "unpooled.federation.joint.keepers.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.msgpack.encode(part))
    process.stdin.close()
    return process


def output(process: "subprocess.Popen[bytes]") -> KeeperOutput:
    """What a keeper says in the end."""
    assert process.stdout is not None
    assert process.stderr is not None
    text, errors = process.stdout.read(), process.stderr.read().decode()
    process.wait(60)
    process.stdout.close()
    process.stderr.close()
    assert text, errors
    return msgspec.msgpack.decode(text, type=KeeperOutput)
