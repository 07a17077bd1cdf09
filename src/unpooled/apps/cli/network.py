"""The commands `center` and `federation`: each calls the library and prints."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from unpooled.apps.cli.progress import working

if TYPE_CHECKING:
    from unpooled.center.approval.reviewers import Reviewer, Reviewers
    from unpooled.center.approval.steward import Decision

center_app = typer.Typer(help="Run a center where its data are.", no_args_is_help=True)
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
ReviewerName = Annotated[
    str | None,
    typer.Option("--reviewer", help="Who decides, where center.toml names reviewers."),
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
    from unpooled.federation.network.setup.check import check_center

    with working("the center is checked"):
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
    """Copy the center's rows to a dated file next to center.toml, to answer a study from it."""
    from datetime import date

    from unpooled.center.freeze import freeze_rows, use_freeze
    from unpooled.federation.network.setup.kits import read_kit

    read_kit(kit, "center")
    path = kit / "center.toml" if config is None else config
    with working("the rows are copied"):
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


@center_app.command("desk")
def center_desk(
    kit: Annotated[
        Path,
        typer.Argument(
            metavar="KIT", help="The kit, or a folder with a center.toml.", show_default=False
        ),
    ],
    config: CenterToml = None,
    port: Annotated[int, typer.Option(help="The port; 0: any that is free.")] = 0,
    host: Annotated[str, typer.Option(help="Another than this machine needs TLS.")] = "127.0.0.1",
    users: Annotated[
        Path | None, typer.Option(help="A TOML file with names and passwords.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="For TLS: a PEM file.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="For TLS: a PEM file.")] = None,
    browser: Annotated[bool, typer.Option(help="Whether to open a browser.")] = True,
) -> None:
    """Open the steward's desk in the browser: see what waits, approve, refuse, look back."""
    from unpooled.errors import InputError

    try:
        from unpooled.apps.workbench.desk import open_desk
        from unpooled.apps.workbench.foundation.server import Address, read_passwords
    except ModuleNotFoundError as error:
        raise InputError(
            f"the desk needs {error.name}. Hint: pip install 'unpooled[workbench]'"
        ) from error
    passwords = {} if users is None else read_passwords(users)
    address = Address(host, port, certificate, private_key, passwords)
    with _stoppable():
        open_desk(kit, config, address, browser, typer.echo)


@center_app.command("pending")
def center_pending(kit: KitFolder, config: CenterToml = None) -> None:
    """Show what waits for the steward: each question, and the exact payload that would leave."""
    from unpooled.center.approval.steward import pending
    from unpooled.results.provenance.steward_text import held_text

    folder, reviewers = _reviewed(kit, config)
    held = pending(folder, reviewers)
    texts = (held_text(folder, h, reviewers) for h in held)
    typer.echo("\n\n".join(texts) or "nothing waits for the steward")


@center_app.command("approve")
def center_approve(
    kit: KitFolder, payload: Seen = None, config: CenterToml = None, reviewer: ReviewerName = None
) -> None:
    """Let a payload leave that you have seen, and show it."""
    from unpooled.center.approval.steward import pending
    from unpooled.errors import InputError
    from unpooled.results.provenance.steward_text import choice_text

    held = pending(*_reviewed(kit, config))
    if held and not payload:
        raise InputError(f"say which payload may leave, by its ID. There are:\n{choice_text(held)}")
    _decide(kit, payload, config, "approved", reviewer)


@center_app.command("refuse")
def center_refuse(
    kit: KitFolder,
    payload: Payload = None,
    config: CenterToml = None,
    reviewer: ReviewerName = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why; it stays at the center.")
    ] = None,
) -> None:
    """Keep a payload in the center, and any other answer to its question; the ledger records it."""
    _decide(kit, payload, config, "refused", reviewer, reason)


@center_app.command("decided")
def center_decided(kit: KitFolder, config: CenterToml = None) -> None:
    """Show the decisions in force: what may leave again, and what is refused at once."""
    from unpooled.center.approval.steward import decided
    from unpooled.results.provenance.steward_text import decided_text

    folder, reviewers = _reviewed(kit, config)
    texts = (decided_text(folder, *decision, reviewers) for decision in decided(folder, reviewers))
    typer.echo("\n\n".join(texts) or "no decision is in force")


