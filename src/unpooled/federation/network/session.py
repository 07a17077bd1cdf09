"""The analyst's session with the coordinator: logged in again where it was lost."""

import atexit
import json
import logging
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TypeVar

from nvflare.fuel.flare_api import api_spec
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from unpooled.errors import LinkError
from unpooled.federation.network.setup.lockdown import CONTROLLER, EXECUTOR

JOB = "questions"


def write_job(folder: Path, centers: Iterable[str], executor: str = EXECUTOR) -> None:
    """Write the job as the engine wants it: settings only, no code."""
    app = folder / "app" / "config"
    app.mkdir(parents=True)
    meta = {
        "name": JOB,
        "resource_spec": {},
        "min_clients": 1,
        "deploy_map": {"app": ["server", *centers]},
    }
    server = {
        "format_version": 2,
        "server": {"task_request_interval": 0.1},
        "task_data_filters": [],
        "task_result_filters": [],
        "components": [],
        "workflows": [{"id": "questions", "path": CONTROLLER, "args": {}}],
    }
    client = {
        "format_version": 2,
        "default_task_fetch_interval": 0.1,
        "executors": [{"tasks": ["question"], "executor": {"path": executor, "args": {}}}],
        "task_data_filters": [],
        "task_result_filters": [],
        "components": [],
    }
    for path, content in (
        (folder / "meta.json", meta),
        (app / "config_fed_server.json", server),
        (app / "config_fed_client.json", client),
    ):
        path.write_text(json.dumps(content, indent=2))


T = TypeVar("T")

LOST = (  # the engine's words for: log in again, or open the job again
    api_spec.SessionClosed,
    api_spec.SessionExpired,
    api_spec.NoConnection,
    api_spec.NoReply,
    api_spec.AuthenticationError,
    api_spec.JobNotRunning,
    api_spec.JobNotFound,
    api_spec.InternalError,
    RuntimeError,
)

_LOGIN = 10.0  # seconds that a login may take


class UnreachableError(LinkError):
    """Nobody answers at the coordinator's address, now."""


class CoordinatorSession:
    """What an analyst says to the coordinator goes through here."""

    def __init__(self, kit: Path, user: str, seconds: float) -> None:
        self.losses = 0  # how often it was lost
        self._kit = kit
        self._user = user
        logging.getLogger("nvflare").setLevel(logging.CRITICAL)  # its words help no analyst
        self._holder = _Holder()
        self._finalizer = weakref.finalize(self, _close, self._holder)
        _at_end(_close, self._holder)
        self._log_in(max(4.0, seconds))

    def close(self) -> None:
        """Log out."""
        self._finalizer()

    def act(self, act: Callable[[Session], T], deadline: float) -> T:
        """Do something; where the coordinator is lost, log in again until the time is over."""
        while True:
            try:
                return act(self._logged_in(deadline))
            except (UnreachableError, *LOST) as error:
                self._lose(error, deadline)
            except LinkError:
                raise
            except Exception as error:
                raise LinkError(f"the coordinator refuses: {error}") from error

    def _lose(self, error: Exception, deadline: float) -> None:
        if time.monotonic() >= deadline:
            if isinstance(error, LinkError):
                raise error
            raise LinkError(f"the coordinator does not answer: {error}") from error
        self.losses += 1
        _close(self._holder)
        time.sleep(0.2)

    def _logged_in(self, deadline: float) -> Session:
        if self._holder.session is None:
            self._log_in(deadline - time.monotonic())
        return self._holder.session

    def _log_in(self, seconds: float) -> None:
        with _plainly(self._kit), redirect_stdout(StringIO()):  # the engine prints as it goes
            self._holder.session = new_secure_session(
                self._user,
                str(self._kit),
                timeout=min(_LOGIN, max(1.0, seconds)),
                auto_login_max_tries=1,
            )


class _Holder:
    """The session to end when nobody needs it any more."""

    session: Session | None = None


def _close(holder: _Holder) -> None:
    if holder.session is not None:
        with suppress(Exception):
            holder.session.close()
        holder.session = None


def _at_end(act: Callable[[_Holder], None], holder: _Holder) -> None:
    """Do something when the program ends, before Python waits for threads.

    The engine's threads end with its session, so that `atexit`, which comes after them, would wait
    for ever; this is the door that the standard library's own thread pools use.
    """
    register = getattr(threading, "_register_atexit", atexit.register)
    register(act, holder)


@contextmanager
def _plainly(kit: Path) -> Iterator[None]:
    """Say in plain words why nobody can log in."""
    settings = json.loads((kit / "startup" / "fed_admin.json").read_text())["admin"]
    place = f"{settings['host']}:{settings['port']}"
    try:
        socket.create_connection((settings["host"], settings["port"]), timeout=5).close()
        yield
    except (OSError, api_spec.NoConnection) as error:
        raise UnreachableError(
            f"the coordinator cannot be reached at {place}. "
            "Hint: is it started? Can this computer reach that address and port?"
        ) from error
    except api_spec.AuthenticationError as error:
        raise LinkError(f"the coordinator at {place} does not know this analyst's kit") from error
