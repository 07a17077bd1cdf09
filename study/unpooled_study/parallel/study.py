"""The study of the parallel method: what is asked of it, and what simulations show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray
from unpooled.results.report.page import Section, page, write
from unpooled.results.report.parts import Grid, Sentences
from unpooled_study.parallel.settings import (
    GRIDDED,
    LEVELS,
    NAMED,
    PAPER,
    SETS,
    ParallelQuantiles,
    ParallelTests,
    quantile_settings,
    test_settings,
)
from unpooled_study.simulations.runs import run
from unpooled_study.simulations.settings import Simulated

Verdict = Literal["met", "within its error", "missed"]
COVERAGE = (0.93, 0.97)
_ERRORS = 2.0  # standard errors within which chance may explain a miss
_NOTED = 0.95  # of the answers


def judge(value: float, error: float, limit: float, least: float = -np.inf) -> Verdict:
    """Whether a value lies between `least` and `limit`, or might but for its Monte Carlo error.

    Examples
    --------
    >>> judge(0.8, 0.01, 0.85), judge(0.86, 0.01, 0.85), judge(0.9, 0.01, 0.85)
    ('met', 'within its error', 'missed')
    """
    off = max(value - limit, least - value)
    if off <= 0:
        return "met"
    return "within its error" if off <= _ERRORS * error else "missed"


@dataclass(frozen=True, slots=True)
class QuantileSummary:
    """Per quantile: ratios of mean squared errors with errors, coverage, lengths, exact hits.

    `noted` is the share of answers with a note that cells tell little there.
    """

    setting: ParallelQuantiles
    ratio: FloatArray
    error: FloatArray
    coverage: FloatArray
    length: FloatArray
    hits: FloatArray
    full_hits: FloatArray
    noted: FloatArray
    sims: int

    @classmethod
    def of(cls, setting: ParallelQuantiles, rows: FloatArray) -> "QuantileSummary":
        """The summary of a row per simulation."""
        parts = np.split(rows, rows.shape[1] // LEVELS, axis=1)
        ours, full, held, length, full_length, noted = parts
        theirs = np.maximum((full**2).mean(axis=0), 1e-300)
        ratio = (ours**2).mean(axis=0) / theirs
        noise = np.sqrt(((ours**2 - ratio * full**2) ** 2).mean(axis=0) / len(rows)) / theirs
        hits, full_hits = ((np.abs(e) < 1e-6).mean(axis=0) for e in (ours, full))
        lengths = length.mean(axis=0) / np.maximum(full_length.mean(axis=0), 1e-300)
        cover = held.mean(axis=0)
        has_note = noted.mean(axis=0)
        return cls(setting, ratio, noise, cover, lengths, hits, full_hits, has_note, len(rows))

    def limits(self) -> FloatArray:
        """What is asked of the ratios."""
        family = self.setting.family
        if family not in (*PAPER, *NAMED) or self.setting.sizes or self.setting.k != 10:
            return np.full(LEVELS, 1.10)
        if family in PAPER:
            return np.array([0.72, 0.85, 0.85, 0.85, 0.72])
        limits = np.full(LEVELS, 1.20 if family == "gap mixture" else 1.05)
        if family == "t3":
            limits[[0, -1]] = 1.10
        if family.startswith("uniform"):
            limits[-1] = 1.20
        return limits

    def verdicts(self) -> list[Verdict]:
        """One for each ratio; of rounded and zero-inflated data, for each rate of exact hits."""
        if self.setting.family in GRIDDED:
            p = self.full_hits
            errors = np.sqrt(np.maximum(p * (1 - p), 1 / self.sims) / self.sims)
            return [judge(-a, e, -b) for a, b, e in zip(self.hits, p, errors, strict=True)]
        return [judge(*of) for of in zip(self.ratio, self.error, self.limits(), strict=True)]

    def missed_unnoted(self) -> list[float]:
        """The ratios that miss what is asked though answers seldom note that cells tell little."""
        of = zip(self.ratio.tolist(), self.verdicts(), self.noted, strict=True)
        return [ratio for ratio, verdict, noted in of if verdict == "missed" and noted < _NOTED]

    def coverage_verdicts(self) -> list[Verdict]:
        """One for each interval."""
        error = float(np.sqrt(0.95 * 0.05 / self.sims))
        return [judge(c, error, COVERAGE[1], COVERAGE[0]) for c in self.coverage.tolist()]


@dataclass(frozen=True, slots=True)
class TestSummary:
    """Tests next to those of the combined data."""

    __test__ = False

    sd_log_p: float
    level: float
    effect: float  # mean absolute error of P(Y > X), in standard errors
    shift: float
    sims: int

    @classmethod
    def of(cls, rows: FloatArray) -> "TestSummary":
        """The summary of a row per simulation."""
        log_ratio, p, effect, shift = rows.T
        mean = [float(np.abs(part).mean()) for part in (effect, shift)]
        return cls(float(log_ratio.std()), float((p < 0.05).mean()), mean[0], mean[1], len(rows))

    def sd_verdict(self, moments: str) -> Verdict:
        """At most .03 with moments of all cells, .15 with tails."""
        limit = 0.03 if moments == "all" else 0.15
        return judge(self.sd_log_p, self.sd_log_p / np.sqrt(2 * self.sims), limit)

    def level_verdict(self) -> Verdict:
        """.05, up to Monte Carlo error."""
        return judge(self.level, float(np.sqrt(0.05 * 0.95 / self.sims)), 0.05, 0.05)

    def effect_verdict(self) -> Verdict:
        """At most .02 standard errors."""
        return judge(self.effect, self.effect / np.sqrt(self.sims), 0.02)


KEPT = "simulations"
_BESIDE = "\N{NO-BREAK SPACE}"  # numbers of a cell stay in one line
_HEADINGS = {
    "main": "Quantiles, K = 10",
    "all": "Quantiles, K = 10, moments of all cells",
    "k20": "Quantiles, K = 20",
    "held-out": "Other families",
    "sizes": "Other sizes",
    "odd": "Families of which cells tell too little",
    "gridded": "Rounded and zero-inflated data",
}


@dataclass(frozen=True, slots=True)
class ParallelStudy:
    """How many simulations of each setting, and the seed."""

    runs: int
    seed: int

    def __post_init__(self) -> None:
        if self.runs < 20:
            raise InputError(f"runs must be at least 20, got {self.runs}")
        if self.seed < 0:
            raise InputError(f"seed must not be negative, got {self.seed}")

    def settings(self) -> list[Simulated]:
        """Everything that is simulated."""
        return [*(s for name in SETS for s in quantile_settings(name)), *test_settings()]


def run_parallel(study: ParallelStudy, out: Path, jobs: int) -> Path:
    """Run what is not yet kept in `out`, then write the page."""
    results = run(study.settings(), study.runs, study.seed, jobs, out / KEPT)
    return write(out / "parallel.html", parallel_page(study, results))


def parallel_page(study: ParallelStudy, results: Mapping[Simulated, FloatArray]) -> str:
    """The whole page."""
    sections = [_quantiles(name, results) for name in SETS]
    under = (
        f"{study.runs} simulations of each setting, seed {study.seed}; 1500 people in the paper's "
        "centers, where no other sizes are given. Ratios are mean squared errors over those of the "
        "full-data quantile loss on the same people. A verdict 'within its error' is a miss of at "
        "most two standard errors. Noted is the share of answers that say that the quantile lies "
        "outside all boundaries or that its cells tell less than their people would."
    )
    return page("The parallel method against the full data", under, [*sections, _tests(results)])


def _quantiles(name: str, results: Mapping[Simulated, FloatArray]) -> Section:
    summaries = [QuantileSummary.of(s, results[s]) for s in quantile_settings(name)]
    ratios = [v for summary in summaries for v in summary.verdicts()]
    words = [f"{_counted(ratios)} of what is asked."]
    if name != "gridded":
        unnoted = [r for summary in summaries for r in summary.missed_unnoted()]
        words.append(f"Missed where the answers note nothing: {_listed(unnoted)}.")
        cover = [v for summary in summaries for v in summary.coverage_verdicts()]
        words.append(f"Coverage .93 to .97: {_counted(cover)}.")
        first, second = "ratio .02 .25 .5 .75 .98", "asked"
    else:
        first, second = "exact hits", "full data"
    header = ["family", "centers", "K", "released", first, second, "coverage", "length", "noted"]
    return Section(_HEADINGS[name], [Sentences(words), Grid(header, [_row(s) for s in summaries])])


def _row(summary: QuantileSummary) -> list[str]:
    setting: ParallelQuantiles = summary.setting
    gridded = setting.family in GRIDDED
    first, second = (
        (summary.hits, summary.full_hits) if gridded else (summary.ratio, summary.limits())
    )
    columns = (first, second, summary.coverage, summary.length, summary.noted)
    digits = (3, 3, 3, 2, 2) if gridded else (2, 2, 3, 2, 2)
    shown = [
        _BESIDE.join(f"{v:.{d}f}".removeprefix("0") for v in c)
        for c, d in zip(columns, digits, strict=True)
    ]
    return [setting.family, setting.where, str(setting.k), setting.moments, *shown]


def _listed(ratios: Sequence[float]) -> str:
    return ", ".join(f"{r:.2f}" for r in sorted(ratios)) or "none"


def _counted(verdicts: Sequence[Verdict]) -> str:
    counts = {name: verdicts.count(name) for name in ("met", "within its error", "missed")}
    return ", ".join(f"{n} {name}" for name, n in counts.items())


def _tests(results: Mapping[Simulated, FloatArray]) -> Section:
    rows = []
    for setting in test_settings():
        summary = TestSummary.of(results[setting])
        rows.append([*_told(setting), *_shown(setting, summary)])
    header = ["family", "K", "released", "δ", "SD of log(p/p combined)", "level", "P(Y>X)", "shift"]
    under = (
        "Asked: SD at most .03 with moments of all cells and .15 with tails, a level of .05, an "
        "error of P(Y>X) of at most .02 standard errors. Errors are mean absolute ones."
    )
    return Section("Tests at ten centers", [Sentences([under]), Grid(header, rows)])


def _told(setting: ParallelTests) -> list[str]:
    return [setting.family, str(setting.k), setting.moments, f"{setting.delta:g}"]


def _shown(setting: ParallelTests, summary: TestSummary) -> list[str]:
    level = f"{summary.level:.3f}: {summary.level_verdict()}" if not setting.delta else ""
    return [
        f"{summary.sd_log_p:.4f}: {summary.sd_verdict(setting.moments)}",
        level,
        f"{summary.effect:.4f}: {summary.effect_verdict()}",
        f"{summary.shift:.4f}",
    ]
