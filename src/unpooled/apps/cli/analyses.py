"""The analysis commands: open a federation, ask it, print."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, cast

import typer

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
    Value,
    Values,
    Where,
    chart_file,
)
from unpooled.errors import InputError

if TYPE_CHECKING:
    from unpooled.center.questions import Limits
    from unpooled.federation import Federation
    from unpooled.federation.federation import OnMissing as OnMissingCenter
    from unpooled.maths.ranks.mann_whitney import Alternative


def table(
    value: Value,
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
    method: Annotated[
        str, typer.Option(help="chain (exact counts) or parallel (smooth, with bands).")
    ] = "chain",
    max_bins: Annotated[int | None, typer.Option(help="At most so many bins.")] = None,
    limits: Annotated[str, typer.Option(help="Outer limits: open, natural or buffer.")] = "open",
    chart: Annotated[Path | None, chart_file("Write the histogram (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    seed: Seed = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """A K-anonymous table of a variable, over all centers."""
    local = Local(centers, center_column, k, codebook, person, per_person, ledger, seed)
    fed = open_federation(Remote(federation, timeout, on_missing), local)
    result = fed.table(
        value,
        by,
        groups=groups,
        where=where,
        cuts=cuts,
        method=method,
        max_bins=max_bins,
        limits=cast("Limits", limits),  # checked by the federation
    )
    finish(result, fed, as_json, releases, chart, report)


def describe(
    value: Value,
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
    chart: Annotated[Path | None, chart_file("Write the means (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    seed: Seed = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """n, missing, mean and SD per group; Welch's t-test where there are two groups."""
    local = Local(centers, center_column, k, codebook, person, per_person, ledger, seed)
    fed = open_federation(Remote(federation, timeout, on_missing), local)
    result = fed.describe(value, by, groups=groups, where=where, cuts=cuts)
    finish(result, fed, as_json, releases, chart, report)


