"""Ranks of several groups: no group below K, none of few values, nothing about who is left out."""

from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.taken_out import anything_goes, exact_numbers
from unpooled import Federation, Policy, Variable
from unpooled.center.proposal.summarise import Summary
from unpooled.center.questions import GroupRanks, GroupRanksQuestion, Reason, decode_answer, encode
from unpooled.errors import GateError, RefusedError
from unpooled.maths.ranks.group_ranks import rank_variance, tied_people
from unpooled.maths.ranks.mann_whitney import rank_statistics

SPREAD = np.repeat(np.arange(10.0), 12)


def center(**groups: Any) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "v": np.concatenate([np.asarray(part, dtype=float) for part in groups.values()]),
            "g": [name for name, part in groups.items() for _ in part],
        }
    )


def payload(fed: Federation) -> bytes:
    """The last answer to a question about ranks."""
    received = [r for r in fed.releases.received if isinstance(r.question, GroupRanksQuestion)]
    return received[-1].payload


def group_ranks(fed: Federation) -> GroupRanks:
    result = decode_answer(payload(fed)).aggregate
    assert isinstance(result, GroupRanks)
    return result


@pytest.fixture(autouse=True)
def to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing but the rule can stop an attack."""
    exact_numbers(monkeypatch)


def whoever_is_one(u: float) -> list[int]:
    """The attack: how many of 40 people have a 1, from U against a known group."""
    return [
        n for n in range(41) if rank_statistics(SPREAD, np.repeat([0.0, 1.0], [40 - n, n])).u == u
    ]


def test_a_group_of_few_values_is_ranked_against_no_other() -> None:
    """x and z spread over ten values and y over two: either U would give the split of y."""
    y = np.repeat([0.0, 1.0], [37, 3])
    assert whoever_is_one(rank_statistics(SPREAD, y).u) == [3]  # the attack
    fed = Federation.local({"A": center(x=SPREAD, y=y, z=SPREAD + 1)})
    result = fed.compare("v", by="g", groups=("x", "y", "z"))
    assert [(r.group, r.reason) for r in result.refusals] == [("y", "few-values")]
    assert [group.group for group in group_ranks(fed).groups] == ["x", "z"]
    assert [(pair.x, pair.y) for pair in group_ranks(fed).pairs] == [("x", "z")]


def test_without_the_rule_the_people_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the summary is careless, the gate still holds it back; without the rule it leaks."""
    y = np.repeat([0.0, 1.0], [37, 3])
    rows = {"A": center(x=SPREAD, y=y, z=SPREAD + 1)}
    with monkeypatch.context() as careless:
        careless.setattr(Summary, "_all_or_few", lambda _summary, tries: tries[0])
        fed = Federation.local(rows)
        with pytest.raises(RefusedError, match="would-isolate"):
            fed.compare("v", by="g", groups=("x", "y", "z"))
    anything_goes(monkeypatch)
    fed = Federation.local(rows)
    fed.compare("v", by="g", groups=("x", "y", "z"))
    assert whoever_is_one(group_ranks(fed).pairs[0].u) == [3]


def test_the_ranks_of_everybody_are_of_the_groups_that_are_told() -> None:
    """Ranked among all, a group's rank sum would speak of the three people that are left out."""
    x, z = np.arange(0.0, 60, 2), np.arange(1.0, 61, 2)
    result = []
    for small in ([5.5, 6.5, 7.5], [50.5, 51.5, 52.5]):
        among_all = [
            sum(np.sign(x[:, None] - other).sum() for other in (z, np.array(small))),
            rank_variance(tied_people([x, np.array(small), z])),
        ]
        fed = Federation.local({"B": center(x=x, y=x, z=z), "A": center(x=x, y=small, z=z)})
        fed.compare("v", by="g", groups=("x", "y", "z"))
        result.append((among_all, payload(fed)))
    assert result[0][0] != result[1][0]  # the attack: rank sums among all tell where they are
    assert result[0][1] == result[1][1]  # what leaves does not depend on them at all


def test_two_values_in_every_group_give_all_of_them_away_and_are_refused() -> None:
    splits = (3, 8, 5)
    people = [np.repeat([0.0, 1.0], [12 - n, n]) for n in splits]

    def ranked_groups(groups: list[Any]) -> list[Any]:
        pairs = [rank_statistics(x, y) for x, y in combinations(groups, 2)]
        return [(pair.u, pair.variance) for pair in pairs] + [rank_variance(tied_people(groups))]

    fitting = [
        (a, b, c)
        for a in range(13)
        for b in range(13)
        for c in range(13)
        if ranked_groups([np.repeat([0.0, 1.0], [12 - n, n]) for n in (a, b, c)])
        == ranked_groups(people)
    ]
    assert splits in fitting  # the attack
    assert len(fitting) <= 2
    fed = Federation.local({"A": center(x=people[0], y=people[1], z=people[2])})
    with pytest.raises(RefusedError, match="few-values"):
        fed.compare("v", by="g", groups=("x", "y", "z"))
    answer = decode_answer(fed.releases.received[0].payload)
    assert answer.aggregate is None
    assert {refusal.reason for refusal in answer.refusals} == {Reason.FEW_VALUES}


def test_a_group_that_nobody_named_stays_unnamed() -> None:
    """Without groups in the question, neither small groups nor those of few values are named."""
    rows = center(x=SPREAD, z=SPREAD + 1, Smith=[1.0], Jones=np.repeat([0.0, 1.0], [37, 3]))
    fed = Federation.local({"A": rows})
    question = encode(GroupRanksQuestion(variable="v", by="g"))
    answer = fed._coordinator.link.ask(question, ["A"])["A"]
    assert isinstance(answer, bytes)
    assert b"Smith" not in answer
    assert b"Jones" not in answer
    assert b"few-values" in answer


def test_the_variance_of_a_trend_leaves_only_where_it_was_asked_for() -> None:
    fed = Federation.local({"A": center(x=SPREAD, y=SPREAD + 1, z=SPREAD + 2)})
    fed.compare("v", by="g", groups=("x", "y", "z"))
    assert group_ranks(fed).trend_variance is None
    plain = fed.releases.received[-1].question
    fed.compare("v", by="g", groups=("x", "y", "z"), ordered=True)
    ordered = group_ranks(fed)
    assert ordered.trend_variance is not None
    assert isinstance(plain, GroupRanksQuestion)
    with pytest.raises(GateError, match="not asked for"):
        ordered.limits(plain, Policy().terms(plain, Variable()))
