"""The options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unpooled.results.report.page import check_chart_file, check_page_file

Value = Annotated[
    str, typer.Argument(metavar="VALUE", help="The variable to analyse.", show_default=False)
]
Centers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILES...",
        help="CSV or Parquet files, a center each (NAME=FILE names it); or one file with "
        "--center-column.",
        show_default=False,
    ),
]
Network = Annotated[
    Path | None,
    typer.Option("--federation", help="federation.toml: ask real centers, over the network."),
]
Timeout = Annotated[
    float, typer.Option(help="Seconds that a center of --federation may take for an answer.")
]
OnMissing = Annotated[
    str,
    typer.Option(
        "--on-missing", help="A center of --federation is missing: stop, or exclude it and go on."
    ),
]
CenterColumn = Annotated[
    str | None, typer.Option(help="The column of the one file that names the center.")
]
By = Annotated[str | None, typer.Option(help="The variable that says who is in which group.")]
Groups = Annotated[
    list[str] | None, typer.Option(metavar="NAMES...", help="Which groups, in this order.")
]
Cuts = Annotated[
    list[float] | None,
    typer.Option(metavar="NUMBERS...", help="Where the grouping, a number, is cut into bands."),
]
Where = Annotated[
    str | None, typer.Option(help="Which people, such as \"age >= 65 and sex == 'F'\".")
]
K = Annotated[
    int | None,
    typer.Option(
        "--k",
        help="Every number describes at least K people; over the network each center has its own."
        "  [default: 10]",
    ),
]
Codebook = Annotated[
    Path | None, typer.Option(help="A TOML file with what is public about the variables.")
]
Person = Annotated[str | None, typer.Option(help="The column that names a row's person.")]
PerPerson = Annotated[
    str | None, typer.Option(help="Several rows per person become one: mean, first or max.")
]
LedgerFolder = Annotated[
    Path | None, typer.Option("--ledger", help="A folder for the centers' ledgers and keys.")
]

Seed = Annotated[
    int | None,
    typer.Option(
        help="A number that makes the boundaries, and so all results, the same each time."
    ),
]


def chart_file(shows: str) -> Any:
    """The option for a chart's file, which is checked before anybody is asked."""
    return typer.Option(help=shows, callback=_chart_file)


def _chart_file(path: Path | None) -> Path | None:
    return None if path is None else check_chart_file(path)


def _page_file(path: Path | None) -> Path | None:
    """Checked before anybody is asked."""
    return None if path is None else check_page_file(path)


Report = Annotated[
    Path | None,
    typer.Option(
        help="Write a report to one HTML file that needs no network.", callback=_page_file
    ),
]
Values = Annotated[
    list[str],
    typer.Argument(
        metavar="VALUES", help="The variables to analyse, one or several.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print exact numbers as JSON.")]
ShowReleases = Annotated[
    bool, typer.Option("--releases", help="Also print all that left each center.")
]
