"""A table of two categories, as the analyst holds it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unpooled.maths.arrays import FloatArray
from unpooled.maths.categories.bounds import CountBounds
from unpooled.maths.categories.contingency import Chi2Test, ExactTest
from unpooled.maths.ranks.effect import Heterogeneity, Interval
from unpooled.maths.ranks.mann_whitney import TestResult
from unpooled.results.provenance.record import Reach, Record
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.page import Figure
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences
from unpooled.results.report.text import (
    count,
    interval_dict,
    interval_text,
    number,
    p_text,
    people_text,
)
from unpooled.results.result import Result, subject

if TYPE_CHECKING:
    import altair

SMALL_EXPECTED = 5.0  # people: with fewer in a cell, chi-square's p-value is not to be trusted


@dataclass(frozen=True, slots=True)
class TwoByTwo:
    """How much the chance of the second level differs between two groups, within strata."""

    level: str  # whose chance
    groups: tuple[str, str]  # the second is compared with the first
    odds_ratio: Interval | None
    risk_ratio: Interval | None
    risk_difference: Interval | None
    breslow_day: Chi2Test
    spread: Heterogeneity

    def to_dict(self) -> dict[str, Any]:
        """As plain values; an infinite limit is None."""
        return {
            "odds_ratio": _interval(self.odds_ratio),
            "risk_ratio": _interval(self.risk_ratio),
            "risk_difference": _interval(self.risk_difference),
            "heterogeneity": {
                "breslow_day": _chi2(self.breslow_day),
                "q": self.spread.q,
                "df": self.spread.df,
                "p_value": self.spread.p_value,
                "i2": self.spread.i2,
            },
        }

    def sentences(self, units: str) -> list[str]:
        """In words."""
        x, y = self.groups
        about = f"of {self.level}, {y} against {x}"
        sentences = [
            f"{name} {about}: {_ratio_text(ratio)}, within {units} (Mantel-Haenszel)."
            for name, ratio in (
                ("Odds ratio", self.odds_ratio),
                ("Risk ratio", self.risk_ratio),
                ("Risk difference", self.risk_difference),
            )
            if ratio is not None
        ]
        if self.breslow_day.df:
            test = self.breslow_day
            sentences.append(
                f"Between {units}: Breslow and Day's χ² = {number(test.statistic, 3)} on "
                f"{count(test.df, 'degree')} of freedom, p {p_text(test.log10_p)}; "
                f"I² = {self.spread.i2:.0%}."
            )
        return sentences


@dataclass(frozen=True, slots=True)
class CenterCounts:
    """A center's own counts, group by group: cells of one level, or of several merged."""

    center: str
    stratum: str | None
    cells: tuple[tuple[str, tuple[tuple[tuple[str, ...], int], ...]], ...]  # group, its cells

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        fields: dict[str, Any] = {"center": self.center}
        if self.stratum is not None:
            fields["stratum"] = self.stratum
        fields["groups"] = [
            {"group": group, "cells": [{"levels": list(some), "count": n} for some, n in cells]}
            for group, cells in self.cells
        ]
        return fields

    @property
    def people(self) -> int:
        """Everybody in it."""
        return sum(n for _, cells in self.cells for _, n in cells)


