"""The same question in Python and on the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from unpooled.analyses.specification import Analysis

_WIDTH = 88


@dataclass(frozen=True, slots=True)
class Opening:
    """How a program opens the same centers, or the same book."""

    name: str  # fed, book
    python: str
    command: tuple[str, ...]

    @classmethod
    def of_files(
        cls,
        centers: Sequence[str],
        named: Mapping[str, str],
        options: Mapping[str, Any],
        column: str | None = None,
    ) -> "Opening":
        """Files, a center each; or one file with a column that names the center."""
        given = {name: value for name, value in options.items() if value is not None}
        first = repr(dict(named)) if column is None else repr(centers[0])
        more = {} if column is None else {"center": column}
        shown = {**more, **{n: v for n, v in given.items() if n != "codebook"}}
        if "codebook" in given:
            shown["variables"] = _Verbatim(f"unpooled.read_codebook({str(given['codebook'])!r})")
        made = "local" if column is None else "split"
        call = _call(f"unpooled.Federation.{made}", [_Verbatim(first)], shown)
        command = ["--centers", *map(str, centers)]
        command += [] if column is None else ["--center-column", column]
        for name, value in given.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        return cls("fed", f"import unpooled\nfed = {call}", tuple(command))

    @classmethod
    def of_federation(cls, path: str) -> "Opening":
        """Real centers, over the network."""
        call = f"unpooled.Federation.connect({path!r})"
        return cls("fed", f"import unpooled\nfed = {call}", ("--federation", path))

    @classmethod
    def of_book(cls, path: str) -> "Opening":
        """A book."""
        call = f"unpooled.Book.open({path!r})"
        return cls("book", f"import unpooled\nbook = {call}", ("--book", path))

    @property
    def is_unrecorded(self) -> bool:
        """Whether the centers are files in this program that keep no ledger."""
        return self.command[0] == "--centers" and "--ledger" not in self.command

    def of_study(self) -> "Opening":
        """The book of a study that these centers were asked."""
        run = f'{self.python}\nbook = fed.run("protocol.toml")'
        return Opening("book", run, ("--book", "study.book"))


class _Verbatim(str):
    """Python as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def python_code(opening: Opening, analysis: Analysis, arguments: Mapping[str, Any]) -> str:
    """The question in Python.

    Examples
    --------
    >>> from unpooled.analyses.specification import COMPARE
    >>> opened = Opening.of_federation("federation.toml")
    >>> print(python_code(opened, COMPARE, {"variable": "crp", "by": "arm"}))
    import unpooled
    fed = unpooled.Federation.connect('federation.toml')
    print(fed.compare('crp', by='arm'))
    """
    first, *_ = analysis.arguments
    rest = {name: value for name, value in arguments.items() if name != first.name}
    given = [arguments[first.name]] if first.name in arguments else []
    return f"{opening.python}\nprint({_call(f'{opening.name}.{analysis.name}', given, rest)})"


def _call(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> str:
    parts = [*map(repr, given), *(f"{key}={value!r}" for key, value in named.items())]
    line = f"{name}({', '.join(parts)})"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n    " + ",\n    ".join(parts) + ",\n)"


def command_line(opening: Opening, analysis: Analysis, arguments: Mapping[str, Any]) -> str:
    """The question on the command line.

    Examples
    --------
    >>> from unpooled.analyses.specification import COMPARE
    >>> opened = Opening.of_federation("federation.toml")
    >>> command_line(opened, COMPARE, {"variable": "crp", "by": "arm", "where": "age > 60"})
    "unpooled compare crp --by arm --where 'age > 60' --federation federation.toml"
    """
    first, *others = analysis.arguments
    tokens = ["unpooled", analysis.name.replace("_", "-"), *_texts(arguments.get(first.name, ()))]
    for argument in others:
        if argument.name in arguments:
            value = arguments[argument.name]
            tokens += [argument.option] if value is True else [argument.option, *_texts(value)]
    return " ".join(map(quote, [*tokens, *opening.command]))


def _texts(value: Any) -> list[str]:
    several = value if isinstance(value, list | tuple) else [value]
    return [f"{one:g}" if isinstance(one, float) else str(one) for one in several]
