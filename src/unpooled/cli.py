"""The command line: each command opens the library, calls it, and prints."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

import typer

from unpooled import __version__
from unpooled.errors import InputError, UnpooledError

if TYPE_CHECKING:
    from unpooled.federation import Federation
    from unpooled.maths.mann_whitney import Alternative
    from unpooled.messages import Limits

app = typer.Typer(
    name="unpooled",
    help="Statistics across hospitals without pooling the data: no number leaves a center that "
    "speaks for fewer than K people.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ledger_app = typer.Typer(help="Read and check a center's ledger.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")

SEVERAL = ("--centers", "--groups", "--method", "--p")  # as in --centers a.csv b.csv

Value = Annotated[str, typer.Argument(help="The variable to analyse.", show_default=False)]
Centers = Annotated[
    list[str],
    typer.Option(
        help="CSV or Parquet files, a center each (NAME=FILE names it); or one file with "
        "--center-column.",
        show_default=False,
    ),
]
CenterColumn = Annotated[
    str | None, typer.Option(help="The column of the one file that names the center.")
]
By = Annotated[str | None, typer.Option(help="The variable that says who is in which group.")]
Groups = Annotated[list[str] | None, typer.Option(help="Which groups, in this order.")]
Where = Annotated[
    str | None, typer.Option(help="Which people, such as \"age >= 65 and sex == 'F'\".")
]
K = Annotated[int, typer.Option("--k", help="Every number speaks for at least K people.")]
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
Report = Annotated[
    Path | None, typer.Option(help="Write a report to one HTML file that needs no network.")
]
Values = Annotated[
    list[str], typer.Argument(help="The variables to analyse, one or several.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print exact numbers as JSON.")]
ShowReleases = Annotated[
    bool, typer.Option("--releases", help="Also print all that left each center.")
]


class _Result(Protocol):
    def to_dict(self) -> dict[str, Any]: ...

    def chart(self) -> Any: ...

    def report(self, path: str | Path) -> Path: ...


@app.command()
def table(
    value: Value,
    centers: Centers,
    center_column: CenterColumn = None,
    by: By = None,
    groups: Groups = None,
    where: Where = None,
    k: K = 10,
    max_bins: Annotated[int | None, typer.Option(help="At most so many bins.")] = None,
    limits: Annotated[str, typer.Option(help="Outer limits: open, natural or buffer.")] = "open",
    chart: Annotated[Path | None, typer.Option(help="Write the histogram (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """A K-anonymous table of a variable, over all centers."""
    fed = _federation(centers, center_column, k, codebook, person, per_person, ledger)
    result = fed.table(
        value,
        by,
        groups=groups,
        where=where,
        max_bins=max_bins,
        limits=cast("Limits", limits),  # checked by the federation
    )
    _finish(result, fed, as_json, releases, chart, report)


@app.command()
def describe(
    value: Value,
    centers: Centers,
    center_column: CenterColumn = None,
    by: By = None,
    groups: Groups = None,
    where: Where = None,
    k: K = 10,
    chart: Annotated[Path | None, typer.Option(help="Write the means (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """n, missing, mean and SD per group; Welch's t-test where there are two groups."""
    fed = _federation(centers, center_column, k, codebook, person, per_person, ledger)
    result = fed.describe(value, by, groups=groups, where=where)
    _finish(result, fed, as_json, releases, chart, report)