@dataclass(frozen=True, slots=True, repr=False)
class CrosstabResult(Result):
    """People by group and level, how sure that is, and whether the two go together.

    Tests are exact of what was counted: where a center merged levels, of the levels that are left
    (`joined` says which are one there).
    """

    variable: str
    by: str
    where: str | None
    ordered: bool
    groups: tuple[str, ...]
    bounds: CountBounds
    joined: tuple[tuple[str, ...], ...]
    chi2: Chi2Test | None
    exact: ExactTest | None
    cmh: Chi2Test | None
    trend: TestResult | None
    cramers_v: float | None
    two_by_two: TwoByTwo | None
    expected: float | None  # the smallest expected count
    missing: tuple[tuple[str, int | None], ...]  # of each group, None: fewer than K somewhere
    centers: tuple[CenterCounts, ...]
    refusals: tuple[CenterRefusal, ...]
    rounds: int
    estimated: FloatArray  # counts, with merged people shared out by a model: never shown
    strata: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()  # of tests: centers that merged levels, and people
    record: Record = field(default_factory=Record)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels, in order."""
        return self.bounds.levels

    @property
    def reach(self) -> Reach:
        """Whom it is of."""
        people = float(self.bounds.people.sum())
        return Reach.of((c.center for c in self.centers), people, self.record, self.refusals)

    @property
    def title(self) -> str:
        """What was asked."""
        about = subject(self.variable, self.by, self.where)
        about += f", within {' and '.join(self.strata)}" if self.strata else ""
        return f"{about}: {self.reach}"

    @property
    def test(self) -> Chi2Test | ExactTest | TestResult | None:
        """The test to rely on: within centers; for a trend where levels have an order."""
        if self.trend is not None and self.trend.statistic:
            return self.trend
        if self.cmh is not None and self.cmh.df:
            return self.cmh
        if (
            self.exact is not None
            and self.expected is not None
            and (self.expected < SMALL_EXPECTED)
        ):
            return self.exact
        return self.chi2

    @property
    def answer(self) -> str:
        """Whether they go together, how sure, and in which people."""
        test = self.test
        if test is None:
            return f"{self.variable} by {self.by}: nothing to test, {self.reach}."
        sure = test.log10_p < -1.30103
        says = "goes with" if sure else "does not clearly go with"
        effect = ""
        if self.two_by_two is not None and self.two_by_two.odds_ratio is not None:
            x, y = self.two_by_two.groups
            ratio = _ratio_text(self.two_by_two.odds_ratio)
            effect = f"odds ratio of {self.two_by_two.level}, {y} against {x}, {ratio}; "
        return f"{self.variable} {says} {self.by}: {effect}p {p_text(test.log10_p)}, {self.reach}."

    def parts(self) -> list[Part]:
        """Counts and percentages, then tests."""
        return [self.grid(), Sentences(self.sentences()), Remarks.notes(self.notes())]

    def grid(self) -> Grid:
        """A row per level, a column per group and one for everybody."""
        people = [round(n) for n in self.bounds.people.tolist()]
        header = [
            self.variable,
            *(f"{g}, n = {n}" for g, n in zip(self.groups, people, strict=True)),
        ]
        header.append(f"all, n = {sum(people)}")
        rows = [
            [
                level,
                *(self.cell(group, place) for group in range(len(self.groups))),
                _cell(
                    float(self.bounds.low[:, place].sum()),
                    float(self.bounds.high[:, place].sum()),
                    float(self.bounds.people.sum()),
                ),
            ]
            for place, level in enumerate(self.levels)
        ]
        return Grid(header, rows)

    def cell(self, group: int, level: int) -> str:
        """One count with its percentage, or between which numbers both lie."""
        low, high = float(self.bounds.low[group, level]), float(self.bounds.high[group, level])
        return _cell(low, high, float(self.bounds.people[group]))

    def sentences(self) -> list[str]:
        """The tests, in words."""
        sentences = []
        units = "centers and strata" if self.strata else "centers"
        if self.chi2 is not None:
            v = "" if self.cramers_v is None else f"; Cramér's V = {number(self.cramers_v, 3)}"
            sentences.append(f"Pooled chi-square: {_test_text(self.chi2)}{v}.")
        if self.exact is not None:
            sentences.append(f"Exact test: p {p_text(self.exact.log10_p)}.")
        if self.cmh is not None and self.cmh.df:
            sentences.append(f"Within {units} (Cochran-Mantel-Haenszel): {_test_text(self.cmh)}.")
        if self.trend is not None:
            sentences.append(
                f"Trend over the levels, within {units}: z = {number(self.trend.statistic)}, "
                f"p {p_text(self.trend.log10_p)}."
            )
        if self.two_by_two is not None:
            sentences += self.two_by_two.sentences(units)
        return sentences

    def notes(self) -> list[str]:
        """What is unusual."""
        notes = []
        if self.joined:
            shown = "; ".join(" with ".join(some) for some in self.joined)
            some = self.chi2 is not None or self.cmh is not None or self.exact is not None
            what = "tests are of fewer levels" if some else "there is no test"
            notes.append(f"{what}, since centers merged levels of too few people: {shown}")
        if self.left_out and (self.chi2 is not None or self.cmh is not None):
            shown = ", ".join(f"{center} ({people_text(n)})" for center, n in self.left_out)
            notes.append(f"tests leave out people of {shown}, where levels are merged")
        if self.expected is not None and self.expected < SMALL_EXPECTED:
            rely = "chi-square is rough" if self.exact is None else "rely on the exact test"
            notes.append(f"the smallest expected count is {number(self.expected, 2)}: {rely}")
        for group, missing in self.missing:
            if missing:
                notes.append(f"{group}: {missing} or more people without {self.variable} left out")
        return notes

    def records(self) -> list[dict[str, Any]]:
        """A row per group and level."""
        bounds = self.bounds
        return [
            {
                "variable": self.variable,
                "group": group,
                "level": level,
                "n": _exact(bounds.low[i, j], bounds.high[i, j]),
                "low": int(bounds.low[i, j]),
                "high": int(bounds.high[i, j]),
                "percent_low": float(bounds.percent_low[i, j]),
                "percent_high": float(bounds.percent_high[i, j]),
            }
            for i, group in enumerate(self.groups)
            for j, level in enumerate(self.levels)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; counts that are not known exactly are None."""
        bounds = self.bounds
        return {
            "variable": self.variable,
            "by": self.by,
            "where": self.where,
            "strata": list(self.strata),
            "levels": list(self.levels),
            "groups": list(self.groups),
            "ordered": self.ordered,
            "counts": [
                [_exact(low, high) for low, high in zip(lows, highs, strict=True)]
                for lows, highs in zip(bounds.low, bounds.high, strict=True)
            ],
            "low": bounds.low.astype(int).tolist(),
            "high": bounds.high.astype(int).tolist(),
            "joined": [list(some) for some in self.joined],
            "left_out": dict(self.left_out),
            "chi2": _chi2(self.chi2),
            "exact": None
            if self.exact is None
            else {"p_value": self.exact.p_value, "log10_p": self.exact.log10_p},
            "cmh": _chi2(self.cmh),
            "trend": None
            if self.trend is None
            else {
                "statistic": self.trend.statistic,
                "p_value": self.trend.p_value,
                "log10_p": self.trend.log10_p,
            },
            "cramers_v": self.cramers_v,
            **(_NO_RATIOS if self.two_by_two is None else self.two_by_two.to_dict()),
            "missing": dict(self.missing),
            "centers": [center.to_dict() for center in self.centers],
            "notes": [*self.notes(), *self.record.notes],
            "refusals": [refusal.to_dict() for refusal in self.refusals],
            "rounds": self.rounds,
        }

    def picture(self) -> Figure:
        """The levels' shares, group by group."""
        return Figure(self.chart(), "Percent of each group at each level; pale: merged somewhere.")

    def chart(self) -> "altair.TopLevelMixin":
        """A row per level, a bar per group; merged levels from the least to the most."""
        from unpooled.results.charts.charts import level_shares

        label = self.record.label(self.variable)
        return level_shares(self.records(), label, self.by, self.levels, self.groups)


