"""Options with several values in a row, as in --centers a.csv b.csv."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from typer.core import TyperCommand

from unpooled.analyses.specification import ANALYSES
from unpooled.errors import InputError

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
