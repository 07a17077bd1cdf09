"""The paper's tables: each published figure next to ours, with its error and z-score."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled_study.simulations import monte_carlo
from unpooled_study.simulations.monte_carlo import Estimate, Published, z_score
from unpooled_study.simulations.settings import (
    ALLOCATIONS,
    PLAIN_NULL,
    POWER_EFFECTS,
    PROBABILITIES,
    AnySetting,
    paper_quantiles,
    paper_test,
)

Results = Mapping[AnySetting, FloatArray]

TITLES = {
    "S1": "Quantiles of the p-values (one-sided, Y > X)",
    "S2": "Bias of the quantile estimators, over √r",
    "S3": "Standard deviation of the quantile estimators, over √r",
    "S4": "Mean squared error of the quantile estimators, over r",
    "S5": "Squared bias over variance of the quantile estimators",
    "null": "Rejection rates at .05 where the groups are alike (δ = 0, σ_α = 0.1, σ_β = 0)",
    "power": "Quantiles of the p-values, and power at .05, by effect (σ_α = 0.1, σ_β = 0.05)",
}
PAPER_NAMES = {
    "combined": "Combined",
    "paper-table": "Federated",
    "fisher": "Fisher",
    "sum": "Sum",
    "weighted": "Weighted",
    "loss": "Quantile loss",
    "yj-likelihood": "YJ data",
    "yj-table": "YJ table",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One figure of a table: what it is of, ours, and the published one if there is any."""

    of: tuple[str, ...]
    ours: Estimate
    published: Published | None

    @property
    def z(self) -> float | None:
        """How far ours is from the published figure, in standard errors."""
        return None if self.published is None else z_score(self.ours, self.published)


