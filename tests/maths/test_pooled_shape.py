"""The shape of all cells together, against distributions that SciPy knows."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.draws import evenly
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density import pooled_shape
from unpooled.maths.density.distribution import smooth
from unpooled.maths.density.pooled_shape import Shape, fit_shape
from unpooled.maths.lattice.cells import Cells
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, public_lattice

P = np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])
FEW = (40, 60, 80, 120)  # four centers, 300 people
SIZES = (56, 81, 92, 109, 126, 133, 137, 143, 307, 316)  # ten centers, 1500 people


def shape_of(tables: list[LatticeTable], lattice: Lattice, people: FloatArray) -> Shape:
    return fit_shape(Cells.of(tables, lattice), np.sort(people), np.ones(len(people)), -np.inf)


def expected(distribution: "stats.rv_frozen", sizes: tuple[int, ...]) -> list[FloatArray]:
    """People of each center where their expected quantiles are."""
    return [distribution.ppf((np.arange(n) + 0.5) / n) for n in sizes]


@pytest.mark.parametrize(
    "distribution",
    [
        stats.norm(3.0, 2.0),
        stats.uniform(-5.0, 1.0),
        stats.expon(1.0),
        stats.beta(5, 1),
        stats.lognorm(0.8),
        stats.t(5),
    ],
    ids=["normal", "uniform", "exponential", "beta 5 1", "lognormal", "t5"],
)
def test_it_is_the_distribution_that_people_come_from(distribution: "stats.rv_frozen") -> None:
    lattice = Lattice(step=0.1 * float(distribution.std()))
    centers = expected(distribution, SIZES)
    shape = shape_of(
        [lattice_table(x, lattice, 20, evenly) for x in centers], lattice, np.concatenate(centers)
    )
    result = distribution.cdf(shape.quantile(P))
    errors = (result - P) / np.sqrt(P * (1 - P) / sum(SIZES))
    assert np.abs(errors).max() < 0.7


@pytest.fixture
def no_edges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Priors to which a hard edge is a tail as any other."""
    monkeypatch.setattr(pooled_shape, "_SMOOTH", 0.0)
    pooled_shape.even_priors.cache_clear()
    yield
    pooled_shape.even_priors.cache_clear()


@pytest.mark.usefixtures("no_edges")
def test_a_hard_edge_that_nobody_declared_shows_in_mean_and_sd() -> None:
    """Hardly anybody of ten cells of twenty may stand outside of a uniform distribution."""
    random = np.random.default_rng(1)
    centers = [np.sort(random.random(n)) for n in SIZES]
    lattice = Lattice(step=0.05)
    outside = {}
    for moments in ("tails", "none"):
        tables = [lattice_table(x, lattice, 20, evenly, moments) for x in centers]
        shape = shape_of(tables, lattice, np.concatenate(centers))
        outside[moments] = stats.norm.cdf(np.interp(0.0, shape.values, shape.t))
    assert outside["tails"] < 0.003
    assert outside["none"] > 2 * outside["tails"]


def test_each_tail_has_a_shape_of_its_own() -> None:
    """A hard edge on the left does not make the right tail end."""
    centers = expected(stats.pareto(3.0), SIZES)
    lattice = Lattice(step=0.05)
    shape = shape_of(
        [lattice_table(x, lattice, 20, evenly) for x in centers], lattice, np.concatenate(centers)
    )
    low, high = shape.quantile(np.array([0.005, 0.99]))
    assert low == pytest.approx(stats.pareto(3.0).ppf(0.005), abs=0.002)
    assert high == pytest.approx(stats.pareto(3.0).ppf(0.99), rel=0.1)


def with_gap(seed: int, sizes: tuple[int, ...]) -> list[FloatArray]:
    """One in five lies four SDs from the others, with hardly anybody between."""
    random = np.random.default_rng(seed)
    centers = []
    for n in sizes:
        far = random.random(n) < 0.2
        centers.append(np.sort(random.normal(np.where(far, 4.0, 0.0), np.where(far, 0.5, 1.0))))
    return centers


def squared_errors(runs: list[list[FloatArray]], k: int, p: float, truth: float) -> float:
    """Of the shape at p, on average."""
    result = []
    for centers in runs:
        lattice = Lattice(step=0.1 * float(np.concatenate(centers).std()))
        tables = [lattice_table(x, lattice, k, evenly, "tails") for x in centers]
        shape = shape_of(tables, lattice, np.concatenate(centers))
        result.append(float(shape.quantile(np.array([p]))[0]) - truth)
    return float(np.mean(np.square(result)))


