"""Keepers that reach each other by addresses: TCP, with each message sealed by the channel."""

import asyncio
import secrets
from collections.abc import Sequence

from unpooled.center.records.sealing import SealKey
from unpooled.errors import JointError
from unpooled.federation.joint.keepers.channel import GREETING, SealedChannel, greeted

_MOST = 2**28  # bytes of a message
_AGAIN = 0.05  # seconds until an address is tried again


async def meet(
    place: int,
    names: Sequence[str],
    addresses: Sequence[tuple[str, int]],
    key: SealKey,
    publics: Sequence[str],
    run: bytes,
    patience: float,
) -> tuple[dict[int, SealedChannel], asyncio.Server | None]:
    """Channels to the other keepers: earlier ones call, later ones are called.

    Raises JointError with the names of those who did not come within `patience` seconds.
    """
    meeting = _Meeting(place, names, key, publics, run)
    server = None
    if place:
        host, port = addresses[place]
        server = await asyncio.start_server(meeting.called, host, port)
    calls = [
        asyncio.create_task(meeting.call(other, *addresses[other]))
        for other in range(place + 1, len(names))
    ]
    try:
        async with asyncio.timeout(patience):
            await meeting.complete.wait()
    except TimeoutError:
        for call in calls:
            call.cancel()
        if server is not None:
            server.close()
        missing = [
            name
            for other, name in enumerate(names)
            if other != place and other not in meeting.channels
        ]
        words = f"not reached in {patience:g} s: keeper {', '.join(missing)}"
        raise JointError(words, tuple(missing)) from None
    return meeting.channels, server


class _Meeting:
    """Those who came so far."""

    def __init__(
        self, place: int, names: Sequence[str], key: SealKey, publics: Sequence[str], run: bytes
    ) -> None:
        self.channels: dict[int, SealedChannel] = {}
        self.complete = asyncio.Event()
        self._place, self._names = place, names
        self._key, self._publics, self._run = key, publics, run
        self._reading: set[asyncio.Task[None]] = set()

    async def call(self, other: int, host: str, port: int) -> None:
        """Reach a keeper, as often as it takes."""
        while True:
            try:
                reader, writer = await asyncio.open_connection(host, port)
                await self._join(reader, writer, other)
                return
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(_AGAIN)

    async def called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody calls; who they are shows with the first message."""
        try:
            await self._join(reader, writer, None)
        except (OSError, asyncio.IncompleteReadError, JointError):
            writer.close()

    async def _join(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, expected: int | None
    ) -> None:
        greeting = bytes([self._place]) + secrets.token_bytes(GREETING - 1)
        writer.write(greeting)
        hello = await reader.readexactly(GREETING)
        other = hello[0]
        wrong = other >= self._place if expected is None else other != expected
        if wrong or other in self.channels:
            raise JointError("a caller is no keeper of this run, or called twice")
        about = self._place, other, self._names, self._key, self._publics, self._run
        channel = greeted(*about, (greeting, hello), lambda message: _write(writer, message))
        self.channels[other] = channel
        reading = asyncio.create_task(_read(reader, channel))
        self._reading.add(reading)
        if len(self.channels) == len(self._names) - 1:
            self.complete.set()


def _write(writer: asyncio.StreamWriter, message: bytes) -> None:
    writer.write(len(message).to_bytes(4, "big") + message)


async def _read(reader: asyncio.StreamReader, channel: SealedChannel) -> None:
    try:
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            if size > _MOST:
                channel.lose("sent a message that is too long")
                return
            channel.arrived(await reader.readexactly(size))
    except (OSError, asyncio.IncompleteReadError):
        channel.lose("is gone")
