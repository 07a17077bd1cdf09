"""Attacks on protocols: all that one tells, together with everything ad hoc before and after it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.privacy.linear_attack import fewest_of_sums
from tests.privacy.overheard import Overheard, overheard
from tests.privacy.taken_out import anything_goes
from unpooled import Federation
from unpooled.center.gate import Gate
from unpooled.center.questions import Grouping, Protocol, ProtocolVariable, Sizes
from unpooled.center.rule import disclosure, memory
from unpooled.errors import UnpooledError

K = 3
Random = np.random.Generator


def hospital(random: Random, size: int) -> pl.DataFrame:
    def lacking(values: list[object], share: float) -> list[object]:
        gone = random.random(size) < share
        return [None if without else value for value, without in zip(values, gone, strict=True)]

    return pl.DataFrame(
        {
            "arm": lacking(random.choice(["a", "b"], size).tolist(), random.choice([0, 0.05])),
            "sex": random.choice(["F", "M"], size).tolist(),
            "ward": lacking(random.choice(["x", "y", "z"], size).tolist(), 0.05),
            "age": random.integers(20, 90, size).tolist(),
            "crp": lacking(random.integers(0, 40, size).tolist(), random.choice([0, 0.03, 0.3])),
            "stage": lacking(random.choice(["I", "II", "III"], size).tolist(), 0.02),
        }
    )


def plan(random: Random, number: int) -> Protocol:
    """Random groupings, crossed and at the side, of random variables."""
    cuts = tuple(sorted({float(cut) for cut in random.integers(30, 80, random.integers(1, 3))}))
    possible = [
        Grouping(name="arm", levels=("a", "b")),
        Grouping(name="sex"),
        Grouping(name="band", of="age", cuts=cuts),
        Grouping(name="ward", with_=()),
    ]
    chosen = [g for g in possible if random.random() < 0.6]
    variables = {
        "crp": ProtocolVariable(kind="number", missing=(0.0,) if random.random() < 0.3 else ()),
        "stage": ProtocolVariable(levels=("I", "II", "III"), ordered=random.random() < 0.5),
    }
    return Protocol(title=f"plan {number}", groups=tuple(chosen), variables=variables)


def ad_hoc(fed: Federation, random: Random) -> None:
    """A question of its own, answered or not."""
    by = str(random.choice(["arm", "sex", "ward", ""])) or None
    where = str(random.choice(["", "age >= 60", "sex == 'F'", "age < 45 and arm == 'a'"])) or None
    method: Callable[..., object] = fed.describe if random.random() < 0.5 else fed.table
    with suppress(UnpooledError):
        method("crp", by, where=where)


def fewest(heard: Overheard) -> int:
    return min(fewest_of_sums(rows, K) for _, rows in heard.equations())


def after(seed: int) -> tuple[int, int]:
    """Of how few people some number speaks that follows from all; and how many numbers there are.

    Two protocols, and questions of their own before, between and after them.
    """
    random = np.random.default_rng(seed)
    frame = hospital(random, int(random.integers(24, 48)))
    with overheard() as heard, Federation.local({"A": frame}, k=K, seed=seed) as fed:
        for number in range(2):
            ad_hoc(fed, random)
            fed.ask_protocol(plan(random, number))
        ad_hoc(fed, random)
    return fewest(heard), sum(len(rows) for rows in heard.variables.values())


@pytest.fixture
def _each_value_its_own_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disclosure, "_CROWD", 1)


@pytest.mark.usefixtures("_each_value_its_own_crowd")
@pytest.mark.parametrize("seed", [0, 1, 2, 5, 6, 8])
def test_nothing_that_follows_from_protocols_and_questions_speaks_of_fewer_than_k_people(
    seed: int,
) -> None:
    people, numbers = after(seed)
    assert people >= K
    assert numbers > 10


# --- each rule taken out ------------------------------------------------------------------------


def nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    anything_goes(monkeypatch)


def blocks_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.Draft, "choose_blocks", lambda draft, *_: draft)


def parts_are_not_judged_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Gate.judge

    def alone(gate: Gate, question: Any, answer: Any, asked: Any, before: Any, *more: Any) -> Any:
        judged = judge(gate, question, answer, asked, gate.memory.state.at(gate.policy.k), *more)
        object.__setattr__(judged, "before", before)
        object.__setattr__(judged, "draft", before)
        return judged

    monkeypatch.setattr(Gate, "judge", alone)
    monkeypatch.setattr(memory.Draft, "tells_as", lambda *_: True)


def what_together_follows_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disclosure.Told, "_check_together", lambda *_: None)


@pytest.mark.usefixtures("_each_value_its_own_crowd")
@pytest.mark.parametrize(
    "take_out",
    [
        nothing_is_judged,
        blocks_are_not_judged,
        parts_are_not_judged_beside_each_other,
        what_together_follows_is_not_asked,
    ],
)
def test_without_a_rule_somebody_is_exposed(
    take_out: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch)
    assert any(after(seed)[0] < K for seed in range(20))


# --- two protocols that differ by one person ----------------------------------------------------

PEOPLE = pl.DataFrame({"age": [*range(40, 64), 64, *range(65, 90)], "crp": [*range(50)]})


def under(fed: Federation, cut: float) -> int | None:
    """How many people are told to be younger, by a protocol that cuts there."""
    band = Grouping(name="band", of="age", cuts=(cut,))
    plan = Protocol(title=f"cut at {cut}", groups=(band,), variables={"crp": ProtocolVariable()})
    sizes = fed.ask_protocol(plan).answers["A"].parts[0].answer.aggregate
    assert isinstance(sizes, Sizes | None)
    young = [] if sizes is None else [s.n for s in sizes.sizes if s.group == f'[["under {cut:g}"]]']
    return young[0] if young else None


def differ_by_one() -> bool:
    """Whether it is told how many people are 64 years old."""
    with Federation.local({"A": PEOPLE}, k=10, seed=1) as fed:
        first, second = under(fed, 64), under(fed, 65)
    assert first == 24
    return second == 25


def test_cuts_at_64_and_65_do_not_tell_of_the_one_who_is_64() -> None:
    assert not differ_by_one()


def test_without_the_rule_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    anything_goes(monkeypatch)
    assert differ_by_one()


def test_the_same_cuts_in_another_protocol_are_told_again() -> None:
    with Federation.local({"A": PEOPLE}, k=10, seed=1) as fed:
        assert under(fed, 64) == 24
        band = Grouping(name="band", of="age", cuts=(64.0,))
        other = Protocol(title="another", groups=(band,), variables={"age": ProtocolVariable()})
        assert fed.ask_protocol(other).answers["A"].parts[0].answer.aggregate is not None


def test_codes_that_mean_missing_are_settled_by_the_first_answer() -> None:
    """Else the mean with them, beside the mean without, would tell of the few who have them."""
    with Federation.local({"A": PEOPLE}, k=10, seed=1) as fed:
        for number, codes in enumerate([(0.0,), (), (0.0,)]):
            variables = {"crp": ProtocolVariable(kind="number", missing=codes)}
            parts = fed.ask_protocol(Protocol(title=str(number), variables=variables)).answers["A"]
            answer = [part.answer.aggregate is not None for part in parts.parts[1:]]
            assert answer == [codes == (0.0,)] * 2
