"""Several variables in a go: one row a variable, p-values adjusted for their number."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from unpooled.errors import InputError, MissingError, UnpooledError
from unpooled.maths.multiplicity import benjamini_hochberg, holm
from unpooled.results.compare import CompareResult
from unpooled.results.groups import GroupsResult
from unpooled.results.interval import interval_cells, interval_dict
from unpooled.results.quantiles import QuantilesResult, QuantileSummary, estimate_text
from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal, refusals_of
from unpooled.results.releases import Releases
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences, parts_html
from unpooled.results.report.text import count, p_text
from unpooled.results.reporting import write_report
from unpooled.results.result import Result

if TYPE_CHECKING:
    import altair

REACH = ("centers", "people")

R = TypeVar("R")
C = TypeVar("C", CompareResult, GroupsResult)
LOG10 = 2.302585092994046


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """A variable's result, or why there is none."""

    value: str
    result: R | None
    problem: str | None


def each(values: Sequence[str], run: Callable[[str], R]) -> tuple[Outcome[R], ...]:
    """Run every variable; one that fails does not stop the others."""
    if not values:
        raise InputError("name at least one variable, got none")
    if len(set(values)) != len(values):
        raise InputError(f"variables must differ, got {', '.join(values)}")
    outcomes: list[Outcome[R]] = []
    for value in values:
        try:
            outcomes.append(Outcome(value, run(value), None))
        except MissingError:  # it is missing for every variable
            raise
        except UnpooledError as error:
            outcomes.append(Outcome(value, None, str(error)))
    if all(outcome.result is None for outcome in outcomes):
        raise InputError("\n".join(f"{o.value}: {o.problem}" for o in outcomes))
    return tuple(outcomes)


