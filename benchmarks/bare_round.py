"""A bare round of the engine: a controller that sends bytes, executors that send bytes back."""

import threading
from typing import Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

SENT = "bytes"


class EchoExecutor(Executor):
    """Sends back what came."""

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Called by the engine with each task."""
        reply = Shareable()
        reply[SENT] = shareable[SENT]
        return reply


class BareController(Controller):
    """Sends bytes to every center and waits for all, when it is told to."""

    def __init__(self, centers: int = 1, size: int = 100) -> None:
        super().__init__(task_check_period=0.05)
        self._centers = centers
        self._size = size
        self._heard: set[str] = set()
        self._end = threading.Event()

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Called by the engine when the job begins."""
        engine = fl_ctx.get_engine()
        engine.register_app_command("round", self._round)
        engine.register_app_command("there", self._there)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Called by the engine when the job ends."""
        self._end.set()

    def process_result_of_unknown_task(self, *_: Any, **__: Any) -> None:
        """Called by the engine with an answer that came too late."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Called by the engine; the job lasts as long as this does."""
        while not abort_signal.triggered and not self._end.wait(0.2):
            pass

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Called by the engine on every event."""
        if event_type == EventType.BEFORE_PROCESS_TASK_REQUEST:
            peer = fl_ctx.get_peer_context()
            if peer is not None:
                self._heard.add(peer.get_identity_name())

    def _there(self, topic: str, data: Any, fl_ctx: FLContext) -> dict[str, Any]:
        return {"there": len(self._heard) >= self._centers}

    def _round(self, topic: str, data: Any, fl_ctx: FLContext) -> dict[str, Any]:
        came: list[bytes] = []

        def take(client_task: ClientTask, fl_ctx: FLContext) -> None:
            came.append(client_task.result[SENT])

        sent = Shareable()
        sent[SENT] = bytes(self._size)
        task = Task("round", sent, result_received_cb=take)
        self.broadcast_and_wait(task, fl_ctx, min_responses=self._centers)
        return {"bytes": sum(map(len, came))}