@dataclass(frozen=True, slots=True)
class StudyTable:
    """A table in long form: `keys` say what the columns of an entry's `of` are."""

    name: str
    keys: tuple[str, ...]
    entries: tuple[Entry, ...]

    @property
    def title(self) -> str:
        """What the table shows."""
        return TITLES[self.name]

    @property
    def scores(self) -> FloatArray:
        """The z-scores of all entries that were published."""
        return np.array([entry.z for entry in self.entries if entry.z is not None])

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells, the same in all formats."""
        header = [*self.keys, "published", "ours", "error", "z"]
        return header, [[*entry.of, *_cells(entry)] for entry in self.entries]

    def to_csv(self) -> str:
        """The table as CSV."""
        header, rows = self.rows()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        return text.getvalue()

    def to_markdown(self) -> str:
        """The table as Markdown."""
        header, rows = self.rows()
        align = ["---"] * len(self.keys) + ["---:"] * 4
        lines = [f"| {' | '.join(cells)} |" for cells in (header, align, *rows)]
        title = f"Table {self.name}" if self.name.startswith("S") else self.name
        return f"# {title}. {self.title}\n\n" + "\n".join(lines) + "\n"


def _cells(entry: Entry) -> list[str]:
    published, digits = "", 4
    if entry.published is not None:
        digits = round(-np.log10(entry.published.step))
        published = f"{entry.published.value:.{digits}f}"
    z = "" if entry.z is None else f"{entry.z:+.2f}"
    return [
        published,
        f"{entry.ours.value:.{digits + 1}f}",
        f"{entry.ours.error:.{digits + 2}f}",
        z,
    ]


def settings_of(name: str) -> list[AnySetting]:
    """The settings that a table is made of."""
    if name == "S1":
        return sorted({_s1_setting(row) for row in read_published("S1")}, key=lambda s: s.name)
    if name == "null":
        return [paper_test(centers, PLAIN_NULL) for centers in ALLOCATIONS]
    if name == "power":
        return [paper_test(centers, e) for e in POWER_EFFECTS for centers in ALLOCATIONS]
    return [paper_quantiles(shape, centers) for shape in (4, 10) for centers in ALLOCATIONS]


def read_published(name: str) -> list[dict[str, str]]:
    """The rows of a published table, as printed.

    Examples
    --------
    >>> read_published("S4")[0]
    {'shape': '4', 'centers': '3', 'method': 'loss', 'p': '0.02', 'value': '0.0008'}
    """
    text = files("unpooled_study").joinpath("published", f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def make_table(name: str, results: Results) -> StudyTable:
    """A table of the paper from the simulations of `settings_of` it."""
    if name == "S1":
        keys: Sequence[str] = (
            "centers",
            "method",
            "quantile",
            "delta",
            "sigma_alpha",
            "sigma_beta",
        )
        entries = tuple(_s1_entries(results))
    elif name == "null":
        keys = ("centers", "method")
        entries = tuple(_null_entries(results))
    elif name == "power":
        keys = ("centers", "delta", "method", "figure")
        entries = tuple(_power_entries(results))
    else:
        keys = ("shape", "centers", "method", "p")
        entries = tuple(_error_entries(name, results))
    return StudyTable(name, tuple(keys), entries)


def p_values(results: Results, setting: AnySetting, method: str) -> FloatArray:
    """The p-values of a method in a setting, a simulation each."""
    return np.exp(results[setting][:, setting.methods.index(method)])


def rejection_rate(
    results: Results, setting: AnySetting, method: str, level: float = 0.05
) -> Estimate:
    """How often a test rejects at this level, with its Monte Carlo error."""
    return monte_carlo.share((p_values(results, setting, method) < level).astype(np.float64))


def errors(results: Results, shape: int, centers: int, method: str, p: float) -> FloatArray:
    """The errors of a quantile estimator over √r, where it had an estimate."""
    setting = paper_quantiles(shape, centers)
    column = setting.methods.index(method) * len(setting.p) + PROBABILITIES.index(p)
    scaled: FloatArray = results[setting][:, column] / np.sqrt(shape)
    return scaled[~np.isnan(scaled)]


def _s1_setting(row: Mapping[str, str]) -> AnySetting:
    effect = float(row["delta"]), float(row["sigma_alpha"]), float(row["sigma_beta"])
    return paper_test(int(row["centers"]), effect)


def _s1_entries(results: Results) -> Iterator[Entry]:
    for row in read_published("S1"):
        value = row.pop("value")
        values = p_values(results, _s1_setting(row), row["method"])
        ours = monte_carlo.quantile(values, float(row["quantile"]))
        yield Entry(tuple(row.values()), ours, Published.of(value))


def _null_entries(results: Results) -> Iterator[Entry]:
    for centers in ALLOCATIONS:
        setting = paper_test(centers, PLAIN_NULL)
        for method in setting.methods:
            yield Entry((str(centers), method), rejection_rate(results, setting, method), None)


def _power_entries(results: Results) -> Iterator[Entry]:
    for centers in ALLOCATIONS:
        for effect in POWER_EFFECTS:
            setting = paper_test(centers, effect)
            for method in setting.methods:
                values = p_values(results, setting, method)
                of = str(centers), f"{effect[0]:g}", method
                for q in (0.25, 0.5):
                    yield Entry((*of, f"quantile {q:g}"), monte_carlo.quantile(values, q), None)
                power = rejection_rate(results, setting, method)
                yield Entry((*of, "power at 0.05"), power, None)


_FIGURES = {
    "S2": monte_carlo.mean,
    "S3": monte_carlo.standard_deviation,
    "S4": monte_carlo.mean_square,
    "S5": monte_carlo.bias_ratio,
}


def _error_entries(name: str, results: Results) -> Iterator[Entry]:
    for row in read_published(name):
        value = row.pop("value")
        shape, centers, p = int(row["shape"]), int(row["centers"]), float(row["p"])
        errors_here = errors(results, shape, centers, row["method"], p)
        published = Published.of(value)
        if name == "S5":
            bias, sd = float(errors_here.mean()), float(errors_here.std())
            published = monte_carlo.published_ratio(value, sd, bias)
        yield Entry(tuple(row.values()), _FIGURES[name](errors_here), published)