@dataclass(frozen=True, slots=True, repr=False)
class Comparisons(Result, Generic[C]):
    """Comparisons of several variables, with Holm's and Benjamini-Hochberg's p-values."""

    outcomes: tuple[Outcome[C], ...]

    @property
    def results(self) -> tuple[C, ...]:
        """The comparisons that there are."""
        return tuple(o.result for o in self.outcomes if o.result is not None)

    @property
    def record(self) -> Record:
        """The circumstances of all results together."""
        return joint_record(self.results)

    @property
    def refusals(self) -> tuple[CenterRefusal, ...]:
        """What was refused, each once."""
        return _refusals(self.outcomes)

    def _adjusted(self) -> tuple[list[float], list[float]]:
        """Decimal logarithms of the adjusted p-values, in the order of `results`."""
        logs = [result.test.log_p for result in self.results]
        return (holm(logs) / LOG10).tolist(), (benjamini_hochberg(logs) / LOG10).tolist()

    @abstractmethod
    def shown(self, result: C) -> dict[str, Any]:
        """What a variable's row tells beside its p-values."""

    @abstractmethod
    def columns(self) -> tuple[list[str], list[list[str]]]:
        """A row a variable."""

    @abstractmethod
    def chart(self) -> "altair.TopLevelMixin":
        """The effects on each variable."""

    def notes(self) -> list[str]:
        """What is unusual about a variable's test, above all a biased sample of centers."""
        notes = [(r.value, r.why if r.biased else r.test.note) for r in self.results]
        return [f"{value}: {note}" for value, note in notes if note is not None]

    def parts(self) -> list[Part]:
        """A row a variable, and what to know about it."""
        return [Grid(*self.columns()), Remarks.notes(self.notes()), left_out(self.outcomes)]

    def records(self) -> list[dict[str, Any]]:
        """A row a variable."""
        rows = []
        for row, result in zip(self.to_dict()["rows"], self.results, strict=True):
            plain = {"variable" if name == "value" else name: v for name, v in row.items()}
            plain |= plain.pop("effect", None) or {}
            reach = result.reach
            rows.append({**plain, "centers": reach.answered, "people": reach.people})
        return rows

    def p_cells(self) -> list[list[str]]:
        """Each variable's p-value, plain and adjusted both ways."""
        plain = [result.log10_p for result in self.results]
        rows = zip(plain, *self._adjusted(), strict=True)
        return [[p_text(p).removeprefix("= ") for p in row] for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """A row a variable, and each whole result."""
        by_holm, by_bh = self._adjusted()
        rows = [
            {
                "value": r.value,
                "method": r.test.method,
                "p_value": r.p_value,
                "log10_p": r.log10_p,
                "holm": 10**h,
                "holm_log10": h,
                "benjamini_hochberg": 10**b,
                "benjamini_hochberg_log10": b,
                **self.shown(r),
            }
            for r, h, b in zip(self.results, by_holm, by_bh, strict=True)
        ]
        return {
            "rows": rows,
            "results": [result.to_dict() for result in self.results],
            "problems": problems(self.outcomes),
        }

    def report(self, path: str | Path) -> Path:
        """Write a report on all variables to one HTML file."""
        caption = "The effect on each variable; ½ (dashed) means no difference."
        body = parts_html(self.parts())
        sections = [Section("All variables", body, [Figure(self.chart(), caption)])]
        for result in self.results:
            sections += [
                Section(f"{result.value}: {s.heading.lower()}", s.body, s.figures)
                for s in result.sections()
            ]
        return write_report(path, self.title, sections, self.record, self.refusals)

    @property
    def title(self) -> str:
        """What was compared."""
        first = self.results[0]
        return f"{count(len(self.results), 'variable')} by {first.by}"


@dataclass(frozen=True, slots=True, repr=False)
class SeveralComparisons(Comparisons[CompareResult]):
    """Comparisons of two groups, of several variables."""

    def notes(self) -> list[str]:
        """What is unusual, also where all people together contradict the effect within centers."""
        x, y = self.results[0].groups
        contradictions = [
            f"{r.value}: {r.paradox.sentence(x, y)}" for r in self.results if r.paradox is not None
        ]
        return [*Comparisons.notes(self), *contradictions]

    def shown(self, result: CompareResult) -> dict[str, Any]:
        """The effect."""
        return {"effect": None if result.effect is None else interval_dict(result.effect)}

    def chart(self) -> "altair.TopLevelMixin":
        """The overall effect of each variable."""
        from unpooled.results.report.charts import forest

        rows = [
            (r.value, sum(c.ranks.n_x + c.ranks.n_y for c in r.centers), r.effect)
            for r in self.results
            if r.effect is not None
        ]
        x, y = self.results[0].groups
        return forest(rows, f"P({y} > {x})")

    def columns(self) -> tuple[list[str], list[list[str]]]:
        """A row a variable."""
        rows = [
            [
                r.value,
                r.test.method,
                *p,
                *(("–", "–") if r.effect is None else interval_cells(r.effect)),
                *reach_cells(r),
            ]
            for r, p in zip(self.results, self.p_cells(), strict=True)
        ]
        x, y = self.results[0].groups
        adjusted = ["p", "Holm", "Benjamini-Hochberg"]
        effect = [f"P({y} > {x})", "95 % interval"]
        return ["variable", "method", *adjusted, *effect, *REACH], rows


@dataclass(frozen=True, slots=True, repr=False)
class SeveralQuantiles(Result):
    """Quantiles of several variables."""

    outcomes: tuple[Outcome[QuantilesResult | QuantileSummary], ...]

    @property
    def results(self) -> tuple[QuantilesResult | QuantileSummary, ...]:
        """The results that there are."""
        return tuple(o.result for o in self.outcomes if o.result is not None)

    @property
    def record(self) -> Record:
        """The circumstances of all results together."""
        return joint_record([r for s in self.summaries for r in s.results])

    @property
    def refusals(self) -> tuple[CenterRefusal, ...]:
        """What was refused, each once."""
        return _refusals(self.outcomes)

    @property
    def summaries(self) -> tuple[QuantileSummary, ...]:
        """Each variable's table."""
        return tuple(
            r if isinstance(r, QuantileSummary) else QuantileSummary((r,)) for r in self.results
        )

    def to_dict(self) -> dict[str, Any]:
        """Each whole result."""
        return {
            "results": [result.to_dict() for result in self.results],
            "problems": problems(self.outcomes),
        }

    def chart(self) -> "altair.TopLevelMixin":
        """The box plots, one below the other."""
        import altair

        charts: Any = [summary.chart() for summary in self.summaries]
        return altair.vconcat(*charts)

    def report(self, path: str | Path) -> Path:
        """Write a report on all variables to one HTML file."""
        sections = [Section("All variables", parts_html(self.parts()))]
        for summary in self.summaries:
            value = summary.results[0].value
            sections += [
                Section(f"{value}: {s.heading.lower()}", s.body, s.figures)
                for s in summary.sections()
            ]
        return write_report(path, self.title, sections, self.record, self.refusals)

    def columns(self) -> tuple[list[str], list[list[str]]]:
        """A row per variable, group and method; a column per p."""
        one = self.summaries[0].results[0]
        p = list(dict.fromkeys(q.p for q in one.quantiles))
        rows = []
        for result in (r for s in self.summaries for r in s.results):
            for group in dict.fromkeys(q.group for q in result.quantiles):
                found = [estimate_text(q) for q in result.quantiles if q.group == group]
                rows.append([result.value, group, result.method, *found])
        return ["variable", "group", "method", *(f"{v:g}" for v in p)], rows

    @property
    def title(self) -> str:
        """What was estimated."""
        return f"Quantiles of {', '.join(s.results[0].value for s in self.summaries)}"

    def parts(self) -> list[Part]:
        """The estimates, and what to know about them."""
        whom, notes = Sentences(self.reaches()), Remarks.notes(self.notes())
        return [Grid(*self.columns()), whom, left_out(self.outcomes), notes]

    def records(self) -> list[dict[str, Any]]:
        """A row per variable, method, group and quantile."""
        return [row for summary in self.summaries for row in summary.records()]

    def reaches(self) -> list[str]:
        """Whom each variable's estimates are of."""
        return [
            f"{result.value}, {result.method}: {result.reach}."
            for summary in self.summaries
            for result in summary.results
        ]

    def notes(self) -> list[str]:
        """What is unusual about single estimates."""
        return [f"{s.results[0].value}, {note}" for s in self.summaries for note in s.notes()]


def reach_cells(result: CompareResult | GroupsResult) -> tuple[str, str]:
    """How many centers and people a row is of."""
    reach = result.reach
    answered = str(reach.every) if reach.whole else f"{reach.answered} of {reach.every}"
    return answered, f"{reach.people:,.0f}"


def joint_record(results: Sequence[CompareResult | GroupsResult | QuantilesResult]) -> Record:
    """The circumstances of several results together."""
    received = dict.fromkeys(release for r in results for release in r.record.releases)
    nearest = dict.fromkeys(near for r in results for near in r.record.nearest)
    left = Releases(tuple(received))
    return replace(results[0].record, releases=left, nearest=tuple(nearest))


def problems(outcomes: Sequence[Outcome[Any]]) -> list[dict[str, str | None]]:
    """Which variables have no result, and why."""
    return [{"value": o.value, "problem": o.problem} for o in outcomes if o.result is None]


def left_out(outcomes: Sequence[Outcome[Any]]) -> Remarks:
    """The same in words."""
    problems = [f"{o.value}: {o.problem}" for o in outcomes if o.result is None]
    return Remarks("Left out", [("left out", problem) for problem in problems])


def _refusals(outcomes: Sequence[Outcome[Any]]) -> tuple[CenterRefusal, ...]:
    return refusals_of((o.value, o.result.refusals) for o in outcomes if o.result is not None)
