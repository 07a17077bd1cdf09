"""At a center: takes a question from the engine to the center, and its release back."""

import json
from contextlib import suppress
from pathlib import Path

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_def import JobMetaKey
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from unpooled.federation.network.desk import HELD, ask_center
from unpooled.federation.network.setup.kits import analyst_name

TASK = "question"
QUESTION, TICKET, RELEASE = "question", "ticket", "release"
ALIVE = "unpooled.alive"  # asked of a center that works on a question


class QuestionExecutor(Executor):
    """The only code of a job that runs at a center; it holds neither rows nor keys."""

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Called by the engine on every event."""
        if event_type == EventType.START_RUN:
            engine = fl_ctx.get_engine()
            engine.register_aux_message_handler(topic=ALIVE, message_handle_func=_alive)

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Called by the engine with each question."""
        question = shareable.get(QUESTION)
        if task_name != TASK or not isinstance(question, bytes):
            return make_reply(ReturnCode.TASK_UNKNOWN)
        answer = ask_center(
            question,
            shareable.get(TICKET),
            lambda: bool(abort_signal.triggered),
            _analyst(fl_ctx),
        )
        if answer is None:
            return make_reply(ReturnCode.EXECUTION_RESULT_ERROR)
        reply = Shareable()
        reply[HELD if answer == HELD else RELEASE] = answer
        return reply


def _analyst(fl_ctx: FLContext) -> str | None:
    """Whose job it is: the coordinator saw their certificate, and lets nobody else ask in it."""
    path = fl_ctx.get_engine().get_workspace().get_job_meta_path(fl_ctx.get_job_id())
    with suppress(OSError, ValueError):
        name = json.loads(Path(path).read_bytes()).get(JobMetaKey.SUBMITTER_NAME.value)
        return analyst_name(name) if isinstance(name, str) else None
    return None


def _alive(topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
    """Say that this process is there, and nothing else."""
    return make_reply(ReturnCode.OK)
