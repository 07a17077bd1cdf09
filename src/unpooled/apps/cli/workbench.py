"""`unpooled workbench`: the researcher's pages in a browser."""

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from unpooled.apps.cli.analyses import open_federation
from unpooled.apps.cli.options import CENTERS
from unpooled.errors import InputError

_SERVING = {
    "book": (Path | None, None, "A study's book, in place of centers: nobody is asked."),
    "joint": (bool, False, "For protocols: centers that are too small count in a joint center."),
    "port": (int, 0, "The port; without it, any that is free."),
    "browser": (bool, True, "Open the page in the browser."),
    "key": (Path | None, None, "Write a key for programs to this file; only you can read it."),
    "host": (
        str,
        "127.0.0.1",
        "Serve other machines too; needs --users, --certificate and --private-key.",
    ),
    "users": (Path | None, None, "A TOML file of users and passwords that only you can read."),
    "certificate": (Path | None, None, "The page's TLS certificate."),
    "private_key": (Path | None, None, "The certificate's private key."),
}


def _command() -> Callable[..., None]:
    """The command, with the options of all analyses that say which centers are asked."""

    def workbench(**typed: Any) -> None:
        """A page in the browser: ask, look, and make a report, without programming."""
        try:
            from unpooled.apps.workbench.researcher.opening import (
                address_of,
                run,
                source_of,
                source_of_book,
            )
        except ImportError as error:
            raise InputError(
                f"the workbench needs {error.name}. Hint: pip install 'unpooled[workbench]'"
            ) from error
        names = ("host", "port", "users", "certificate", "private_key")
        address = address_of(*(typed[name] for name in names))
        if typed["book"] is None:
            source = source_of(open_federation(typed), typed)
        elif typed["centers"] is not None or typed["federation"] is not None:
            raise InputError("give either --book, or the centers that are asked, not both")
        else:
            source = source_of_book(typed["book"])
        run(source, address, typed["browser"], print, typed["key"])

    serving = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, typer.Option(help=text)],
        )
        for name, (kind, default, text) in _SERVING.items()
    ]
    workbench.__signature__ = Signature([*CENTERS, *serving])  # type: ignore[attr-defined]
    return workbench


workbench = _command()
