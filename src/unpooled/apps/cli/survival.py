"""The survival command."""

from pathlib import Path
from typing import Annotated

import typer

from unpooled.apps.cli.analyses import Local, Remote, finish, numbers, open_federation
from unpooled.apps.cli.options import (
    AsJson,
    By,
    CenterColumn,
    Centers,
    Codebook,
    Cuts,
    Groups,
    K,
    LedgerFolder,
    Network,
    OnMissing,
    PerPerson,
    Person,
    Report,
    Seed,
    ShowReleases,
    Timeout,
    Where,
    chart_file,
)
from unpooled.errors import InputError
from unpooled.results.data_frame import write_csv


def survival(
    time: Annotated[
        str,
        typer.Argument(metavar="TIME", help="The variable that holds times.", show_default=False),
    ],
    event: Annotated[str, typer.Option(help="The variable that says who had the event.")],
    centers: Centers = None,
    federation: Network = None,
    timeout: Timeout = 60.0,
    on_missing: OnMissing = "stop",
    center_column: CenterColumn = None,
    by: By = None,
    groups: Groups = None,
    cuts: Cuts = None,
    where: Where = None,
    k: K = None,
    event_is: Annotated[
        str | None, typer.Option(help="The value of the event variable that means the event.")
    ] = None,
    horizon: Annotated[
        float | None, typer.Option(help="How far to look; follow-up beyond it is cut there.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at", metavar="TIMES...", help="Times at which survival is shown: --at 12 36 60."
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the curves as numbers: a row per step (.csv).")
    ] = None,
    chart: Annotated[Path | None, chart_file("Write the curves (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    seed: Seed = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """Survival curves by group: Kaplan-Meier, log-rank, hazard ratio, restricted means."""
    if csv is not None and csv.suffix != ".csv":
        raise InputError(f"csv must be a file that ends in .csv, got {csv}")
    local = Local(centers, center_column, k, codebook, person, per_person, ledger, seed)
    fed = open_federation(Remote(federation, timeout, on_missing), local)
    result = fed.survival(
        time,
        event,
        by,
        groups=groups,
        where=where,
        cuts=cuts,
        event_is=event_is,
        horizon=horizon,
        at=numbers("--at", at or [], "--at 12 36 60"),
    )
    if csv is not None:
        write_csv(csv, result.records())
    finish(result, fed, as_json, releases, chart, report)
