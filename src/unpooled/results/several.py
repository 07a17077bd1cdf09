"""Several variables in a go: one row a variable, p-values adjusted for their number."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from unpooled.errors import InputError, MissingError, UnpooledError
from unpooled.maths.multiplicity import benjamini_hochberg, holm
from unpooled.report.html import Html
from unpooled.report.page import Figure, Section
from unpooled.report.text import columns_text, count, p_text
from unpooled.results.compare import CompareResult
from unpooled.results.groups import GroupsResult
from unpooled.results.interval import interval_cells, interval_dict
from unpooled.results.quantiles import QuantilesResult, QuantileSummary, estimate_text
from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal, refusal_sentence, refusals_of, refusals_text
from unpooled.results.releases import Releases
from unpooled.results.reporting import write_report

if TYPE_CHECKING:
    import altair

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


@dataclass(frozen=True, slots=True)
class Comparisons(ABC, Generic[C]):
    """Comparisons of several variables, with Holm's and Benjamini-Hochberg's p-values."""

    outcomes: tuple[Outcome[C], ...]

    @property
    def results(self) -> tuple[C, ...]:
        """The comparisons that there are."""
        return tuple(o.result for o in self.outcomes if o.result is not None)

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
        body = Html().table(*self.columns())
        body = body.items("Left out", problem_sentences(self.outcomes))
        sections = [Section("All variables", body, [Figure(self.chart(), caption)])]
        whole = tuple(result.whole() for result in self.results)
        for result in whole:
            sections += [
                Section(f"{result.value}: {s.heading.lower()}", s.body, s.figures)
                for s in result.sections()
            ]
        refusals = refusals_of((result.value, result.refusals) for result in whole)
        return write_report(path, self.title, sections, joint_record(whole), refusals)

    @property
    def title(self) -> str:
        """What was compared."""
        first = self.results[0]
        return f"{count(len(self.results), 'variable')} by {first.by}"

    def __str__(self) -> str:
        told = f"{self.title}\n{columns_text(*self.columns())}{_problem_lines(self.outcomes)}"
        return f"{told}{refusals_text(self.refusals)}"

    def _repr_html_(self) -> str:
        page = Html().heading(self.title).table(*self.columns())
        page = page.items("Left out", problem_sentences(self.outcomes))
        return str(page.items("Refused", map(refusal_sentence, self.refusals)))


@dataclass(frozen=True, slots=True)
class SeveralComparisons(Comparisons[CompareResult]):
    """Comparisons of two groups, of several variables."""

    def shown(self, result: CompareResult) -> dict[str, Any]:
        """The effect."""
        return {"effect": None if result.effect is None else interval_dict(result.effect)}

    def chart(self) -> "altair.TopLevelMixin":
        """The overall effect of each variable."""
        from unpooled.report.charts import forest

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
            ]
            for r, p in zip(self.results, self.p_cells(), strict=True)
        ]
        x, y = self.results[0].groups
        adjusted = ["p", "Holm", "Benjamini-Hochberg"]
        return ["variable", "method", *adjusted, f"P({y} > {x})", "95 % interval"], rows


@dataclass(frozen=True, slots=True)
class SeveralQuantiles:
    """Quantiles of several variables."""

    outcomes: tuple[Outcome[QuantilesResult | QuantileSummary], ...]

    @property
    def results(self) -> tuple[QuantilesResult | QuantileSummary, ...]:
        """The results that there are."""
        return tuple(o.result for o in self.outcomes if o.result is not None)

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
        body = Html().table(*self.columns())
        body = body.items("Left out", problem_sentences(self.outcomes))
        sections = [Section("All variables", body)]
        for summary in self.summaries:
            value = summary.results[0].value
            sections += [
                Section(f"{value}: {s.heading.lower()}", s.body, s.figures)
                for s in summary.sections()
            ]
        every = [result for summary in self.summaries for result in summary.results]
        title = f"Quantiles of {', '.join(s.results[0].value for s in self.summaries)}"
        return write_report(path, title, sections, joint_record(every), self.refusals)

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

    def __str__(self) -> str:
        told = f"{columns_text(*self.columns())}{_problem_lines(self.outcomes)}"
        notes = "".join(f"\nnote: {note}" for note in self.notes())
        return f"{told}{notes}{refusals_text(self.refusals)}"

    def notes(self) -> list[str]:
        """What is unusual about single estimates."""
        return [f"{s.results[0].value}, {note}" for s in self.summaries for note in s.notes()]

    def _repr_html_(self) -> str:
        page = Html().table(*self.columns()).items("Notes", self.notes())
        page = page.items("Left out", problem_sentences(self.outcomes))
        return str(page.items("Refused", map(refusal_sentence, self.refusals)))


def joint_record(results: Sequence[CompareResult | GroupsResult | QuantilesResult]) -> Record:
    """The circumstances of several results together."""
    received = dict.fromkeys(release for r in results for release in r.record.releases)
    return replace(results[0].record, releases=Releases(tuple(received)))


def problems(outcomes: Sequence[Outcome[Any]]) -> list[dict[str, str | None]]:
    """Which variables have no result, and why."""
    return [{"value": o.value, "problem": o.problem} for o in outcomes if o.result is None]


def problem_sentences(outcomes: Sequence[Outcome[Any]]) -> list[str]:
    """The same in words."""
    return [f"{o.value}: {o.problem}" for o in outcomes if o.result is None]


def _refusals(outcomes: Sequence[Outcome[Any]]) -> tuple[CenterRefusal, ...]:
    return refusals_of((o.value, o.result.refusals) for o in outcomes if o.result is not None)


def _problem_lines(outcomes: Sequence[Outcome[Any]]) -> str:
    return "".join(f"\nleft out: {sentence}" for sentence in problem_sentences(outcomes))
