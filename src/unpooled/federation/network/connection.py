"""The analyst's end of the network: one job stays open, and every question goes through it."""

import base64
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nvflare.fuel.flare_api.flare_api import Session

from unpooled.center.questions import Keeper, Reason, Refusal
from unpooled.errors import LinkError
from unpooled.federation.joint.network import NetworkKeepers
from unpooled.federation.network.session import JOB, LOST, CoordinatorSession, write_job
from unpooled.federation.network.setup.kits import user_name
from unpooled.federation.progress import Progress, Show

# A center says a word every two seconds, but for up to ten none while it ends the job of a
# coordinator that is gone, or after one word was lost.
_SILENCE = 15.0  # seconds after which it is not connected
_CROSSING = 2.0  # seconds by which words of a center that go two ways may be apart
_LATECOMERS = 20.0  # seconds, at most, that a new job waits for the other centers after the first
_ATTEMPTS = 3  # to open a job


class FlareLink:
    """Centers behind a coordinator, over mutual TLS.

    Parameters
    ----------
    kit
        The analyst's kit.
    analyst
        Their name, as in the kit.
    centers
        The names of all centers of the federation, connected or not.
    timeout
        How many seconds a center may take for an answer.
    progress
        Called with which centers answered, and whose stewards are waited for.
    keepers
        Of joint centers, with their public keys as the kit has them.
    """

    def __init__(
        self,
        kit: Path,
        analyst: str,
        centers: Sequence[str],
        timeout: float = 60.0,
        progress: Show | None = None,
        keepers: Sequence[Keeper] = (),
    ) -> None:
        self.keepers = NetworkKeepers(self, keepers) if keepers else None
        self.timeout = timeout
        self._progress = progress
        self._centers = tuple(centers)
        self._job: str | None = None
        self._user = user_name(analyst)
        self._session = CoordinatorSession(kit, self._user, timeout)
        self._losses = 0  # of the session, when a job was opened last
        self._under_way = False  # a question that the coordinator has taken
        self._held: dict[tuple[bytes, tuple[str, ...]], tuple[str, float]] = {}

    @property
    def centers(self) -> tuple[str, ...]:
        """The names of all centers."""
        return self._centers

    def connected(self, since: Mapping[str, float] | None = None) -> set[str]:
        """The centers that the coordinator hears from, and heard from after these times there."""
        deadline = time.monotonic() + self.timeout
        info = self._session.act(lambda session: session.get_system_info(), deadline)
        heard = {client.name: float(client.last_connect_time) for client in info.client_info}
        earliest = max(heard.values(), default=0.0) - _SILENCE
        asked = dict.fromkeys(self._centers, 0.0) if since is None else since
        return {n for n, at in asked.items() if heard.get(n, 0.0) > max(at + _CROSSING, earliest)}

    def ask(
        self, question: bytes, centers: Sequence[str], *, stewards: bool = True
    ) -> Mapping[str, bytes | Refusal]:
        """Put one question to these centers at once; each one's release, or why there is none.

        Without `stewards`, a center whose steward has not decided is not waited for.
        """
        deadline = time.monotonic() + self.timeout
        self._under_way = False
        asked = question, tuple(centers)
        ticket, until = self._ticket(asked, deadline, stewards)
        answers, state = self._round(question, ticket, centers, deadline, stewards)
        if state["held"] and not stewards:
            self._held[asked] = ticket, until
        back = self.connected(state["absent"]) if state["absent"] else None
        if back:  # they came, or came back, after the job was opened: only a new job reaches them
            answers |= self._round_anew(question, ticket, sorted(back), deadline, stewards)
        for name in centers:
            answers.setdefault(name, Refusal(reason=Reason.NOT_CONNECTED))
        return {name: answers[name] for name in centers}

    def close(self) -> None:
        """Log out. The job stays open a while for whoever asks next."""
        self._session.close()

    def _ticket(
        self, asked: tuple[bytes, tuple[str, ...]], deadline: float, stewards: bool
    ) -> tuple[str, float]:
        """The ticket of a question, and until when it is good.

        Whatever is lost on the way, a center records a ticket once. So what waits for a steward
        keeps its ticket, however often it is asked for.
        """
        ticket, until = self._held.pop(asked, ("", 0.0))
        if not stewards and time.monotonic() < until:
            return ticket, until
        return uuid.uuid4().hex, deadline

    def _round(
        self,
        question: bytes,
        ticket: str,
        centers: Sequence[str],
        deadline: float,
        stewards: bool,
    ) -> tuple[dict[str, bytes | Refusal], dict[str, Any]]:
        """Ask in the open job and wait; what came back, and all that the coordinator sent."""
        data = {
            "ticket": ticket,
            "question": base64.b64encode(question).decode("ascii"),
            "centers": list(centers),
            "timeout": max(1.0, deadline - time.monotonic()),
        }
        progress = self._tell(Progress(tuple(centers)))
        state = self._command("ask", data, deadline)
        while not state["over"] and time.monotonic() < deadline:
            now = Progress(tuple(centers), tuple(state["answers"]), tuple(state["held"]))
            progress = progress if now == progress else self._tell(now)
            if not stewards and set(state["waiting"]) == set(state["held"]):
                break
            state = self._command("ask", data, deadline)
        self._tell(Progress(tuple(centers), tuple(state["answers"]), tuple(state["held"])))
        answers: dict[str, bytes | Refusal] = {}
        for name, payload in state["answers"].items():
            answers[name] = base64.b64decode(payload)
        for name in state["failed"]:
            answers[name] = Refusal(reason=Reason.FAILED)
        for name in state["waiting"]:
            answers[name] = self._no_answer()
        for name in state["held"]:
            answers[name] = self._no_answer(Reason.WAITING_FOR_STEWARD)
        return answers, state

    def _tell(self, progress: Progress) -> Progress:
        """Say how far the question is."""
        if self._progress is not None:
            self._progress(progress)
        return progress

    def _round_anew(
        self,
        question: bytes,
        ticket: str,
        centers: Sequence[str],
        deadline: float,
        stewards: bool,
    ) -> dict[str, bytes | Refusal]:
        """Ask in a new job the centers that the open one does not reach."""
        old = self._job
        try:
            self._job = self._open_job(deadline)
            self._end(old, deadline)
            return self._round(question, ticket, centers, deadline, stewards)[0]
        except LinkError:  # the others' answers are kept
            return {name: self._no_answer() for name in centers}

    def _no_answer(self, reason: Reason = Reason.NO_ANSWER) -> Refusal:
        return Refusal(reason=reason, limit=ceil(self.timeout))

    def _command(self, topic: str, data: dict[str, Any], deadline: float) -> dict[str, Any]:
        """Say something to the open job; open one where there is none any more."""
        while True:
            self._job = self._job or self._find(deadline) or self._open_job(deadline)
            reply = self._say(self._job, topic, data, deadline)
            if reply:
                self._under_way = True
                return reply
            self._job = None
            if time.monotonic() >= deadline:
                raise LinkError("the coordinator does not answer")
            time.sleep(0.2)

    def _find(self, deadline: float) -> str | None:
        """The open job of this analyst that reaches most centers, if there is any."""
        info = self._session.act(lambda session: session.get_system_info(), deadline)
        jobs = [j for j in (str(job.job_id) for job in info.job_info) if self._owns(j, deadline)]
        reached = {job: len(self._present(job, deadline)) for job in jobs}
        best = max(reached, key=lambda job: reached[job], default=None)
        return best if best is not None and reached[best] else None

    def _owns(self, job: str, deadline: float) -> bool:
        """Whether a job is this analyst's: nobody else's answers to them."""
        meta = self._session.act(lambda session: session.get_job_meta(job), deadline)
        return bool(meta.get("submitter_name") == self._user)

    def _open_job(self, deadline: float) -> str:
        """Open a job that reaches every center that is connected."""
        connected = self._gather(deadline)
        for attempt in range(1, _ATTEMPTS + 1):
            job = self._submit(connected, deadline)
            status = self._await(job, connected, deadline)
            if status == "RUNNING":
                return job
            if attempt == _ATTEMPTS or time.monotonic() >= deadline:
                raise LinkError(f"no question can be asked: the engine says {status}")
        raise AssertionError

    def _gather(self, deadline: float) -> set[str]:
        """The connected centers; after a loss of the coordinator they need time to come back."""
        end = time.monotonic() + (deadline - time.monotonic()) / 2
        lost = self._under_way or self._session.losses > self._losses
        wanted = len(self._centers) if lost else 1
        connected = self.connected()
        while len(connected) < wanted and time.monotonic() < end:
            time.sleep(0.5)
            connected = self.connected()
        self._losses = self._session.losses
        if not connected:
            raise LinkError("no center is connected. Hint: unpooled federation status")
        return connected

    def _submit(self, centers: set[str], deadline: float) -> str:
        with TemporaryDirectory(prefix="unpooled-") as folder:
            job = Path(folder) / JOB
            write_job(job, sorted(centers))
            return str(self._session.act(lambda session: session.submit_job(str(job)), deadline))

    def _await(self, job: str, centers: set[str], deadline: float) -> str:
        """Wait until a job listens at these centers, or has ended; what the engine says of it."""
        patience = min(_LATECOMERS, (deadline - time.monotonic()) / 2)
        since = 0.0  # when the first center was there
        while time.monotonic() < deadline:
            meta = self._session.act(lambda session: session.get_job_meta(job), deadline)
            status = str(meta.get("status"))
            if status.startswith("FINISHED"):
                return status
            present = self._present(job, deadline) if status == "RUNNING" else set()
            since = since if since or not present else time.monotonic()
            if present >= centers or (since and time.monotonic() - since > patience):
                return status
            time.sleep(0.2)
        raise LinkError(
            f"no center could be asked within {self.timeout:g} s. Hint: unpooled federation status"
        )

    def _end(self, job: str | None, deadline: float) -> None:
        """Let a job end as soon as nobody has a question in it."""
        if job is not None:
            self._say(job, "close", {}, deadline)

    def _present(self, job: str, deadline: float) -> set[str]:
        """The centers that have a part in a job."""
        return set(self._say(job, "centers", {}, deadline).get("centers", ()))

    def _say(self, job: str, topic: str, data: dict[str, Any], deadline: float) -> dict[str, Any]:
        """Say something to a job; nothing comes back where it is not there any more."""

        def say(session: Session) -> dict[str, Any]:
            reply: dict[str, Any] = {}
            with suppress(*LOST):
                reply = session.do_app_command(job, topic, data)
            return reply

        return self._session.act(say, deadline)
