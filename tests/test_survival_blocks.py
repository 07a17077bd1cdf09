"""An outcome that is told by blocks: every grouping, combination and stratum follows from it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.survival_data import trial
from unpooled import Federation, Policy
from unpooled.analyses.survival import BlockAnswer, BlockView, survival_of_blocks
from unpooled.center.questions import (
    CellTable,
    Grouping,
    GroupStatuses,
    SurvivalQuestion,
    SurvivalTables,
    block_label,
    decode_answer,
)
from unpooled.errors import InputError
from unpooled.maths.survival.cox import hazard_ratio
from unpooled.maths.survival.follow_up import FollowUp
from unpooled.maths.survival.log_rank import log_rank
from unpooled.results.survival import SurvivalResult

ARM = Grouping(name="arm", levels=("old", "new"))
SEX = Grouping(name="sex", levels=("F", "M"))
BAND = Grouping(name="band", levels=("young", "old age"), ordered=True)
HORIZON = 60.0
Label = Callable[[dict[str, Any]], list[list[str]]]


def question(*blocks: Grouping) -> SurvivalQuestion:
    return SurvivalQuestion(variable="months", event="died", horizon=HORIZON, blocks=blocks)


def by_levels(*names: str) -> Label:
    return lambda person: [[person[name]] for name in names]


def one_cell_each(times: list[float]) -> CellTable | None:
    """Every time in a cell of its own, so that nothing is lost."""
    values, counts = np.unique(times, return_counts=True)
    if not len(values):
        return None
    between = (values[1:] + values[:-1]) / 2
    edges, means = tuple(between.tolist()), tuple(values.tolist())
    sds = (0.0,) * len(values)
    return CellTable(edges=edges, counts=tuple(counts.tolist()), means=means, sds=sds)


def answer(center: str, people: pl.DataFrame, label: Label) -> BlockAnswer:
    """All that a center knows, by block."""
    blocks: dict[str, list[dict[str, Any]]] = {}
    for person in people.iter_rows(named=True):
        blocks.setdefault(block_label(label(person)), []).append(person)
    groups = [
        GroupStatuses(
            group=name,
            events=one_cell_each([p["months"] for p in some if p["died"]]),
            censored=one_cell_each([p["months"] for p in some if not p["died"]]),
            either=None,
            below=None,
        )
        for name, some in blocks.items()
    ]
    return BlockAnswer(center, 1, SurvivalTables(scale=10.0, groups=tuple(groups)))


@pytest.fixture
def people() -> pl.DataFrame:
    centers = [
        trial(seed, n, center=[name] * n, band=random_bands(seed, n))
        for seed, n, name in ((1, 120, "Haifa"), (2, 90, "Bern"), (3, 60, "Porto"))
    ]
    return pl.concat(centers)


def random_bands(seed: int, n: int) -> list[str]:
    young = np.random.default_rng(seed + 9).random(n) < 0.5
    return ["young" if is_young else "old age" for is_young in young]


@pytest.fixture
def answers(people: pl.DataFrame) -> list[BlockAnswer]:
    label = by_levels("arm", "sex", "band")
    return [answer(str(c), people.filter(center=c), label) for c in people["center"].unique()]


def followed(rows: pl.DataFrame, *strata: str) -> FollowUp:
    codes = rows.select(pl.concat_str(["center", *strata]).rank("dense")).to_series()
    times, events = rows["months"].to_numpy(), rows["died"].to_numpy().astype(float)
    return FollowUp.of(times, events, None, codes.to_numpy().astype(int))


def left_out(result: SurvivalResult) -> list[str]:
    return [note for note in result.notes if "left out" in note]


@pytest.mark.parametrize(
    ("by", "groups"), [("arm", ("old", "new")), ("sex", ("F", "M")), ("band", ("young", "old age"))]
)
def test_every_grouping_follows_from_one_answer(
    people: pl.DataFrame, answers: list[BlockAnswer], by: str, groups: tuple[str, str]
) -> None:
    result = survival_of_blocks(question(ARM, SEX, BAND), answers, BlockView(by), at=[12, 24])
    assert tuple(arm.group for arm in result.arms) == groups
    arms = [followed(people.filter(pl.col(by) == level)) for level in groups]
    assert result.stratified is not None
    assert result.stratified.statistic == pytest.approx(log_rank(arms, stratified=True).statistic)
    exact, computed = hazard_ratio(arms[0], arms[1], stratified=True), result.ratios[0].ratio
    assert exact is not None
    assert computed is not None
    assert computed.estimate == pytest.approx(exact.interval().estimate)
    assert not left_out(result)
    assert result.rounds == 0


def test_everybody_and_combinations_and_strata_follow_too(
    people: pl.DataFrame, answers: list[BlockAnswer]
) -> None:
    asked = question(ARM, SEX, BAND)
    overall = survival_of_blocks(asked, answers, BlockView())
    assert [arm.followed.total for arm in overall.arms] == [people.height]
    women = survival_of_blocks(asked, answers, BlockView("arm", where={"sex": ("F",)}))
    assert women.arms[0].followed.total == people.filter(arm="old", sex="F").height
    assert "where sex: F" in women.title
    both = survival_of_blocks(asked, answers, BlockView("arm", strata=("sex", "band")))
    arms = [followed(people.filter(arm=arm), "sex", "band") for arm in ("old", "new")]
    assert both.stratified is not None
    assert both.stratified.statistic == pytest.approx(log_rank(arms, stratified=True).statistic)
    assert "log-rank by center and sex and band" in str(both)


def test_adjusted_hazard_ratios_are_those_of_lifelines(
    people: pl.DataFrame, answers: list[BlockAnswer]
) -> None:
    from lifelines import CoxPHFitter

    view = BlockView("arm", covariates=("sex", "band"))
    result = survival_of_blocks(question(ARM, SEX, BAND), answers, view)
    frame = people.select(
        "months",
        "died",
        "center",
        arm=(pl.col("arm") == "new").cast(int),
        sex=(pl.col("sex") == "M").cast(int),
        band=(pl.col("band") == "old age").cast(int),
    ).to_pandas()
    fit = CoxPHFitter().fit(frame, "months", "died", strata=["center"]).summary
    assert [(t.variable, t.level, t.versus) for t in result.adjusted] == [
        ("arm", "new", "old"),
        ("sex", "M", "F"),
        ("band", "old age", "young"),
    ]
    for term in result.adjusted:
        assert term.ratio is not None
        row = fit.loc[term.variable]
        assert term.ratio.estimate == pytest.approx(row["exp(coef)"], rel=1e-4)
        assert term.ratio.high == pytest.approx(row["exp(coef) upper 95%"], rel=1e-3)
    assert result.to_dict()["adjusted"][0]["variable"] == "arm"
    assert "arm: new to old" in str(result)


def test_levels_told_together_are_one_stratum_and_nobody_is_lost(people: pl.DataFrame) -> None:
    """Porto tells old patients of both sexes together: there both arms are compared as one."""

    def label(person: dict[str, Any]) -> list[list[str]]:
        joined = person["center"] == "Porto" and person["arm"] == "old"
        return [[person["arm"]], ["F", "M"] if joined else [person["sex"]]]

    answers = [answer(str(c), people.filter(center=c), label) for c in people["center"].unique()]
    asked = question(ARM, SEX)
    result = survival_of_blocks(asked, answers, BlockView("arm", strata=("sex",)))
    released = people.with_columns(
        sex=pl.when(center="Porto").then(pl.lit("F or M")).otherwise(pl.col("sex"))
    )
    arms = [followed(released.filter(arm=arm), "sex") for arm in ("old", "new")]
    assert result.stratified is not None
    assert result.stratified.statistic == pytest.approx(log_rank(arms, stratified=True).statistic)
    assert not left_out(result)
    sexes = survival_of_blocks(asked, answers, BlockView("sex"))
    (note,) = left_out(sexes)
    assert note.startswith("sex: 30 people are left out")
    assert "(Porto: F or M)" in note
    assert sum(arm.followed.total for arm in sexes.arms) == people.height - 30
    women = survival_of_blocks(asked, answers, BlockView("arm", where={"sex": ("F", "M")}))
    assert sum(arm.followed.total for arm in women.arms) == people.height
    model = survival_of_blocks(asked, answers, BlockView("arm", covariates=("sex",)))
    assert "30 people are left out of the adjusted hazard ratios" in left_out(model)[0]
    assert sum(arm.followed.total for arm in model.arms) == people.height


def test_an_arm_that_went_to_the_joint_center_is_compared_with_the_one_that_stayed(
    people: pl.DataFrame,
) -> None:
    """Bern keeps one arm, Porto gives both; Bern's stratum is then that of the joint center."""
    stays = (pl.col("center") == "Haifa") | (
        (pl.col("center") == "Bern") & (pl.col("arm") == "old")
    )
    label = by_levels("arm", "sex")
    alone = people.filter(stays)
    answers = [answer(name, alone.filter(center=name), label) for name in ("Haifa", "Bern")]
    joint = answer("joint (2 centers)", people.filter(~stays), label)
    answers.append(replace(joint, members=("Bern", "Porto")))
    released = people.with_columns(center=pl.col("center").replace({"Porto": "Bern"}))
    arms = [followed(released.filter(arm=arm), "sex") for arm in ("old", "new")]
    view = BlockView("arm", strata=("sex",))
    result = survival_of_blocks(question(ARM, SEX), answers, view)
    assert result.stratified is not None
    assert result.stratified.statistic == pytest.approx(log_rank(arms, stratified=True).statistic)
    whole = replace(answers[2], members=("Porto",))  # as if Bern had given nobody
    apart = survival_of_blocks(question(ARM, SEX), [*answers[:2], whole], view)
    assert apart.stratified is not None
    assert apart.stratified.statistic != pytest.approx(result.stratified.statistic, rel=1e-3)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (BlockView("arms"), "by: there is no grouping 'arms'. Hint: did you mean 'arm'"),
        (BlockView("arm", strata=("age",)), "strata: there is no grouping 'age'. There are: arm"),
        (BlockView("arm", strata=("arm",)), "by, strata and covariates must differ, got 'arm'"),
        (BlockView("arm", ("old", "odd")), "arm: there is no level 'odd'"),
        (BlockView("arm", where={"sex": ("X",)}), "sex: there is no level 'X'"),
        (BlockView(strata=("sex",)), "need by, the arms to compare"),
        (BlockView("arm", ("old", "other")), "no center tells 'other' of 'arm' by itself"),
    ],
)
def test_a_view_that_cannot_be_had_is_an_error(
    answers: list[BlockAnswer], view: BlockView, message: str
) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        survival_of_blocks(question(ARM, SEX, BAND), answers, view)


