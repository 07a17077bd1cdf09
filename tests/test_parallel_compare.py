"""Compare as if pooled, from one parallel round, against SciPy on the pooled people."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from unpooled import Federation, Policy, Variable
from unpooled.errors import RefusedError
from unpooled.maths.arrays import FloatArray
from unpooled.results.numbers.compare import CompareResult
from unpooled.results.numbers.distribution import DistributionResult
from unpooled.results.numbers.quantiles import QuantilesResult
from unpooled.results.provenance.refusals import BIASED, LEFT_OUT
from unpooled.results.report.parts import parts_html


def rows(seed: int = 1, n: int = 1200, shift: float = 0.3, center: float = 0.0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    groups, hospitals = random.choice(["x", "y"], n), random.choice(list("ABCD"), n)
    values = random.gamma(4, 1, n) + shift * (groups == "y") + center * (hospitals == "C")
    return pl.DataFrame({"v": values, "g": groups, "h": hospitals})


def compare(
    frame: pl.DataFrame, method: str | list[str] = "parallel", **settings: object
) -> CompareResult:
    fed = Federation.split(frame, center="h", seed=1, **settings)  # type: ignore[arg-type]
    return fed.compare("v", by="g", groups=("x", "y"), method=method)


def pooled(frame: pl.DataFrame) -> list[FloatArray]:
    return [frame.filter(pl.col("g") == g)["v"].to_numpy() for g in "xy"]


@pytest.mark.parametrize(("seed", "shift", "moments"), [(1, 0.3, "tails"), (2, 0.0, "all")])
def test_test_effect_and_shift_are_near_those_of_the_pooled_people(
    seed: int, shift: float, moments: str
) -> None:
    frame = rows(seed, shift=shift)
    x, y = pooled(frame)
    result = compare(frame, policy=Policy(ad_hoc="free", moments=moments))  # type: ignore[arg-type]
    exact = stats.mannwhitneyu(y, x, method="asymptotic", use_continuity=False)
    assert result.test.method == "parallel"
    assert result.log10_p == pytest.approx(np.log10(exact.pvalue), abs=0.25)
    assert result.effect is not None
    assert result.shift is not None
    effect = exact.statistic / len(x) / len(y)
    assert result.effect.estimate == pytest.approx(effect, abs=0.003)
    assert result.effect.low < effect < result.effect.high
    moved = np.median(np.subtract.outer(y, x))
    assert result.shift.estimate == pytest.approx(moved, abs=0.04)
    assert result.shift.low < moved < result.shift.high
    assert result.rounds == 2


def test_all_has_a_row_for_it_and_recommends_as_before() -> None:
    result = compare(rows(), "all")
    assert [t.method for t in result.methods] == ["weighted", "sum", "fisher", "table", "parallel"]
    assert result.recommended == "weighted"
    answer = result.to_dict()
    assert set(answer["parallel"]) == {"effect", "shift", "centers"}
    assert answer["shift"] == answer["parallel"]["shift"]
    assert "van Elteren" in answer["why"]


def test_beside_it_the_table_is_that_of_its_own_question() -> None:
    """After tables on a lattice the chain tells less, and never the wrong thing."""
    frame = rows(n=700)
    both = {test.method: test.p_value for test in compare(frame, "all", k=25).methods}
    alone = compare(frame, "table", k=25).p_value
    assert np.log10(both["table"]) == pytest.approx(np.log10(alone), abs=0.2)
    assert np.log10(both["parallel"]) == pytest.approx(
        np.log10(compare(frame, k=25).p_value), abs=0.4
    )


def test_it_says_where_a_center_lacks_a_group() -> None:
    frame = rows()
    few = frame.filter((pl.col("h") == "C") & (pl.col("g") == "y")).head(12)
    frame = pl.concat((frame.filter((pl.col("h") != "C") | (pl.col("g") == "x")), few))
    note = "1 of 4 centers lack a group: their differences count as well"
    assert compare(frame).test.note == note
    assert compare(rows()).test.note is None


def test_it_says_how_many_of_the_centers_it_rests_on() -> None:
    """Ranks need K people a group, tables on a lattice 2K: here one center alone has them."""
    random, sizes = np.random.default_rng(1), [400, 160, 160, 160]
    frame = pl.DataFrame(
        {"v": random.normal(size=880), "g": ["x", "y"] * 440, "h": np.repeat(list("ABCD"), sizes)}
    )
    result = compare(frame, k=60)
    assert len(result.centers) == 4
    assert result.test.note == "rests on 1 of 4 centers"
    assert "the test of 400 people at 1 of 4 centers" in result.why
    assert "everybody" not in str(result)
    whole = compare(frame)
    assert (whole.test.note, "people at 4 centers" in whole.why) == (None, True)


def test_a_method_that_nobody_could_answer_has_a_row_and_a_reason() -> None:
    """Ranks need 10 people a group here, tables on a lattice 20."""
    random = np.random.default_rng(4)
    values, groups = random.normal(size=60), ["x", "y"] * 30
    frame = pl.DataFrame({"v": values, "g": groups, "h": ["A", "A", "B", "B", "C", "C"] * 10})
    result = compare(frame, "all")
    assert result.unanswered == {"parallel": "no center could answer"}
    assert "no center could answer" in str(result)
    assert result.to_dict()["methods"][-1]["p_value"] is None
    assert {"fewer than 20 people"} <= {refusal.rule for refusal in result.refusals}


def test_what_rare_values_withhold_does_not_look_like_an_effect() -> None:
    """Of a group of a few events only their number is withheld; of a group of none, nothing is."""
    random, n = np.random.default_rng(5), 500
    frame = pl.DataFrame(
        {"v": random.poisson(0.1, n).astype(float), "g": ["x", "y"] * 250, "h": list("ABCDE") * 100}
    )
    declared = {"v": Variable(lower=0, upper=10, resolution=1)}
    with pytest.raises(RefusedError, match=r"^the centers' tables do not say where .*\n.*rare"):
        compare(frame, variables=declared)


def test_centers_that_disagree_are_said_to() -> None:
    frame = rows(shift=0.0)
    turned = (pl.col("h") == "C") & (pl.col("g") == "y")
    frame = frame.with_columns(pl.when(turned).then(pl.col("v") + 3).otherwise(pl.col("v")))
    assert "The centers disagree" in str(compare(frame))
    assert "The centers disagree" not in str(compare(rows()))


def test_values_that_people_share_count_as_ties() -> None:
    frame = rows().with_columns(v=pl.col("v").round(0))
    x, y = pooled(frame)
    result = compare(frame, variables={"v": Variable(resolution=1, lower=0)})
    exact = stats.mannwhitneyu(y, x, method="asymptotic", use_continuity=False)
    assert result.log10_p == pytest.approx(np.log10(exact.pvalue), abs=0.4)


@pytest.mark.parametrize("digits", [0, 1])
def test_rounded_people_are_shifted_by_possible_differences(digits: int) -> None:
    """Of tenths, the shift was 0.10000000000000053."""
    shift = compare(rows().with_columns(v=(10 * pl.col("v")).round(0) / 10**digits)).shift
    assert shift is not None
    ends = (shift.estimate, shift.low, shift.high)
    assert [round(end, digits + 2) for end in ends] == list(ends)


def test_one_center_gives_its_own_exact_test() -> None:
    frame = rows().with_columns(h=pl.lit("A"))
    x, y = pooled(frame)
    exact = stats.mannwhitneyu(y, x, method="asymptotic", use_continuity=False)
    result = compare(frame)
    assert result.test.statistic == pytest.approx(
        stats.norm.isf(exact.pvalue / 2) * np.sign(exact.statistic - len(x) * len(y) / 2),
        abs=1 / 16,  # standard errors: U is rounded to the next unit above 1/20
    )
    assert result.random is None


def test_groups_that_never_meet_at_a_center_can_be_compared() -> None:
    frame = rows().with_columns(h=pl.col("g"))
    result = compare(frame)
    x, y = pooled(frame)
    assert result.centers == ()
    assert result.recommended == "parallel"
    exact = stats.mannwhitneyu(y, x, method="asymptotic", use_continuity=False)
    assert result.log10_p == pytest.approx(np.log10(exact.pvalue), abs=0.3)


def test_where_no_group_is_large_enough_the_reason_is_told() -> None:
    with pytest.raises(RefusedError, match="fewer than 20 people"):
        compare(rows(n=100))


def test_small_groups_do_not_stop_the_other_methods() -> None:
    result = compare(rows(n=110), "all")
    assert "weighted" in [t.method for t in result.methods]
    assert "too-small" in {r.reason for r in result.refusals}


def test_a_center_that_differs_is_named_with_its_place(tmp_path: Path) -> None:
    result = compare(rows(center=1.5), "all")
    assert any(s.startswith("C differs from the other centers in x") for s in result.sentences())
    assert result.pooled is not None
    by_center = {(c.center, c.group): c.deviation for c in result.pooled.distribution.centers}
    worst = by_center["C", "x"]
    assert worst is not None
    assert worst.p_value == min(d.p_value for (_, g), d in by_center.items() if d and g == "x")
    assert worst.difference < -0.2
    answer = json.loads(json.dumps(result.to_dict()["parallel"]["centers"]))
    by_json = {(one["center"], one["group"]): one["deviation"] for one in answer}
    assert by_json["C", "x"] == asdict(worst)
    page = result.report(tmp_path / "c.html").read_text()
    assert "Centers against all" in page
    assert "Random effects" in page


def test_random_effects_widen_where_centers_differ() -> None:
    """The effect is turned round at one center."""
    frame = rows(n=2000).with_columns(
        v=pl.when((pl.col("h") == "D") & (pl.col("g") == "y"))
        .then(pl.col("v") - 1.5)
        .otherwise(pl.col("v"))
    )
    result = compare(frame, "weighted")
    assert result.random is not None
    assert result.effect is not None
    assert result.random.tau > 0.05
    assert result.random.mean.high - result.random.mean.low > 2 * (
        result.effect.high - result.effect.low
    )
    datasets = result.forest().to_dict()["datasets"].values()
    drawn = [row["center"] for rows in datasets for row in rows if "estimate" in row]
    assert drawn == ["A", "B", "C", "D", "all centers", "random effects"]


def scores(seed: int, most: int) -> pl.DataFrame:
    """Whole numbers from 1 on, and no effect."""
    random, n = np.random.default_rng(seed), 480
    values = np.clip(np.round(random.normal((most + 1) / 2, most / 5, n)), 1, most)
    return pl.DataFrame({"v": values, "g": random.choice(["x", "y"], n), "h": list("ABC") * 160})


def test_after_the_chain_people_stay_on_their_side_of_its_boundaries() -> None:
    """These lie anywhere between two scores: whoever was rounded over one made p = 1e-30."""
    answered = 0
    for seed in range(5):
        frame = scores(seed, most=12)
        x, y = pooled(frame)
        exact = stats.mannwhitneyu(y, x, method="asymptotic", use_continuity=False)
        fed = Federation.split(frame, center="h", seed=1)
        fed.table("v", by="g")
        try:
            result = fed.compare("v", by="g", groups=("x", "y"), method="parallel")
        except RefusedError:
            continue
        answered += 1
        assert result.effect is not None
        effect = exact.statistic / len(x) / len(y)
        assert result.effect.estimate == pytest.approx(effect, abs=0.01)
    assert answered == 2


def test_scores_of_few_values_have_no_parallel_test() -> None:
    """No ranks are told, and outer cells of two scores do not say how many have which.

    Tested all the same, an effect of .01 was taken for one of .012: 9 % were rejected without one.
    """
    with pytest.raises(RefusedError, match="hidden-people"):
        compare(scores(1, most=5))
    answer = compare(scores(1, most=5), "all").to_dict()
    assert answer["parallel"] is None
    assert answer["methods"][-1]["note"] == "the centers' tables do not say where enough people are"


def zeros() -> pl.DataFrame:
    """30 % zeros and no effect; some tables have too few cells to say where their people are."""
    random, n = np.random.default_rng(1), 600
    values = np.where(random.random(n) < 0.3, 0.0, random.lognormal(0, 0.7, n))
    groups, hospitals = (["x"] * 60 + ["y"] * 40) * 6, np.repeat(list("ABCDEF"), 100)
    return pl.DataFrame({"v": values, "g": groups, "h": hospitals})


def test_centers_left_out_for_their_values_are_a_biased_sample() -> None:
    """8 of 44 such samples without an effect were rejected, 2 by the pooled test."""
    result = compare(zeros())
    assert {refusal.reason for refusal in result.refusals} == {"few-cells"}
    assert result.test.note is not None
    assert result.test.note.startswith(BIASED)
    assert result.recommended == "table"
    assert "parallel may find effects that are not there. Rely on method='table'" in result.why
    declared = compare(zeros(), variables={"v": Variable(atoms=(0,))})
    assert (declared.refusals, declared.test.note, declared.biased) == ((), None, ())


def test_an_unbiased_method_beside_it_stays_recommended() -> None:
    """All centers tell their ranks: only tables on a lattice do not say where people are."""
    result = compare(zeros(), ["weighted", "parallel"])
    assert result.biased == ()
    assert [(test.method, test.note) for test in result.methods] == [("weighted", None)]
    assert result.unanswered["parallel"].startswith("the centers' tables do not say where")
    assert result.recommended == "weighted"
    assert "Weighted, van Elteren's stratified test, has the most power" in result.why


def test_quantiles_and_table_say_that_values_decide_who_is_left_out() -> None:
    def ask(**settings: object) -> list[QuantilesResult | DistributionResult]:
        fed = Federation.split(zeros(), center="h", seed=1, **settings)  # type: ignore[arg-type]
        asked = {"by": "g", "groups": ("x", "y"), "method": "parallel"}
        return [fed.quantiles("v", **asked), fed.table("v", **asked)]  # type: ignore[arg-type,list-item]

    for result in ask():
        assert f"note: {LEFT_OUT}" in str(result)
        assert LEFT_OUT in result.to_dict()["notes"]
        assert any(LEFT_OUT in parts_html(section.parts) for section in result.sections())
    for result in ask(variables={"v": Variable(atoms=(0,))}):
        assert LEFT_OUT not in str(result)
