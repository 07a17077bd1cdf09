"""MPyC's runtime, for one keeper or for three, over channels of our own.

MPyC reads the command line, opens ports and unpickles what other parties send. Here it does none of
these: it is imported with an empty command line, numbers cross as numbers, and whatever can carry
labelled bytes can be the channel between two keepers.
"""

import asyncio
import sys
import threading
import warnings
from argparse import Namespace
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast

from unpooled.errors import InputError
from unpooled.maths.joint.shares import PRIME

T = TypeVar("T")

SECURITY = 30  # a mask hides a number up to a chance of 2 to the power of −30
_KEY = 16  # bytes of a key that two keepers share
_KEYS = -1  # the label of the message that brings it


class Channel(Protocol):
    """What joins a keeper to another one: bytes with a label, in any order."""

    nbytes_sent: int

    def send(self, label: int, payload: bytes) -> None:
        """Send bytes."""
        ...

    def receive(self, label: int) -> "bytes | asyncio.Future[bytes]":
        """The bytes with this label, or a future of them."""
        ...


class Alone:
    """One party in this process: every share is the number itself.

    MPyC has one runtime a process, so one is used at a time.
    """

    _turn = threading.Lock()

    def __enter__(self) -> "Alone":
        self._turn.acquire()
        self._loop = asyncio.new_event_loop()
        self.runtime = _runtime(0, 1, self._loop)
        return self

    def run(self, program: Coroutine[Any, Any, T]) -> T:
        """Run a program to its end; a thread of its own, since this one may have a loop."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._loop.run_until_complete, program).result()

    def __exit__(self, *_: object) -> None:
        self._loop.close()
        self._turn.release()


async def join(keeper: int, channels: Mapping[int, Channel]) -> Any:
    """The runtime of this keeper, 0 to 2, with channels to the others."""
    parties = len(channels) + 1
    runtime = _runtime(keeper, parties, asyncio.get_running_loop())
    for other, channel in channels.items():
        runtime.parties[other].protocol = channel
    await _agree_on_keys(runtime, channels)
    return runtime


def _runtime(keeper: int, parties: int, loop: asyncio.AbstractEventLoop) -> Any:
    """A new runtime, put in the places where MPyC looks for it."""
    engine = _engine()
    options = Namespace(
        threshold=(parties - 1) // 2,
        no_log=True,
        no_async=parties == 1,
        no_barrier=False,
        no_prss=False,
        mix32_64bit=True,  # numbers cross as numbers, nothing is unpickled
        sec_param=SECURITY,
        bit_length=32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where a thread has no loop yet
        runtime = engine.Runtime(keeper, [engine.Party(i) for i in range(parties)], options)
    runtime._loop = loop
    loop.set_exception_handler(engine.asyncoro.exception_handler)
    for name, module in sys.modules.items():
        if name.startswith("mpyc.") and hasattr(module, "runtime") and module is not engine:
            cast("Any", module).runtime = runtime
    engine.asyncoro._hop = _hop
    return runtime


def _engine() -> ModuleType:
    """MPyC, imported without a look at the command line."""
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mpyc.runtime as engine
    except ImportError as error:
        raise InputError(
            "a joint center needs the package mpyc. Hint: pip install 'unpooled[joint]'"
        ) from error
    finally:
        sys.argv = arguments
    return cast("ModuleType", engine)


def _hop(counter: Any) -> int:
    """The label of a step, the same on all machines."""
    from hashlib import sha256

    return int.from_bytes(sha256(str(counter).encode()).digest()[:8], "little", signed=True)


async def _agree_on_keys(runtime: Any, channels: Mapping[int, Channel]) -> None:
    """Each two keepers share a key for common random numbers; the first of them draws it."""
    for pair in combinations(range(len(runtime.parties)), 2):
        if runtime.pid == pair[0]:
            channels[pair[1]].send(_KEYS, runtime._prss_keys[pair])
        elif runtime.pid == pair[1]:
            key = channels[pair[0]].receive(_KEYS)
            runtime._prss_keys[pair] = key if isinstance(key, bytes) else await key
    runtime.prfs.cache_clear()


def integers(runtime: Any, bits: int) -> Any:
    """The secure whole numbers between −2^(bits − 1) and 2^(bits − 1)."""
    return runtime.SecInt(bits, PRIME)
