"""Opens what the workbench is about, and serves its pages."""

from collections.abc import Callable, Mapping
from getpass import getuser
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from unpooled.analyses.protocols.book import Book
from unpooled.apps.workbench.foundation.server import (
    Address,
    Server,
    application,
    read_passwords,
)
from unpooled.apps.workbench.foundation.sessions import Sessions
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.work import Source
from unpooled.results.report.text import count

if TYPE_CHECKING:
    from unpooled.federation import Federation

_OF_FILES = ("k", "person", "per_person", "ledger", "seed", "codebook")


def source_of(federation: "Federation", typed: Mapping[str, Any]) -> Source:
    """What a federation is, for its pages, from what was typed to open it."""
    every = count(len(federation.centers), "center")
    if typed["federation"] is not None:
        return Source(
            f"{every}, {typed['federation']}",
            Opening.of_federation(str(typed["federation"])),
            federation,
        )
    options = {name: _plain(typed[name]) for name in _OF_FILES}
    files, column = typed["centers"], typed["center_column"]
    named = dict(zip(federation.centers, (f.rpartition("=")[2] for f in files), strict=False))
    return Source(
        f"{every} in this program",
        Opening.of_files(files, named, options, column),
        federation,
    )


def source_of_book(path: Path) -> Source:
    """A book, of which no center is asked."""
    book = Book.open(path)
    return Source(book.protocol.title, Opening.of_book(str(path)), None, book=book)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def make_server(source: Source, address: Address) -> Server:
    """A server of the workbench's pages."""
    from unpooled.apps.workbench.researcher.pages import Workbench

    sessions = Sessions(address.passwords)
    site = Workbench(source, sessions)
    return Server(
        lambda port: application(
            "workbench", site.routes, sessions, address.hosts(port), address.secure, port
        ),
        address,
        sessions,
    )


def run(
    source: Source,
    address: Address,
    browser: bool,
    show: Callable[[str], None],
    key_file: Path | None = None,
) -> None:
    """Serve until Ctrl-C. A key for programs is written to a file that only its owner reads."""
    from unpooled.apps.workbench.foundation.server import serve
    from unpooled.apps.workbench.researcher.cards.drawing import warm_up

    Thread(target=warm_up, daemon=True).start()
    server = make_server(source, address)
    if key_file is not None:
        key_file.touch(0o600)
        key_file.chmod(0o600)
        key_file.write_text(server.sessions.key(getuser()))
        show(f"key for programs: {key_file}")
    try:
        serve(server, getuser(), browser, show, input)
    except KeyboardInterrupt:
        show("ended")
    finally:
        source.close()


def address_of(
    host: str, port: int, users: Path | None, certificate: Path | None, private_key: Path | None
) -> Address:
    """Where to serve, as typed."""
    passwords = {} if users is None else read_passwords(users)
    return Address(host, port, certificate, private_key, passwords)
