"""The study's methods, against the golden cases, SciPy and the federation itself."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.golden import cases
from unpooled import Federation
from unpooled.maths.arrays import FloatArray
from unpooled.maths.mann_whitney import Alternative, table_test
from unpooled.study.methods import QUANTILE_METHODS, TEST_METHODS, Federated, chain
from unpooled.study.settings import PROBABILITIES, QUANTILES, TESTS, paper_quantiles, paper_test
from unpooled.study.simulation import generators

P = np.array(PROBABILITIES)


class Halves:
    """Instead of random numbers: every boundary lies half-way."""

    def random(self) -> float:
        return 0.5


def halved(centers: list[list[FloatArray]], k: int = 10) -> Federated:
    return Federated(centers, k, Halves())  # type: ignore[arg-type]


def golden_centers(case: dict[str, Any]) -> list[list[FloatArray]]:
    return [
        [np.sort(np.array(values, dtype=np.float64)) for values in _groups(center)]
        for center in case["inputs"]["centers"]
    ]


def _groups(center: Any) -> list[list[float]]:
    return [center["x"], center["y"]] if isinstance(center, dict) else [center]


def log_p(people: Federated, method: str, alternative: Alternative = "greater") -> float:
    return TEST_METHODS[method](people, alternative)


def test_golden_p_values_come_out() -> None:
    (case,) = (c for c in cases("pvalues") if not c["flags"])
    people = halved(golden_centers(case))
    expected = {name: case["reference"][f"{name}_pval"] for name in ("fisher", "sum", "weighted")}
    expected["combined"] = case["reference"]["unconstrained_pval"]
    for method, p_value in expected.items():
        assert np.exp(log_p(people, method)) == pytest.approx(p_value, rel=1e-9), method


@pytest.mark.parametrize("case", cases("quantiles"), ids=lambda case: case["id"])
def test_golden_quantiles_come_out(case: dict[str, Any]) -> None:
    people, reference = halved(golden_centers(case)), case["reference"]
    at = np.array(case["inputs"]["q"])
    assert QUANTILE_METHODS["yj-likelihood"](people, at) == pytest.approx(
        reference["normal_quantile"], rel=1e-3, abs=1e-3
    )
    assert people.table.counts[0] == pytest.approx(reference["table"]["f"], abs=1e-9)
    assert QUANTILE_METHODS["yj-table"](people, at) == pytest.approx(
        reference["yj_quantile"], rel=1e-3, abs=1e-3
    )


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_combined_test_is_scipys(alternative: Alternative) -> None:
    setting = paper_test(5, (0.1, 0.1, 0.05))
    for random in generators(setting.name, 3, 0, 5):
        centers = setting.draw(random)
        x, y = (np.concatenate(own) for own in zip(*centers, strict=True))
        theirs = stats.mannwhitneyu(
            y, x, use_continuity=False, alternative=alternative, method="asymptotic"
        )
        ours = log_p(Federated(centers, 10, random), "combined", alternative)
        assert ours == pytest.approx(np.log(theirs.pvalue), rel=1e-9)


def test_every_method_gives_what_the_federation_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpooled.center.keyed_weight", lambda _key, _name: lambda _a, _v: 0.5)
    setting = paper_test(5, (0.1, 0.1, 0.05))
    (random,) = generators(setting.name, 1, 0, 1)
    centers = setting.draw(random)
    frames = {
        f"center {i}": pd.DataFrame(
            {"v": np.concatenate([x, y]), "group": ["x"] * len(x) + ["y"] * len(y)}
        )
        for i, (x, y) in enumerate(centers)
    }
    federation = Federation.local(frames, k=10, seed=1)
    people = halved(centers)
    table = federation.table("v", by="group")
    assert np.array_equal(table.edges, people.table.edges)
    assert np.array_equal(table.counts, people.table.counts)
    compared = federation.compare(
        "v", by="group", groups=("x", "y"), alternative="greater", method="all"
    )
    theirs = {row["method"]: row["p_value"] for row in compared.to_dict()["methods"]}
    counts = dict(zip(table.groups, table.counts, strict=True))  # the paper tests these
    theirs["table"] = table_test(counts["x"], counts["y"], "greater").p_value
    for method in ("table", "fisher", "sum", "weighted"):
        assert np.exp(log_p(people, method)) == pytest.approx(theirs[method], rel=1e-12), method


def test_every_estimator_gives_what_the_federation_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpooled.center.keyed_weight", lambda _key, _name: lambda _a, _v: 0.5)
    setting = paper_quantiles(4, 5)
    (random,) = generators(setting.name, 1, 0, 1)
    centers, _, _ = setting.draw(random)
    frames = {f"center {i}": pd.DataFrame({"v": x}) for i, (x,) in enumerate(centers)}
    federation = Federation.local(frames, k=10, seed=1)
    people = halved(centers)
    for method, tolerance in (
        ("yj-table", 1e-9),
        ("interpolation", 1e-12),
        ("yj-likelihood", 1e-3),
    ):
        told = federation.quantiles("v", p=PROBABILITIES, method=method).to_dict()
        theirs = [row["estimate"] for row in told["quantiles"]]
        assert QUANTILE_METHODS[method](people, P) == pytest.approx(theirs, rel=tolerance), method


def test_the_loss_has_the_sample_quantiles_neighbours() -> None:
    """A minimiser lies between the people on either side of rank n·p, ties or not."""
    random = np.random.default_rng(2)
    for values in (np.sort(random.gamma(4, 1, 777)), np.sort(random.integers(0, 9, 500) * 1.0)):
        found = QUANTILE_METHODS["loss"](halved([[values]]), P)
        for p, estimate in zip(P, found, strict=True):
            below, upto = (np.sum(values < estimate - 1e-9), np.sum(values <= estimate + 1e-9))
            assert below <= p * len(values) + 1e-9 <= upto + 2e-9


def test_centers_below_k_are_left_out_of_all_but_the_combined_test() -> None:
    random = np.random.default_rng(4)
    large = [np.sort(random.normal(size=60)), np.sort(random.normal(1, 1, 60))]
    small = [np.sort(random.normal(size=60)), np.sort(random.normal(-3, 1, 9))]
    both, alone = halved([large, small]), halved([large])
    for method in TESTS[1:]:
        assert log_p(both, method) == log_p(alone, method)
    assert log_p(both, "combined") != log_p(alone, "combined")
    assert both.table.counts.sum() == 120


def test_the_chain_begins_with_the_largest_center() -> None:
    setting = paper_quantiles(10, 3)
    (random,) = generators(setting.name, 1, 0, 1)
    centers, _, _ = setting.draw(random)
    rule = halved(centers).rule
    tables = [chain(order, rule, lambda _a, _v: 0.5) for order in (centers, centers[::-1])]
    assert np.array_equal(tables[0].edges, tables[1].edges)
    assert set(QUANTILES) <= set(QUANTILE_METHODS)
