"""At the coordinator: keeps a job open, sends questions to centers and gathers their releases.

An analyst says `ask` with a ticket of their own choice, and says it again until all centers have
answered or the time is over: a question is put to the centers once, however often it is repeated.
Only a center whose steward has not decided yet is asked again, with the same ticket.
"""

import base64
import math
import threading
import time
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from unpooled.federation.network.desk import HELD
from unpooled.federation.network.engine.executor import ALIVE, QUESTION, RELEASE, TASK, TICKET

_PATIENCE = 2.0  # seconds that one `ask` waits for answers before it says who is missing
_KEPT = 64  # rounds that can still be asked for
_HOLD = 1.0  # seconds until a center that waits for its steward is asked again
_FORGOTTEN = 10.0  # seconds after which an analyst who does not ask again is gone
_SILENCE = 6.0  # seconds without a word, after which a center is no part of the job


@dataclass(slots=True)
class _Round:
    """One question and what came back so far."""

    ticket: str
    question: bytes
    centers: list[str]
    deadline: float
    absent: dict[str, float]  # center → when it last said a word, if ever
    answers: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    held: dict[str, float] = field(default_factory=dict)  # center → when to ask it again
    news: bool = False  # a center waits for its steward, and the analyst has no notice yet
    wanted: float = field(default_factory=time.time)  # when the analyst last asked for it
    changed: threading.Condition = field(default_factory=threading.Condition)

    def waiting(self) -> list[str]:
        """The centers that may still answer."""
        gone = {*self.answers, *self.failed, *self.absent}
        return [name for name in self.centers if name not in gone]

    def due(self) -> list[str]:
        """The centers to ask again, whose stewards may have decided."""
        now = time.time()
        if now - self.wanted > _FORGOTTEN:
            return []
        return [name for name in self.waiting() if self.held.get(name, math.inf) <= now]

    def over(self) -> bool:
        """Whether nobody is waited for any more."""
        return not self.waiting() or time.time() >= self.deadline

    def state(self) -> dict[str, Any]:
        """What the analyst gets to know."""
        with self.changed:
            return {
                "answers": dict(self.answers),
                "failed": list(self.failed),
                "absent": dict(self.absent),
                "waiting": self.waiting(),
                "held": [name for name in self.waiting() if name in self.held],
                "over": self.over(),
            }