@center_app.command("withdraw")
def center_withdraw(
    kit: KitFolder,
    payload: Decided = None,
    config: CenterToml = None,
    reviewer: ReviewerName = None,
) -> None:
    """Take an approval or a refusal back: the next such question is held again."""
    from unpooled.center.approval.steward import withdraw
    from unpooled.results.provenance.steward_text import choice_text, withdrawn_text

    folder, reviewers = _reviewed(kit, config)
    by = _unlocked(kit, config, reviewer, reviewers)
    held, decision = withdraw(folder, payload, by, reviewers)
    typer.echo(f"{decision}:\n{choice_text([held])}")
    typer.echo(withdrawn_text(held))


@center_app.command("reviewer")
def center_reviewer(
    kit: KitFolder,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is.", show_default=False)],
    config: CenterToml = None,
) -> None:
    """Make a reviewer's key, sealed with a passphrase, and name them in center.toml."""
    from unpooled.center.approval.reviewers import check_reviewer_name, make_reviewer, with_reviewer
    from unpooled.center.config import read_center, reviewers_folder
    from unpooled.errors import InputError
    from unpooled.federation.network.setup.kits import read_kit

    read_kit(kit, "center")
    path = kit / "center.toml" if config is None else config
    center = read_center(path)
    check_reviewer_name(name)
    if center.approval != "ask":
        raise InputError(f'{center.name} asks nobody. Hint: approval = "ask" in {path}')
    if name in center.reviewer_keys:
        raise InputError(f"{path} names {name!r} already")
    passphrase = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True)
    folder = reviewers_folder(center, path.absolute().parent)
    reviewer = make_reviewer(folder, name, passphrase)
    path.write_text(with_reviewer(path.read_text(), reviewer))
    typer.echo(f"{path} now names {name}, key {reviewer.public}")
    typer.echo(f"sealed with the passphrase: {folder / f'{name}.json'}")
    typer.echo("Next: stop the center and start it again; until then the name does not count.")


def _decide(
    kit: Path,
    payload: str | None,
    config: Path | None,
    decision: "Decision",
    reviewer: str | None,
    reason: str | None = None,
) -> None:
    from unpooled.center.approval.steward import decide, find
    from unpooled.results.provenance.steward_text import decision_text, held_text

    folder, reviewers = _reviewed(kit, config)
    held = find(folder, payload, reviewers)
    typer.echo(held_text(folder, held, reviewers))
    by = _unlocked(kit, config, reviewer, reviewers)
    decide(folder, held, decision, by, reason, reviewers)
    typer.echo(decision_text(folder, held, decision, reviewers))


def _unlocked(
    kit: Path, config: Path | None, name: str | None, reviewers: "Reviewers"
) -> "Reviewer | None":
    """The reviewer who decides, where the center has reviewers."""
    from unpooled.center.approval.reviewers import unlock_reviewer
    from unpooled.center.config import read_center, reviewers_folder
    from unpooled.errors import InputError

    if not reviewers.keys:
        return None
    if name is None or name not in reviewers.keys:
        names = ", ".join(reviewers.keys)
        raise InputError(f"say who decides, with --reviewer NAME. There are: {names}")
    path = kit / "center.toml" if config is None else config
    folder = reviewers_folder(read_center(path), path.absolute().parent)
    return unlock_reviewer(folder, name, typer.prompt("Passphrase", hide_input=True))


def _reviewed(kit: Path, config: Path | None) -> "tuple[Path, Reviewers]":
    """Where what waits is kept, and who decides about it."""
    from unpooled.center.config import pending_folder, read_center, who_reviews
    from unpooled.errors import InputError
    from unpooled.federation.network.setup.kits import read_kit

    read_kit(kit, "center")
    path = kit / "center.toml" if config is None else config
    center = read_center(path)
    if center.approval != "ask":
        raise InputError(
            f'{center.name} does not ask its steward. Hint: approval = "ask" in {path}'
        )
    return pending_folder(center, path.absolute().parent), who_reviews(center)


@federation_app.command("init")
def federation_init(
    federation: FederationToml,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the kits; without it, kits next to the file.")
    ] = None,
) -> None:
    """Make a kit for the coordinator, each center and each analyst that has none yet."""
    from unpooled.federation.network.setup.provision import make_kits

    with working("the kits are made"):
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

    with working("the coordinator is asked"):
        status = federation_status(federation)
    typer.echo(str(status))
    if not status.complete:
        raise typer.Exit(1)


@contextmanager
def _stoppable() -> Iterator[None]:
    """End in good order on Ctrl-C and on a signal to terminate."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("stopped")
