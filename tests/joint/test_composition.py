"""Attacks on joint centers: each finds few people where its rule is taken out."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.joint.hospitals import PROTOCOL, hospital
from tests.joint.keepers import numbers_alone
from tests.joint.pooled import MONTHS, SITE, People, expected
from unpooled import Federation
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies
from unpooled.center.gate import Gate
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Protocol,
    ProtocolAnswer,
    ProtocolOutcome,
    ProtocolVariable,
    Reason,
    Sizes,
    SizesQuestion,
)
from unpooled.center.questions.joint import JointOutcome, JointPlan, JointQuestion, JointShares
from unpooled.errors import GateError, InputError, JointError, RefusedError
from unpooled.federation.joint.answer import joint_answer
from unpooled.federation.joint.computation.program import _Program
from unpooled.federation.joint.computation.secure import Opened, Secure
from unpooled.federation.joint.record import JointRecord

K = 10
POLICY = Policy(k=K, ad_hoc="free")
TOTAL = msgspec.structs.replace(PROTOCOL, k=K, groups=(), survival=())


def federation(sizes: dict[str, int]) -> Federation:
    rng = np.random.default_rng(1)
    frames = {name: hospital(rng, people) for name, people in sizes.items()}
    return Federation.local(frames, policy=POLICY, seed=1, joint=True)


def ask(fed: Federation) -> ProtocolReplies:
    return fed._ask_protocol(fed._coordinator.converse(), TOTAL)


def total(replies: ProtocolReplies) -> int:
    """How many people the joint center has."""
    joint = replies.answers[f"joint ({len(replies.members)} centers)"]
    return people_of(joint.parts[0].answer.aggregate)


def people_of(sizes: object) -> int:
    assert isinstance(sizes, Sizes)
    return sum(size.n for size in sizes.sizes)


def test_a_center_s_own_size_beside_the_joint_one_would_give_the_few_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {"A": 15, "B": 4, "C": 4}

    def attack() -> int:
        """The people of B and C."""
        with federation(sizes) as fed:
            alone = fed.describe("age").groups[0].n  # B and C refuse
            return total(ask(fed)) - alone

    with pytest.raises(KeyError):  # A told alone: two are too few for a joint center
        attack()
    monkeypatch.setattr(Gate, "spoke_alone", lambda gate: False)
    assert attack() == 8


def test_after_a_joint_release_nothing_is_told_of_its_people_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with federation({"A": 15, "B": 4, "C": 4}) as fed:
        ask(fed)
        with pytest.raises(RefusedError, match="joined"):
            fed.describe("age")


def test_two_memberships_would_give_the_one_who_left(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"A": 8, "B": 8, "C": 8, "D": 3}

    def attack() -> int:
        """The people of D."""
        with federation(sizes) as fed:
            everybody = total(ask(fed))
            question = next(
                r.question for r in fed.releases.received if isinstance(r.question, JointQuestion)
            )
            fewer = msgspec.structs.replace(question, members=question.members[:-1])
            shares = fed._coordinator.converse().ask(fewer, JointShares, fewer.members)
            assert fed._keepers is not None
            answer = fed._keepers.compute(fewer, shares.aggregates)
            assert isinstance(answer.aggregate, ProtocolAnswer)
            part = next(p for p in answer.aggregate.parts if isinstance(p.question, SizesQuestion))
            return everybody - people_of(part.answer.aggregate)

    with pytest.raises(JointError, match="has the people of A, B, C already"):
        attack()
    monkeypatch.setattr(JointRecord, "earlier", lambda record, question: None)
    assert attack() == 3


def test_a_bit_for_each_level_would_find_the_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of merged levels it must not be said which of them had K people."""
    plan = JointPlan(k=K, groupings=(), parts=(SITE,))
    counts = np.array([[[[14, 3, 0]]], [[[0, 2, 1]]], [[[0, 0, 0]]]])
    sizes = counts.sum(axis=(2, 3))  # member × block × table × level
    none = np.zeros_like(counts[0])
    part = People(plan, sizes, [counts], [np.zeros_like(counts)], [none], [none])
    numbers, opened = numbers_alone(part), Opened()
    assert numbers is not None
    levels = numbers.parts[0].levels[0]
    assert levels is not None
    assert levels.cells == ((0, 1, 2),)  # 14, 5 and 1: all three are told together
    numbers_alone(part, opened)
    sorted_counts = [
        replace(part, counts=[some], sizes=some.sum(axis=(2, 3)))
        for some in (counts, counts[..., [1, 0, 2]])
    ]
    seen = []
    for other in sorted_counts:  # who sees the opened numbers cannot tell the two apart
        seen.append(Opened())
        numbers_alone(other, seen[-1])
    assert seen[0].numbers == seen[1].numbers

    async def leaking(program: _Program, shared: Any, least: int) -> Any:
        """Open for each level whether it has K people."""
        secure = program._secure
        wanted = secure.public([least] * shared.shape[1])
        await secure.open(secure.at_least(shared.reshape(-1), wanted))
        return await honest(program, shared, least)

    honest = _Program._alone
    monkeypatch.setattr(_Program, "_alone", leaking)
    seen = []
    for other in sorted_counts:
        seen.append(Opened())
        numbers_alone(other, seen[-1])
    assert seen[0].numbers != seen[1].numbers


