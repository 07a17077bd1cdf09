"""A keeper: a process of its own at one of three centers, for one computation.

It reads its task and its shares from standard input, and writes what was opened, or why nothing
was, to standard output.
"""

import asyncio
import os
import sys
from collections.abc import Collection
from typing import Annotated, Any, TypeVar

import msgspec

from unpooled.center.questions.joint import JointPlan
from unpooled.center.questions.message import Message
from unpooled.center.records.sealing import SealKey
from unpooled.errors import JointError
from unpooled.federation.joint.computation.program import JointNumbers, joint_numbers
from unpooled.federation.joint.computation.runtime import join
from unpooled.federation.joint.computation.secure import InconsistentError, Opened, Secure
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
    addresses: tuple[tuple[str, int], ...]
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


async def compute(given: KeeperInput, opened: Opened) -> KeeperOutput:
    """Meet the others, compute together, and say what was opened."""
    shares = from_bytes(given.shares)
    if len(shares) != given.plan.length or not are_shares(shares):
        raise JointError("shares are out of range")
    loop = asyncio.get_running_loop()
    start = loop.time()
    key = SealKey(given.private)
    channels, server = await meet(
        given.place, given.names, given.addresses, key, given.publics, given.run, given.patience
    )

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


def main() -> None:
    """Read the input, compute, write the output, and end at once: steps of others may hang."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no part of the answer
    given = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=KeeperInput)
    if len(given.names) != KEEPERS:
        raise SystemExit(f"there must be {KEEPERS} keepers, got {len(given.names)}")
    opened = Opened()
    try:
        output = asyncio.new_event_loop().run_until_complete(compute(given, opened))
    except (JointError, InconsistentError) as error:
        names = error.names if isinstance(error, JointError) else ()
        begun = bool(opened.numbers)
        output = KeeperOutput(numbers=None, problem=str(error), names=names, begun=begun)
    answer.write(msgspec.msgpack.encode(output))
    answer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
