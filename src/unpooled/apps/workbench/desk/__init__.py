"""The steward's desk: what waits, what would leave, the decision, and the record."""

from collections.abc import Callable
from pathlib import Path

from unpooled.apps.workbench.desk.folder import CenterFolder
from unpooled.apps.workbench.desk.pages import Desk
from unpooled.apps.workbench.foundation.server import Address, Server, application, serve
from unpooled.apps.workbench.foundation.sessions import Sessions


def desk_server(folder: Path, config: Path | None, address: Address) -> Server:
    """The desk of the center in a folder, not started yet; it has sessions of its own."""
    desk, sessions = Desk(CenterFolder.open(folder, config)), Sessions(dict(address.passwords))
    return Server(
        lambda port: application(
            "desk", desk.routes, sessions, address.hosts(port), address.secure, port
        ),
        address,
        sessions,
    )


def open_desk(
    folder: Path, config: Path | None, address: Address, browser: bool, show: Callable[[str], None]
) -> None:
    """Serve the desk until Ctrl-C."""
    serve(desk_server(folder, config, address), "steward", browser, show, input)
