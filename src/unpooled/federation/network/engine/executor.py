"""At a center: takes a question from the engine to the center, and its release back.

Keepers of joint centers say what they say to each other through here, too, where they have no
addresses: sealed by each to the other, so that nobody on the way can read, change or replace it.
"""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_def import JobMetaKey
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from unpooled.center.questions.joint import KeepQuestion
from unpooled.federation.joint.keepers.carried import framed, frames, lost
from unpooled.federation.joint.keepers.keeping import KEEP
from unpooled.federation.network.desk import HELD, ask_center, carrying
from unpooled.federation.network.setup.kits import analyst_name

TASK = "question"
QUESTION, TICKET, RELEASE = "question", "ticket", "release"
ALIVE = "unpooled.alive"  # asked of a center that works on a question
KEEPER = "unpooled.keeper"  # what a keeper says to another one
_RUN, _PLACE, _NUMBER, _WORDS = "run", "place", "number", "words"
_PATIENCE = 20.0  # seconds for a message, until whoever it is for is lost
_AGAIN = 0.1  # seconds until it is sent again
_ENDED = ReturnCode.TASK_ABORTED  # a keeper's computation is over
_AT_ONCE = 8  # messages to other keepers that are on their way


class Relay:
    """Carries the sealed messages of one computation between a keeper and the two others."""

    def __init__(self, engine: Any, asked: KeepQuestion, me: str, center: Any) -> None:
        self._engine, self._center, self._run = engine, center, asked.run
        self._names = [keeper.name for keeper in asked.question.keepers]
        self._place = self._names.index(me)
        self._sent = [0] * len(self._names)
        self._taken = [0] * len(self._names)
        self._early: dict[tuple[int, int], bytes] = {}
        self._lost: set[int] = set()
        self._turn = threading.Lock()
        self._ends = False
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Carry what is left, and then nothing more."""
        self._ends = True
        self._thread.join()
        self._pool.shutdown()

    def take(self, place: int, number: int, words: bytes) -> None:
        """A message of another keeper: once, and in the order in which it was sent."""
        with self._turn, suppress(OSError):
            if number >= self._taken[place]:
                self._early[place, number] = words
            while (next_one := self._early.pop((place, self._taken[place]), None)) is not None:
                self._taken[place] += 1
                self._center.send_bytes(next_one)

    def _send(self) -> None:
        """What the keeper says, until its center says that this is all."""
        with suppress(EOFError, OSError):
            while some := self._said():
                each: dict[int, list[bytes]] = {}
                for place, message in frames(some):
                    each.setdefault(place, []).append(framed(self._place, message))
                for place, messages in each.items():
                    number, self._sent[place] = self._sent[place], self._sent[place] + 1
                    self._pool.submit(self._bring, place, number, b"".join(messages))

    def _said(self) -> bytes:
        """What the keeper says next; nothing at the end."""
        while not self._center.poll(_AGAIN):
            if self._ends:
                return b""
        return bytes(self._center.recv_bytes())

    def _bring(self, place: int, number: int, words: bytes) -> None:
        """Bring a message; who cannot be reached in time is lost."""
        end = time.monotonic() + _PATIENCE
        name = self._names[place]
        while place not in self._lost and time.monotonic() < end:
            message = Shareable()
            message[_RUN], message[_PLACE] = self._run, self._place
            message[_NUMBER], message[_WORDS] = number, words
            with self._engine.new_context() as fl_ctx:
                replies = self._engine.send_aux_request(
                    [name], KEEPER, message, timeout=_PATIENCE, fl_ctx=fl_ctx, optional=True
                )
            reply = (replies or {}).get(name)
            code = reply.get_return_code() if isinstance(reply, Shareable) else None
            if code == ReturnCode.OK:
                return
            if code == _ENDED:
                break
            time.sleep(_AGAIN)
        with self._turn, suppress(OSError):
            if place not in self._lost:
                self._lost.add(place)
                self._center.send_bytes(lost(place))


class QuestionExecutor(Executor):
    """The only code of a job that runs at a center; it holds neither rows nor keys."""

    def __init__(self) -> None:
        super().__init__()
        self._relays: dict[bytes, Relay | None] = {}  # None: it is over

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Called by the engine on every event."""
        if event_type == EventType.START_RUN:
            engine = fl_ctx.get_engine()
            engine.register_aux_message_handler(topic=ALIVE, message_handle_func=_alive)
            engine.register_aux_message_handler(topic=KEEPER, message_handle_func=self._heard)

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Called by the engine with each question."""
        question = shareable.get(QUESTION)
        if task_name != TASK or not isinstance(question, bytes):
            return make_reply(ReturnCode.TASK_UNKNOWN)
        ask = shareable.get(TICKET), lambda: bool(abort_signal.triggered), _analyst(fl_ctx)
        if question.startswith(KEEP):
            answer = self._keep(question, ask, fl_ctx)
        else:
            answer = ask_center(question, *ask)
        if answer is None:
            return make_reply(ReturnCode.EXECUTION_RESULT_ERROR)
        reply = Shareable()
        reply[HELD if answer == HELD else RELEASE] = answer
        return reply

    def _keep(self, question: bytes, ask: tuple[Any, ...], fl_ctx: FLContext) -> bytes | str | None:
        """Ask a keeper, and carry what it says to the others meanwhile."""
        try:
            asked = msgspec.json.decode(question, type=KeepQuestion)
        except msgspec.MsgspecError:
            return ask_center(question, *ask)  # which says so
        me = fl_ctx.get_identity_name()
        names = [keeper.name for keeper in asked.question.keepers]
        if me not in names:
            return ask_center(question, *ask)
        with carrying(asked.run) as center:
            if center is None:
                return None
            relay = Relay(fl_ctx.get_engine(), asked, me, center)
            self._relays[asked.run] = relay
            try:
                return ask_center(question, *ask)
            finally:
                self._relays[asked.run] = None
                relay.close()

    def _heard(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        """A message from another keeper; who has not begun yet, or has ended, is asked again."""
        run = request.get(_RUN)
        relay = self._relays.get(run)
        if relay is None:
            return make_reply(_ENDED if run in self._relays else ReturnCode.SERVICE_UNAVAILABLE)
        relay.take(request[_PLACE], request[_NUMBER], request[_WORDS])
        return make_reply(ReturnCode.OK)


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
