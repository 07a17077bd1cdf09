"""The commands `center` and `federation`: each calls the library and prints."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

center_app = typer.Typer(help="Run a center beside its data.", no_args_is_help=True)
federation_app = typer.Typer(help="Set up and run a federation.", no_args_is_help=True)

KitFolder = Annotated[Path, typer.Argument(help="The kit: a folder.", show_default=False)]
CenterToml = Annotated[
    Path | None, typer.Option("--config", help="center.toml; the kit's own, if not given.")
]
FederationToml = Annotated[
    Path, typer.Argument(help="The file that names centers and coordinator.", show_default=False)
]


@center_app.command("check")
def center_check(kit: KitFolder, config: CenterToml = None) -> None:
    """Say what is wrong before the center goes live: certificate, address, data, policy."""
    from unpooled.links.flare.check import check_center

    findings = check_center(kit, config)
    for finding in findings:
        typer.echo(str(finding))
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)


@center_app.command("start")
def center_start(kit: KitFolder, config: CenterToml = None) -> None:
    """Run a center until it is stopped; questions are answered as its policy allows."""
    from unpooled.links.flare.running import run_center

    with _stoppable():
        run_center(kit, config, typer.echo)


@federation_app.command("init")
def federation_init(
    federation: FederationToml,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the kits; kits, beside the file.")
    ] = None,
) -> None:
    """Make a kit for the coordinator, each center and each analyst that has none yet."""
    from unpooled.links.flare.provision import make_kits

    made = make_kits(federation, out)
    for kit in made:
        typer.echo(f"kit: {kit}")
    if not made:
        typer.echo("every participant has a kit already")


@federation_app.command("start")
def federation_start(kit: KitFolder) -> None:
    """Run the coordinator until it is stopped."""
    from unpooled.links.flare.running import run_coordinator

    with _stoppable():
        run_coordinator(kit, typer.echo)


@federation_app.command("status")
def federation_status(federation: FederationToml) -> None:
    """Say which centers are connected."""
    from unpooled.links.flare.status import federation_status

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
