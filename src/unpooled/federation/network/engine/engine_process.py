"""Runs the engine as a child of this process, in a session of its own.

The child ends with its parent, however that ends, and takes its own children along.
"""

import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from unpooled.errors import LinkError

READY = "UNPOOLED_READY"  # the environment variable with the descriptor to write to when ready
STARTED, REGISTERED = "_system_start", "_after_client_register"  # the engine's names of events

_PARTS = {
    "center": "nvflare.private.fed.app.client.client_train",
    "coordinator": "nvflare.private.fed.app.server.server_train",
}
_SETTINGS = {"center": "fed_client.json", "coordinator": "fed_server.json"}


class EngineProcess:
    """The engine of a kit: started, awaited, stopped as a whole."""

    def __init__(
        self, kit: Path, role: str, options: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.log = kit / "engine.log"
        self._ready, writer = os.pipe()
        os.set_blocking(self._ready, False)
        command = [sys.executable, "-m", __name__, str(os.getpid()), _PARTS[role]]
        command += ["-m", str(kit), "-s", _SETTINGS[role], "--set", *options]
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment, READY: str(writer)},
                pass_fds=(writer,),
                start_new_session=True,
            )
        os.close(writer)

    @property
    def running(self) -> bool:
        """Whether the engine is still there."""
        return self._child.poll() is None

    def wait_ready(self, event: str, seconds: float) -> bool:
        """Wait until the engine says that it is ready; False when the time is over first."""
        end = time.monotonic() + seconds
        heard = b""
        while event.encode() not in heard:
            left = end - time.monotonic()
            if left <= 0:
                return False
            if not self.running:
                raise LinkError(f"the network engine ended by itself; see {self.log}")
            readable, _, _ = select.select([self._ready], [], [], min(left, 0.2))
            if readable:
                heard += os.read(self._ready, 4096)
        return True

    def wait(self) -> None:
        """Wait until the engine ends."""
        self._child.wait()

    def stop(self) -> None:
        """End the engine and all that it started."""
        if self.running:  # else its number may be another process's by now
            _kill(self._child.pid)
            self._child.wait()
        with suppress(OSError):
            os.close(self._ready)


def _kill(pid: int) -> None:
    """End a session's leader first, then its group and whatever it started.

    Jobs of the engine have sessions of their own. Asked to end in good order, the engine would say
    that its job failed, and the coordinator would end the job of all other centers too.
    """
    import psutil  # comes with the engine

    try:
        leader = psutil.Process(pid)
        started = leader.children(recursive=True)
    except psutil.Error:
        return
    for process in (leader, *started):
        with suppress(psutil.Error):  # it is gone; a new process with its number is left alone
            process.kill()


def _end_with(parent: int) -> None:
    """End this process and all that it started when the parent is gone."""
    import psutil

    while os.getppid() == parent:
        time.sleep(0.5)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run a part of the engine: PARENT MODULE and the module's own arguments."""
    parent, module = int(sys.argv[1]), sys.argv[2]
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    sys.argv = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__")


if __name__ == "__main__":
    main()
