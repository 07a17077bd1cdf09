"""Survival curves and their comparison, as the analyst holds them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import exp, log
from typing import TYPE_CHECKING, Any

import numpy as np

from unpooled.maths.ranks.effect import Heterogeneity, Interval
from unpooled.maths.survival.follow_up import FollowUp
from unpooled.maths.survival.kaplan_meier import SurvivalCurve
from unpooled.maths.survival.log_rank import LogRank
from unpooled.results.provenance.record import Reach, Record
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences
from unpooled.results.report.text import count, number, p_text
from unpooled.results.result import Result, subject

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, slots=True)
class ArmQuantile:
    """The time that a share p of an arm does not outlive; None: not reached."""

    group: str
    p: float
    estimate: float | None
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, Any]:
        """The quantile as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class RestrictedMean:
    """The mean time within `until`, with its standard error."""

    until: float
    mean: float
    error: float

    @property
    def interval(self) -> Interval:
        """The mean with its 95 % limits."""
        margin = 1.959963984540054 * self.error
        return Interval(self.mean, self.mean - margin, self.mean + margin)


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """How much longer than in arm `versus` people live within `until`, on average."""

    versus: str
    group: str
    until: float
    difference: float
    error: float

    @property
    def interval(self) -> Interval:
        """The difference with its 95 % limits."""
        return RestrictedMean(self.until, self.difference, self.error).interval

    @property
    def log_p(self) -> float:
        """The logarithm of the p-value of no difference."""
        from scipy.special import log_ndtr

        return log(2) + float(log_ndtr(-abs(self.difference) / self.error)) if self.error else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain values."""
        ends = {"group": self.group, "versus": self.versus, "until": self.until}
        return {**ends, **_interval(self.interval), "p_value": exp(self.log_p)}


@dataclass(frozen=True, slots=True)
class SurvivalAt:
    """An arm's survival at a time; None where nobody is known to be followed up so long."""

    group: str
    time: float
    survival: Interval | None
    at_risk: float  # just before, of the pseudo-sample

    def to_dict(self) -> dict[str, Any]:
        """The survival as plain values."""
        shown = _interval(self.survival)
        shown["survival"] = shown.pop("estimate")
        return {"group": self.group, "time": self.time, **shown, "at_risk": self.at_risk}


@dataclass(frozen=True, slots=True)
class LifeTableRow:
    """Who of an arm is at risk at a time, and what has happened by then."""

    group: str
    time: float
    at_risk: float
    events: float  # so far
    censored: float  # so far

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class AdjustedRatio:
    """A hazard ratio of Cox's model with all covariates; None: it has no estimate."""

    variable: str
    level: str
    versus: str
    ratio: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """The ratio as plain values."""
        ends = {"variable": self.variable, "level": self.level, "versus": self.versus}
        return {**ends, **_interval(self.ratio)}


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: its pseudo-sample, the curve and what follows from it."""

    group: str
    followed: FollowUp
    curve: SurvivalCurve
    quantiles: tuple[ArmQuantile, ...]
    restricted_mean: RestrictedMean | None
    at: tuple[SurvivalAt, ...] = ()

    @property
    def median(self) -> ArmQuantile:
        """The median survival time."""
        return next(quantile for quantile in self.quantiles if quantile.p == 0.5)

    @property
    def events(self) -> str:
        """How many people have the event, as text; "about" where statuses are estimates."""
        number_of = number(round(self.followed.event_total))
        return number_of if self.followed.exact else f"about {number_of}"

    def life_table(self, times: Iterable[float]) -> list[LifeTableRow]:
        """A row per time, as far as the curve goes."""
        rows = []
        for time in times:
            gone = self.followed.times <= time
            events = float(self.followed.events[gone].sum())
            censored = float(self.followed.people[gone].sum()) - events
            left = float(self.followed.at_risk(np.array([time]))[0])
            rows.append(LifeTableRow(self.group, float(time), left, events, censored))
        return [row for row in rows if row.time <= self.curve.end]

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain values."""
        fields = _curve(self.followed, self.curve)
        return {"group": self.group, **fields, "events_exact": self.followed.exact}


