"""`unpooled protocol`: draft one, check it, run it, and read what came back."""

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from unpooled.apps.cli.options import CENTERS, CommandWithRows
from unpooled.apps.cli.progress import centers_bar, working
from unpooled.errors import InputError

protocol_app = typer.Typer(
    help="A study's protocol: asked once, and every analysis comes from its book.",
    no_args_is_help=True,
)


@protocol_app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A protocol, or a book.")],
) -> None:
    """Say what a protocol asks, or what a book holds; a damaged book is an error."""
    if file.suffix.lower() == ".toml":
        from unpooled.analyses.protocols.protocol import protocol_text, read_protocol

        print(protocol_text(read_protocol(file)))
        return
    from unpooled.analyses.protocols.book import Book

    with working("the book is read"):
        shown = str(Book.open(file))
    print(shown)


def _parameter(name: str, kind: Any, shown: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, shown]
    )


_JOINT = _parameter(
    "joint",
    bool,
    typer.Option("--joint", help="Centers that are too small count in a joint center."),
    False,
)


def _asks_centers(*parameters: Parameter) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with these parameters, in addition to those that say which centers are asked."""

    def decorate(run: Callable[..., None]) -> Callable[..., None]:
        first = [one for one in parameters if one.default is Parameter.empty]
        others = [one for one in parameters if one.default is not Parameter.empty]
        signature = Signature([*first, *CENTERS, *others, _JOINT])
        run.__signature__ = signature  # type: ignore[attr-defined]
        protocol_app.command(run.__name__, cls=CommandWithRows)(run)
        return run

    return decorate


@_asks_centers(
    _parameter(
        "file", Path, typer.Argument(metavar="FILE", help="The protocol.", show_default=False)
    ),
)
def check(**typed: Any) -> None:
    """Say what the centers would answer, what they merge and what is lost; no count leaves."""
    from unpooled.analyses.protocols.protocol import read_protocol
    from unpooled.apps.cli.analyses import open_federation

    plan = read_protocol(typed["file"])
    with centers_bar() as progress, open_federation(typed, progress) as fed:
        result = fed.check(plan)
    print(result)


@_asks_centers(
    _parameter(
        "file", Path, typer.Argument(metavar="FILE", help="The protocol.", show_default=False)
    ),
    _parameter(
        "out",
        Path | None,
        typer.Option(help="The book to write; by default FILE with .book."),
        None,
    ),
    _parameter(
        "into",
        Path | None,
        typer.Option(help="An earlier book: only the centers that it lacks are asked."),
        None,
    ),
)
def run(**typed: Any) -> None:
    """Ask all centers a protocol, once, and write the book."""
    from unpooled.analyses.protocols.book import Book
    from unpooled.analyses.protocols.protocol import read_protocol
    from unpooled.apps.cli.analyses import open_federation

    plan = read_protocol(typed["file"])
    out: Path = typed["out"] or typed["into"] or typed["file"].with_suffix(".book")
    into = None if typed["into"] is None else Book.open(typed["into"])
    if out.exists() and into is None:
        raise InputError(
            f"out: {str(out)!r} is there already. Hint: --into {out} asks the centers that it lacks"
        )
    with centers_bar() as progress, open_federation(typed, progress) as fed:
        book = fed.run(plan, into=into)
    print(book)
    for refusal in book.refusals:
        print(f"  {refusal.center}: {refusal.rule} ({refusal.reason})")
    print(f"book: {book.save(out)}")


@_asks_centers(
    _parameter("title", str, typer.Option(help="The study's title."), "A study"),
    _parameter(
        "out",
        Path,
        typer.Option(help="The file to write; nothing is written over."),
        Path("protocol.toml"),
    ),
)
def new(**typed: Any) -> None:
    """Write a first draft: each variable with its kind, its levels, and what was noticed."""
    from unpooled.analyses.protocols.protocol import read_protocol
    from unpooled.apps.cli.analyses import open_federation

    out: Path = typed["out"]
    if out.exists():
        raise InputError(f"out: {str(out)!r} is there already. Hint: --out another.toml")
    with centers_bar() as progress, open_federation(typed, progress) as fed:
        text = fed.draft_protocol(typed["title"])
    out.write_text(text, encoding="utf-8")
    try:
        read_protocol(out)
    except InputError as error:  # such as no variable that can be released
        print(f"{out}: a draft to be finished: {error}")
    else:
        print(f"{out}: a draft. Take out what the study does not need, then check it")
