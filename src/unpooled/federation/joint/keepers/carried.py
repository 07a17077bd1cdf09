"""Keepers whose messages are carried for them: from the process that computes to its center, and
from there through the engine. Each message is sealed by the channel, so nobody on the way reads it.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from struct import Struct
from typing import IO

from unpooled.center.records.sealing import SealKey
from unpooled.errors import JointError
from unpooled.federation.joint.keepers.channel import GREETING, SealedChannel, greeted

_HEAD = Struct("<BI")  # whom it is for or from, and how many bytes follow
ANSWER = 255  # the answer, in the place of a keeper
_LOST = 128  # added to the place of a keeper that cannot be heard any more
_FULL = 2**20  # bytes that are carried at once


def framed(place: int, message: bytes) -> bytes:
    """A message with whom it is for, or from."""
    return _HEAD.pack(place, len(message)) + message


def lost(place: int) -> bytes:
    """Word that a keeper cannot be heard any more."""
    return framed(_LOST + place, b"")


def frames(batch: bytes) -> Iterator[tuple[int, bytes]]:
    """The messages of a batch; raises ValueError where it is none."""
    at = 0
    while at < len(batch):
        if len(batch) - at < _HEAD.size:
            raise ValueError("a message is cut")
        place, size = _HEAD.unpack_from(batch, at)
        at += _HEAD.size
        if len(batch) - at < size:
            raise ValueError("a message is cut")
        yield place, batch[at : at + size]
        at += size


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Messages of one computation between a keeper's process and whatever carries them."""

    leaving: "SimpleQueue[bytes | None]" = field(default_factory=SimpleQueue)
    arriving: "SimpleQueue[bytes | None]" = field(default_factory=SimpleQueue)

    def lose(self, place: int) -> None:
        """A keeper cannot be heard any more."""
        self.arriving.put(lost(place))


def batch(queue: "SimpleQueue[bytes | None]") -> bytes | None:
    """All that waits in a queue, once something does; None at its end."""
    first = queue.get()
    if first is None:
        return None
    some, size = [first], len(first)
    while size < _FULL:
        try:
            more = queue.get_nowait()
        except Empty:
            break
        if more is None:
            queue.put(None)  # for the next time
            break
        some.append(more)
        size += len(more)
    return b"".join(some)


def next_frame(stream: IO[bytes]) -> tuple[int, bytes] | None:
    """The next message of a stream; None at its end."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    place, size = _HEAD.unpack(head)
    message = stream.read(size)
    return (place, message) if len(message) == size else None


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The next message."""
    place, size = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    return place, await reader.readexactly(size)


async def meet_carried(
    place: int,
    names: Sequence[str],
    key: SealKey,
    publics: Sequence[str],
    run: bytes,
    patience: float,
    carriage: tuple[asyncio.StreamReader, Callable[[bytes], None]],
) -> dict[int, SealedChannel]:
    """Channels to the other keepers, over what carries messages.

    Raises JointError with the names of those who did not come within `patience` seconds.
    """
    reader, write = carriage
    others = [other for other in range(len(names)) if other != place]
    greetings = {other: bytes([place]) + secrets.token_bytes(GREETING - 1) for other in others}
    for other, greeting in greetings.items():
        write(framed(other, greeting))
    channels: dict[int, SealedChannel] = {}
    complete = asyncio.Event()

    def take(sender: int, message: bytes) -> None:
        if sender in channels:
            channels[sender].arrived(message)
        elif sender in greetings:
            both = greetings[sender], message
            with suppress(JointError):  # it did not come, then
                channels[sender] = greeted(
                    *(place, sender, names, key, publics, run, both),
                    lambda sealed: write(framed(sender, sealed)),
                )
            if len(channels) == len(others):
                complete.set()

    async def read() -> None:
        try:
            while True:
                sender, message = await read_frame(reader)
                if sender >= _LOST:
                    if sender - _LOST in channels:
                        channels[sender - _LOST].lose("is gone")
                    continue
                take(sender, message)
        except (OSError, asyncio.IncompleteReadError):
            for channel in channels.values():
                channel.lose("is gone")

    reading = asyncio.create_task(read())
    _READING.add(reading)
    try:
        async with asyncio.timeout(patience):
            await complete.wait()
    except TimeoutError:
        missing = [names[other] for other in others if other not in channels]
        words = f"not reached in {patience:g} s: keeper {', '.join(missing)}"
        raise JointError(words, tuple(missing)) from None
    return channels


_READING: set[asyncio.Task[None]] = set()  # else a task may be collected while it reads
