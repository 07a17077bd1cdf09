"""Few different values: means, SDs and ranks would be counts of single people."""

import msgspec
import numpy as np
import polars as pl
import pytest

from unpooled import Federation, Variable
from unpooled.center import Center
from unpooled.center.cohort import Selection
from unpooled.center.keys import CenterKey
from unpooled.center.memory.proposal import Draft
from unpooled.center.policy import Policy
from unpooled.data.sources import open_source
from unpooled.errors import RefusedError
from unpooled.maths.mann_whitney import rank_statistics
from unpooled.questions import (
    AboutPeople,
    GroupRanksQuestion,
    LatticeQuestion,
    LatticeTables,
    Moments,
    MomentsQuestion,
    PowersQuestion,
    RanksQuestion,
    decode_answer,
    encode,
)


def test_the_mean_of_two_values_is_a_count_and_is_withheld() -> None:
    """Ten people, one of them with a 1: the mean .1 says so."""
    people = {
        "few": pl.DataFrame({"v": [0.0] * 9 + [1.0]}),
        "many": pl.DataFrame({"v": [0.0] * 40 + [1.0] * 40}),
    }
    assert np.mean(people["few"]["v"].to_numpy()) * 10 == pytest.approx(1)  # the attack
    result = Federation.local(people).describe("v")
    told = {c.center: (c.mean, c.sd) for c in result.centers}
    assert told["few"] == (None, None)
    assert told["many"][0] == 0.5  # both values belong to many: nothing to hide
    assert result.groups[0].mean is None


def test_mean_and_sd_of_three_values_decode_the_people() -> None:
    values = np.repeat([0.0, 1.0, 2.0], [5, 4, 3])
    splits = [
        (a, b, 12 - a - b)
        for a in range(13)
        for b in range(13 - a)
        if np.isclose(np.repeat([0, 1, 2], [a, b, 12 - a - b]).mean(), values.mean())
        and np.isclose(np.repeat([0, 1, 2], [a, b, 12 - a - b]).std(), values.std())
    ]
    assert splits == [(5, 4, 3)]  # the attack
    (center,) = Federation.local({"A": pl.DataFrame({"v": values})}).describe("v").centers
    assert center.mean is not None
    assert center.sd is None


def test_ranks_of_two_values_decode_the_people_and_are_refused() -> None:
    x, y = np.repeat([0.0, 1.0], [9, 3]), np.repeat([0.0, 1.0], [4, 8])
    told = rank_statistics(x, y)
    splits = [
        (a, b)
        for a in range(13)
        for b in range(13)
        if rank_statistics(np.repeat([0.0, 1.0], [12 - a, a]), np.repeat([0.0, 1.0], [12 - b, b]))
        == told
    ]
    assert len(splits) <= 2  # the attack: up to swapping the two values
    assert (3, 8) in splits
    rows = pl.DataFrame({"v": np.concatenate([x, y]), "g": ["x"] * 12 + ["y"] * 12})
    fed = Federation.local({"A": rows})
    result = fed.compare("v", by="g", method="all")
    assert ("A", "few-values") in {(r.center, r.reason) for r in result.refusals}


def test_a_sum_never_speaks_for_two_people_among_many_alike() -> None:
    """990 people have a 0: n times the mean is the sum of the other two."""
    values = np.array([0.0] * 990 + [5.0, 7.0])
    assert len(values) * values.mean() == pytest.approx(12)  # the attack
    (center,) = Federation.local({"A": pl.DataFrame({"v": values})}).describe("v").centers
    assert (center.mean, center.sd) == (None, None)


def test_powers_never_speak_for_a_few_people_among_many_alike() -> None:
    """Seven people among 200 zeros: fifteen numbers would be enough to solve for them."""
    values = np.array([0.0] * 200 + [3.2, 8.8, 12.4, 17.5, 29.9, 44.1, 61.0])
    fed = Federation.local({"A": pl.DataFrame({"v": values})})
    with pytest.raises(RefusedError, match="too-many-powers"):
        fed.quantiles("v", method="yj-grid")


def test_ranks_never_decode_one_group_with_the_help_of_the_other() -> None:
    """x spreads over ten values and y over two: U gives the split of y."""
    x = np.repeat(np.arange(10.0), 12)
    told = rank_statistics(x, np.repeat([0.0, 1.0], [37, 3])).u
    ones = [
        n for n in range(41) if rank_statistics(x, np.repeat([0.0, 1.0], [40 - n, n])).u == told
    ]
    assert ones == [3]  # the attack
    rows = pl.DataFrame({"v": [*x, *[0.0] * 37, *[1.0] * 3], "g": ["x"] * 120 + ["y"] * 40})
    result = Federation.local({"A": rows}).compare("v", by="g", method="all")
    refused = [(r.center, r.group, r.reason) for r in result.refusals]
    assert refused == [("A", None, "few-values"), ("A", "y", "few-cells")]  # ranks, and placing y


def group() -> list[float]:
    """Of 1,000 people 12 have a 1, four values belong to 35 each, and seven people to nobody."""
    many = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [841, 12, 35, 35, 35, 35])
    return [*many, *np.linspace(6, 9, 7)]


RAISED: dict[str, tuple[AboutPeople, int]] = {
    "mean": (MomentsQuestion(variable="v"), 13),
    "ranks": (RanksQuestion(variable="v", by="g", groups=("x", "y")), 13),
    "group ranks": (GroupRanksQuestion(variable="v", by="g", groups=("x", "y")), 13),
    "powers": (PowersQuestion(variable="v", where="g == 'x'", lambdas=(1.0,)), 36),
    "a cell": (LatticeQuestion(variable="v", where="g == 'x'"), 36),
}


@pytest.mark.parametrize(("question", "raised"), RAISED.values(), ids=RAISED)
def test_a_raised_k_tells_nothing_that_the_policy_withholds(
    question: AboutPeople, raised: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: by a higher K more values are rare, so that the few who have one do not show."""
    rows = pl.DataFrame({"v": group() * 2, "g": ["x"] * 1000 + ["y"] * 1000})
    if isinstance(question, MomentsQuestion):
        rows = rows.head(1000)

    def told(k: int | None) -> bool:
        key, variable = CenterKey.from_seed(1, "Porto"), Variable(lower=0.0, upper=9.0)
        center = Center("Porto", open_source(rows), Policy(), key, {"v": variable})
        asked = encode(msgspec.structs.replace(question, k=k))
        said = decode_answer(center.answer(asked).payload).aggregate
        if isinstance(said, Moments):
            return said.moments[0].mean is not None
        if isinstance(said, LatticeTables):
            return said.groups[0].tables[0].means[-1] is not None
        return said is not None

    assert not told(None)
    assert not told(raised)
    monkeypatch.setattr(Selection, "ks", property(lambda own: (own.rule.k, own.rule.k)))
    monkeypatch.setattr(Draft, "ks", property(lambda own: (own.k, own.k)))
    assert told(raised)
