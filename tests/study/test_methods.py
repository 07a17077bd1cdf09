"""The study's methods, against the golden cases, SciPy and the federation itself."""

from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.golden import cases
from unpooled import Federation, Policy
from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import Alternative, table_test
from unpooled_study.planning import TESTS
from unpooled_study.simulations.families import Normal, Rounded
from unpooled_study.simulations.methods import (
    QUANTILE_METHODS,
    TEST_METHODS,
    Federated,
    NoAnswer,
    grow,
)
from unpooled_study.simulations.settings import (
    ALLOCATIONS,
    PROBABILITIES,
    QUANTILES,
    TestSetting,
    paper_quantiles,
    paper_test,
)
from unpooled_study.simulations.simulation import generators

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
        x, y = (np.concatenate(part) for part in zip(*centers, strict=True))
        theirs = stats.mannwhitneyu(
            y, x, use_continuity=False, alternative=alternative, method="asymptotic"
        )
        ours = log_p(Federated(centers, 10, random), "combined", alternative)
        assert ours == pytest.approx(np.log(theirs.pvalue), rel=1e-9)


SOME = (0.3, 0.1, 0.1)
ROUNDED = 0.1  # standard errors by which rounding at the centers may move a test
SETTINGS = {
    "paper": paper_test(5, (0.1, 0.1, 0.05)),
    "unequal": TestSetting((100,) * 5, (20,) * 5, SOME, TESTS),
    "below K": TestSetting((120, 60, 9, 40), (40, 8, 90, 12), SOME, TESTS),
    "K of 5": TestSetting((50, 6, 30), (40, 40, 7), SOME, TESTS, k=5),
    "no center has both": TestSetting((90, 9, 60), (9, 80, 3), SOME, TESTS),
    "few values": TestSetting((100,) * 4, (20,) * 4, SOME, TESTS, family=Rounded(Normal(), 1.5)),
}


def frames_of(centers: list[list[FloatArray]]) -> dict[str, pd.DataFrame]:
    return {
        f"center {i}": pd.DataFrame(
            {"v": np.concatenate([x, y]), "group": ["x"] * len(x) + ["y"] * len(y)}
        )
        for i, (x, y) in enumerate(centers)
    }


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_every_method_gives_what_the_federation_gives(
    setting: TestSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "unpooled.center.proposal.summarise.keyed_weight", lambda _key, _name: lambda _a, _v: 0.5
    )
    for seed, random in enumerate(generators(setting.name, 1, 0, 4)):
        centers = setting.draw(random)
        federation = Federation.local(frames_of(centers), k=setting.k, seed=seed)
        methods = ["weighted", "sum", "fisher", "table"]
        compared = federation.compare(
            "v", by="group", groups=("x", "y"), alternative="greater", method=methods
        )
        people, table = halved(centers, setting.k), compared.table
        assert table is not None
        assert np.array_equal(table.edges, people.table.edges)
        assert np.array_equal(table.counts, people.table.counts)
        theirs = {row["method"]: row["p_value"] for row in compared.to_dict()["methods"]}
        theirs["paper-table"] = table_test(table.counts[0], table.counts[1], "greater").p_value
        for method in (*methods, "paper-table"):
            if theirs[method] is None:
                with pytest.raises(NoAnswer):
                    log_p(people, method)
            elif method in ("table", "paper-table"):
                ours = np.exp(log_p(people, method))
                assert ours == pytest.approx(theirs[method], rel=1e-12), method
            else:  # U is rounded to 1/20 of its standard error or so
                ours = np.exp(log_p(people, method))
                z = stats.norm.isf([ours, theirs[method]])
                assert z[0] == pytest.approx(z[1], abs=ROUNDED), method


@pytest.mark.parametrize("sizes", [ALLOCATIONS[5], (150, 60, 45, 29, 9)], ids=["paper", "small"])
def test_every_estimator_gives_what_the_federation_gives(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of small centers 9 people are too few for all, 29 for powers on a grid, 45 for more."""
    monkeypatch.setattr(
        "unpooled.center.proposal.summarise.keyed_weight", lambda _key, _name: lambda _a, _v: 0.5
    )
    setting = msgspec.structs.replace(paper_quantiles(4, 5), sizes=sizes)
    (random,) = generators(setting.name, 1, 0, 1)
    centers, _, _ = setting.draw(random)
    frames = {f"center {i}": pd.DataFrame({"v": x}) for i, (x,) in enumerate(centers)}
    federation = Federation.local(
        frames, policy=Policy(ad_hoc="free", paper_iteration=True), seed=1
    )
    people = halved(centers)
    for method, named, tolerance in (
        ("yj-table", "yj-table", 1e-9),
        ("interpolation", "interpolation", 1e-12),
        ("yj-grid", "paper-grid", 1e-3),
    ):
        answer = federation.quantiles("v", p=PROBABILITIES, method=named).to_dict()
        theirs = [row["estimate"] for row in answer["quantiles"]]
        assert QUANTILE_METHODS[method](people, P) == pytest.approx(theirs, rel=tolerance), method


def test_the_loss_has_the_sample_quantiles_neighbours() -> None:
    """A minimiser lies between the people on either side of rank n·p, ties or not."""
    random = np.random.default_rng(2)
    for values in (np.sort(random.gamma(4, 1, 777)), np.sort(random.integers(0, 9, 500) * 1.0)):
        result = QUANTILE_METHODS["loss"](halved([[values]]), P)
        for p, estimate in zip(P, result, strict=True):
            below, upto = (np.sum(values < estimate - 1e-9), np.sum(values <= estimate + 1e-9))
            assert below <= p * len(values) + 1e-9 <= upto + 2e-9


def test_a_group_below_k_is_left_out_of_all_but_the_combined_test() -> None:
    """The tests by center lose the whole center, the table that group alone."""
    random = np.random.default_rng(4)
    large = [np.sort(random.normal(size=60)), np.sort(random.normal(1, 1, 60))]
    small = [np.sort(random.normal(size=60)), np.sort(random.normal(-3, 1, 9))]
    both, alone = halved([large, small]), halved([large])
    for method in ("fisher", "sum", "weighted"):
        assert log_p(both, method) == log_p(alone, method)
    for method in ("combined", "table"):
        assert log_p(both, method) != log_p(alone, method)
    assert both.table.counts.sum(axis=1) == pytest.approx([120, 60])


def test_the_chain_begins_with_the_largest_center() -> None:
    setting = paper_quantiles(10, 3)
    (random,) = generators(setting.name, 1, 0, 1)
    centers, _, _ = setting.draw(random)
    rule = halved(centers).rule
    chains = [grow(order, rule, lambda _a, _v: 0.5) for order in (centers, centers[::-1])]
    assert np.array_equal(chains[0].pools[-1].interior, chains[1].pools[-1].interior)
    assert set(QUANTILES) <= set(QUANTILE_METHODS)