@dataclass(frozen=True, slots=True)
class CenterCurve:
    """One center's own curve of an arm."""

    center: str
    group: str
    followed: FollowUp
    curve: SurvivalCurve

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain values."""
        fields = _curve(self.followed, self.curve)
        return {"center": self.center, "group": self.group, **fields}


@dataclass(frozen=True, slots=True)
class CenterRatio:
    """One center's own hazard ratio."""

    center: str
    ratio: Interval


@dataclass(frozen=True, slots=True)
class RatioResult:
    """The hazard of `group` over that of `versus`, within centers; None: it has no estimate."""

    versus: str
    group: str
    ratio: Interval | None
    heterogeneity: Heterogeneity
    centers: tuple[CenterRatio, ...]

    def to_dict(self) -> dict[str, Any]:
        """The ratio as plain values."""
        alike = self.heterogeneity
        return {
            "group": self.group,
            "versus": self.versus,
            **_interval(self.ratio),
            "heterogeneity": {
                "q": alike.q,
                "df": alike.df,
                "p_value": alike.p_value,
                "i2": alike.i2,
            },
            "centers": [{"center": c.center, **_interval(c.ratio)} for c in self.centers],
        }


@dataclass(frozen=True, slots=True, repr=False)
class SurvivalResult(Result):
    """Curves of each arm, and whether they differ. Numbers at risk are of the pseudo-sample."""

    time: str
    event: str
    by: str | None
    where: str | None
    horizon: float
    k: int  # fewer people at risk are a reconstruction that says little
    arms: tuple[Arm, ...]
    log_rank: LogRank | None
    stratified: LogRank | None
    ratios: tuple[RatioResult, ...]
    centers: tuple[CenterCurve, ...]
    notes: tuple[str, ...]
    refusals: tuple[CenterRefusal, ...]
    rounds: int
    record: Record = field(default_factory=Record)
    answered: tuple[str, ...] = ()  # the centers whose people the curves are of
    strata: tuple[str, ...] = ()  # groupings within which arms are compared, in addition to centers
    adjusted: tuple[AdjustedRatio, ...] = ()
    mean_differences: tuple[MeanDifference, ...] = ()

    @property
    def p_value(self) -> float | None:
        """That of the log-rank test stratified by center; None without a comparison."""
        return None if self.stratified is None else self.stratified.p_value

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; null is a time that is not reached."""
        return {
            "time": self.time,
            "event": self.event,
            "by": self.by,
            "where": self.where,
            "strata": list(self.strata),
            "horizon": self.horizon,
            "curves": [arm.to_dict() for arm in self.arms],
            "medians": [arm.median.to_dict() for arm in self.arms],
            "quantiles": [q.to_dict() for arm in self.arms for q in arm.quantiles],
            "restricted_means": [
                {"group": arm.group, "until": mean.until, **_interval(mean.interval)}
                for arm in self.arms
                if (mean := arm.restricted_mean) is not None
            ],
            "logrank": _log_rank(self.log_rank),
            "logrank_stratified": _log_rank(self.stratified),
            "hazard_ratio": self.ratios[0].to_dict() if self.ratios else None,
            "hazard_ratios": [ratio.to_dict() for ratio in self.ratios],
            "k": self.k,
            "at": [shown.to_dict() for arm in self.arms for shown in arm.at],
            "restricted_mean_differences": [d.to_dict() for d in self.mean_differences],
            "adjusted": [ratio.to_dict() for ratio in self.adjusted],
            "life_table": [row.to_dict() for row in self.life_table()],
            "centers": [curve.to_dict() for curve in self.centers],
            "notes": [*self.notes, *self.record.notes],
            "rounds": self.rounds,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    @property
    def times(self) -> list[float]:
        """The times at which people are counted: those asked for, or round ones."""
        from unpooled.results.charts.survival_chart import round_times

        asked = [shown.time for shown in self.arms[0].at]
        return asked or round_times(max(arm.curve.end for arm in self.arms)).tolist()

    def life_table(self) -> list[LifeTableRow]:
        """Who is at risk, and events and censorings so far, at each of `times`."""
        return [row for arm in self.arms for row in arm.life_table(self.times)]

    def chart(self) -> "altair.TopLevelMixin":
        """The Kaplan-Meier chart: steps, bands, p and hazard ratio, and numbers at risk below."""
        from unpooled.results.charts.survival_chart import kaplan_meier_chart

        curves = [(arm.group, arm.followed, arm.curve) for arm in self.arms]
        label = self.record.label(self.time)
        return kaplan_meier_chart(curves, label, self.by, self.k, self.headline())

    def headline(self) -> list[str]:
        """What the picture says of the comparison: p, and the hazard ratio of two arms."""
        if self.stratified is None:
            return []
        lines = [f"log-rank {self.within}: p {p_text(self.stratified.log_p / log(10))}"]
        two = self.ratios if len(self.ratios) == 1 else ()
        lines += [
            f"hazard ratio, {ratio.group} to {ratio.versus}: {_limits(ratio.ratio)}"
            for ratio in two
            if ratio.ratio is not None
        ]
        return lines

    @property
    def within(self) -> str:
        """Within what arms are compared, as words."""
        return " and ".join(("by center", *self.strata))

    def sections(self) -> list[Section]:
        """The curves, and those of each center."""
        chart = Figure(
            self.chart(),
            "Kaplan-Meier curves with 95 % bands (log-log). Numbers at risk are those of the "
            "pseudo-sample, which stands for the people whom nobody may see; "
            f"~ marks fewer than {self.k}.",
        )
        whole = [
            Section("Survival", self.parts(), [chart]),
            Section("At risk, and events so far", [self._life_grid()]),
        ]
        if self.centers:
            whole.append(Section("Center by center", [self._center_grid()]))
        return whole

    @property
    def answer(self) -> str:
        """The median times, and the hazard ratio."""
        medians = ", ".join(
            f"{_median(arm.median)}{'' if self.by is None else f' in {arm.group}'}"
            for arm in self.arms
        )
        ratio = next((r for r in self.ratios if r.ratio is not None), None)
        hazard = (
            ""
            if ratio is None or ratio.ratio is None
            else f"; hazard ratio, {ratio.group} to {ratio.versus}: {_limits(ratio.ratio)}"
        )
        p = "" if self.stratified is None else f", p {p_text(self.stratified.log_p / log(10))}"
        label = self.record.label(self.time)
        return f"The median of {label} to {self.event} is {medians}{hazard}{p}, {self.reach}."

    def picture(self) -> Figure | None:
        """The Kaplan-Meier chart."""
        caption = "Kaplan-Meier curves with 95 % bands, and the people at risk."
        return Figure(self.chart(), caption)

    @property
    def title(self) -> str:
        """What was followed up."""
        about = subject(f"{self.time}, event {self.event}", self.by, self.where)
        about += f", within {' and '.join(self.strata)}" if self.strata else ""
        rounds = f", in {count(self.rounds, 'round')}" if self.rounds else ""  # none: of a book
        return f"{about}: survival {self.reach}{rounds}"

    @property
    def reach(self) -> Reach:
        """Whom it is of."""
        people = sum(arm.followed.total for arm in self.arms)
        return Reach.of(self.answered, people, self.record, self.refusals)

    def parts(self) -> list[Part]:
        """The arms, and how they differ."""
        shown = [self._at_grid()] if self.arms[0].at else []
        adjusted = [self._adjusted_grid()] if self.adjusted else []
        compared = Sentences(self.comparison())
        return [self._grid(), *shown, compared, *adjusted, Remarks.notes(self.notes)]

    def records(self) -> list[dict[str, Any]]:
        """A row per arm and time at which its curve falls."""
        names = ("time", "survival", "low", "high", "at_risk")
        return [
            {"group": arm.group, **dict(zip(names, step, strict=True))}
            for arm in self.arms
            for step in zip(*(arm.to_dict()[name] for name in names), strict=True)
        ]

    def _grid(self) -> Grid:
        """A row per arm."""
        until = next((a.restricted_mean.until for a in self.arms if a.restricted_mean), None)
        mean = "restricted mean" if until is None else f"mean within {number(until)}"
        rows = [
            [
                arm.group,
                number(round(arm.followed.total)),
                arm.events,
                _reached(arm.median),
                "–" if arm.restricted_mean is None else _limits(arm.restricted_mean.interval),
            ]
            for arm in self.arms
        ]
        return Grid(["arm", "people", "events", "median (95 %)", f"{mean} (95 %)"], rows)

    def _at_grid(self) -> Grid:
        """A row per arm and time that was asked for."""
        rows = [
            [
                arm.group,
                number(shown.time),
                "not known so long" if shown.survival is None else _percent(shown.survival),
                at_risk_text(shown.at_risk, self.k),
            ]
            for arm in self.arms
            for shown in arm.at
        ]
        return Grid(["arm", self.record.label(self.time), "survival (95 %)", "at risk"], rows)

    def _life_grid(self) -> Grid:
        """A row per arm and time: people at risk, events and censorings so far."""
        exact = {arm.group: arm.followed.exact for arm in self.arms}
        rows = [
            [
                row.group,
                number(row.time),
                at_risk_text(row.at_risk, self.k),
                *(
                    number(round(n)) if exact[row.group] else f"about {number(round(n))}"
                    for n in (row.events, row.censored)
                ),
            ]
            for row in self.life_table()
        ]
        return Grid(["arm", self.record.label(self.time), "at risk", "events", "censored"], rows)

    def _adjusted_grid(self) -> Grid:
        """A row per term of the model."""
        rows = [
            [
                f"{term.variable}: {term.level} to {term.versus}",
                "no estimate" if term.ratio is None else _limits(term.ratio),
            ]
            for term in self.adjusted
        ]
        return Grid(["adjusted", "hazard ratio (95 %)"], rows)

    def comparison(self) -> list[str]:
        """The tests and hazard ratios, a sentence each."""
        lines = []
        for name, test in ((self.within, self.stratified), ("pooled", self.log_rank)):
            if test is not None:
                p = p_text(test.log_p / log(10))
                lines.append(f"log-rank {name}: χ² {number(test.statistic)}, df {test.df}, p {p}")
        for ratio in self.ratios:
            shown = "no estimate" if ratio.ratio is None else _limits(ratio.ratio)
            alike = ratio.heterogeneity
            between = f"; between centers Q {number(alike.q)}, df {alike.df}, I² {alike.i2:.0%}"
            lines.append(
                f"hazard ratio, {ratio.group} to {ratio.versus}: {shown}"
                f"{between if alike.df else ''}"
            )
        for apart in self.mean_differences:
            p = p_text(apart.log_p / log(10))
            lines.append(
                f"mean within {number(apart.until)}, {apart.group} minus {apart.versus}: "
                f"{_limits(apart.interval)}, p {p}"
            )
        return lines

    def _center_grid(self) -> Grid:
        """A row per center and arm."""
        rows = [
            [
                curve.center,
                curve.group,
                number(round(curve.followed.total)),
                number(round(curve.followed.event_total)),
                _reached(ArmQuantile(curve.group, 0.5, *curve.curve.quantile(0.5))),
            ]
            for curve in self.centers
        ]
        return Grid(["center", "arm", "people", "events", "median (95 %)"], rows)


def _curve(followed: FollowUp, curve: SurvivalCurve) -> dict[str, Any]:
    return {
        "people": followed.total,
        "events": followed.event_total,
        "end": curve.end,
        "time": curve.times.tolist(),
        "survival": curve.survival.tolist(),
        "low": curve.low.tolist(),
        "high": curve.high.tolist(),
        "at_risk": curve.at_risk.tolist(),
    }


def _interval(interval: Interval | None) -> dict[str, float | None]:
    names = ("estimate", "low", "high")
    return {name: None if interval is None else getattr(interval, name) for name in names}


def _log_rank(test: LogRank | None) -> dict[str, Any] | None:
    if test is None:
        return None
    return {
        "statistic": test.statistic,
        "df": test.df,
        "p_value": test.p_value,
        "log10_p": test.log_p / log(10),
    }


def _reached(quantile: ArmQuantile) -> str:
    high = "…" if quantile.high is None else number(quantile.high)
    return f"{number(quantile.estimate)} ({number(quantile.low)} to {high})"


def _median(median: ArmQuantile) -> str:
    return "not reached" if median.estimate is None else _reached(median)


def at_risk_text(people: float, k: int) -> str:
    """A number at risk; ~ marks those below K, which no center released.

    Examples
    --------
    >>> at_risk_text(40.2, 10), at_risk_text(6.8, 10), at_risk_text(0.0, 10)
    ('40', '~7', '0')
    """
    whole = number(round(people))
    return f"~{whole}" if 0 < people < k else whole


def _percent(share: Interval) -> str:
    low, high = f"{100 * share.low:.1f}", f"{100 * share.high:.1f}"
    return f"{100 * share.estimate:.1f} % ({low} to {high})"


def _limits(interval: Interval) -> str:
    return f"{number(interval.estimate)} ({number(interval.low)} to {number(interval.high)})"
