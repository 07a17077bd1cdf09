"""A keeper: a process of its own at one of three centers, for one computation.

It reads its task and its shares from standard input, and writes what was opened, or why nothing
was, to standard output. Where keepers have no addresses, what they say to each other goes the same
way, to be carried by their centers.
"""

import asyncio
import os
import sys
from collections.abc import Collection
from typing import Annotated, Any, BinaryIO, TypeVar

import msgspec

from unpooled.center.questions.joint import JointPlan
from unpooled.center.questions.message import Message
from unpooled.center.records.sealing import SealKey
from unpooled.errors import JointError
from unpooled.federation.joint.computation.program import JointNumbers, joint_numbers
from unpooled.federation.joint.computation.runtime import join
from unpooled.federation.joint.computation.secure import InconsistentError, Opened, Secure
from unpooled.federation.joint.keepers.carried import ANSWER, framed, meet_carried, read_frame
from unpooled.federation.joint.keepers.channel import SealedChannel
from unpooled.federation.joint.keepers.tcp import meet
from unpooled.maths.joint.shares import KEEPERS, are_shares, from_bytes

T = TypeVar("T")

_PATIENCE = 20.0  # seconds until the others are there
_END = -2  # the label of the last message
_PAUSE = 0.1  # seconds
_LONGEST = 300.0  # seconds for a computation


class KeeperInput(Message, frozen=True):
    """All that the process of a keeper needs."""

    plan: JointPlan
    place: int
    names: tuple[str, ...]
    addresses: tuple[tuple[str, int], ...] | None  # None: the centers carry what they say
    publics: tuple[str, ...]
    private: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    run: bytes
    shares: bytes  # the sum over members
    patience: float = _PATIENCE
    longest: float = _LONGEST


class KeeperOutput(Message, frozen=True):
    """What was opened, in order; or why nothing was."""

    numbers: JointNumbers | None
    opened: tuple[int, ...] = ()
    problem: str | None = None
    names: tuple[str, ...] = ()  # who is to blame for it
    begun: bool = False  # whether something was opened before
    seconds: float = 0.0
    sent: int = 0


class Carriage:
    """Standard input and output, as the way to the other keepers."""

    def __init__(self, reader: asyncio.StreamReader, output: BinaryIO) -> None:
        self.reader = reader
        self._output = output
        self._flushes = False

    def write(self, frame: bytes) -> None:
        """Send a message; those that are sent at once leave at once."""
        self._output.write(frame)
        if not self._flushes:
            self._flushes = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushes = False
        self._output.flush()


async def compute(given: KeeperInput, opened: Opened, carriage: Carriage) -> KeeperOutput:
    """Meet the others, compute together, and say what was opened."""
    shares = from_bytes(given.shares)
    if len(shares) != given.plan.length or not are_shares(shares):
        raise JointError("shares are out of range")
    loop = asyncio.get_running_loop()
    start = loop.time()
    key, server = SealKey(given.private), None
    about = key, given.publics, given.run, given.patience
    if given.addresses is None:
        carried = carriage.reader, carriage.write
        channels = await meet_carried(given.place, given.names, *about, carried)
    else:
        channels, server = await meet(given.place, given.names, given.addresses, *about)

    async def work() -> JointNumbers | None:
        runtime = await join(given.place, channels)
        try:
            return await joint_numbers(Secure(runtime, opened), given.plan, shares)
        finally:
            await _part(channels.values())

    numbers = await _unless_lost(asyncio.create_task(work()), channels.values(), given.longest)
    if server is not None:
        server.close()
    sent = sum(channel.nbytes_sent for channel in channels.values())
    return KeeperOutput(
        numbers=numbers,
        opened=tuple(opened.numbers),
        seconds=loop.time() - start,
        sent=sent,
    )


async def _part(channels: Collection[SealedChannel]) -> None:
    """Wait until the others have all they need: who ends first must not be taken for lost."""
    for channel in channels:
        channel.send(_END, b"")
    for channel in channels:
        end = channel.receive(_END)
        if not isinstance(end, bytes):
            await end
    await asyncio.sleep(_PAUSE)  # the last words leave


async def _unless_lost(
    task: asyncio.Task[T], channels: Collection[SealedChannel], longest: float
) -> T:
    """The result of a task, unless a keeper is lost or the time is over before.

    Who loses a keeper tells the others, before it ends itself.
    """
    waited: set[asyncio.Future[Any]] = {task, *(channel.lost for channel in channels)}
    done, _ = await asyncio.wait(waited, timeout=longest, return_when=asyncio.FIRST_COMPLETED)
    if task in done:
        return task.result()
    task.cancel()
    for lost in done:
        error = lost.exception()
        if isinstance(error, JointError):
            for channel in channels:
                if not channel.lost.done():
                    channel.say_lost(error.names[0])
            await asyncio.sleep(_PAUSE)  # the last words leave
            raise error
    raise JointError(f"the computation took longer than {longest:g} s")


async def _answered(output: BinaryIO) -> KeeperOutput:
    """Read the input, and compute."""
    reader = asyncio.StreamReader(limit=2**24)
    loop, opened = asyncio.get_running_loop(), Opened()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    _, task = await read_frame(reader)
    given = msgspec.msgpack.decode(task, type=KeeperInput)
    if len(given.names) != KEEPERS:
        raise SystemExit(f"there must be {KEEPERS} keepers, got {len(given.names)}")
    try:
        return await compute(given, opened, Carriage(reader, output))
    except (JointError, InconsistentError) as error:
        names = error.names if isinstance(error, JointError) else ()
        begun = bool(opened.numbers)
        return KeeperOutput(numbers=None, problem=str(error), names=names, begun=begun)


def main() -> None:
    """Read the input, compute, write the output, and end at once: steps of others may hang."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no part of the answer
    answer = asyncio.new_event_loop().run_until_complete(_answered(output))
    output.write(framed(ANSWER, msgspec.msgpack.encode(answer)))
    output.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
