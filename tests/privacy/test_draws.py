"""Draws for missing values: two answers about the same people draw alike, whatever they ask.

Fewer than K people who lack a value count with that of somebody alike. Were it somebody else in
another answer, the difference would tell that somebody lacks one, and of two people's values.
"""

from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.curious import answer, ask, open_center
from unpooled.center.questions import (
    CategoryQuestion,
    FollowUpQuestion,
    Grouping,
    MomentsQuestion,
    Protocol,
    ProtocolQuestion,
    ProtocolVariable,
)
from unpooled.maths.precision import unit

PEOPLE = 120
SORTS: dict[str, tuple[float, ...]] = {"arm": (), "sex": ()}


def few_alike(seed: int, lacking: int) -> pl.DataFrame:
    """Fourteen people of a rare arm have high values; the first of them lack theirs."""
    random, place = np.random.default_rng(seed), np.arange(PEOPLE)
    arm = np.where(place < 14, "rare", np.where(place < 60, "a", "b"))
    crp = np.round(random.normal(50, 10, PEOPLE) + 80 * (arm == "rare"))
    sex = random.choice(["f", "m"], PEOPLE)
    values = [None if i < lacking else float(x) for i, x in enumerate(crp)]
    return pl.DataFrame({"arm": arm, "sex": sex, "crp": values})


def total(moments: list[dict[str, Any]]) -> tuple[float, float]:
    """The sum of all values, and by how much rounding may have changed it."""
    units = (one.get("unit") or unit(one["sd"] / one["n"] ** 0.5) for one in moments)
    rounding = sum(one["n"] * each / 2 for one, each in zip(moments, units, strict=True))
    return sum(one["n"] * one["mean"] for one in moments), rounding


@pytest.mark.parametrize("lacking", [0, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_raised_k_draws_the_same_people(seed: int, lacking: int) -> None:
    """By a K of 20 too few are alike in the rare arm: one who lacked a value was seen each time."""
    center = open_center(few_alike(seed, lacking), free=False, groupings=SORTS)
    everybody, rounding = total(ask(center, MomentsQuestion(variable="crp"))["moments"])
    crp = {"crp": ProtocolVariable(kind="number")}
    raised = Protocol(title="x", k=11, groups=(Grouping(name="sex"),), variables=crp)
    parts = ask(center, ProtocolQuestion(protocol=raised))["parts"]
    by_sex, more = total(parts[1]["answer"]["aggregate"]["moments"])
    assert abs(everybody - by_sex) <= rounding + more


def stages(seed: int, lacking: int) -> pl.DataFrame:
    """Stages that sex and arm shift, at a center so small that people are parted once."""
    random = np.random.default_rng(seed)
    arm, sex, site = (random.choice(["a", "b"], 50) for _ in range(3))
    shifted = random.normal(1, 0.8, 50) + 0.8 * (arm == "b") - 0.8 * (sex == "m")
    stage = np.array(["1", "12", "5"])[np.clip(np.round(shifted), 0, 2).astype(int)]
    values = [None if i < lacking else str(s) for i, s in enumerate(stage)]
    return pl.DataFrame({"arm": arm, "sex": sex, "site": site, "stage": values})


def counts(reply: dict[str, Any]) -> dict[str, int]:
    """Level → how many people have it, as far as it is told alone."""
    groups = (reply["aggregate"] or {"groups": ()})["groups"]
    cells = [cell for group in groups for cell in group["cells"]]
    return {cell["levels"][0]: cell["count"] for cell in cells if len(cell["levels"]) == 1}


def test_levels_that_a_question_names_draw_the_same_people() -> None:
    """Whose stage counts depended on the order of the levels, so that 12 alone was told no more."""
    compared = 0
    for seed in range(40):
        rows = stages(seed, 9)
        center = open_center(rows, free=False, groupings={**SORTS, "site": ()})
        all_levels = counts(answer(center, CategoryQuestion(variable="stage")))
        if set(all_levels) != {"1", "5", "12"}:
            continue
        one = counts(answer(center, CategoryQuestion(variable="stage", levels=("12",))))
        assert one["12"] == all_levels["12"]
        compared += 1
    assert compared >= 2


def test_an_event_that_means_not_known_draws_nobody_else() -> None:
    """Asked for "NA" as the event, those with an unknown status counted with their own times."""
    for seed in range(5):
        random = np.random.default_rng(seed)
        days, died = np.round(random.uniform(5, 100, 60)), random.choice(["yes", "no"], 60)
        days[:3], status = 100, ["NA"] * 3 + died[3:].tolist()
        center = open_center(pl.DataFrame({"days": days, "died": status}), free=False)
        replies = [
            ask(center, FollowUpQuestion(variable="days", event="died", event_is=meant))
            for meant in ("yes", "NA")
        ]
        assert replies[0]
        assert not replies[1]