class QuestionController(Controller):
    """The job at the coordinator; it ends when nobody has asked for `idle` seconds."""

    def __init__(self, idle: float = 900.0) -> None:
        super().__init__(task_check_period=0.05)
        self._idle = idle
        self._rounds: dict[str, _Round] = {}
        self._turn = threading.Lock()
        self._last = time.time()
        self._heard: dict[str, float] = {}  # when a center last asked for work
        self._busy: set[str] = set()  # centers that have a question and did not answer yet
        self._closing = False

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Called by the engine when the job begins."""
        engine = fl_ctx.get_engine()
        engine.register_app_command("ask", self._ask)
        engine.register_app_command("centers", self._centers)
        engine.register_app_command("close", self._close)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Called by the engine when the job ends."""
        self.cancel_all_tasks()

    def process_result_of_unknown_task(
        self,
        client: Client,
        task_name: str,
        client_task_id: str,
        result: Shareable,
        fl_ctx: FLContext,
    ) -> None:
        """Called by the engine with an answer that came too late; it is not kept."""
        self.log_info(fl_ctx, f"an answer of {client.name} came too late")

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Called by the engine; the job lasts as long as this does."""
        while not abort_signal.triggered and time.time() - self._last < self._idle:
            if self._closing and all(round_.over() for round_ in list(self._rounds.values())):
                return
            if self._busy:
                self._call(sorted(self._busy), fl_ctx)
            for round_ in list(self._rounds.values()):
                self._ask_again(round_, fl_ctx)
            time.sleep(0.5)

    def _call(self, busy: list[str], fl_ctx: FLContext) -> None:
        """Ask centers that work on a question whether they are still there."""
        replies = self._engine.send_aux_request(
            busy, ALIVE, Shareable(), timeout=1.0, fl_ctx=fl_ctx, optional=True
        )
        for name, reply in (replies or {}).items():
            if isinstance(reply, Shareable) and reply.get_return_code() == ReturnCode.OK:
                self._heard[name] = time.time()

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Called by the engine on every event; a center that asks for work is there and idle."""
        if event_type == EventType.BEFORE_PROCESS_TASK_REQUEST:
            peer = fl_ctx.get_peer_context()
            if peer is not None:
                self._heard[peer.get_identity_name()] = time.time()
                self._busy.discard(peer.get_identity_name())

    def _centers(self, topic: str, data: dict[str, Any], fl_ctx: FLContext) -> dict[str, Any]:
        self._last = time.time()
        return {"centers": sorted(self._present())}

    def _close(self, topic: str, data: dict[str, Any], fl_ctx: FLContext) -> dict[str, Any]:
        self._closing = True  # as soon as no question is open
        return {"closing": True}

    def _ask(self, topic: str, data: dict[str, Any], fl_ctx: FLContext) -> dict[str, Any]:
        self._last = time.time()
        with self._turn:
            round_ = self._rounds.get(data["ticket"]) or self._begin(data, fl_ctx)
        with round_.changed:
            round_.wanted = time.time()
            patience = min(_PATIENCE, round_.deadline - time.time())
            round_.changed.wait_for(lambda: round_.news or round_.over(), patience)
            round_.news = False
            round_.absent |= self._absent(round_.waiting())
        self._last = time.time()
        return round_.state()

    def _begin(self, data: dict[str, Any], fl_ctx: FLContext) -> _Round:
        asked = [str(name) for name in data["centers"]]
        seconds = float(data["timeout"])
        question = base64.b64decode(data["question"])
        deadline = time.time() + seconds
        round_ = _Round(str(data["ticket"]), question, asked, deadline, self._absent(asked))
        self._rounds[data["ticket"]] = round_
        for old in list(self._rounds)[:-_KEPT]:
            del self._rounds[old]
        self._send(round_, round_.waiting(), fl_ctx)
        return round_

    def _ask_again(self, round_: _Round, fl_ctx: FLContext) -> None:
        """Ask the centers whose stewards may have decided."""
        with round_.changed:
            due = [] if round_.over() else round_.due()
            round_.held.update(dict.fromkeys(due, math.inf))
        self._send(round_, due, fl_ctx)

    def _send(self, round_: _Round, targets: list[str], fl_ctx: FLContext) -> None:
        if not targets:
            return
        question = Shareable()
        question[QUESTION], question[TICKET] = round_.question, round_.ticket
        task = Task(TASK, question, timeout=ceil(max(0.0, round_.deadline - time.time())) + 1)
        task.after_task_sent_cb = lambda client_task, fl_ctx: self._busy.add(
            client_task.client.name
        )
        task.result_received_cb = lambda client_task, fl_ctx: _take(round_, client_task)
        self.broadcast(task, fl_ctx, targets=targets, min_responses=len(targets))

    def _absent(self, centers: list[str]) -> dict[str, float]:
        """Those of these centers that have no part in this job now, and their last words' times."""
        present = self._present()
        return {name: self._heard.get(name, 0.0) for name in centers if name not in present}

    def _present(self) -> set[str]:
        """The centers that have a part in this job now."""
        now = time.time()
        return {name for name, heard in list(self._heard.items()) if now - heard < _SILENCE}


def _take(round_: _Round, client_task: ClientTask) -> None:
    """Keep an answer; anything but a release is a failure of that center."""
    name, result = client_task.client.name, client_task.result
    well = result.get_return_code() == ReturnCode.OK
    payload = result.get(RELEASE) if well else None
    with round_.changed:
        if well and result.get(HELD) == HELD:
            round_.news |= name not in round_.held
            round_.held[name] = time.time() + _HOLD
        elif isinstance(payload, bytes):
            round_.answers[name] = base64.b64encode(payload).decode("ascii")
        else:
            round_.failed.append(name)
        round_.changed.notify_all()
    client_task.result = Shareable()  # the engine need not keep it
