"""The study of the parallel method: what is asked of it, beside what simulations show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray
from unpooled.results.report.page import Section, page, write
from unpooled.results.report.parts import Grid, Sentences
from unpooled_study.parallel_settings import (
    GRIDDED,
    SETS,
    ParallelQuantiles,
    ParallelTests,
    quantile_settings,
    test_settings,
)
from unpooled_study.parallel_summary import QuantileSummary, TestSummary, Verdict
from unpooled_study.runs import run
from unpooled_study.settings import Simulated

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
    header = ["family", "centers", "K", "told", first, second, "coverage", "length", "noted"]
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
    header = ["family", "K", "told", "δ", "SD of log(p/p combined)", "level", "P(Y>X)", "shift"]
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
