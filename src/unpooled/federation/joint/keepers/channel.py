"""What joins two keepers: messages with a label, encrypted from one to the other.

Whatever carries them, addresses or the engine, can read none, change none and repeat none: each is
encrypted under a key of this conversation, with its number.
"""

import asyncio
from collections.abc import Callable, Sequence
from struct import Struct

from unpooled.center.records.sealing import SealKey
from unpooled.errors import JointError

GREETING = 17  # bytes: the keeper's place, and 16 that nobody sent before
_LABEL = Struct("<q")
_NUMBER = 12  # bytes of a nonce
_LOST = -3  # the label of the last words of a keeper that lost another one


class SealedChannel:
    """One keeper's end of the channel to another one; `write` carries bytes to it."""

    def __init__(
        self, other: str, keys: tuple[bytes, bytes], write: Callable[[bytes], None]
    ) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        self.other = other
        self.nbytes_sent = 0
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._write = write
        self._out, self._in = map(ChaCha20Poly1305, keys)
        self._sent = self._received = 0
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._early: dict[int, bytes] = {}

    def send(self, label: int, payload: bytes) -> None:
        """Send bytes with a label."""
        number = self._sent.to_bytes(_NUMBER, "big")
        message = self._out.encrypt(number, _LABEL.pack(label) + payload, None)
        self._sent += 1
        self.nbytes_sent += len(message)
        self._write(message)

    def receive(self, label: int) -> "bytes | asyncio.Future[bytes]":
        """The bytes with this label, or a future of them."""
        if label in self._early:
            return self._early.pop(label)
        future = self._waiting[label] = asyncio.get_running_loop().create_future()
        return future

    def arrived(self, message: bytes) -> None:
        """Take a message from the other keeper."""
        from cryptography.exceptions import InvalidTag

        try:
            plain = self._in.decrypt(self._received.to_bytes(_NUMBER, "big"), message, None)
            (label,) = _LABEL.unpack(plain[: _LABEL.size])
        except (InvalidTag, ValueError):
            self.lose("sent a message that is not the next one of this conversation")
            return
        self._received += 1
        if label == _LOST:
            self._lose(plain[_LABEL.size :].decode(), "is gone")
            return
        waiting = self._waiting.pop(label, None)
        if waiting is None:
            self._early[label] = plain[_LABEL.size :]
        elif not waiting.done():
            waiting.set_result(plain[_LABEL.size :])

    def say_lost(self, name: str) -> None:
        """Tell the other keeper who was lost, so that it does not blame the one that ends next."""
        self.send(_LOST, name.encode())

    def lose(self, why: str) -> None:
        """The other keeper cannot be heard any more."""
        self._lose(self.other, why)

    def _lose(self, name: str, why: str) -> None:
        if not self.lost.done():
            self.lost.set_exception(JointError(f"the keeper {name} {why}", (name,)))
            self.lost.exception()  # it was looked at: nobody else may wait for it


def channel_keys(
    key: SealKey, other: str, conversation: bytes, *, first: bool
) -> tuple[bytes, bytes]:
    """The keys out and in; `first` is the one of the two keepers that comes first."""
    low, high = (
        key.channel_key(other, conversation + direction) for direction in (b" low", b" high")
    )
    return (low, high) if first else (high, low)


def greeted(
    place: int,
    other: int,
    names: Sequence[str],
    key: SealKey,
    publics: Sequence[str],
    run: bytes,
    greetings: tuple[bytes, bytes],
    write: Callable[[bytes], None],
) -> SealedChannel:
    """The channel to another keeper, once the greetings went out and came in.

    They make its keys those of this conversation alone; raises JointError.
    """
    mine, theirs = greetings
    if len(theirs) != GREETING or theirs[0] != other:
        raise JointError(f"the keeper {names[other]} did not greet as one", (names[other],))
    first = place < other
    both = mine + theirs if first else theirs + mine
    keys = channel_keys(key, publics[other], run + both, first=first)
    return SealedChannel(names[other], keys, write)
