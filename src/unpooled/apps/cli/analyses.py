"""The analysis commands, made from what is declared: open a federation, ask it, print."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpooled.analyses.specification import Analysis, Argument, Command
from unpooled.apps.cli.options import (
    BOOK,
    CENTERS,
    COVARIATES,
    option,
    outputs,
    picture,
    positional,
    read_value,
)
from unpooled.apps.cli.progress import centers_bar, working
from unpooled.errors import InputError

if TYPE_CHECKING:
    from unpooled.analyses.protocols.book import Book
    from unpooled.federation import Federation
    from unpooled.federation.progress import Show
    from unpooled.results.result import Result

_OF_EACH_CENTER = ("center_column", "k", "person", "per_person", "ledger", "seed")


def command(analysis: Analysis) -> Callable[..., None]:
    """The command of an analysis, with its options."""
    first, *others = (argument for argument in analysis.arguments if not argument.python_only)

    def run(**typed: Any) -> None:
        arguments = {
            argument.name: _value(argument, typed)
            for argument in (first, *others)
            if _is_given(argument, typed)
        }
        if typed["book"] is not None:
            with working("the book is read", typed["as_json"]):
                book = _open_book(typed)
                result = _from_book(book, analysis.name, {**arguments, **_of_book(typed)})
            finish(result, book, typed)
            return
        for name in _of_book(typed):
            raise InputError(f"{name} goes with --book: centers are not asked for {name}")
        with (
            centers_bar(typed["as_json"]) as progress,
            open_federation(typed, progress) as fed,
        ):
            result = getattr(fed, analysis.name)(**arguments)
        finish(result, fed, typed)

    of_book = (*BOOK, COVARIATES) if analysis.name == "survival" else BOOK
    options = (*CENTERS[:4], *of_book, *map(option, others), *CENTERS[4:], *outputs(analysis))
    return _shown(run, analysis, [positional(first), *options])


def command_of_package(declared: Command) -> Callable[..., None]:
    """The command that another package declares; its picture and JSON are written here."""
    analysis = declared.analysis

    def run(**typed: Any) -> None:
        given = {
            argument.name: read_value(argument, typed[argument.name])
            for argument in analysis.arguments
            if _is_given(argument, typed)
        }
        result = declared.run(typed["as_json"], **given)
        if typed["chart"] is not None:
            from unpooled.results.charts.charts import save

            with working("the picture is drawn", typed["as_json"]):
                save(result.chart(), typed["chart"])
        print(_as_json(result.to_dict()) if typed["as_json"] else result)

    return _shown(run, analysis, [*map(option, analysis.arguments), *picture(analysis)])


def _shown(
    run: Callable[..., None], analysis: Analysis, options: Sequence[Parameter]
) -> Callable[..., None]:
    """With the name, the help and the options of an analysis."""
    run.__name__ = analysis.name
    run.__doc__ = "\n\n".join(filter(None, (analysis.help, analysis.more)))
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    return run


def _as_json(plain: dict[str, Any]) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _open_book(typed: Mapping[str, Any]) -> "Book":
    """The book of a file; no center is asked."""
    if typed["centers"] is not None or typed["federation"] is not None:
        raise InputError("book: give either --book, or centers that are asked, not both")
    from unpooled.analyses.protocols.book import Book

    return Book.open(typed["book"])


def _of_book(typed: Mapping[str, Any]) -> dict[str, Any]:
    """What only a book is asked for."""
    return {name: typed[name] for name in ("strata", "covariates") if typed.get(name)}


def _from_book(book: "Book", name: str, given: dict[str, Any]) -> "Result":
    """The analysis of a book; several groupings of `by` are separated by commas."""
    method = getattr(book, name, None)
    if method is None:
        raise InputError(f"{name} cannot be computed from a book. Hint: leave out --book")
    accepted = signature(method).parameters
    for argument in given:
        if argument not in accepted:
            raise InputError(
                f"{argument} is not for {name} of a book: its groupings, limits and horizons are "
                "those of the protocol"
            )
    if "," in given.get("by", ""):
        given["by"] = [part.strip() for part in given["by"].split(",")]
    result: Result = method(**given)
    return result


def _is_given(argument: Argument, typed: Mapping[str, Any]) -> bool:
    """Whether there is something to hand on; the method has the defaults."""
    wanted = argument.in_report is not None and typed.get("report") is not None
    return wanted or typed[argument.name] not in (None, [])


def _value(argument: Argument, typed: Mapping[str, Any]) -> Any:
    if typed[argument.name] in (None, []):
        return argument.in_report
    return read_value(argument, typed[argument.name])


def open_federation(typed: Mapping[str, Any], progress: "Show | None" = None) -> "Federation":
    """The centers over the network, or those in this process, which say how far they are."""
    if typed["federation"] is not None and typed["centers"] is not None:
        raise InputError("give either --centers FILES..., or --federation federation.toml")
    if typed["federation"] is None and typed["centers"] is None:
        raise InputError(
            "whose data? Give --centers FILES..., --federation federation.toml, or --book FILE"
        )
    from unpooled.center.data.variables import read_codebook

    variables = None if typed["codebook"] is None else read_codebook(typed["codebook"])
    if typed["federation"] is None:
        return _open_local(typed, variables, progress)
    if any(typed[name] is not None for name in _OF_EACH_CENTER):
        raise InputError(
            "k, person, per-person, ledger, seed and center-column are each center's own"
        )
    from unpooled.federation import Federation

    return Federation.connect(
        typed["federation"],
        variables=variables,
        timeout=typed["timeout"],
        on_missing=typed["on_missing"],
        progress=progress,
        joint=typed.get("joint", False),
    )


def _open_local(typed: Mapping[str, Any], variables: Any, progress: "Show | None") -> "Federation":
    from unpooled.center.policy import Policy
    from unpooled.federation import Federation

    centers, column, per_person = typed["centers"], typed["center_column"], typed["per_person"]
    if per_person not in (None, "mean", "first", "max"):
        raise InputError(f"per-person must be mean, first or max, got {per_person!r}")
    if typed["seed"] is not None and typed["ledger"] is not None:
        raise InputError("give either seed or ledger: the keys in the ledger's folder need no seed")
    k = Policy().k if typed["k"] is None else typed["k"]
    about: dict[str, Any] = {
        "policy": Policy(k=k, person=typed["person"], per_person=per_person, ad_hoc="free"),
        "variables": variables,
        "ledger": typed["ledger"],
        "seed": typed["seed"],
        "joint": typed.get("joint", False),
        "on_missing": typed["on_missing"],
        "progress": progress,
    }
    if column is None:
        return Federation.local(_named(centers), **about)
    if len(centers) != 1:
        raise InputError(f"center-column goes with one file, got {len(centers)}")
    return Federation.split(centers[0], column, **about)


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


def finish(result: "Result", fed: "Federation | Book", typed: Mapping[str, Any]) -> None:
    """Write the files that were asked for, and print."""
    with working("the files are written", typed["as_json"]):
        written = _write(result, typed)
    for line in written:
        print(line, file=sys.stderr)
    if not typed["as_json"]:
        print(result)
        if typed["releases"]:
            print(f"\n{fed.releases}")
        return
    plain = result.to_dict()
    if typed["releases"]:
        plain["releases"] = fed.releases.to_dict()
    print(_as_json(plain))


def _write(result: "Result", typed: Mapping[str, Any]) -> list[str]:
    """Write the files that were asked for; the lines that name them."""
    lines = []
    if typed["chart"] is not None:
        from unpooled.results.charts.charts import save

        save(result.chart(), typed["chart"])
    if typed["report"] is not None:
        result.report(typed["report"])
        lines.append(f"report: {typed['report']}")
    if typed.get("out") is not None:
        from unpooled.results.table1 import Table1Result

        assert isinstance(result, Table1Result)  # the only one with such a file
        lines.append(f"table: {result.write(typed['out'])}")
    if typed["csv"] is not None:
        from unpooled.results.data_frame import write_csv

        write_csv(typed["csv"], result.records())
    return lines
