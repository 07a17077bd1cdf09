"""Results of a study of one's own: a row per setting, method and figure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.results.report.text import columns_text, number
from unpooled_study import monte_carlo
from unpooled_study.config import QuantileConfig, TestConfig
from unpooled_study.families import label
from unpooled_study.monte_carlo import Estimate
from unpooled_study.runs import run


@dataclass(frozen=True, slots=True)
class StudyResult:
    """Rows of plain values, the same columns in each."""

    title: str
    rows: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {"title": self.title, "rows": list(self.rows)}

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells for reading."""
        header = [name.replace("_", " ") for name in self.rows[0]]
        return header, [[_cell(value) for value in row.values()] for row in self.rows]

    def __str__(self) -> str:
        return f"{self.title}\n{columns_text(*self.cells())}"


def _cell(value: object) -> str:
    if value is None or isinstance(value, float):
        return number(value, 3)
    return str(value)


def run_tests(config: TestConfig, jobs: int, folder: Path) -> StudyResult:
    """How often each test rejects, and the quartiles of its p-values."""
    settings = config.settings()
    results = run(settings, config.sims, config.seed, jobs, folder)
    rows = []
    for setting in settings:
        for column, method in enumerate(setting.methods):
            values = np.exp(results[setting][:, column])
            rejected = monte_carlo.share((values < config.level).astype(np.float64))
            rows.append(
                {
                    "family": label(setting.family),
                    "centers": len(setting.n_x),
                    "people": sum(setting.n_x) + sum(setting.n_y),
                    "effect": setting.effect[0],
                    "method": method,
                    "rejected": rejected.value,
                    "error": rejected.error,
                    "median_p": float(np.median(values)),
                }
            )
    title = f"Rejected at {config.level:g} in {config.sims} simulations, K = {config.k}"
    return StudyResult(title, tuple(rows))


def run_quantiles(config: QuantileConfig, jobs: int, folder: Path) -> StudyResult:
    """Bias, SD and MSE of each estimator; `none` is how often it had no estimate."""
    settings = config.settings()
    results = run(settings, config.sims, config.seed, jobs, folder)
    rows = []
    for setting in settings:
        errors = results[setting].reshape(-1, len(setting.methods), len(setting.p))
        for i, method in enumerate(setting.methods):
            for j, p in enumerate(setting.p):
                rows.append(
                    {
                        "family": label(setting.family),
                        "centers": len(setting.sizes),
                        "people": sum(setting.sizes),
                        "method": method,
                        "p": p,
                        **_precision(errors[:, i, j]),
                    }
                )
    title = f"Errors of quantiles in {config.sims} simulations, K = {config.k}"
    return StudyResult(title, tuple(rows))


def _precision(errors: FloatArray) -> dict[str, float | None]:
    valid = errors[~np.isnan(errors)]
    none = 1 - len(valid) / len(errors)
    if len(valid) < 2:
        return {"bias": None, "sd": None, "mse": None, "mse_error": None, "none": none}
    square: Estimate = monte_carlo.mean_square(valid)
    return {
        "bias": float(valid.mean()),
        "sd": float(valid.std(ddof=1)),
        "mse": square.value,
        "mse_error": square.error,
        "none": none,
    }
