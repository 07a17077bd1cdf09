"""The desk: where the engine's process hands a question to the center's own process.

The rows, the key and the ledger stay in the process that `unpooled center start` runs. The engine's
processes know a socket that only their own user can open; over it a question goes in and the bytes
of a release come out. The desk also confirms to the result filter what the gate has let out.
"""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from tempfile import TemporaryDirectory

from unpooled.center import Center

DESK = "UNPOOLED_DESK"  # the environment variable with the socket's address

_ASK, _CONFIRM = b"?", b"="
_YES, _NO = b"+", b"-"
_log = logging.getLogger(__name__)


class Desk:
    """Serves a center to the engine's processes, one question after the other."""

    def __init__(self, center: Center) -> None:
        self._center = center
        self._turn = threading.Lock()
        self._released: set[bytes] = set()
        self._folder = TemporaryDirectory(prefix="unpooled-")  # 0700, and a short path
        self.address = str(Path(self._folder.name) / "desk")
        self._listener = Listener(self.address, family="AF_UNIX", backlog=16)
        os.chmod(self.address, 0o600)
        self._open = True
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()

    def close(self) -> None:
        """Take no more questions."""
        self._open = False
        with suppress(OSError), Client(self.address, family="AF_UNIX"):  # wakes the server
            self._server.join(2)
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
                said = connection.recv_bytes()
                connection.send_bytes(self._reply(said[:1], said[1:]))
            except (EOFError, OSError):  # whoever asked is gone
                _log.info("a question was given up before its answer", exc_info=True)

    def _reply(self, kind: bytes, content: bytes) -> bytes:
        if kind == _CONFIRM:
            return _YES if content in self._released else _NO
        try:
            with self._turn:
                payload = self._center.answer(content).payload
        except Exception:  # such as a ledger that cannot be written: nothing leaves
            _log.exception("%s: nothing left the center", self._center.name)
            return _NO
        self._released.add(sha256(payload).digest())
        return _YES + payload


def ask_center(question: bytes, given_up: Callable[[], bool]) -> bytes | None:
    """Put a question to the center's own process; None when nothing may leave."""
    return _say(_ASK + question, given_up)


def was_released(payload: bytes) -> bool:
    """Whether the center's gate has let these very bytes out."""
    return _say(_CONFIRM + sha256(payload).digest(), lambda: False) is not None


def _say(message: bytes, given_up: Callable[[], bool]) -> bytes | None:
    address = os.environ.get(DESK)
    if address is None:
        return None
    try:
        with Client(address, family="AF_UNIX") as connection:
            connection.send_bytes(message)
            while not connection.poll(0.2):
                if given_up():
                    return None
            reply = connection.recv_bytes()
    except (EOFError, OSError):
        return None
    return reply[1:] if reply[:1] == _YES else None