def test_without_the_comparison_small_counts_are_opened_and_the_limits_stop_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = JointPlan(k=K, groupings=(), parts=(SITE,))
    counts = np.array([[[[14, 3, 0]]], [[[0, 2, 1]]], [[[9, 0, 0]]]])
    none = np.zeros_like(counts[0])
    sizes = counts.sum(axis=(2, 3))
    part = People(plan, sizes, [counts], [np.zeros_like(counts)], [none], [none])
    protocol = Protocol(
        title="sites", variables={"site": ProtocolVariable(kind="category", levels=SITE.levels)}
    )

    def smallest() -> int:
        numbers = numbers_alone(part)
        assert numbers is not None
        (levels,) = numbers.parts[0].levels
        assert levels is not None
        joint_answer(protocol, plan, numbers)
        return min(levels.counts)

    assert smallest() >= K

    def taken_out(secure: Secure, a: Any, b: Any, most: int = 0) -> Any:
        return secure.public(np.ones(a.shape, dtype=np.int64))

    monkeypatch.setattr(Secure, "at_least", taken_out)
    numbers = numbers_alone(part)
    assert numbers is not None
    assert numbers.parts[0].levels[0] is not None
    assert numbers.parts[0].levels[0].counts == (23, 5, 1)  # the attack: 5 and 1 people
    with pytest.raises(GateError, match="at least"):
        smallest()


RELAPSE = msgspec.structs.replace(MONTHS, event="relapsed")


def counted_twice(seed: int) -> int:
    """Of how few people two tables of the same times tell the number, cut here and there."""
    random, plan = (
        np.random.default_rng(seed),
        JointPlan(k=K, groupings=(), parts=(MONTHS, RELAPSE)),
    )
    months, width = random.integers(1, 24, 90), MONTHS.width
    points, shape = np.searchsorted(MONTHS.edges, months), (1, 1, 2, width)
    cells = [np.where(random.random(90) > 0.05, width, 0) + points for _ in plan.parts]
    counts = [np.bincount(some, minlength=2 * width).reshape(shape) for some in cells]
    draws = [random.integers(0, 16, (2, *shape[1:])).sum(axis=0) for _ in plan.parts]
    coins = [random.integers(0, 2, shape[1:]) for _ in plan.parts]
    none = [np.zeros(shape, dtype=np.int64) for _ in plan.parts]
    numbers = expected(People(plan, np.array([[90]]), counts, none, draws, coins))
    assert numbers is not None
    tables = [part.either[0] for part in numbers.parts]
    below = [
        dict(zip(one.edges, np.cumsum(one.counts).tolist(), strict=False)) if one else {}
        for one in tables
    ]
    apart = [abs(a - b) for a in below[0].values() for b in below[1].values()]
    return min((people for people in apart if people), default=K)


def test_two_outcomes_of_one_time_would_count_those_of_a_month(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where few have either event both tables are of everybody's months, each cut elsewhere."""
    with pytest.raises(InputError, match="counts each column once"):
        JointPlan(k=K, groupings=(), parts=(MONTHS, RELAPSE))
    monkeypatch.setattr(JointOutcome, "columns", ())
    assert all(counted_twice(seed) < K for seed in range(5))


def test_a_column_that_is_counted_already_is_refused_and_the_rest_answered() -> None:
    outcome = PROTOCOL.survival[0]
    sooner = ProtocolOutcome(time=outcome.time, event=outcome.event, event_is="1", horizon=12)
    died = ProtocolVariable(kind="category", levels=("0", "1"))
    variables = {**PROTOCOL.variables, outcome.event: died}
    both = msgspec.structs.replace(
        PROTOCOL, k=K, groups=(), variables=variables, survival=(outcome, sooner)
    )
    rng = np.random.default_rng(1)
    frames = {name: hospital(rng, 18) for name in "ABC"}
    fed = Federation.local(frames, policy=POLICY, seed=1, joint=True)
    replies = fed._ask_protocol(fed._coordinator.converse(), both)
    refused = [
        part.question
        for part in replies.answers["joint (3 centers)"].parts
        if [no.reason for no in part.answer.refusals] == [Reason.WOULD_ISOLATE]
    ]
    assert [one.variable for one in refused] == [outcome.event, outcome.time]
