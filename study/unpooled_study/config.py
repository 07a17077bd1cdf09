"""Studies of one's own, from a small TOML file: any family, center sizes, K, methods, spread."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from unpooled.errors import InputError
from unpooled.maths.ranks.mann_whitney import Alternative
from unpooled.toml_file import read_toml
from unpooled_study.families import AnyFamily
from unpooled_study.methods import QUANTILE_METHODS, TEST_METHODS
from unpooled_study.settings import PROBABILITIES, QuantileSetting, TestSetting

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
