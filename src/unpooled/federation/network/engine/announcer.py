"""Tells the process that started the engine that the engine is ready."""

import os
from contextlib import suppress

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from unpooled.federation.network.engine.engine_process import READY


class Announcer(FLComponent):
    """Writes a line when the coordinator has started, and when a center is registered."""

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Called by the engine on every event."""
        if event_type in (EventType.SYSTEM_START, EventType.AFTER_CLIENT_REGISTER):
            descriptor = os.environ.get(READY)
            if descriptor is not None:
                with suppress(OSError):  # nobody waits any more
                    os.write(int(descriptor), f"{event_type}\n".encode())
