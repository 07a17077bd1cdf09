"""What each party of a joint center receives: every byte of a run, and what can be read from it."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from scipy import stats

from tests.joint.hospitals import PROTOCOL, hospital
from tests.joint.one_machine import OneMachine
from unpooled.center.policy import Policy
from unpooled.center.questions import ProtocolAnswer, decode_answer
from unpooled.center.questions.joint import (
    HoldQuestion,
    JointNote,
    JointQuestion,
    JointShares,
)
from unpooled.center.records.sealing import RECEIPT
from unpooled.errors import SealError
from unpooled.maths.joint.shares import BYTES, from_bytes

POLICY = Policy(k=5, ad_hoc="free")
SIGNATURE = 64  # bytes
NAMES = ("Haifa", "Bern", "Porto", "Gent")
PLAN = msgspec.structs.replace(PROTOCOL, survival=())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneMachine]:
    rng = np.random.default_rng(3)
    data = {name: hospital(rng, people) for name, people in zip(NAMES, (9, 7, 8, 6), strict=True)}
    link = OneMachine(data, POLICY, tmp_path_factory.mktemp("views"))
    fed = link.federation()
    replies = fed._ask_protocol(fed._coordinator.converse(), PLAN)
    assert replies.members == NAMES
    yield link
    link.close()


def uniform(content: bytes) -> float:
    """The p-value of bytes as chance."""
    return float(
        stats.chisquare(np.bincount(np.frombuffer(content, np.uint8), minlength=256)).pvalue
    )


def test_the_coordinator_receives_sealed_shares_and_the_joint_answer(run: OneMachine) -> None:
    kinds: dict[str, int] = {}
    sealed = b""
    for message in run.heard["coordinator"]:
        answer = decode_answer(message)
        kind = type(answer.aggregate).__name__
        kinds[kind] = kinds.get(kind, 0) + 1
        if isinstance(answer.aggregate, JointShares):
            sealed += b"".join(answer.aggregate.sealed)
    # who joins says so; keepers say that they hold shares, members that they wrote it down
    assert kinds == {"NoneType": 4 + 3 + 4, "JointShares": 4, "ProtocolAnswer": 3}
    assert len(sealed) > 50_000
    assert uniform(sealed) > 1e-9
    for message in run.heard["coordinator"]:
        answer = decode_answer(message)
        if answer.aggregate is None:  # no count in it, whoever is there
            assert {r.reason.value for r in answer.refusals} <= {"joined"}
            assert [r.limit for r in answer.refusals] in ([], [None])


def test_a_member_receives_questions_and_the_joint_answer(run: OneMachine) -> None:
    each = [message.split(b'"')[3] for message in run.heard["Gent"]]
    assert each == [b"protocol", b"joint", b"joint-note"]
    note = msgspec.json.decode(run.heard["Gent"][-1], type=JointNote)
    (answer, *_) = (
        answer
        for message in run.heard["coordinator"]
        if isinstance((answer := decode_answer(message)).aggregate, ProtocolAnswer)
    )
    noted = decode_answer(note.answer.encode())
    assert isinstance(answer.aggregate, ProtocolAnswer)
    assert isinstance(noted.aggregate, ProtocolAnswer)
    assert noted.aggregate.parts == answer.aggregate.parts  # what an analyst gets, and no more


def test_a_keeper_receives_one_share_of_each_count_which_looks_like_chance(
    run: OneMachine,
) -> None:
    for name, keeping in run.keepings.items():
        question, sealed = held(run, name)
        assert len(run.heard[name]) == 5  # protocol, shares asked, shares brought, begin, note
        for member, one in zip(question.members, sealed, strict=True):
            other = next(k for n, k in run.keepings.items() if n != name)
            with pytest.raises(SealError, match="changed, is for another key"):
                other._key.open(one, question.context(member, name))
            plain = keeping._key.open(one, question.context(member, name))
            numbers = from_bytes(plain[RECEIPT:-SIGNATURE])
            assert len(numbers) == question.length(member)
            low = b"".join(int(n).to_bytes(BYTES, "little")[:15] for n in numbers)
            assert uniform(low) > 1e-9


def held(run: OneMachine, name: str) -> tuple[JointQuestion, tuple[bytes, ...]]:
    """What a keeper was brought."""
    (message,) = (m for m in run.heard[name] if m.startswith(b'{"ask":"hold"'))
    brought = msgspec.json.decode(message, type=HoldQuestion)
    return brought.question, brought.sealed


def test_what_keepers_say_to_each_other_looks_like_chance_to_who_carries_it(
    run: OneMachine,
) -> None:
    for name in run.keepings:
        carried = b"".join(m for m in run.heard[f"keeper {name}"] if len(m) > 40)
        assert len(carried) > 50_000
        assert uniform(carried) > 1e-9
