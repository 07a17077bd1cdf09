"""The options that all analyses share, how a declared argument becomes an option, and
several values in a row, as in --centers a.csv b.csv.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from unpooled.analyses.specification import ANALYSES, Analysis, Argument, Kind
from unpooled.errors import InputError
from unpooled.results.report.page import check_chart_file, check_csv_file, check_page_file

AsJson = Annotated[bool, typer.Option("--json", help="Print exact numbers as JSON.")]

_TYPES: dict[Kind, Any] = {
    "variable": str,
    "variables": list[str],
    "text": str,
    "names": list[str],
    "numbers": list[str],
    "number": float,
    "whole": int,
    "flag": bool,
    "choice": str,
    "choices": list[str],
    "anything": str,
}
_METAVARS: dict[Kind, str] = {"names": "NAMES...", "numbers": "NUMBERS...", "choices": "NAMES..."}


def positional(argument: Argument) -> Parameter:
    """What stands first on the command line, without a name."""
    name = argument.name.upper().removesuffix("S") if argument.kind == "variables" else None
    metavar = argument.name.upper() if name is None else f"{name}S..."
    shown = typer.Argument(metavar=metavar, help=argument.help, show_default=False)
    if not argument.required:
        return _parameter(argument.name, _TYPES[argument.kind] | None, shown, None)
    return _parameter(argument.name, _TYPES[argument.kind], shown)


def option(argument: Argument) -> Parameter:
    """An argument as an option; several values stand in a row."""
    kind, declared = _TYPES[argument.kind], [argument.option]
    if argument.required:
        metavar = _METAVARS.get(argument.kind)
        shown = typer.Option(*declared, metavar=metavar, help=argument.help)
        return _parameter(argument.name, kind, shown)
    if argument.kind == "flag":
        return _parameter(argument.name, bool, typer.Option(*declared, help=argument.help), False)
    metavar = _METAVARS.get(argument.kind)
    if metavar is None:
        shown = typer.Option(*declared, help=argument.help)
        optional = kind if argument.default is not None else kind | None
        return _parameter(argument.name, optional, shown, argument.default)
    row = typer.Option(*declared, metavar=metavar, help=f"{argument.help}{_default_text(argument)}")
    return _parameter(argument.name, kind | None, row, None)


def _default_text(argument: Argument) -> str:
    if argument.kind != "numbers" or not isinstance(argument.default, tuple):
        return ""
    shown = " ".join(f"{value:g}".removeprefix("0") for value in argument.default)
    return f"  [default: {shown}]"


def _parameter(name: str, kind: Any, declared: Any, default: object = Parameter.empty) -> Parameter:
    annotation = Annotated[kind, declared]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _optional(name: str, kind: Any, text: str, *declared: str, **more: Any) -> Parameter:
    return _parameter(name, kind | None, typer.Option(*declared, help=text, **more), None)


def _flag(name: str, text: str, *declared: str) -> Parameter:
    return _parameter(name, bool, typer.Option(*declared, help=text), False)


CENTERS = (
    _optional(
        "centers",
        list[str],
        "CSV or Parquet files, a center each (NAME=FILE names it); or one file with "
        "--center-column.",
        metavar="FILES...",
        show_default=False,
    ),
    _optional(
        "federation", Path, "federation.toml: ask real centers, over the network.", "--federation"
    ),
    _parameter(
        "timeout",
        float,
        typer.Option(help="Seconds that a center of --federation may take for an answer."),
        60.0,
    ),
    _parameter(
        "on_missing",
        str,
        typer.Option(help="A center does not answer at all: stop, or exclude it and go on."),
        "stop",
    ),
    _optional("center_column", str, "The column of the one file that names the center."),
    _optional(
        "k",
        int,
        "Every number describes at least K people; over the network each center has its own."
        "  [default: 10]",
        "--k",
    ),
    _optional("codebook", Path, "A TOML file with what is public about the variables."),
    _optional("person", str, "The column that names a row's person."),
    _optional("per_person", str, "Several rows per person become one: mean, first or max."),
    _optional("ledger", Path, "A folder for the centers' ledgers and keys."),
    _optional(
        "seed", int, "A number that makes the boundaries, and so all results, the same each time."
    ),
)
"""Which centers are asked, and how."""


BOOK = (
    _optional("book", Path, "A book: the answers of a protocol that was run; nobody is asked."),
    _parameter(
        "strata",
        list[str] | None,
        typer.Option(
            "--strata",
            metavar="NAMES...",
            help="With --book: groupings within which people are compared.",
        ),
        None,
    ),
)
"""In place of centers: what they said before."""


COVARIATES = _parameter(
    "covariates",
    list[str] | None,
    typer.Option(
        "--covariates",
        metavar="NAMES...",
        help="With --book: groupings that the hazard ratio is adjusted for.",
    ),
    None,
)
"""Of `survival` alone."""


def picture(analysis: Analysis) -> tuple[Parameter, Parameter]:
    """What every command may write, and how it may print."""
    return (
        _optional(
            "chart",
            Path,
            f"Write {analysis.chart} (.svg, .png).",
            callback=_checked(check_chart_file),
        ),
        _flag("as_json", "Print exact numbers as JSON.", "--json"),
    )


def outputs(analysis: Analysis) -> tuple[Parameter, ...]:
    """What is printed and written; files are looked at before anybody is asked."""
    report = "Write a report to one file, .html or .docx, that needs no network."
    table1 = (
        _optional("out", Path, "Write the table (.txt, .md, .html, .csv, .tex or .docx).", "--out"),
    )
    chart, as_json = picture(analysis)
    return (
        *(table1 if analysis.name == "table1" else ()),
        chart,
        _optional(
            "csv",
            Path,
            "Write the main numbers as a table (.csv).",
            callback=_checked(check_csv_file),
        ),
        as_json,
        _flag("releases", "Also print all that left each center.", "--releases"),
        _optional("report", Path, report, callback=_checked(check_page_file)),
    )


def _checked(check: Any) -> Any:
    def callback(path: Path | None) -> Path | None:
        return None if path is None else check(path)

    return callback


def read_value(argument: Argument, typed: Any) -> Any:
    """What a typed value means: numbers between spaces or commas, and one variable by itself."""
    if argument.kind == "variables" and len(typed) == 1:
        return typed[0]
    return read_numbers(argument, typed) if argument.kind == "numbers" else typed


def read_numbers(argument: Argument, typed: list[str]) -> list[float]:
    """Numbers between spaces or commas."""
    numbers = []
    for token in (token for part in typed for token in part.split(",")):
        try:
            numbers.append(float(token))
        except ValueError:
            rule = (argument.rule or "numbers").split(", such as")[0]
            raise InputError(
                f"{argument.option} must be {rule}, got {token!r}. Hint: {argument.hint}"
            ) from None
    return numbers


_EXAMPLES = {"--centers": "--centers a.csv b.csv"} | {
    argument.option: argument.hint
    for analysis in reversed(ANALYSES)
    for argument in analysis.arguments
    if argument.hint is not None
}
_NEGATIVE = re.compile(r"-\.?[0-9]")  # a value, though it begins as an option does


class CommandWithRows(TyperCommand):
    """A command whose options for several values take them in a row."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, as the parser wants it."""
        several = {
            name
            for parameter in self.params
            if getattr(parameter, "multiple", False)
            for name in parameter.opts
        }
        if ctx.resilient_parsing:  # a shell completes what is not typed yet
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, list(spread(args, several)))


def spread(arguments: Sequence[str], several: Collection[str]) -> Iterator[str]:
    """Repeat an option before each of its values.

    Examples
    --------
    >>> list(spread(["crp", "--p", ".5", "-1", "--json"], ["--p"]))
    ['crp', '--p', '.5', '--p', '-1', '--json']
    """
    current, values = None, 0
    for argument in arguments:
        name, given, value = argument.partition("=")
        if argument.startswith("-") and not (current and _NEGATIVE.match(argument)):
            _check(current, values)
            current, values = (name if name in several else None), int(bool(given))
            if current is None:
                yield argument
            elif given:
                yield from (name, value)
        elif current is not None:
            values += 1
            yield from (current, argument)
        else:
            yield argument
    _check(current, values)


def _check(option: str | None, values: int) -> None:
    if option is not None and not values:
        hint = f". Hint: {_EXAMPLES[option]}" if option in _EXAMPLES else ""
        raise InputError(f"{option} needs a value{hint}")