def test_times_beyond_the_horizon_are_an_error(answers: list[BlockAnswer]) -> None:
    with pytest.raises(InputError, match="72 is beyond the horizon, 60"):
        survival_of_blocks(question(ARM, SEX, BAND), answers, BlockView("arm"), at=[72])


def test_blocks_that_real_centers_tell_are_near_the_pooled_people() -> None:
    """K = 10, cells as centers cut them, and blocks of few events without statuses."""
    sizes = {"Haifa": 500, "Bern": 300, "Porto": 70}
    people = pl.concat(trial(n, n, center=[name] * n) for name, n in sizes.items())
    labels = [block_label([[p["arm"]], [p["sex"]]]) for p in people.iter_rows(named=True)]
    fed = Federation.split(
        people.with_columns(block=pl.Series(labels)),
        center="center",
        policy=Policy(ad_hoc="free"),
        seed=1,
    )
    fed.survival("months", "died", by="block", horizon=HORIZON)
    answers = [
        BlockAnswer(release.center, 10, decoded.aggregate)
        for release in fed.releases
        if isinstance((decoded := decode_answer(release.payload)).aggregate, SurvivalTables)
    ]
    assert len(answers) == 3
    asked = question(ARM, SEX)
    for by, levels in (("arm", ("old", "new")), ("sex", ("F", "M"))):
        result = survival_of_blocks(asked, answers, BlockView(by))
        arms = [followed(people.filter(pl.col(by) == level)) for level in levels]
        assert sum(arm.followed.total for arm in result.arms) == people.height
        assert result.stratified is not None
        assert result.stratified.z == pytest.approx(log_rank(arms, stratified=True).z, abs=0.3)
    json.dumps(result.to_dict(), allow_nan=False)
