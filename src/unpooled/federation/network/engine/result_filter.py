"""At a center: the engine's last step before anything is sent. Only releases pass."""

from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply

from unpooled.federation.network.desk import HELD, was_released
from unpooled.federation.network.engine.executor import RELEASE


class OnlyReleases(Filter):
    """Builds every result again, from bytes that the center's gate has let out and nothing else.

    The one word besides is that the steward has not decided yet; it is said of every question.
    """

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Called by the engine with each result, whatever made it."""
        clean = Shareable()
        if shareable.get(HELD) == HELD:
            clean[HELD] = HELD
            return clean
        payload = shareable.get(RELEASE)
        if not isinstance(payload, bytes) or not was_released(payload):
            return make_reply(ReturnCode.EXECUTION_RESULT_ERROR)
        clean[RELEASE] = payload
        return clean
