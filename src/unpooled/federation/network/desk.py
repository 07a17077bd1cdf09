"""The desk: where the engine's process hands a question to the center's own process.

The rows, the key and the ledger stay in the process that `unpooled center start` runs. The engine's
processes know a socket that only their own user can open; over it a question goes in and the bytes
of a release come out, or word that the steward has not decided yet. The desk also confirms to the
result filter what the gate has let out.

How long an answer took would tell how many people were found. So whatever comes out to a question
comes out on a tick: a whole number of ticks after the question came in.
"""

import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from unpooled.center import Center
from unpooled.center.approval.steward import Steward
from unpooled.center.config import TICK
from unpooled.errors import HeldError
from unpooled.federation.joint.keepers.carried import batch
from unpooled.federation.joint.keepers.keeping import HOLD, KEEP, Keeping
from unpooled.maths.joint.shares import KEEPERS

DESK = "UNPOOLED_DESK"  # the environment variable with the socket's address

HELD: Final = "held"  # the steward has not decided yet

_ASK, _CONFIRM, _CARRY = b"?", b"=", b"&"
_YES, _NO, _WAIT = b"+", b"-", b"~"
_TICKET = re.compile(rb"[0-9a-f]{32}")
_MOST_ASKER = 200  # letters of an analyst's name
_NOBODY = b"-" * 32
_END = b"\0"  # of the analyst's name; no question has one
_MOST_HELD = 1000  # questions
_PAUSE = 0.5  # seconds between two looks at what the steward refused
_log = logging.getLogger(__name__)


def until_tick(elapsed: float, tick: float) -> float:
    """How many seconds are left to the next multiple of a tick, of which the first is one tick.

    Examples
    --------
    >>> until_tick(0.5, 2.0), until_tick(2.0, 2.0), until_tick(2.5, 2.0), until_tick(0.0, 2.0)
    (1.5, 0.0, 1.5, 2.0)
    """
    return max(0.0, max(1, math.ceil(elapsed / tick)) * tick - elapsed)


