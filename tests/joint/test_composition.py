"""Attacks on joint centers: each finds few people where its rule is taken out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.joint.hospitals import PROTOCOL, hospital
from tests.joint.keepers import numbers_alone
from tests.joint.pooled import CRP, MONTHS, SITE, People, expected
from unpooled import Federation
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies
from unpooled.center.gate import Gate
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Answer,
    Protocol,
    ProtocolAnswer,
    ProtocolOutcome,
    ProtocolVariable,
    Reason,
    Sizes,
    SizesQuestion,
)
from unpooled.center.questions.joint import JointOutcome, JointPlan, JointQuestion, JointShares
from unpooled.center.questions.message import Grouping
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.sealing import sealed_shares
from unpooled.errors import GateError, InputError, JointError, RefusedError
from unpooled.federation.joint.answer import joint_answer
from unpooled.federation.joint.computation.program import PartNumbers, _Program, part_weights
from unpooled.federation.joint.computation.secure import Opened, Secure
from unpooled.federation.joint.local import LocalKeepers
from unpooled.federation.joint.record import JointRecord
from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.cutting import DRAW

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


def test_made_up_shares_of_all_others_would_give_the_people_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def attack() -> int:
        """The people of A: the joint answer less 20 who are made up, for B and for C."""
        with federation({"A": 7, "B": 8, "C": 8}) as fed:
            keepers = fed._keepers
            assert isinstance(keepers, LocalKeepers)
            brought = keepers.compute

            def compute(question: JointQuestion, shares: Mapping[str, JointShares]) -> Answer:
                forged = {name: made_up(question, name) for name in question.members[1:]}
                return brought(question, {**shares, **forged})

            monkeypatch.setattr(keepers, "compute", compute)
            replies = ask(fed)
            if replies.no_joint is not None:
                raise JointError(replies.no_joint)
            return total(replies) - 40

    with pytest.raises(JointError, match="the shares of B do not have its signature"):
        attack()
    monkeypatch.setattr("unpooled.federation.joint.local.signed_by", lambda _: lambda *_: True)
    assert attack() == 7


def made_up(question: JointQuestion, member: str) -> JointShares:
    """Shares of 20 people at one point, made by somebody who has no key of a member."""
    plan = question.plan
    numbers = np.zeros(question.length(member), dtype=np.int64)
    numbers[0], start = 20, plan.blocks
    for part, size in plan.sections():
        assert not isinstance(part, JointOutcome)
        numbers[start], start = 20, start + size
    stranger = CenterKey.generate()
    return sealed_shares(question, member, numbers, stranger.secret, stranger.sign)


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


NUMBER = msgspec.structs.replace(CRP, high=60.0, upper=60.0, scale=20.0)
POINTS = part_weights(NUMBER).values


def one_number(people: Sequence[IntArray]) -> PartNumbers:
    """What is opened of wards with so many people at each point."""
    wards = Grouping(name="ward", levels=tuple(f"ward {i}" for i in range(len(people))))
    groupings = (wards,) if len(people) > 1 else ()
    rng, plan = np.random.default_rng(1), JointPlan(k=K, groupings=groupings, parts=(NUMBER,))
    shared = np.zeros((3, plan.blocks, 1, NUMBER.width), dtype=np.int64)
    shared[0, : len(people), 0] = people
    draws = rng.integers(0, DRAW + 1, (2, *shared.shape[1:])).sum(axis=0)
    coins = rng.integers(0, 2, draws.shape)
    sizes = shared.sum(axis=(2, 3))
    numbers = numbers_alone(People(plan, sizes, [shared], [0 * shared], [draws], [coins]))
    assert numbers is not None
    assert [block[0] for block in numbers.blocks] == list(range(len(people)))
    return numbers.parts[0]


def off_crowd(part: PartNumbers, ward: int, counts: IntArray) -> tuple[float, float] | None:
    """The attack: the block's mean, less those of the cells that tell one or are one point.

    How far the few are off the crowd in the one cell that is left, together, and how far they are
    said to be.
    """
    table, moments, cells = part.tables[ward], part.moments[ward], part.cells[ward]
    assert table is not None
    assert cells is not None
    if moments is None:
        return None
    ends = [-1, *table.edges, len(counts) - 1]
    points = [np.arange(a + 1, b + 1) for a, b in pairwise(ends)]
    means = [
        POINTS[at[0]] if len(at) == 1 else mean
        for at, mean in zip(points, cells.means, strict=True)
    ]
    held = [cell for cell, mean in enumerate(means) if mean is None]
    if len(held) > 1:
        return None
    rest = sum(n * mean for n, mean in zip(table.counts, means, strict=True) if mean is not None)
    for cell in held:
        at = points[cell]
        crowds, few = at[counts[at] >= K], at[counts[at] < K]
        if len(crowds) == 1 and 0 < counts[few].sum() < K:
            crowd = float(POINTS[crowds[0]])
            claimed = table.people * moments.mean - rest - table.counts[cell] * crowd
            return float(counts[few] @ (POINTS[few] - crowd)), claimed
    return None


def crowd_and_few(seed: int) -> IntArray:
    """One or two people beside a crowd of twelve at 30, and others who are far from it."""
    rng = np.random.default_rng(seed)
    few = rng.integers(24, 37, rng.integers(1, 3))
    others = rng.normal(12, 5, 16), rng.normal(48, 5, 16)
    people = np.concatenate([*others, np.full(12, 30.0), few])
    at = np.searchsorted(NUMBER.edges, np.clip(np.round(people), 1, 59))
    return np.bincount(at, minlength=NUMBER.width)


def crowds_and_one(seed: int) -> IntArray:
    """Crowds, each a cell of its own, but for a few people beside one of them."""
    rng, counts = np.random.default_rng(seed), np.full(NUMBER.width, 12)
    counts[12] = rng.integers(4, K)
    return counts


@pytest.mark.parametrize("people", [crowd_and_few, crowds_and_one])
def test_the_mean_of_all_less_those_of_cells_would_give_one_that_is_withheld(
    people: Callable[[int], IntArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    each = [people(seed) for seed in range(8)]

    def attack() -> list[tuple[float, float]]:
        part = one_number(each)
        claims = [off_crowd(part, ward, counts) for ward, counts in enumerate(each)]
        return [claim for claim in claims if claim is not None and claim[0]]

    assert attack() == []

    def always(program: _Program, there: Any, rare: Any, needs: Sequence[int]) -> Any:
        return program._secure.public([1] * len(needs))

    monkeypatch.setattr(_Program, "_enough", always)
    truth, claimed = np.array(attack()).T
    assert len(truth) >= 4
    assert np.median(np.abs(claimed - truth)) < np.median(np.abs(truth)) / 2


def test_moments_of_all_and_of_cells_are_both_told_where_nothing_follows() -> None:
    counts = np.full(NUMBER.width, 4)
    part = one_number([counts])
    assert part.moments[0] is not None
    assert part.cells[0] is not None
    assert None not in part.cells[0].means