_NO_RATIOS = dict.fromkeys(("odds_ratio", "risk_ratio", "risk_difference", "heterogeneity"))


def count_cell(low: float, high: float, people: float) -> tuple[str, str]:
    """How many people, and how many percent of their group.

    Examples
    --------
    >>> count_cell(141, 141, 403), count_cell(141, 150, 403)
    (('141', '35'), ('141 to 150', '35 to 37'))
    """
    if not people:
        return f"{low:.0f}", "–"
    if low == high:
        return f"{low:,.0f}", _percent(low, people)
    lowest, highest = _percent(low, people), _percent(high, people)
    shares = lowest if lowest == highest else f"{lowest} to {highest}"
    return f"{low:,.0f} to {high:,.0f}", shares


def _percent(n: float, people: float) -> str:
    """Whole percents; a digit more where there are few."""
    share = 100 * n / people
    return f"{share:.1f}" if 0 < share < 10 or 99 < share < 100 else f"{share:.0f}"


def _cell(low: float, high: float, people: float) -> str:
    n, percent = count_cell(low, high, people)
    return f"{n} ({percent}%)"


def _exact(low: float, high: float) -> int | None:
    return int(low) if low == high else None


def _test_text(test: Chi2Test) -> str:
    if not test.df:
        return test.note or "nothing to test"
    degrees = count(test.df, "degree")
    return f"χ² = {number(test.statistic)} on {degrees} of freedom, p {p_text(test.log10_p)}"


def _chi2(test: Chi2Test | None) -> dict[str, Any] | None:
    if test is None:
        return None
    return {
        "statistic": test.statistic,
        "df": test.df,
        "p_value": test.p_value,
        "log10_p": test.log10_p,
    }


def _interval(interval: Interval | None) -> dict[str, float | None] | None:
    return None if interval is None else interval_dict(interval)


def _ratio_text(interval: Interval) -> str:
    """An interval that may have no end."""
    if interval.high == float("inf"):
        estimate = "∞" if interval.estimate == float("inf") else number(interval.estimate, 3)
        return f"{estimate} (95 % interval {number(interval.low, 3)} to ∞)"
    return interval_text(interval)
