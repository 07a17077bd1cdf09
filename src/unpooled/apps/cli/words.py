"""The library's errors in the words of the command line: options in place of arguments."""

import re

_OPTIONS = (
    "alternative|at|by|categories|covariates|cuts|event_is|groups|horizon|into|joint|layout|levels|method|"
    "on_missing|ordered|out|p|person|per_person|strata|title|variables|where"
)
_ARGUMENT = re.compile(
    rf"\b({_OPTIONS})=(\([^()]*\)|\[[^\[\]]*\]|'[^']*'|True\b|-?\d+(?:\.\d+)?|[A-Z]+\b)"
)
_CALL = re.compile(r"\b(book|fed)\.(\w+)\(([^()]*)\)")
_TWICE = re.compile(r"(--[\w-]+ \S+) \(\1\)")
_DECLARED = re.compile(r"variables=\{'?([^':}]+)'?: unpooled\.Variable\((\w+)=([^()]*)\)\}")
_BETWEEN = re.compile(r"(--[\w-]+(?: [^\s,]+)*), (?=--)")


def command_words(message: str) -> str:
    """A message as somebody reads it who typed a command.

    Examples
    --------
    >>> command_words("Hint: groups=('none', 'low', 'high'), ordered=True")
    'Hint: --groups none low high --ordered'
    >>> command_words("'stage' is a category in this book. Hint: book.crosstab('stage', ...)")
    "'stage' is a category in this book. Hint: unpooled crosstab stage --book FILE"
    >>> command_words("Hint: on_missing='exclude' (--on-missing exclude) goes on without it.")
    'Hint: --on-missing exclude goes on without it.'
    """
    text = _DECLARED.sub(r"\2 = \3 in [\1] of a file that --codebook names", message)
    text = _CALL.sub(lambda call: _command(call[1], call[2], call[3]), text)
    text = _ARGUMENT.sub(lambda argument: _option(argument[1], argument[2]), text)
    return _BETWEEN.sub(r"\1 ", _TWICE.sub(r"\1", text))


def _option(name: str, value: str) -> str:
    option = f"--{name.replace('_', '-')}"
    return option if value == "True" else f"{option} {' '.join(_listed(value))}"


def _listed(value: str) -> list[str]:
    """The values of a list, or the one that there is; those of several words in quotes."""
    parts = [part.strip().strip("'\"") for part in value.strip("()[]").split(",")]
    return [f"'{part}'" if " " in part else part for part in parts if part]


def _command(opened: str, name: str, arguments: str) -> str:
    names = [part for part in _listed(arguments) if part != "..." and "=" not in part]
    where = "--book FILE" if opened == "book" else "--centers FILES..."
    return " ".join(["unpooled", name.replace("_", "-"), *names, where])
