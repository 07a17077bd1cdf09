"""Several variables in a go: one row a variable, p-values adjusted for their number."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from unpooled.errors import InputError, MissingError, UnpooledError
from unpooled.maths.multiplicity import benjamini_hochberg, holm
from unpooled.results.numbers.compare import CompareResult, df_cell, p_cell
from unpooled.results.numbers.quantiles import QuantilesResult, QuantileSummary, estimate_text
from unpooled.results.provenance.record import Record
from unpooled.results.provenance.refusals import CenterRefusal, refusals_of
from unpooled.results.provenance.releases import Releases
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences
from unpooled.results.report.text import count, interval_cells, interval_dict, number
from unpooled.results.result import Result

if TYPE_CHECKING:
    import altair

R = TypeVar("R", CompareResult, QuantileSummary)
S = TypeVar("S")
_LOG10 = math.log(10)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[S]):
    """A variable's result, or why there is none."""

    variable: str
    result: S | None
    problem: str | None


def each(variables: Sequence[str], run: Callable[[str], S]) -> tuple[Outcome[S], ...]:
    """Run every variable; one that fails does not stop the others."""
    if not variables:
        raise InputError("name at least one variable, got none")
    if len(set(variables)) != len(variables):
        raise InputError(f"variables must differ, got {', '.join(variables)}")
    outcomes: list[Outcome[S]] = []
    for variable in variables:
        try:
            outcomes.append(Outcome(variable, run(variable), None))
        except MissingError:  # it is missing for every variable
            raise
        except UnpooledError as error:
            outcomes.append(Outcome(variable, None, str(error)))
    if all(outcome.result is None for outcome in outcomes):
        raise InputError("\n".join(f"{o.variable}: {o.problem}" for o in outcomes))
    return tuple(outcomes)


class ManyVariables(Result, Generic[R]):
    """The results of several variables; those without one say why."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def outcomes(self) -> tuple[Outcome[R], ...]: ...

    @property
    def results(self) -> tuple[R, ...]:
        """The results that there are."""
        return tuple(o.result for o in self.outcomes if o.result is not None)

    @property
    def record(self) -> Record:
        """The circumstances of all results together."""
        records = [result.record for result in self.results]
        releases = Releases.each_once(one.releases for one in records)
        nearest = dict.fromkeys(near for one in records for near in one.nearest)
        return replace(records[0], releases=releases, nearest=tuple(nearest))

    @property
    def refusals(self) -> tuple[CenterRefusal, ...]:
        """What was refused, each once."""
        return refusals_of(
            (o.variable, o.result.refusals) for o in self.outcomes if o.result is not None
        )

    @abstractmethod
    def notes(self) -> list[str]:
        """What is unusual about single variables."""

    @abstractmethod
    def figures(self) -> list[Figure]:
        """What a report shows of all variables together."""

    def _last_parts(self) -> list[Part]:
        """What to know, and which variables have no result."""
        left_out = [
            ("left out", f"{o.variable}: {o.problem}") for o in self.outcomes if o.result is None
        ]
        return [Remarks.notes(self.notes()), Remarks("Left out", left_out)]

    def _problems(self) -> list[dict[str, str | None]]:
        return [
            {"value": o.variable, "problem": o.problem} for o in self.outcomes if o.result is None
        ]

    def sections(self) -> list[Section]:
        """All variables together, then each by itself."""
        single: list[Section] = [
            Section(f"{o.variable}: {s.heading.lower()}", s.parts, s.figures)
            for o in self.outcomes
            if o.result is not None
            for s in o.result.sections()
        ]
        return [Section("All variables", self.parts(), self.figures()), *single]


@dataclass(frozen=True, slots=True, repr=False)
class ManyComparisons(ManyVariables[CompareResult]):
    """Comparisons of several variables, with Holm's and Benjamini-Hochberg's p-values.

    All variables compare the same groups.
    """

    outcomes: tuple[Outcome[CompareResult], ...]

    @property
    def title(self) -> str:
        """What was compared."""
        return f"{count(len(self.results), 'variable')} by {self.results[0].by}"

    @property
    def _of_two(self) -> bool:
        return self.results[0].of_two

    def _adjusted(self) -> tuple[list[float], list[float]]:
        """Decimal logarithms of the adjusted p-values, in the order of `results`."""
        logs = [result.test.log_p for result in self.results]
        return (holm(logs) / _LOG10).tolist(), (benjamini_hochberg(logs) / _LOG10).tolist()

    def notes(self) -> list[str]:
        """A biased sample of centers, and effects that all people together contradict."""
        notes = [(r.variable, r.why if r.biased else r.test.note) for r in self.results]
        return [f"{variable}: {note}" for variable, note in notes if note is not None] + [
            f"{r.variable}: {r.paradox.sentence(*r.pairs[0].groups)}"
            for r in self.results
            if r.paradox is not None
        ]

    def parts(self) -> list[Part]:
        """A row a variable, and what to know about it."""
        of_two = self._of_two
        outcome = [self.results[0].pairs[0].label, "95 % interval"] if of_two else []
        name = "method" if of_two else self.results[0].test_name
        test = [] if of_two else ["statistic", "df"]
        adjusted = ["p", "Holm", "Benjamini-Hochberg"]
        header = ["variable", name, *test, *adjusted, *outcome, "centers", "people"]
        logs = zip([r.log10_p for r in self.results], *self._adjusted(), strict=True)
        rows = [
            [
                r.variable,
                r.test.method,
                *([] if of_two else (number(r.test.statistic), df_cell(r.test))),
                *map(p_cell, log10_p),
                *(_effect_cells(r) if of_two else []),
                *_reach_cells(r),
            ]
            for r, log10_p in zip(self.results, logs, strict=True)
        ]
        return [Grid(header, rows), *self._last_parts()]

    def records(self) -> list[dict[str, Any]]:
        """A row a variable."""
        rows = []
        for row, result in zip(self.to_dict()["rows"], self.results, strict=True):
            plain = {"variable" if name == "value" else name: v for name, v in row.items()}
            plain |= plain.pop("effect", None) or {}
            reach = result.reach
            rows.append({**plain, "centers": reach.answered, "people": reach.people})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """A row a variable, and each whole result."""
        by_holm, by_bh = self._adjusted()
        rows = [
            {
                "value": r.variable,
                "method": r.test.method,
                "p_value": r.p_value,
                "log10_p": r.log10_p,
                "holm": 10**h,
                "holm_log10": h,
                "benjamini_hochberg": 10**b,
                "benjamini_hochberg_log10": b,
                **_outcome_dict(r),
            }
            for r, h, b in zip(self.results, by_holm, by_bh, strict=True)
        ]
        results = [result.to_dict() for result in self.results]
        return {"rows": rows, "results": results, "problems": self._problems()}

    def chart(self) -> "altair.TopLevelMixin":
        """The effect on each variable; of several groups those of each variable's pairs."""
        import altair

        from unpooled.results.charts.charts import forest

        if not self._of_two:
            charts: Any = [result.forest() for result in self.results if result.centers]
            charts = charts or [result.chart() for result in self.results]
            return altair.vconcat(*charts)
        rows = [
            (r.variable, sum(center.people for center in r.centers), r.effect)
            for r in self.results
            if r.effect is not None
        ]
        return forest(rows, self.results[0].pairs[0].label)

    def figures(self) -> list[Figure]:
        """The effects."""
        caption = "The effect on each variable; ½ (dashed) means no difference."
        return [Figure(self.chart(), caption)]


