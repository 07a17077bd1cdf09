"""What simulations of the parallel method amount to, beside what is asked of it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled_study.parallel_settings import GRIDDED, LEVELS, NAMED, PAPER, ParallelQuantiles

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
    """Tests beside those of the combined data."""

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
