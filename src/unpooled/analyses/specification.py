"""What each analysis can be asked, declared once.

From here come the checks of `Federation`'s arguments and the options of the command line; a form of
a page or an HTTP API can come from here too. No NumPy: `unpooled --help` reads this file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from unpooled.errors import InputError

Kind = Literal[
    "variable",  # the name of one
    "variables",  # the name of one, or several names
    "text",
    "names",  # of groups: anything that stands for one
    "numbers",  # one or several
    "number",
    "whole",
    "flag",
    "choice",  # one word of several
    "choices",  # one or several, or "all"
    "anything",
]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name, what it may be, and what it is for."""

    name: str
    kind: Kind
    help: str
    default: object = None
    choices: tuple[str, ...] = ()
    required: bool = False
    rule: str | None = None  # what it must be, in an error; the kind's own, if None
    hint: str | None = None  # an example on the command line
    in_report: object = None  # on the command line: the default where a report is written
    python_only: bool = False

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def must_be(self) -> str:
        """What it must be, as an error says it."""
        if self.kind == "choice":
            *others, last = self.choices
            return f"{', '.join(others)} or {last}"
        if self.kind == "choices":
            return f"one of {', '.join(self.choices)} or all"
        return self.rule or _RULES[self.kind]

    def check(self, value: object) -> None:
        """Raise where a value is not what it must be."""
        if value is None and self.default is None:
            return
        if not self._is_right(value):
            shown = "none" if isinstance(value, list | tuple) and not value else repr(value)
            raise InputError(f"{self.name} must be {self.must_be}, got {shown}")

    def _is_right(self, value: object) -> bool:
        match self.kind:
            case "anything":
                return True
            case "variable" | "text":
                return isinstance(value, str)
            case "variables":
                return isinstance(value, str) or _all_are(str, value, list | tuple)
            case "names":
                return isinstance(value, Iterable) and not isinstance(value, str)
            case "numbers":
                return not isinstance(value, str | bool)  # each is looked at later
            case "number":
                return _is_number(value)
            case "whole":
                return isinstance(value, int) and not isinstance(value, bool) and value >= 1
            case "flag":
                return isinstance(value, bool)
            case "choice":
                return isinstance(value, str) and value in self.choices
            case "choices":
                return self._is_choices(value)

    def _is_choices(self, value: object) -> bool:
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, Iterable):
            return False
        named = list(words)
        wrong = [word for word in named if word not in (*self.choices, "all")]
        if wrong:  # the first one is named
            raise InputError(f"{self.name} must be {self.must_be}, got {wrong[0]!r}")
        return bool(named)


