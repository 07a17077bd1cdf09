"""Survival curves and their comparison, as the analyst holds them."""

from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any

from unpooled.maths.ranks.effect import Heterogeneity, Interval
from unpooled.maths.survival.follow_up import FollowUp
from unpooled.maths.survival.kaplan_meier import SurvivalCurve
from unpooled.maths.survival.log_rank import LogRank
from unpooled.results.reach import Reach
from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal
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
class Arm:
    """One arm: its pseudo-sample, the curve and what follows from it."""

    group: str
    followed: FollowUp
    curve: SurvivalCurve
    quantiles: tuple[ArmQuantile, ...]
    restricted_mean: RestrictedMean | None

    @property
    def median(self) -> ArmQuantile:
        """The median survival time."""
        return next(quantile for quantile in self.quantiles if quantile.p == 0.5)

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain values."""
        return {"group": self.group, **_curve(self.followed, self.curve)}


@dataclass(frozen=True, slots=True)
class CenterCurve:
    """One center's own curve of an arm."""

    center: str
    group: str
    followed: FollowUp
    curve: SurvivalCurve

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain values."""
        told = _curve(self.followed, self.curve)
        return {"center": self.center, "group": self.group, **told}


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
    strata: tuple[str, ...] = ()  # groupings within which arms are compared, as within centers

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
            "centers": [curve.to_dict() for curve in self.centers],
            "notes": [*self.notes, *self.record.notes],
            "rounds": self.rounds,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def chart(self) -> "altair.TopLevelMixin":
        """The Kaplan-Meier chart: steps, bands, and the numbers at risk below."""
        from unpooled.results.report.survival_chart import kaplan_meier_chart

        curves = [(arm.group, arm.followed, arm.curve) for arm in self.arms]
        return kaplan_meier_chart(curves, self.record.label(self.time), self.by)

    def sections(self) -> list[Section]:
        """The curves, and those of each center."""
        chart = Figure(
            self.chart(),
            "Kaplan-Meier curves with 95 % bands (log-log). Numbers at risk are those of the "
            "pseudo-sample, which stands for the people whom nobody may see.",
        )
        whole = [Section("Survival", self.parts(), [chart])]
        if self.centers:
            whole.append(Section("Center by center", [self._center_grid()]))
        return whole

    @property
    def answer(self) -> str:
        """The median times, and the hazard ratio."""
        medians = ", ".join(
            f"{_reached(arm.median)}{'' if self.by is None else f' in {arm.group}'}"
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
        return f"{about}: survival {self.reach}, in {count(self.rounds, 'round')}"

    @property
    def reach(self) -> Reach:
        """Whom it is of."""
        people = sum(arm.followed.total for arm in self.arms)
        return Reach.of(self.answered, people, self.record, self.refusals)

    def parts(self) -> list[Part]:
        """The arms, and how they differ."""
        return [self._grid(), Sentences(self.comparison()), Remarks.notes(self.notes)]

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
                number(round(arm.followed.event_total)),
                _reached(arm.median),
                "–" if arm.restricted_mean is None else _limits(arm.restricted_mean.interval),
            ]
            for arm in self.arms
        ]
        return Grid(["arm", "people", "events", "median (95 %)", f"{mean} (95 %)"], rows)

    def comparison(self) -> list[str]:
        """The tests and hazard ratios, a sentence each."""
        told = []
        within = " and ".join(("center", *self.strata))
        for name, test in ((f"by {within}", self.stratified), ("pooled", self.log_rank)):
            if test is not None:
                p = p_text(test.log_p / log(10))
                told.append(f"log-rank {name}: χ² {number(test.statistic)}, df {test.df}, p {p}")
        for ratio in self.ratios:
            found = "no estimate" if ratio.ratio is None else _limits(ratio.ratio)
            alike = ratio.heterogeneity
            between = f"; between centers Q {number(alike.q)}, df {alike.df}, I² {alike.i2:.0%}"
            told.append(
                f"hazard ratio, {ratio.group} to {ratio.versus}: {found}"
                f"{between if alike.df else ''}"
            )
        return told

    def _center_grid(self) -> Grid:
        """A row per center and arm."""
        rows = [
            [
                own.center,
                own.group,
                number(round(own.followed.total)),
                number(round(own.followed.event_total)),
                _reached(ArmQuantile(own.group, 0.5, *own.curve.quantile(0.5))),
            ]
            for own in self.centers
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


def _interval(found: Interval | None) -> dict[str, float | None]:
    names = ("estimate", "low", "high")
    return {name: None if found is None else getattr(found, name) for name in names}


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


def _limits(interval: Interval) -> str:
    return f"{number(interval.estimate)} ({number(interval.low)} to {number(interval.high)})"