def test_the_search_meets_beside_a_gap_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole steps go back and forth there, and end anywhere."""
    runs = [with_gap(seed, FEW) for seed in range(60)]
    truth = 4 + 0.5 * stats.norm.ppf(0.9)
    shortened = squared_errors(runs, 10, 0.98, truth)
    monkeypatch.setattr(pooled_shape, "_LEAST", 1.0)
    assert shortened < 0.2 * squared_errors(runs, 10, 0.98, truth)


def test_a_gap_leaves_the_rest_smooth(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one roughness for all, a gap makes the tail beyond it as rough as itself."""
    runs = [with_gap(seed, SIZES) for seed in range(60)]
    truth = 4 + 0.5 * stats.norm.ppf(0.9)
    in_places = squared_errors(runs, 20, 0.98, truth)
    monkeypatch.setattr(pooled_shape, "_ROUGHER", np.inf)
    assert in_places < 0.85 * squared_errors(runs, 20, 0.98, truth)


def test_edges_are_thought_of_beforehand(request: pytest.FixtureRequest) -> None:
    """Uniform people do not need a curve for which any tail is as likely."""
    random = np.random.default_rng(5)
    runs = [[np.sort(random.random(n)) for n in SIZES] for _ in range(60)]
    levels = (0.02, 0.25, 0.75, 0.98)
    thought = [squared_errors(runs, 20, p, p) for p in levels]
    request.getfixturevalue("no_edges")
    unheard = [squared_errors(runs, 20, p, p) for p in levels]
    assert np.mean(np.divide(thought, unheard)) < 0.95


@given(
    seed=st.integers(0, 1000),
    power=st.integers(-6, 6),
    shift=st.integers(-1000, 1000),
)
def test_it_moves_and_stretches_with_the_data(seed: int, power: int, shift: int) -> None:
    x = np.sort(np.random.default_rng(seed).gamma(3.0, size=150))
    scale = 2.0**power
    one = shape_of([lattice_table(x, Lattice(0.25), 10, evenly)], Lattice(0.25), x)
    y = scale * (x + shift / 4)
    moved = Lattice(0.25 * scale)
    other = shape_of([lattice_table(y, moved, 10, evenly)], moved, y)
    assert np.allclose(other.quantile(P), scale * (one.quantile(P) + shift / 4), rtol=1e-4)


@given(
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["normal", "standard_cauchy", "exponential"]),
    answer=st.sampled_from(["all", "tails", "none"]),
)
def test_it_rises_and_tells_what_cells_leave_open(seed: int, kind: str, answer: str) -> None:
    random = np.random.default_rng(seed)
    centers = [np.sort(getattr(random, kind)(size=n)) for n in (30, 70, 200)]
    tables = [lattice_table(x, Lattice(0.1), 10, evenly, answer) for x in centers]  # type: ignore[arg-type]
    shape = shape_of(tables, Lattice(0.1), np.concatenate(centers))
    assert (np.diff(shape.values) > 0).all()
    assert (np.diff(shape.t) > 0).all()
    assert (shape.kept >= 0).all()
    assert np.isfinite(shape.kept).all()


def test_of_very_many_centers_some_tell_the_shape() -> None:
    random = np.random.default_rng(3)
    centers = [np.sort(random.gamma(4.0, size=500)) for _ in range(300)]
    lattice = Lattice(0.2)
    everybody = np.sort(np.concatenate(centers))
    tables = [lattice_table(x, lattice, 10, evenly) for x in centers]
    result = shape_of(tables, lattice, everybody[::50]).quantile(P)
    truth = stats.gamma(4.0).ppf(P)
    assert np.allclose(stats.gamma(4.0).cdf(result), stats.gamma(4.0).cdf(truth), atol=0.01)


def test_people_who_are_very_far_apart_have_a_shape() -> None:
    """Such tails have no mean; the curve is as steep as it can be."""
    random = np.random.default_rng(0)
    centers = [np.sort(random.pareto(0.5, 150)) for _ in range(10)]
    lattice = public_lattice(scale=10.0, upper=1.3e7)
    tables = [lattice_table(x, lattice, 10, evenly, "tails") for x in centers]
    result = smooth(tables, lattice).quantile(P)
    assert (np.diff(result) >= 0).all()
    assert np.isfinite(result).all()