_RULES: dict[Kind, str] = {
    "variable": "the name of a variable",
    "variables": "the name of a variable, or a list of names",
    "text": "text",
    "names": "a list of names",
    "numbers": "numbers",
    "number": "a number",
    "whole": "a whole number of at least 1",
    "flag": "True or False",
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _all_are(kind: type, value: object, container: Any) -> bool:
    return isinstance(value, container) and all(isinstance(one, kind) for one in value)


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis: the name of its method and command, and its arguments in their order."""

    name: str
    help: str
    chart: str  # what its chart shows
    arguments: tuple[Argument, ...]
    more: str = ""  # further words on the command line
    by_name: Mapping[str, Argument] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {one.name: one for one in self.arguments})

    def check(self, given: Mapping[str, object]) -> None:
        """Raise where an argument is not what it must be, or lacks."""
        for argument in self.arguments:
            value = given.get(argument.name, argument.default)
            if argument.required and value is None:
                purpose = argument.help[0].lower() + argument.help[1:].rstrip(".")
                raise InputError(f"{self.name} needs {argument.name}: {purpose}")
            argument.check(value)


class Printed(Protocol):
    """What a command prints: its text is for people."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""

    def chart(self) -> Any:
        """Its picture."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of another package, by the entry point `unpooled.commands`.

    `run` takes `quiet`, where a program reads what is printed, and the arguments by their names.
    """

    analysis: Analysis
    run: Callable[..., Printed]


def select_methods(
    method: str | Sequence[str], every: Sequence[str], only_by_name: Sequence[str] = ()
) -> tuple[str, ...]:
    """The methods that are named, in order; "all" stands for every one but those only by name.

    Examples
    --------
    >>> select_methods(["sum", "weighted"], ["weighted", "sum", "fisher"])
    ('weighted', 'sum')
    """
    named = [method] if isinstance(method, str) else list(method)
    if "all" in named:
        named += [name for name in every if name not in only_by_name]
    return tuple(name for name in every if name in named)


_VARIABLE = Argument("variable", "variable", "The variable to analyse.", required=True)
_VARIABLES = Argument(
    "variable", "variables", "The variables to analyse, one or several.", required=True
)
_BY = Argument("by", "variable", "The variable that says who is in which group.")
_GROUPS = Argument(
    "groups", "names", "Which groups, in this order.", hint="--groups control patient"
)
_CUTS = Argument(
    "cuts",
    "numbers",
    "Where the grouping, a number, is cut into bands.",
    rule="numbers, such as cuts=(65,)",
    hint="--cuts 40 65",
)
_WHERE = Argument(
    "where",
    "text",
    "Which people, such as \"age >= 65 and sex == 'F'\".",
    rule="a condition in text",
)
_MAX_BINS = Argument("max_bins", "whole", "The largest number of bins.")
PEOPLE = (_BY, _GROUPS, _WHERE, _CUTS)
"""Who is analysed, in which groups: arguments of every analysis."""

TABLE = Analysis(
    "table",
    "A K-anonymous table of a variable, over all centers.",
    "the histogram",
    (
        _VARIABLE,
        *PEOPLE,
        Argument(
            "method",
            "choice",
            "chain (exact counts) or parallel (smooth, with bands).",
            "chain",
            ("chain", "parallel"),
        ),
        _MAX_BINS,
        Argument(
            "limits",
            "choice",
            "Outer limits: open, natural or buffer.",
            "open",
            ("open", "natural", "buffer"),
        ),
    ),
)

DESCRIBE = Analysis(
    "describe",
    "n, missing, mean and SD per group; Welch's t-test where there are two groups.",
    "the means",
    (_VARIABLE, *PEOPLE),
)

COMPARE = Analysis(
    "compare",
    "Does a variable differ between groups? Federated rank tests.",
    "the charts",
    (
        _VARIABLES,
        Argument("by", "variable", _BY.help, required=True),
        _GROUPS,
        Argument("ordered", "flag", "--groups ascend: test for a trend.", False),
        _WHERE,
        _CUTS,
        Argument(
            "alternative",
            "choice",
            "two-sided; greater: the second, or later, group is larger; less.",
            "two-sided",
            ("two-sided", "greater", "less"),
        ),
        Argument(
            "method",
            "choices",
            "weighted (recommended), sum, fisher, table, parallel, several, or all.",
            "weighted",
            ("weighted", "sum", "fisher", "table", "parallel"),
            hint="--method weighted, or --help for others",
            in_report="all",
        ),
        _MAX_BINS,
    ),
    "Two groups: Mann-Whitney. Three or more: Kruskal-Wallis, then every pair.\n"
    "A report shows what --method names; without --method, all methods and what the tables show.",
)

QUANTILES = Analysis(
    "quantiles",
    "Quantiles of a variable, by group.",
    "the box plot",
    (
        _VARIABLES,
        Argument(
            "p",
            "numbers",
            "Which quantiles.",
            (0.02, 0.25, 0.5, 0.75, 0.98),
            rule="numbers in (0, 1)",
            hint="--p .25 .5 .75",
        ),
        *PEOPLE,
        Argument(
            "method",
            "choices",
            "parallel (the default), yj-table, yj-likelihood, yj-grid, interpolation, several, or "
            "all; paper-grid only by name.",
            "parallel",
            ("parallel", "yj-table", "yj-likelihood", "yj-grid", "interpolation", "paper-grid"),
            hint="--method parallel, or --help for others",
        ),
    ),
)

SURVIVAL = Analysis(
    "survival",
    "Survival curves by group: Kaplan-Meier, log-rank, hazard ratio, restricted means.",
    "the curves",
    (
        Argument("time", "variable", "The variable that holds times.", required=True),
        Argument("event", "variable", "The variable that says who had the event.", required=True),
        *PEOPLE,
        Argument("event_is", "anything", "The value of the event variable that means the event."),
        Argument("horizon", "number", "How far to look; follow-up beyond it is cut there."),
        Argument(
            "at",
            "numbers",
            "Times at which survival is shown.",
            rule="numbers, such as at=[12, 36, 60]",
            hint="--at 12 36 60",
        ),
        Argument("entry", "anything", "Not possible.", python_only=True),
    ),
)

CROSSTAB = Analysis(
    "crosstab",
    "Two categories: counts, percentages, and whether they go together.",
    "the shares of each level",
    (
        _VARIABLE,
        Argument("by", "variable", _BY.help, required=True),
        _GROUPS,
        _WHERE,
        _CUTS,
        Argument(
            "levels",
            "names",
            "Which levels, in this order; others are one. Without it, those that K people have.",
            hint="--levels I II III",
        ),
        Argument("ordered", "flag", "The levels rise: merge neighbours, test for a trend.", False),
    ),
    "Chi-square and the exact test, Cochran-Mantel-Haenszel within centers; of two groups and\n"
    "levels odds ratio, risk ratio and difference. Merged levels have bounds in place of a count.",
)

TABLE1 = Analysis(
    "table1",
    "Table 1: who the people are, variable by variable and group by group.",
    "the love plot",
    (
        Argument(
            "variables",
            "variables",
            "The variables, in this order; of a book all of them, if none is named.",
        ),
        *PEOPLE,
        Argument(
            "categories",
            "names",
            "Which variables are categories; text and few whole numbers are anyway.",
            hint="--categories stage died",
        ),
        Argument(
            "layout",
            "choice",
            "full, or as gtsummary or tableone lay it out.",
            "full",
            ("full", "gtsummary", "tableone"),
        ),
    ),
    "n (%), mean (SD), median [Q1, Q3], missing, p-values and standardised differences.",
)

ANALYSES = (TABLE, TABLE1, DESCRIBE, CROSSTAB, COMPARE, QUANTILES, SURVIVAL)
