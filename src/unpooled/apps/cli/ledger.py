"""The ledger commands: show, verify, mend."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unpooled.apps.cli.options import AsJson
from unpooled.apps.cli.progress import working

ledger_app = typer.Typer(help="Read and check a center's ledger.", no_args_is_help=True)


@ledger_app.command("show")
def ledger_show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A center's ledger.")],
    as_json: AsJson = False,
) -> None:
    """Print a ledger, entry by entry; say so, if something in it was changed."""
    from unpooled.center.records.ledger import verify
    from unpooled.errors import LedgerError

    with working("the ledger is verified", as_json):
        verdict = verify(file)
    try:
        _print_entries(file, as_json)
    except LedgerError:  # a line that cannot be read; the verdict names it
        if verdict.ok:
            raise
    if not verdict.ok:
        print(verdict, file=sys.stderr)
        raise typer.Exit(1)


def _print_entries(file: Path, as_json: bool) -> None:
    from unpooled.center.records.ledger import read
    from unpooled.center.rule.memory import memory_path, read_refusals
    from unpooled.results.provenance.releases import ledger_text

    header, entries = read(file)
    against = read_refusals(memory_path(file))
    if as_json:
        for entry in entries:
            stands = {"against": against[entry.number]} if entry.number in against else {}
            print(json.dumps({**_fields(entry), "center": header.center, **stands}))
    else:
        print(ledger_text(header, entries, against))


@ledger_app.command("verify")
def ledger_verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A center's ledger.")],
    public_key: Annotated[str | None, typer.Option(help="The center's key, if known.")] = None,
    head: Annotated[str | None, typer.Option(help="The last hash seen, if noted.")] = None,
) -> None:
    """Check that nothing in a ledger was changed; say where, if something was."""
    from unpooled.center.records.ledger import verify

    with working("the ledger is verified"):
        verdict = verify(file, public_key, head)
    print(verdict)
    if not verdict.ok:
        raise typer.Exit(1)


@ledger_app.command("mend")
def ledger_mend(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A center's ledger.")],
) -> None:
    """Set a last line that a crash cut short aside, so that the ledger can go on."""
    from unpooled.center.records.ledger import mend

    print(f"the cut line was moved to {mend(file)}")


def _fields(entry: object) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return fields