@dataclass(frozen=True, slots=True, repr=False)
class ManyQuantiles(ManyVariables[QuantileSummary]):
    """Quantiles of several variables."""

    outcomes: tuple[Outcome[QuantileSummary], ...]

    @property
    def title(self) -> str:
        """What was estimated."""
        return f"Quantiles of {', '.join(summary.variable for summary in self.results)}"

    def _by_method(self) -> list[QuantilesResult]:
        return [result for summary in self.results for result in summary.results]

    def parts(self) -> list[Part]:
        """A row per variable, group and method; a column per p."""
        by_method = self._by_method()
        p = list(dict.fromkeys(q.p for q in by_method[0].quantiles))
        rows = [
            [
                result.variable,
                group,
                result.method,
                *(estimate_text(q) for q in result.quantiles if q.group == group),
            ]
            for result in by_method
            for group in dict.fromkeys(q.group for q in result.quantiles)
        ]
        grid = Grid(["variable", "group", "method", *(f"{v:g}" for v in p)], rows)
        reaches = [f"{r.variable}, {r.method}: {r.reach}." for r in by_method]
        notes, left_out = self._last_parts()
        return [grid, Sentences(reaches), left_out, notes]

    def notes(self) -> list[str]:
        """What is unusual about single estimates."""
        return [f"{s.variable}, {note}" for s in self.results for note in s.notes()]

    def records(self) -> list[dict[str, Any]]:
        """A row per variable, method, group and quantile."""
        return [row for summary in self.results for row in summary.records()]

    def to_dict(self) -> dict[str, Any]:
        """Each whole result."""
        plain = [s.results[0] if len(s.results) == 1 else s for s in self.results]
        return {"results": [one.to_dict() for one in plain], "problems": self._problems()}

    def chart(self) -> "altair.TopLevelMixin":
        """The box plots, one below the other."""
        import altair

        charts: Any = [summary.chart() for summary in self.results]
        return altair.vconcat(*charts)

    def figures(self) -> list[Figure]:
        """None: each variable has its own."""
        return []


def _effect_cells(result: CompareResult) -> tuple[str, str]:
    return ("–", "–") if result.effect is None else interval_cells(result.effect)


def _outcome_dict(result: CompareResult) -> dict[str, Any]:
    """The effect on two groups; the statistic of more."""
    if result.of_two:
        return {"effect": None if result.effect is None else interval_dict(result.effect)}
    return {"statistic": result.test.statistic, "df": result.test.df}


def _reach_cells(result: CompareResult) -> tuple[str, str]:
    """How many centers and people a row is of."""
    reach = result.reach
    answered = str(reach.every) if reach.whole else f"{reach.answered} of {reach.every}"
    return answered, f"{reach.people:,.0f}"
