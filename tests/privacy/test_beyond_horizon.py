"""Who is followed beyond a horizon: a mean that counts them there must not tell how far they went.

The mean of times cut at the horizon, taken from the mean of the times, or of times cut later,
leaves by how much those beyond exceed it, be they one or two.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.curious import K, answer, ask, open_center
from unpooled.center.questions import FollowUpQuestion, Question, SurvivalQuestion

HORIZON = 100.0


def rows(seed: int, beyond: int, people: int = 40) -> pl.DataFrame:
    """People who are followed up to the horizon, and some who are for 60 days more."""
    random = np.random.default_rng(seed)
    days = np.round(random.uniform(5, 99, people))
    days[:beyond] = 160.0
    dead = random.integers(0, 2, people)
    dead[:beyond] = 0
    return pl.DataFrame({"days": days, "dead": dead})


def until(horizon: float) -> SurvivalQuestion:
    return SurvivalQuestion(variable="days", event="dead", horizon=horizon)


def tables(aggregate: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tables of a survival answer that are not None."""
    group = aggregate["groups"][0]
    yield from (group[name] for name in ("events", "censored", "either") if group[name])


def total(aggregate: dict[str, Any]) -> float | None:
    """The sum of all times, as far as an answer tells it."""
    if aggregate.get("say") == "moments":
        (everybody,) = aggregate["moments"]
        return None if everybody["mean"] is None else float(everybody["n"] * everybody["mean"])
    if not aggregate:
        return None
    cells = [cell for t in tables(aggregate) for cell in zip(t["counts"], t["means"], strict=True)]
    if any(mean is None for _, mean in cells):
        return None
    return float(sum(n * mean for n, mean in cells))


@pytest.mark.parametrize("beyond", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("second", [FollowUpQuestion(variable="days", event="dead"), until(160.0)])
def test_sums_do_not_tell_how_far_a_few_went_beyond(
    second: Question, seed: int, beyond: int
) -> None:
    """The excess came out within 15 of 60 days each."""
    center = open_center(rows(seed, beyond), free=False)
    cut, whole = total(ask(center, until(HORIZON))), total(ask(center, second))
    assert cut is None or whole is None


def test_the_last_cell_tells_its_mean_where_nobody_or_k_are_beyond() -> None:
    """With nobody beyond the answer is as rich as ever, and with many of a large center, too."""
    for beyond, people in ((0, 40), (60, 400)):
        center = open_center(rows(1, beyond, people), free=False)
        aggregate = answer(center, until(HORIZON))["aggregate"]
        last = list(tables(aggregate))[-1]
        assert last["counts"][-1] >= K
        assert last["means"][-1] is not None
