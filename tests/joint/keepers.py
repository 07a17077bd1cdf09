"""The program with one party, and the processes of three keepers, for tests."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import msgspec
import numpy as np

from tests.joint.pooled import People
from unpooled.center.records.sealing import SealKey
from unpooled.federation.joint.computation.program import JointNumbers, joint_numbers
from unpooled.federation.joint.computation.runtime import Alone
from unpooled.federation.joint.computation.secure import Opened, Secure
from unpooled.federation.joint.keepers.carried import ANSWER, Mailbox, batch, framed, frames
from unpooled.federation.joint.keepers.keeper import KeeperInput, KeeperOutput
from unpooled.federation.joint.keepers.keeping import run_keeper
from unpooled.maths.joint.shares import FieldArray, added, split, to_bytes

PATIENT = 120  # seconds: more than any of them takes on a busy machine
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


@contextmanager
def keepers(inputs: Sequence[KeeperInput]) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """The processes of keepers; whatever happens, they end, and their pipes are closed."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes += map(_start, inputs)
        yield processes
    finally:
        for process in processes:
            process.kill()
            with process:  # closes its pipes and waits for it
                pass


def _start(given: KeeperInput) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-m", "unpooled.federation.joint.keepers.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(framed(given.place, msgspec.msgpack.encode(given)))
        process.stdin.close()
    process.stdin = None  # it has all
    return process


def output(process: "subprocess.Popen[bytes]") -> KeeperOutput:
    """What a keeper says in the end."""
    text, errors = process.communicate(timeout=PATIENT)
    messages = list(frames(text))
    assert messages, errors.decode()
    assert messages[-1][0] == ANSWER
    return msgspec.msgpack.decode(messages[-1][1], type=KeeperOutput)


def outputs(inputs: Sequence[KeeperInput]) -> list[KeeperOutput]:
    """What all keepers say in the end."""
    with keepers(inputs) as processes:
        return [output(process) for process in processes]


def carried_outputs(
    inputs: Sequence[KeeperInput], carry: Callable[[int, int, bytes], bytes] | None = None
) -> list[KeeperOutput]:
    """What keepers say whose messages somebody carries, who may change them."""
    boxes = [Mailbox() for _ in inputs]

    def hand_on(sender: int) -> None:
        while (some := batch(boxes[sender].leaving)) is not None:
            for receiver, message in frames(some):
                words = message if carry is None else carry(sender, receiver, message)
                boxes[receiver].arriving.put(framed(sender, words))

    hands = [threading.Thread(target=hand_on, args=(place,)) for place in range(len(inputs))]
    with ThreadPoolExecutor(len(inputs)) as pool:
        each = [
            pool.submit(run_keeper, msgspec.structs.replace(one, addresses=None), box)
            for one, box in zip(inputs, boxes, strict=True)
        ]
        for hand in hands:
            hand.start()
        try:
            return [one.result(PATIENT) for one in each]
        finally:
            for box in boxes:
                box.leaving.put(None)
            for hand in hands:
                hand.join(PATIENT)


class Halt:
    """A way to a keeper that carries so many bytes to it, and then nothing more.

    So a test acts at a definite moment, however fast the machine is.
    """

    def __init__(self, address: tuple[str, int], after: int) -> None:
        self.reached = threading.Event()
        self._to, self._left, self._turn = address, after, threading.Lock()
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listening.getsockname()
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def close(self) -> None:
        """End all connections."""
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENT)
        for one in (self._listening, *self._open):
            one.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                called, _ = self._listening.accept()
                self._open.append(called)
                try:
                    calling = socket.create_connection(self._to)
                except OSError:  # it does not listen yet: the caller tries again
                    called.close()
                    continue
                self._open.append(calling)
                for way in ((called, calling, True), (calling, called, False)):
                    self._threads.append(threading.Thread(target=self._carry, args=way))
                    self._threads[-1].start()

    def _carry(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while some := source.recv(4096):
                with self._turn:
                    self._left -= len(some) if counts else 0
                    if self._left < 0:
                        self.reached.set()
                        return
                target.sendall(some)
