"""Of whom somebody without a value has one: means and tests stay those of who has a value."""

import numpy as np
import polars as pl
import pytest

from unpooled import Federation
from unpooled.center.cohort import people
from unpooled.center.cohort.donors import find_donors

K, EACH, LACKING = 10, 60, 9
SEEDS = range(12)


def two_arms(seed: int) -> pl.DataFrame:
    """Arms that lie 6 SD apart, of which one lacks nine values; a code of 0 and 1, and a name."""
    random = np.random.default_rng(seed)
    values = np.append(random.normal(0, 1, EACH), random.normal(6, 1, EACH)).tolist()
    kept = [None if EACH <= i < EACH + LACKING else x for i, x in enumerate(values)]
    sex = random.choice([0, 1], 2 * EACH)
    rows = {"x": kept, "arm": ["a"] * EACH + ["b"] * EACH, "sex": sex}
    return pl.DataFrame(rows | {"name": [f"person {i}" for i in range(2 * EACH)]})


def bias(seed: int) -> float:
    """How far the mean of the arm is from that of its known values, in standard errors."""
    rows = two_arms(seed)
    values = rows.filter(arm="b")["x"].drop_nulls().to_numpy()
    with Federation.local({"Bern": rows}, k=K, seed=seed) as fed:
        mean = fed.describe("x", by="arm").to_dict()["groups"][1]["mean"]
    return float((mean - values.mean()) / values.std(ddof=1) * np.sqrt(len(values)))


def test_the_mean_of_a_group_is_that_of_its_known_values() -> None:
    """With draws from everybody it was 3 standard errors lower on average."""
    off = [bias(seed) for seed in SEEDS]
    assert abs(np.mean(off)) < 0.3
    assert max(map(abs, off)) < 1.5


def test_draws_from_everybody_move_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST_PEOPLE", 0)
    assert np.mean([bias(seed) for seed in SEEDS]) < -1.5


def test_a_draw_is_the_same_in_every_answer_and_in_every_order() -> None:
    """Else the difference of two answers would tell that somebody has no value."""
    rows = two_arms(1)
    by_arm, by_sex, everybody = "arm", "sex", None
    answers = []
    for order in ((by_arm, by_sex, everybody), (everybody, by_sex, by_arm)):
        with Federation.local({"Bern": rows}, k=K, seed=1) as fed:
            groups = {by: fed.describe("x", by=by).to_dict()["groups"] for by in order}
        answers.append(groups)
        whole = groups[None][0]
        for by in (by_arm, by_sex):
            parts = groups[by]
            assert sum(p["n"] for p in parts) == whole["n"] == len(rows)
            together = sum(p["n"] * p["mean"] for p in parts) / whole["n"]
            assert together == pytest.approx(whole["mean"], abs=0.06)  # but for rounding
    assert answers[0] == answers[1]


def test_each_pool_has_k_people_and_one_value_is_drawn_from_those_alike() -> None:
    values = np.concatenate((np.zeros(30), np.full(30, 5.0), np.full(9, 9.0), [np.nan, np.nan]))
    sort = np.array([0] * 30 + [1] * 30 + [2] * 9 + [1, 2])
    donors = find_donors("x", values, np.array([69, 70]), {"arm": sort}, K, b"secret")
    assert values[donors[0]] == 5.0
    few = {
        find_donors("x", values, np.array([70]), {"arm": sort}, K, bytes([key]))[0]
        for key in range(1, 60)
    }
    assert len({values[i] for i in few}) == 3  # nine are too few: anybody's


def test_where_nobody_has_a_value_nobody_is_drawn() -> None:
    nothing = np.full(4, np.nan)
    assert not len(find_donors("x", nothing, np.arange(4), {}, K, b"secret"))
