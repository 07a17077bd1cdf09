"""The command line: each command opens the library, calls it, and prints."""

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from unpooled import __version__
from unpooled.analyses.specification import ANALYSES
from unpooled.apps.cli.analyses import command, command_of_package
from unpooled.apps.cli.ledger import ledger_app
from unpooled.apps.cli.network import center_app, federation_app
from unpooled.apps.cli.options import CommandWithRows
from unpooled.apps.cli.progress import working
from unpooled.apps.cli.protocol import protocol_app
from unpooled.apps.cli.words import command_words
from unpooled.apps.cli.workbench import workbench
from unpooled.errors import InputError, UnpooledError

app = typer.Typer(
    name="unpooled",
    help="Statistics across hospitals without pooling the data: every number that "
    "leaves a hospital describes at least K of its patients.",
    no_args_is_help=True,
    rich_markup_mode=None,  # its help page costs more than all else that --help loads
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for analysis in ANALYSES:
    app.command(analysis.name.replace("_", "-"), cls=CommandWithRows)(command(analysis))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("unpooled-demo"),
) -> None:
    """Five synthetic hospitals, the main job, and everything that left them."""
    from unpooled.apps.demo import run_demo

    with working("the demo goes on") as say:
        run_demo(out, say)


app.command("workbench", cls=CommandWithRows)(workbench)

for entry in entry_points(group="unpooled.commands"):  # of packages such as unpooled-study
    loaded = entry.load()
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=entry.name)
    else:
        app.command(entry.name, cls=CommandWithRows)(command_of_package(loaded))
app.add_typer(protocol_app, name="protocol")
app.add_typer(ledger_app, name="ledger")
app.add_typer(center_app, name="center")
app.add_typer(federation_app, name="federation")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"unpooled {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of all commands."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors that unpooled knows are printed in one paragraph."""
    try:
        app(sys.argv[1:] if arguments is None else list(arguments))
    except UnpooledError as error:
        print(f"unpooled: {command_words(str(error))}", file=sys.stderr)
        raise SystemExit(2 if isinstance(error, InputError) else 1) from None
    except OSError as error:
        print(f"unpooled: {error.filename}: {error.strerror}", file=sys.stderr)
        raise SystemExit(1) from None
