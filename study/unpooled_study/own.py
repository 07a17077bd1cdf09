"""Studies of one's own, from a small TOML file: what is simulated, and a row for each figure."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import Alternative
from unpooled.results.report.text import columns_text, number
from unpooled.toml_file import read_toml
from unpooled_study.simulations import monte_carlo
from unpooled_study.simulations.families import AnyFamily, label
from unpooled_study.simulations.methods import QUANTILE_METHODS, TEST_METHODS
from unpooled_study.simulations.monte_carlo import Estimate
from unpooled_study.simulations.runs import run
from unpooled_study.simulations.settings import PROBABILITIES, QuantileSetting, TestSetting

Sizes = tuple[Annotated[int, msgspec.Meta(ge=1)], ...]
Spread = Annotated[float, msgspec.Meta(ge=0)]


class _Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What both kinds of study share; several families and several `sizes` are all combined."""

    sizes: tuple[Sizes, ...]
    families: tuple[AnyFamily, ...]
    methods: tuple[str, ...]
    k: Annotated[int, msgspec.Meta(ge=1)] = 10
    sims: Annotated[int, msgspec.Meta(ge=20)] = 1000
    seed: Annotated[int, msgspec.Meta(ge=0)] = 1


class QuantileConfig(_Config, frozen=True):
    """`unpooled study quantiles`: SDs over centers of the log scale and of the shift."""

    p: tuple[Annotated[float, msgspec.Meta(gt=0, lt=1)], ...] = PROBABILITIES
    scale: Spread = 0.0
    shift: Spread = 0.0

    def settings(self) -> list[QuantileSetting]:
        """Every family with every allocation of people to centers."""
        return [
            QuantileSetting(
                sizes=sizes,
                methods=self.methods,
                family=family,
                scale=self.scale,
                shift=self.shift,
                p=self.p,
                k=self.k,
            )
            for family in self.families
            for sizes in self.sizes
        ]


class TestConfig(_Config, frozen=True):
    """`unpooled study tests`: effects δ, SDs over centers of level and effect.

    `sizes` counts group x; group y has as many people, or those of `sizes_y`.
    """

    __test__ = False  # not a test case, whatever its name

    effects: tuple[float, ...] = (0.0,)
    sizes_y: tuple[Sizes, ...] | None = None
    center_sd: Spread = 0.0
    effect_sd: Spread = 0.0
    alternative: Alternative = "two-sided"
    level: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.05

    def settings(self) -> list[TestSetting]:
        """Every family with every allocation and every effect."""
        pairs = zip(self.sizes, self.sizes_y or self.sizes, strict=True)
        return [
            TestSetting(
                n_x=n_x,
                n_y=n_y,
                effect=(effect, self.center_sd, self.effect_sd),
                methods=self.methods,
                family=family,
                k=self.k,
                alternative=self.alternative,
            )
            for n_x, n_y in pairs
            for family in self.families
            for effect in self.effects
        ]


def read_quantile_config(path: Path) -> QuantileConfig:
    """Read a study of quantile estimators."""
    config = _read(path, QuantileConfig)
    check_methods(config.methods, QUANTILE_METHODS)
    return config


def read_test_config(path: Path) -> TestConfig:
    """Read a study of tests."""
    config = _read(path, TestConfig)
    check_methods(config.methods, TEST_METHODS)
    centers = [len(sizes) for sizes in config.sizes]
    if centers != [len(sizes) for sizes in config.sizes_y or config.sizes]:
        raise InputError("sizes_y must have as many centers as sizes, allocation by allocation")
    return config


def check_methods(asked: tuple[str, ...], names: Collection[str]) -> None:
    """Raise where a method is not known, or none is asked for."""
    for name in asked or ("none",):
        if name not in names:
            raise InputError(f"methods must be among {', '.join(names)}, got {name!r}")


Config = TypeVar("Config", QuantileConfig, TestConfig)


def _read(path: Path, kind: type[Config]) -> Config:
    config = read_toml(path, kind)
    if not config.sizes or not config.families or not all(config.sizes):
        raise InputError(f"{path.name}: sizes and families must not be empty")
    return config


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
