"""The analyst's end of the network: one job stays open, and every question goes through it."""

import atexit
import base64
import json
import logging
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from nvflare.fuel.flare_api import api_spec
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from unpooled.errors import LinkError
from unpooled.links.flare.job import JOB, write_job
from unpooled.links.flare.provision import user_name
from unpooled.messages import Reason, Refusal

T = TypeVar("T")

_SILENCE = 5.0  # seconds after which a center is not connected; it says a word every two
_LOGIN = 10.0  # seconds that a login may take
_LATECOMERS = 20.0  # seconds, at most, that a new job waits for the other centers after the first
_LOST = (  # the engine's words for: log in again, or open the job again
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


class FlareLink:
    """Centers behind a coordinator, over mutual TLS.

    Parameters
    ----------
    kit
        The analyst's kit.
    analyst
        His name, as in the kit.
    centers
        The names of all centers of the federation, connected or not.
    timeout
        How many seconds a center may take for an answer.
    """

    def __init__(
        self, kit: Path, analyst: str, centers: Sequence[str], timeout: float = 60.0
    ) -> None:
        self.timeout = timeout
        self._kit = kit
        self._user = user_name(analyst)
        self._centers = tuple(centers)
        self._session: Session | None = None
        self._job: str | None = None
        logging.getLogger("nvflare").setLevel(logging.CRITICAL)  # its words help no analyst
        self._holder = _Holder()
        self._finalizer = weakref.finalize(self, _close, self._holder)
        _at_end(_close, self._holder)
        self._log_in(min(_LOGIN, max(4.0, timeout)))

    @property
    def centers(self) -> tuple[str, ...]:
        """The names of all centers."""
        return self._centers

    def connected(self, now: float | None = None) -> set[str]:
        """The centers that the coordinator hears from; `now` is the time there, if known."""
        info = self._patiently(lambda session: session.get_system_info())
        heard = {client.name: float(client.last_connect_time) for client in info.client_info}
        latest = max(heard.values(), default=0.0) if now is None else now
        return {name for name in self._centers if latest - heard.get(name, 0.0) < _SILENCE}

    def ask(self, question: bytes, centers: Sequence[str]) -> Mapping[str, bytes | Refusal]:
        """Put one question to these centers at once; each one's release, or why there is none."""
        deadline = time.monotonic() + self.timeout
        answers, told = self._round(question, centers, deadline)
        back = self.connected(told["now"]).intersection(told["absent"]) if told["absent"] else None
        if back:  # it came, or came back, after the job was opened: only a new job reaches it
            answers |= self._round_anew(question, sorted(back), deadline)
        for name in centers:
            answers.setdefault(name, Refusal(reason=Reason.NOT_CONNECTED))
        return {name: answers[name] for name in centers}

    def close(self) -> None:
        """Log out. The job stays open a while for whoever asks next."""
        self._finalizer()
        self._session = None

    def _round(
        self, question: bytes, centers: Sequence[str], deadline: float
    ) -> tuple[dict[str, bytes | Refusal], dict[str, Any]]:
        """Ask in the open job and wait; what came back, and all that the coordinator told."""
        data = {
            "ticket": uuid.uuid4().hex,
            "question": base64.b64encode(question).decode("ascii"),
            "centers": list(centers),
            "timeout": max(1.0, deadline - time.monotonic()),
        }
        told = self._command("ask", data, deadline)
        while not told["over"] and time.monotonic() < deadline:
            told = self._command("ask", data, deadline)
        answers: dict[str, bytes | Refusal] = {}
        for name, payload in told["answers"].items():
            answers[name] = base64.b64decode(payload)
        for name in told["failed"]:
            answers[name] = Refusal(reason=Reason.FAILED)
        for name in told["waiting"]:
            answers[name] = self._no_answer()
        return answers, told

    def _round_anew(
        self, question: bytes, centers: Sequence[str], deadline: float
    ) -> dict[str, bytes | Refusal]:
        """Ask in a new job the centers that the open one does not reach."""
        old = self._job
        try:
            self._job = self._submit(deadline)
            self._end(old)
            return self._round(question, centers, deadline)[0]
        except LinkError:  # the others' answers are kept
            return {name: self._no_answer() for name in centers}

    def _no_answer(self) -> Refusal:
        return Refusal(reason=Reason.NO_ANSWER, limit=ceil(self.timeout))

    def _command(self, topic: str, data: dict[str, Any], deadline: float) -> dict[str, Any]:
        """Say something to the open job; open one where there is none any more."""

        def say(session: Session) -> dict[str, Any]:
            if self._job is None:
                self._job = self._find() or self._submit(deadline)
            try:
                told: dict[str, Any] = session.do_app_command(self._job, topic, data)
            except _LOST:
                self._job = None
                raise
            return told

        return self._patiently(say, deadline)

    def _patiently(self, act: Callable[[Session], T], deadline: float | None = None) -> T:
        """Do something over the session; log in again where it was lost."""
        end = time.monotonic() + self.timeout if deadline is None else deadline
        while True:
            try:
                return act(self._logged_in())
            except LinkError:
                raise
            except _LOST as error:
                self._renew(error, end)
            except Exception as error:
                raise LinkError(f"the coordinator refuses: {error}") from error

    def _renew(self, error: Exception, deadline: float) -> None:
        """Log in anew after a loss, unless the time is over."""
        if time.monotonic() >= deadline:
            raise LinkError(f"the coordinator does not answer: {error}") from error
        with suppress(LinkError):
            self._log_in(min(_LOGIN, max(1.0, deadline - time.monotonic())))
        time.sleep(0.2)

    def _logged_in(self) -> Session:
        if self._session is None:
            self._log_in(min(_LOGIN, self.timeout))
        return self._session

    def _log_in(self, seconds: float) -> None:
        _close(self._holder)
        self._session = None
        with _plainly(self._kit), redirect_stdout(StringIO()):  # the engine prints as it goes
            self._session = new_secure_session(
                self._user, str(self._kit), timeout=seconds, auto_login_max_tries=1
            )
        self._holder.session = self._session

    def _find(self) -> str | None:
        """The open job that reaches most centers, if there is any."""
        info = self._patiently(lambda session: session.get_system_info())
        reached = {str(job.job_id): len(self._present(job.job_id)) for job in info.job_info}
        best = max(reached, key=lambda job: reached[job], default=None)
        return best if best is not None and reached[best] else None

    def _submit(self, deadline: float) -> str:
        """Open a job and wait until it listens, with every center that is connected."""
        connected = self.connected()
        if not connected:
            raise LinkError("no center is connected. Hint: unpooled federation status")
        with TemporaryDirectory(prefix="unpooled-") as folder:
            write_job(Path(folder) / JOB, sorted(connected))
            job = self._patiently(lambda session: session.submit_job(str(Path(folder) / JOB)))
        patience = min(_LATECOMERS, (deadline - time.monotonic()) / 2)
        since = 0.0  # when the first center was there
        while time.monotonic() < deadline:
            meta = self._patiently(lambda session: session.get_job_meta(job))
            status = str(meta.get("status"))
            if status.startswith("FINISHED"):
                raise LinkError(f"no question can be asked: the engine says {status}")
            present = self._present(job) if status == "RUNNING" else set()
            since = since if since or not present else time.monotonic()
            if present >= connected or (since and time.monotonic() - since > patience):
                return str(job)
            time.sleep(0.2)
        raise LinkError(
            f"no center could be asked within {self.timeout:g} s. Hint: unpooled federation status"
        )

    def _end(self, job: str | None) -> None:
        """Let a job end as soon as nobody has a question in it."""
        if job is not None:
            with suppress(*_LOST):
                self._logged_in().do_app_command(job, "close", {})

    def _present(self, job: str) -> set[str]:
        """The centers that have a part in a job."""
        try:
            told = self._logged_in().do_app_command(job, "centers", {})
        except _LOST:
            return set()
        return set(told.get("centers", ()))


class _Holder:
    """The session to end when the link is gone."""

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
        raise LinkError(
            f"the coordinator cannot be reached at {place}. "
            "Hint: is it started? Can this computer reach that address and port?"
        ) from error
    except api_spec.AuthenticationError as error:
        raise LinkError(f"the coordinator at {place} does not know this analyst's kit") from error
