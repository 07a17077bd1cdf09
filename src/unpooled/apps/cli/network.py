"""The commands `center` and `federation`: each calls the library and prints."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unpooled.center.steward import Decision

center_app = typer.Typer(help="Run a center beside its data.", no_args_is_help=True)
federation_app = typer.Typer(help="Set up and run a federation.", no_args_is_help=True)

KitFolder = Annotated[
    Path, typer.Argument(metavar="KIT", help="The kit: a folder.", show_default=False)
]
CenterToml = Annotated[
    Path | None, typer.Option("--config", help="center.toml; the kit's own, if not given.")
]
Payload = Annotated[
    str | None,
    typer.Argument(
        metavar="ID", help="Which payload, as `pending` names it; the only one, if not given."
    ),
]
Seen = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="Which payload, as `pending` names it.", show_default=False),
]
Decided = Annotated[
    str | None,
    typer.Argument(
        metavar="ID", help="Which decision, as `decided` names it; the only one, if not given."
    ),
]
FederationToml = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="The file that names centers and coordinator.", show_default=False
    ),
]


@center_app.command("check")
def center_check(kit: KitFolder, config: CenterToml = None) -> None:
    """Say what is wrong before the center goes live: certificate, address, data, policy."""
    from unpooled.federation.network.check import check_center

    findings = check_center(kit, config)
    for finding in findings:
        typer.echo(str(finding))
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)


@center_app.command("freeze")
def center_freeze(
    kit: KitFolder,
    config: CenterToml = None,
    use: Annotated[
        bool, typer.Option("--use", help="Let center.toml name the copy at once.")
    ] = False,
) -> None:
    """Copy the center's rows to a dated file beside center.toml, to answer a study from it."""
    from datetime import date

    from unpooled.center.freeze import freeze_rows, use_freeze
    from unpooled.federation.network.kits import read_kit

    read_kit(kit, "center")
    path = kit / "center.toml" if config is None else config
    freeze = freeze_rows(path, date.today())
    typer.echo(f"frozen: {freeze.path}")
    typer.echo(f"  {freeze.rows} rows, {len(freeze.columns)} columns: {', '.join(freeze.columns)}")
    typer.echo(f"  SHA-256 {freeze.sha256}")
    if use:
        use_freeze(path, freeze)
        typer.echo(f"{path} now says {freeze.setting}")
    else:
        typer.echo(f"To answer from it, write in {path}, in the place of data or [postgres]:")
        typer.echo(f"  {freeze.setting}")
    typer.echo(f"Next: unpooled center check {kit}; then stop the center and start it again.")


@center_app.command("start")
def center_start(kit: KitFolder, config: CenterToml = None) -> None:
    """Run a center until it is stopped; questions are answered as its policy allows."""
    from unpooled.federation.network.running import run_center

    with _stoppable():
        run_center(kit, config, typer.echo)


@center_app.command("pending")
def center_pending(kit: KitFolder, config: CenterToml = None) -> None:
    """Show what waits for the steward: each question, and the exact payload that would leave."""
    from unpooled.center.steward import pending
    from unpooled.results.steward_text import held_text

    folder = _pending_folder(kit, config)
    held = pending(folder)
    typer.echo("\n\n".join(held_text(folder, h) for h in held) or "nothing waits for the steward")


@center_app.command("approve")
def center_approve(kit: KitFolder, payload: Seen = None, config: CenterToml = None) -> None:
    """Let a payload leave that you have seen, and show it."""
    from unpooled.center.steward import pending
    from unpooled.errors import InputError
    from unpooled.results.steward_text import choice_text

    held = pending(_pending_folder(kit, config))
    if held and not payload:
        raise InputError(f"say which payload may leave, by its ID. There are:\n{choice_text(held)}")
    _decide(kit, payload, config, "approved")


@center_app.command("refuse")
def center_refuse(kit: KitFolder, payload: Payload = None, config: CenterToml = None) -> None:
    """Keep a payload in the center, and any other answer to its question; the ledger records it."""
    _decide(kit, payload, config, "refused")


@center_app.command("decided")
def center_decided(kit: KitFolder, config: CenterToml = None) -> None:
    """Show the decisions in force: what may leave again, and what is refused at once."""
    from unpooled.center.steward import decided
    from unpooled.results.steward_text import decided_text

    decisions = decided(_pending_folder(kit, config))
    texts = (decided_text(held, decision) for held, decision in decisions)
    typer.echo("\n\n".join(texts) or "no decision is in force")


@center_app.command("withdraw")
def center_withdraw(kit: KitFolder, payload: Decided = None, config: CenterToml = None) -> None:
    """Take an approval or a refusal back: the next such question is held anew."""
    from unpooled.center.steward import withdraw
    from unpooled.results.steward_text import decided_text, withdrawn_text

    held, decision = withdraw(_pending_folder(kit, config), payload)
    typer.echo(decided_text(held, decision))
    typer.echo(withdrawn_text(held))


def _decide(kit: Path, payload: str | None, config: Path | None, decision: "Decision") -> None:
    from unpooled.center.steward import decide, find
    from unpooled.results.steward_text import decision_text, held_text

    folder = _pending_folder(kit, config)
    held = find(folder, payload)
    typer.echo(held_text(folder, held))
    decide(folder, held, decision)
    typer.echo(decision_text(folder, held, decision))


def _pending_folder(kit: Path, config: Path | None) -> Path:
    from unpooled.center.config import pending_folder, read_center
    from unpooled.errors import InputError
    from unpooled.federation.network.kits import read_kit

    read_kit(kit, "center")
    path = kit / "center.toml" if config is None else config
    center = read_center(path)
    if center.approval != "ask":
        raise InputError(
            f'{center.name} does not ask its steward. Hint: approval = "ask" in {path}'
        )
    return pending_folder(center, path.absolute().parent)


@federation_app.command("init")
def federation_init(
    federation: FederationToml,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the kits; kits, beside the file.")
    ] = None,
) -> None:
    """Make a kit for the coordinator, each center and each analyst that has none yet."""
    from unpooled.federation.network.provision import make_kits

    made = make_kits(federation, out)
    for kit in made:
        typer.echo(f"kit: {kit}")
    if not made:
        typer.echo("every participant has a kit already")


@federation_app.command("start")
def federation_start(kit: KitFolder) -> None:
    """Run the coordinator until it is stopped."""
    from unpooled.federation.network.running import run_coordinator

    with _stoppable():
        run_coordinator(kit, typer.echo)


@federation_app.command("status")
def federation_status(federation: FederationToml) -> None:
    """Say which centers are connected."""
    from unpooled.federation.network.running import federation_status

    status = federation_status(federation)
    typer.echo(str(status))
    if not status.complete:
        raise typer.Exit(1)


@contextmanager
def _stoppable() -> Iterator[None]:
    """End in good order on Ctrl-C and when told to terminate."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("stopped")