class Desk:
    """Serves a center to the engine's processes, one question after the other.

    Every reply to a question is kept back until the next `tick`, counted in seconds from when the
    question came in. Waiting for a steward hides how long the answer took; word that one waits does
    not, so it keeps to the tick too.
    """

    def __init__(
        self,
        center: Center,
        steward: Steward | None = None,
        say: Callable[[str], None] = lambda text: None,
        tick: float = TICK,
        keeping: Keeping | None = None,
    ) -> None:
        self._keeping = keeping
        self._tick = tick
        self._center = center
        self._steward = steward
        self._say = say
        self._held: dict[bytes, str] = {}  # a question that waits → the payload's name
        self._turn = threading.Lock()
        self._released: set[bytes] = set()
        self._folder = TemporaryDirectory(prefix="unpooled-")  # 0700, and a short path
        self.address = str(Path(self._folder.name) / "desk")
        self._listener = Listener(self.address, family="AF_UNIX", backlog=16)
        os.chmod(self.address, 0o600)
        self._open = True
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()
        self._closing = threading.Event()
        self._clerk = threading.Thread(target=self._record_refusals, daemon=True)
        if steward is not None:
            self._clerk.start()

    def close(self) -> None:
        """Take no more questions."""
        self._open = False
        self._closing.set()
        with suppress(OSError), Client(self.address, family="AF_UNIX"):  # wakes the server
            self._server.join(2)
        if self._clerk.is_alive():
            self._clerk.join(2)
        self._listener.close()
        self._folder.cleanup()

    def _serve(self) -> None:
        while True:
            connection = self._listener.accept()
            if not self._open:
                return
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: "Connection[bytes, bytes]") -> None:
        with connection:
            try:
                message, came = connection.recv_bytes(), time.monotonic()
                if message[:1] == _CARRY:
                    self._carry(connection, message[1:])
                    return
                reply = self._reply(message[:1], message[1:])
                if message[:1] != _CONFIRM:
                    time.sleep(until_tick(time.monotonic() - came, self._tick))
                connection.send_bytes(reply)
            except (EOFError, OSError):  # whoever asked is gone
                _log.info("a question was given up before its answer", exc_info=True)

    def _carry(self, connection: "Connection[bytes, bytes]", run: bytes) -> None:
        """Hand the engine what a keeper says to others, and the keeper what these say."""
        if self._keeping is None:
            return
        box = self._keeping.mailbox(run)

        def take() -> None:
            with suppress(EOFError, OSError):
                while True:
                    box.arriving.put(connection.recv_bytes())
            for place in range(KEEPERS):  # the engine's process let go
                box.lose(place)
            box.leaving.put(None)

        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        while (some := batch(box.leaving)) is not None:
            connection.send_bytes(some)
        with suppress(OSError):
            connection.send_bytes(b"")  # the end

    def _reply(self, kind: bytes, content: bytes) -> bytes:
        if kind == _CONFIRM:
            return _YES if content in self._released else _NO
        with self._turn:
            return self._answer(content)

    def _answer(self, content: bytes) -> bytes:
        if self._undecided(content):
            return _WAIT
        ticket = content[:32].decode() if _TICKET.fullmatch(content[:32]) else None
        asker, _, question = content[32:].partition(_END)
        name = asker.decode("utf-8", "replace")[:_MOST_ASKER] or None
        try:
            if self._keeping is not None and question.startswith((HOLD, KEEP)):
                payload = self._keeping.answer(question).payload
            else:
                payload = self._center.answer(question, ticket, name).payload
        except HeldError as held:
            self._hold(content, held.name)
            return _WAIT
        except Exception:  # such as a ledger that cannot be written: nothing leaves
            _log.exception("%s: nothing left the center", self._center.name)
            return _NO
        self._released.add(sha256(payload).digest())
        return _YES + payload

    def _hold(self, content: bytes, name: str) -> None:
        if name not in self._held.values():
            self._say(f"{name[:12]} waits for the steward: see `unpooled center desk`")
        if len(self._held) >= _MOST_HELD:
            self._held.clear()  # it only saves calculation
        self._held[content] = name

    def _undecided(self, content: bytes) -> bool:
        """Whether this question was held before and still is; saves its answer's calculation."""
        name = self._held.get(content)
        if name is None or self._steward is None:
            return False
        if self._steward.still_holds(name):
            return True
        del self._held[content]
        return False

    def _record_refusals(self) -> None:
        """Put into the ledger what the steward refused, whether or not anybody still waits."""
        assert self._steward is not None
        while not self._closing.wait(_PAUSE):
            try:
                for held in self._steward.refused():
                    with self._turn:
                        self._center.answer(held.question.encode(), held.ticket, held.asker)
                    # also where the answer is another one by now
                    self._steward.settle(held.question.encode(), held.answer.encode())
            except Exception:
                _log.exception("%s: a refusal could not be recorded", self._center.name)


def ask_center(
    question: bytes, ticket: object, given_up: Callable[[], bool], asker: str | None = None
) -> bytes | str | None:
    """Put a question to the center's own process; `asker` is the analyst's name.

    The bytes of a release; `HELD` while the steward decides; None when nothing may leave.
    """
    mark = ticket.encode() if isinstance(ticket, str) and len(ticket) == 32 else _NOBODY
    name = (asker or "").encode().replace(_END, b"")
    reply = _say(_ASK + mark + name + _END + question, given_up)
    if reply[:1] == _WAIT:
        return HELD
    return reply[1:] if reply[:1] == _YES else None


@contextmanager
def carrying(run: bytes) -> "Iterator[Connection[bytes, bytes] | None]":
    """The way of a keeper's messages from and to the center's own process."""
    address = os.environ.get(DESK)
    if address is None:
        yield None
        return
    with Client(address, family="AF_UNIX") as connection:
        connection.send_bytes(_CARRY + run)
        yield connection


def was_released(payload: bytes) -> bool:
    """Whether the center's gate has let these very bytes out."""
    return _say(_CONFIRM + sha256(payload).digest(), lambda: False) == _YES


def _say(message: bytes, given_up: Callable[[], bool]) -> bytes:
    address = os.environ.get(DESK)
    if address is None:
        return _NO
    try:
        with Client(address, family="AF_UNIX") as connection:
            connection.send_bytes(message)
            while not connection.poll(0.2):
                if given_up():
                    return _NO
            return connection.recv_bytes()
    except (EOFError, OSError):
        return _NO