@app.command()
def compare(
    values: Values,
    centers: Centers,
    by: Annotated[str, typer.Option(help="The variable that says who is in which group.")],
    center_column: CenterColumn = None,
    groups: Groups = None,
    where: Where = None,
    k: K = 10,
    alternative: Annotated[
        str, typer.Option(help="two-sided; greater: the second group is larger; less.")
    ] = "two-sided",
    method: Annotated[
        list[str] | None,
        typer.Option(help="weighted (recommended), sum, fisher, table, several, or all."),
    ] = None,
    max_bins: Annotated[int | None, typer.Option(help="At most so many bins.")] = None,
    chart: Annotated[Path | None, typer.Option(help="Write the forest plot (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """Does a variable differ between two groups? Federated Mann-Whitney tests.

    A report shows all methods unless --method names some.
    """
    fed = _federation(centers, center_column, k, codebook, person, per_person, ledger)
    result = fed.compare(
        _one_or_several(values),
        by,
        groups=groups,
        where=where,
        alternative=cast("Alternative", alternative),  # checked by the federation
        method=method or ("weighted" if report is None else "all"),
        max_bins=max_bins,
    )
    _finish(result, fed, as_json, releases, chart, report)


@app.command()
def quantiles(
    values: Values,
    centers: Centers,
    p: Annotated[
        list[float] | None,
        typer.Option("--p", help="Which quantiles.  [default: .02 .25 .5 .75 .98]"),
    ] = None,
    center_column: CenterColumn = None,
    by: By = None,
    groups: Groups = None,
    where: Where = None,
    k: K = 10,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="yj-table (the default), yj-likelihood, yj-grid, interpolation, loss, several, "
            "or all."
        ),
    ] = None,
    chart: Annotated[Path | None, typer.Option(help="Write the box plot (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """Quantiles of a variable, by group."""
    fed = _federation(centers, center_column, k, codebook, person, per_person, ledger)
    result = fed.quantiles(
        _one_or_several(values),
        p or (0.02, 0.25, 0.5, 0.75, 0.98),
        by,
        groups=groups,
        where=where,
        method=method or "yj-table",
    )
    _finish(result, fed, as_json, releases, chart, report)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("unpooled-demo"),
) -> None:
    """Five synthetic hospitals, the main job, and everything that left them."""
    from unpooled.demo import run_demo

    run_demo(out, print)


@ledger_app.command("show")
def ledger_show(
    file: Annotated[Path, typer.Argument(help="A center's ledger.")],
    as_json: AsJson = False,
) -> None:
    """Print a ledger, entry by entry."""
    from unpooled.ledger import read
    from unpooled.results.releases import ledger_text

    header, entries = read(file)
    if as_json:
        for entry in entries:
            print(json.dumps({**_fields(entry), "center": header.center}))
    else:
        print(ledger_text(header, entries))


@ledger_app.command("verify")
def ledger_verify(
    file: Annotated[Path, typer.Argument(help="A center's ledger.")],
    public_key: Annotated[str | None, typer.Option(help="The center's key, if known.")] = None,
    head: Annotated[str | None, typer.Option(help="The last hash seen, if noted.")] = None,
) -> None:
    """Check that nothing in a ledger was changed; say where, if something was."""
    from unpooled.ledger import verify

    verdict = verify(file, public_key, head)
    print(verdict)
    if not verdict.ok:
        raise typer.Exit(1)


@ledger_app.command("mend")
def ledger_mend(file: Annotated[Path, typer.Argument(help="A center's ledger.")]) -> None:
    """Set a last line that a crash cut short aside, so that the ledger can go on."""
    from unpooled.ledger import mend

    print(f"the cut line was moved to {mend(file)}")


def _fields(entry: object) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return fields


def _federation(
    centers: Sequence[str],
    center_column: str | None,
    k: int,
    codebook: Path | None,
    person: str | None,
    per_person: str | None,
    ledger: Path | None,
) -> "Federation":
    from unpooled.federation import Federation
    from unpooled.policy import Policy
    from unpooled.variables import read_codebook

    if per_person not in (None, "mean", "first", "max"):
        raise InputError(f"per-person must be mean, first or max, got {per_person!r}")
    policy = Policy(k=k, person=person, per_person=per_person)  # type: ignore[arg-type]
    variables = None if codebook is None else read_codebook(codebook)
    if center_column is None:
        return Federation.local(_named(centers), policy=policy, variables=variables, ledger=ledger)
    if len(centers) != 1:
        raise InputError(f"center-column goes with one file, got {len(centers)}")
    return Federation.split(
        centers[0], center_column, policy=policy, variables=variables, ledger=ledger
    )


def _named(centers: Sequence[str]) -> dict[str, str]:
    """NAME=FILE, or FILE alone, named after itself."""
    named: dict[str, str] = {}
    for text in centers:
        name, given, file = text.partition("=")
        if not given or Path(text).exists():
            name, file = Path(text).stem, text
        if name in named:
            raise InputError(f"two centers are named {name!r}. Hint: name them, NAME=FILE")
        named[name] = file
    return named


def _finish(
    result: _Result,
    fed: "Federation",
    as_json: bool,
    releases: bool,
    chart: Path | None,
    report: Path | None,
) -> None:
    """Write the files that were asked for, then print."""
    if chart is not None:
        from unpooled.report.charts import save

        save(result.chart(), chart)
    if report is not None:
        result.report(report)
        print(f"report: {report}", file=sys.stderr)
    if as_json:
        told = result.to_dict()
        if releases:
            told["releases"] = fed.releases.to_dict()
        print(json.dumps(told, ensure_ascii=False, allow_nan=False))
        return
    print(result)
    if releases:
        print(f"\n{fed.releases}")


def _one_or_several(values: list[str]) -> Any:
    return values[0] if len(values) == 1 else values


def _spread(arguments: Sequence[str]) -> list[str]:
    """Repeat an option before each of its values: --centers a b → --centers a --centers b."""
    spread: list[str] = []
    current: str | None = None
    for argument in arguments:
        if argument.startswith("-"):
            current = argument if argument in SEVERAL else None
            if current is None:
                spread.append(argument)
        elif current is not None:
            spread += [current, argument]
        else:
            spread.append(argument)
    return spread


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
    """Run the command line; errors that unpooled knows are told in one paragraph."""
    try:
        app(_spread(sys.argv[1:] if arguments is None else arguments))
    except UnpooledError as error:
        print(f"unpooled: {error}", file=sys.stderr)
        raise SystemExit(2 if isinstance(error, InputError) else 1) from None


if __name__ == "__main__":
    main()
