"""Priors of a curve and what they become, against integrals and densities of SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from unpooled.maths.density import pooled_shape
from unpooled.maths.density.pooled_shape import Posterior, even_priors, relative_variances
from unpooled.maths.density.slope_basis import PIECES, SHAPED

NU = pooled_shape._FREEDOM
SIZE = SHAPED + PIECES


@given(square=st.floats(0.0, 100.0), rough=st.floats(0.01, 10.0))
def test_the_variance_of_a_piece_is_what_a_climb_tells_of_it(square: float, rough: float) -> None:
    """1/s is the expected precision, given d, where s is inverse-gamma."""
    prior = stats.invgamma(NU / 2, scale=NU / 2)

    def weighed(log_s: float, power: int) -> float:
        s = np.exp(log_s)
        density = prior.pdf(s) * stats.norm.pdf(np.sqrt(square), scale=np.sqrt(rough * s))
        return float(density * s ** (1 - power))

    expected, all_of_it = (
        integrate.quad(weighed, -10, 25, args=(power,), limit=200)[0] for power in (1, 0)
    )
    result = relative_variances(np.array([square]), rough)[0]
    assert 1 / result == pytest.approx(expected / all_of_it, rel=1e-5)


@given(s=st.floats(0.01, 1000.0))
def test_variances_are_as_likely_as_the_inverse_gamma_says(s: float) -> None:
    prior = stats.invgamma(NU / 2, scale=NU / 2)
    expected = prior.logpdf(s) + np.log(s) - prior.logpdf(1.0)
    assert pooled_shape._log_density(np.array([s, 1.0])) == pytest.approx(expected, abs=1e-9)


def test_evidence_is_the_density_of_what_was_seen() -> None:
    """In a linear model y = Xθ + e everything is known exactly."""
    random = np.random.default_rng(1)
    design = random.normal(size=(60, SIZE))
    every = even_priors()
    proper = every.precision > 1e-3
    some = [0, 5, 13, 27, 35]  # of which the last two have edges
    chosen = every.those(np.isin(np.arange(len(every.rough)), some))
    theta = random.normal(every.mean[27], 1 / np.sqrt(np.maximum(every.precision[27], 0.1)))
    seen = design @ theta + random.normal(size=60)
    result = Posterior.of(design.T @ design, design.T @ seen, chosen)
    log = []
    for row in some:
        spread = np.where(proper[row], 1 / every.precision[row], 1 / pooled_shape._FREE)
        covariance = (design * spread) @ design.T + np.eye(60)
        density = stats.multivariate_normal(design @ every.mean[row], covariance)
        log.append(density.logpdf(seen) + every.log_weight[row])
    weights = np.exp(np.array(log) - max(log))
    kept = weights > 0.01 * weights.sum()
    assert result.weights == pytest.approx(weights[kept] / weights[kept].sum(), rel=1e-3)
    for mean, row in zip(result.means, np.array(some)[kept], strict=True):
        information = design.T @ design + np.diag(every.precision[row])
        pulled = design.T @ seen + every.precision[row] * every.mean[row]
        assert information @ mean == pytest.approx(pulled, abs=1e-6 * np.abs(pulled).max())


def test_smooth_curves_may_have_edges() -> None:
    every = even_priors()
    edges = (every.mean[:, 3:SHAPED] == -0.5).any(axis=1)
    assert edges.sum() == 15
    assert set(every.rough[edges]) == {tau for tau in every.rough if tau < 0.3}
    assert not every.mean[~edges].any()


def test_local_rows_start_even_and_are_changed_alone() -> None:
    both = even_priors().and_local()
    rows = len(even_priors().rough)
    without_edges = ~even_priors().mean.any(axis=1)
    assert np.array_equal(both.mean[both.local], even_priors().mean[without_edges])
    s = np.full(PIECES, 1.0)
    s[10] = 9.0
    changed = both.with_variances(np.ones(PIECES), s)
    assert np.array_equal(changed.precision[:rows], both.precision[:rows])
    expected = np.maximum(both.precision[rows:, -1] / 9, 1e-3)
    assert np.allclose(changed.precision[rows:, SHAPED + 10], expected)
    back = changed.with_variances(s, np.ones(PIECES))
    assert np.allclose(back.precision, both.precision)
    assert np.allclose(back.log_weight, both.log_weight)


def test_information_that_rounding_leaves_indefinite_has_a_posterior() -> None:
    """A very steep curve tells a million times more about some coefficients than about others."""
    rows = np.random.default_rng(1).normal(size=(20, SIZE)) * 1e6
    information = rows.T @ rows
    assert np.linalg.eigvalsh(information).min() < 0
    posterior = Posterior.of(information, rows.sum(axis=0), even_priors())
    assert np.isfinite(posterior.mean).all()