def compare(
    values: Values,
    by: Annotated[str, typer.Option(help="The variable that says who is in which group.")],
    centers: Centers = None,
    federation: Network = None,
    timeout: Timeout = 60.0,
    on_missing: OnMissing = "stop",
    center_column: CenterColumn = None,
    groups: Groups = None,
    cuts: Cuts = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="--groups ascend: test for a trend.")
    ] = False,
    where: Where = None,
    k: K = None,
    alternative: Annotated[
        str,
        typer.Option(help="two-sided; greater: the second, or later, group is larger; less."),
    ] = "two-sided",
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES...",
            help="weighted (recommended), sum, fisher, table, parallel, several, or all.",
        ),
    ] = None,
    max_bins: Annotated[int | None, typer.Option(help="At most so many bins.")] = None,
    chart: Annotated[Path | None, chart_file("Write the charts (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    seed: Seed = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """Does a variable differ between groups? Federated rank tests.

    Two groups: Mann-Whitney. Three or more: Kruskal-Wallis, then every pair.
    A report shows what --method names; without --method, all methods and what the tables show.
    """
    local = Local(centers, center_column, k, codebook, person, per_person, ledger, seed)
    fed = open_federation(Remote(federation, timeout, on_missing), local)
    result = fed.compare(
        _one_or_several(values),
        by,
        groups=groups,
        ordered=ordered,
        where=where,
        cuts=cuts,
        alternative=cast("Alternative", alternative),  # checked by the federation
        method=method or ("weighted" if report is None else "all"),
        max_bins=max_bins,
    )
    finish(result, fed, as_json, releases, chart, report)


def quantiles(
    values: Values,
    centers: Centers = None,
    federation: Network = None,
    timeout: Timeout = 60.0,
    on_missing: OnMissing = "stop",
    p: Annotated[
        list[str] | None,
        typer.Option(
            "--p", metavar="NUMBERS...", help="Which quantiles.  [default: .02 .25 .5 .75 .98]"
        ),
    ] = None,
    center_column: CenterColumn = None,
    by: By = None,
    groups: Groups = None,
    cuts: Cuts = None,
    where: Where = None,
    k: K = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES...",
            help="parallel (the default), yj-table, yj-likelihood, yj-grid, interpolation, "
            "several, or all; paper-grid only by name.",
        ),
    ] = None,
    chart: Annotated[Path | None, chart_file("Write the box plot (.svg, .png).")] = None,
    codebook: Codebook = None,
    person: Person = None,
    per_person: PerPerson = None,
    ledger: LedgerFolder = None,
    seed: Seed = None,
    as_json: AsJson = False,
    releases: ShowReleases = False,
    report: Report = None,
) -> None:
    """Quantiles of a variable, by group."""
    local = Local(centers, center_column, k, codebook, person, per_person, ledger, seed)
    fed = open_federation(Remote(federation, timeout, on_missing), local)
    result = fed.quantiles(
        _one_or_several(values),
        numbers("--p", p, "--p .25 .5 .75") if p else (0.02, 0.25, 0.5, 0.75, 0.98),
        by,
        groups=groups,
        where=where,
        cuts=cuts,
        method=method or "parallel",
    )
    finish(result, fed, as_json, releases, chart, report)


def numbers(option: str, given: list[str], example: str) -> list[float]:
    """Numbers between spaces or commas."""
    found = []
    for token in (token for part in given for token in part.split(",")):
        try:
            found.append(float(token))
        except ValueError:
            message = f"{option} must be numbers, got {token!r}. Hint: {example}"
            raise InputError(message) from None
    return found


class _Result(Protocol):
    def to_dict(self) -> dict[str, Any]: ...

    def chart(self) -> Any: ...

    def report(self, path: str | Path) -> Path: ...


class Local(NamedTuple):
    """What is said about centers in this process."""

    centers: list[str] | None
    center_column: str | None
    k: int | None
    codebook: Path | None
    person: str | None
    per_person: str | None
    ledger: Path | None
    seed: int | None


class Remote(NamedTuple):
    """What is said about centers over the network."""

    federation: Path | None
    timeout: float
    on_missing: str


def open_federation(remote: Remote, local: Local) -> "Federation":
    """The centers over the network, or those in this process."""
    if (remote.federation is None) == (local.centers is None):
        raise InputError(
            "whose data? Give either --centers FILES..., or --federation federation.toml"
        )
    if remote.federation is None:
        return _open_local(local, local.centers or [])
    if local._replace(codebook=None) != Local(*[None] * 8):
        raise InputError(
            "k, person, per-person, ledger, seed and center-column are each center's own"
        )
    from unpooled.center.data.variables import read_codebook
    from unpooled.federation import Federation

    variables = None if local.codebook is None else read_codebook(local.codebook)
    return Federation.connect(
        remote.federation,
        variables=variables,
        timeout=remote.timeout,
        on_missing=cast("OnMissingCenter", remote.on_missing),  # checked by the federation
        progress=_show if sys.stderr.isatty() else None,
    )


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _open_local(local: Local, centers: Sequence[str]) -> "Federation":
    from unpooled.center.data.variables import read_codebook
    from unpooled.center.policy import Policy
    from unpooled.federation import Federation

    per_person, ledger, seed = local.per_person, local.ledger, local.seed
    if per_person not in (None, "mean", "first", "max"):
        raise InputError(f"per-person must be mean, first or max, got {per_person!r}")
    if seed is not None and ledger is not None:
        raise InputError("give either seed or ledger: the keys in the ledger's folder need no seed")
    k = Policy().k if local.k is None else local.k
    policy = Policy(k=k, person=local.person, per_person=per_person, ad_hoc="free")  # type: ignore[arg-type]
    variables = None if local.codebook is None else read_codebook(local.codebook)
    if local.center_column is None:
        named = _named(centers)
        return Federation.local(named, policy=policy, variables=variables, ledger=ledger, seed=seed)
    if len(centers) != 1:
        raise InputError(f"center-column goes with one file, got {len(centers)}")
    return Federation.split(
        centers[0],
        local.center_column,
        policy=policy,
        variables=variables,
        ledger=ledger,
        seed=seed,
    )


def _named(centers: Sequence[str]) -> dict[str, str]:
    """NAME=FILE, or FILE alone, named after itself."""
    named: dict[str, str] = {}
    for text in centers:
        name, given, file = text.partition("=")
        if not given or Path(text).exists():
            name, file = Path(text).stem, text
        if not file:
            raise InputError(f"centers: the file is missing after {text!r}")
        if name in named:
            raise InputError(f"two centers are named {name!r}. Hint: name them, NAME=FILE")
        named[name] = file
    return named


def finish(
    result: _Result,
    fed: "Federation",
    as_json: bool,
    releases: bool,
    chart: Path | None,
    report: Path | None,
) -> None:
    """Write the files that were asked for, print, and let go of the centers."""
    with fed:
        if chart is not None:
            from unpooled.results.report.charts import save

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
