"""What goes wrong with members and keepers: each has a typed outcome, and tells of nobody."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from tests.joint.hospitals import PROTOCOL, hospital
from tests.joint.one_machine import Change, OneMachine, key_of
from unpooled import Federation
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies
from unpooled.center.data.variables import Variable
from unpooled.center.policy import Policy
from unpooled.center.questions import Answer, Reason, Refusal, decode_answer, encode
from unpooled.center.questions.joint import (
    HoldQuestion,
    JointQuestion,
    JointShares,
    Keeper,
    KeepQuestion,
)
from unpooled.center.records.ledger import read, verify
from unpooled.center.records.sealing import SealKey, receipt_key, seal, signed_text
from unpooled.federation.joint.keepers.keeping import HOLD
from unpooled.maths.joint.shares import BYTES, PRIME

POLICY = Policy(k=5, ad_hoc="free")
SMALL = msgspec.structs.replace(PROTOCOL, survival=(), groups=PROTOCOL.groups[:1])
NAMES = ("Haifa", "Bern", "Porto", "Gent")


def frames() -> dict[str, pl.DataFrame]:
    rng = np.random.default_rng(3)
    return {name: hospital(rng, people) for name, people in zip(NAMES, (9, 7, 8, 6), strict=True)}


@contextmanager
def machine(folder: Path, change: Change | None = None) -> Iterator[OneMachine]:
    link = OneMachine(frames(), POLICY, folder, change)
    try:
        yield link
    finally:
        link.close()


def ask(link: OneMachine) -> ProtocolReplies:
    fed = link.federation()
    return fed._ask_protocol(fed._coordinator.converse(), SMALL)


def check_ledgers(folder: Path, opened: int) -> None:
    """All ledgers are sound; each keeper and each member has so many releases."""
    files = sorted(folder.glob("*.ledger"))
    assert all(verify(file).ok for file in files), files
    kept = [file for file in files if file.name.startswith("keeper") or ".joint." in file.name]
    releases = {f.name: [e.kind for e in read(f)[1]].count("release") for f in kept}
    assert set(releases.values()) <= {opened}, releases


def test_all_is_told_where_nothing_goes_wrong(tmp_path: Path) -> None:
    with machine(tmp_path) as link:
        replies = ask(link)
        assert replies.no_joint is None
        assert replies.members == NAMES
    check_ledgers(tmp_path, 1)


def shares_of(name: str, change: Callable[[JointShares], JointShares]) -> Change:
    """Change what a member shares, on its way to the coordinator."""

    def changed(sender: str, receiver: str, message: bytes) -> bytes:
        if sender != name or not message.startswith(b'{"k":') or b'"say":"joint"' not in message:
            return message
        answer = decode_answer(message)
        assert isinstance(answer.aggregate, JointShares)
        return encode(msgspec.structs.replace(answer, aggregate=change(answer.aggregate)))

    return changed


def garbled(shares: JointShares) -> JointShares:
    """One bit is another."""
    first, *others = shares.sealed
    return JointShares(sealed=(first[:-1] + bytes([first[-1] ^ 1]), *others))


def shortened(shares: JointShares) -> JointShares:
    """Some bytes are lost."""
    return JointShares(sealed=tuple(one[:100] for one in shares.sealed))


@pytest.mark.parametrize("change", [garbled, shortened])
def test_a_garbled_share_is_named_and_nothing_is_opened(
    tmp_path: Path, change: Callable[[JointShares], JointShares]
) -> None:
    with machine(tmp_path, shares_of("Gent", change)) as link:
        replies = ask(link)
        assert f"{Refusal(reason=Reason.WRONG_SHARES).rule} (Gent)" in str(replies.no_joint)
        assert not replies.answers
        link.change = None
        assert ask(link).members == NAMES  # a second run works
    check_ledgers(tmp_path, 1)


def test_a_share_out_of_range_or_of_another_question_is_named(tmp_path: Path) -> None:
    with machine(tmp_path) as link:
        question = asked_jointly(link)
        keeping, place = link.keepings["Haifa"], link.places[0]
        sealed = [s.sealed[0] for s in shares(link, question)]
        length = question.length("Gent")
        for number, size, member in ((PRIME, length, "Gent"), (0, length, "Bern"), (0, 3, "Gent")):
            plain = receipt_key(question, "Haifa", b"a secret")
            plain += number.to_bytes(BYTES, "little") * size
            signature = key_of("Gent").sign(signed_text(question, "Gent", "Haifa", plain))
            context = question.context(member, "Haifa")
            wrong = [*sealed[:3], seal(place.public, plain + signature, context)]
            brought = HoldQuestion(
                question=question, run=b"a run of the tests", sealed=tuple(wrong)
            )
            (refusal,) = decode_answer(keeping.answer(encode(brought)).payload).refusals
            assert (refusal.reason, refusal.name) == (Reason.WRONG_SHARES, "Gent")
            assert refusal.limit is None


def signature_of(name: str) -> Callable[[JointQuestion, bytes], bytes]:
    """Whoever has this center's key signs shares as those of Gent."""
    return lambda question, plain: key_of(name).sign(signed_text(question, "Gent", "Haifa", plain))


def another_text(question: JointQuestion, plain: bytes) -> bytes:
    """Gent did sign, but what it shares with another keeper."""
    return key_of("Gent").sign(signed_text(question, "Gent", "Bern", plain))


@pytest.mark.parametrize(
    "sign", [lambda question, plain: b"", signature_of("Bern"), signature_of("C"), another_text]
)
def test_shares_that_a_member_did_not_sign_are_named_and_nothing_is_opened(
    tmp_path: Path, sign: Callable[[JointQuestion, bytes], bytes]
) -> None:
    with machine(tmp_path) as link:
        haifa = link.places[0]

        def forged(sender: str, receiver: str, message: bytes) -> bytes:
            if receiver != "Haifa" or not message.startswith(HOLD):
                return message
            brought = msgspec.json.decode(message, type=HoldQuestion)
            question = brought.question
            plain = receipt_key(question, "Haifa", b"the coordinator's own")
            plain += bytes(BYTES * question.length("Gent"))
            context = question.context("Gent", "Haifa")
            made = seal(haifa.public, plain + sign(question, plain), context)
            return encode(msgspec.structs.replace(brought, sealed=(*brought.sealed[:3], made)))

        link.change = forged
        replies = ask(link)
        rule = Refusal(reason=Reason.WRONG_SIGNATURE).rule
        assert replies.no_joint == f"keeper Haifa: {rule} (Gent)"
        assert not replies.answers
        link.change = None
        assert ask(link).members == NAMES  # a second run works
    check_ledgers(tmp_path, 1)


def asked_jointly(link: OneMachine) -> JointQuestion:
    """The question about shares of a first run, in which no keeper computes."""
    link.change = lambda sender, receiver, message: (
        None if message.startswith((b'{"ask":"hold"', b'{"ask":"keep"')) else message
    )
    ask(link)
    link.change = None
    asked = next(m for m in link.heard["Gent"] if m.startswith(b'{"ask":"joint"'))
    return msgspec.json.decode(asked, type=JointQuestion)


def shares(link: OneMachine, question: JointQuestion) -> list[JointShares]:
    replies = link.ask(encode(question), question.members)
    answers = [decode_answer(replies[name]).aggregate for name in question.members]  # type: ignore[arg-type]
    return [one for one in answers if isinstance(one, JointShares)]


def refused(link: OneMachine, question: JointQuestion, center: str = "Gent") -> Reason:
    """Why a center does not share."""
    answer = decode_answer(link.ask(encode(question), [center])[center])  # type: ignore[arg-type]
    assert answer.aggregate is None
    (refusal,) = answer.refusals
    return refusal.reason


def test_two_keepers_an_old_key_and_a_member_twice_are_refused(tmp_path: Path) -> None:
    with machine(tmp_path) as link:
        question = asked_jointly(link)
        one, two, three = question.keepers
        old = Keeper(name=three.name, public=SealKey(b"o" * 32).public)
        twice = (*question.members[:3], question.members[2], question.members[3])

        def other(**fields: object) -> JointQuestion:
            return msgspec.structs.replace(question, **fields)

        assert refused(link, other(keepers=(one, two))) is Reason.OTHER_KEEPERS
        assert refused(link, other(keepers=(one, two, old))) is Reason.OTHER_KEEPERS
        assert refused(link, other(members=twice)) is Reason.UNREADABLE_QUESTION
        assert refused(link, other(members=question.members[2:])) is Reason.FEW_MEMBERS
        keep = KeepQuestion(question=other(members=twice), run=b"a run of the tests")
        (refusal,) = decode_answer(link.keepings["Bern"].answer(encode(keep)).payload).refusals
        assert refusal.reason is Reason.FEW_MEMBERS


def test_a_keeper_with_an_old_key_says_so_and_blames_no_member(tmp_path: Path) -> None:
    with machine(tmp_path) as link:
        bern = link.keepings["Bern"]
        bern._private, bern._key = b"o" * 32, SealKey(b"o" * 32)
        replies = ask(link)
        rule = Refusal(reason=Reason.OTHER_KEEPERS).rule
        assert replies.no_joint == f"keeper Bern: {rule}"
        assert not replies.answers
    check_ledgers(tmp_path, 0)


def test_a_member_lost_before_it_shares_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    def lost(sender: str, receiver: str, message: bytes) -> bytes | None:
        return None if receiver == "Gent" and message.startswith(b'{"ask":"joint"') else message

    with machine(tmp_path, lost) as link:
        replies = ask(link)
        assert replies.members == NAMES[:3]
        assert ("Gent", Reason.NOT_CONNECTED) in {(c, r.reason) for c, r in replies.refusals}
    check_ledgers(tmp_path, 1)


def test_a_member_whose_share_comes_too_late_is_left_out_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    def late(sender: str, receiver: str, message: bytes) -> bytes | None:
        return None if sender == "Gent" and b'"say":"joint"' in message[:200] else message

    with machine(tmp_path, late) as link:
        replies = ask(link)
        assert replies.members == NAMES[:3]
        assert ("Gent", Reason.NO_ANSWER) in {(c, r.reason) for c, r in replies.refusals}
    check_ledgers(tmp_path, 1)


def test_a_member_lost_after_it_shared_counts_and_writes_down_what_was_said_when_it_is_back(
    tmp_path: Path,
) -> None:
    def lost(sender: str, receiver: str, message: bytes) -> bytes | None:
        return None if receiver == "Gent" and message.startswith(b'{"ask":"joint-n') else message

    with machine(tmp_path, lost) as link:
        replies = ask(link)
        assert replies.members == NAMES
        assert not (tmp_path / "Gent.joint.ledger").exists()
        link.change = None
        again = ask(link)
        assert again.answers == replies.answers
    assert (tmp_path / "Gent.joint.ledger").exists()
    check_ledgers(tmp_path, 1)


def test_a_keeper_lost_in_the_middle_is_named_and_a_second_run_works(tmp_path: Path) -> None:
    messages = []

    def lost(sender: str, receiver: str, message: bytes) -> bytes | None:
        if sender == "keeper Porto":
            messages.append(message)
        return None if sender == "keeper Porto" and len(messages) > 40 else message

    with machine(tmp_path, lost) as link:
        replies = ask(link)
        assert f"{Refusal(reason=Reason.INTERRUPTED).rule} (Porto)" in str(replies.no_joint)
        assert not replies.answers
        check = [decode_answer(p.encode()) for p in interrupted(tmp_path, "Haifa")]
        assert all(isinstance(one, Answer) and one.aggregate is None for one in check)
        link.change = None
        assert ask(link).members == NAMES
    check_ledgers(tmp_path, 1)


def interrupted(folder: Path, keeper: str) -> list[str]:
    """What a keeper wrote down of a run that came to nothing."""
    return [e.answer for e in read(folder / f"keeper {keeper}.ledger")[1] if e.kind == "refusal"]


def test_values_off_a_center_s_lattice_are_refused_where_k_people_have_them() -> None:
    """The reason has no count, and no single person decides it."""
    some: Mapping[str, pl.DataFrame] = frames()
    for people in (0, 1, 4, 6):  # of six; K is 5
        value = pl.when(pl.int_range(pl.len()) < people).then(3.5).otherwise(7.0)
        off = {**some, "Gent": some["Gent"].with_columns(crp=value)}
        declared = {"crp": Variable(resolution=1)}
        with Federation.local(off, policy=POLICY, variables=declared, seed=1, joint=True) as fed:
            replies = fed._ask_protocol(fed._coordinator.converse(), SMALL)
        assert ("Gent" in replies.members) == (people < 5)
        refused = {(r.reason, r.limit, r.name) for c, r in replies.refusals if c == "Gent"}
        off_lattice = (Reason.OFF_RESOLUTION, None, None)
        assert (off_lattice in refused) == (people > 4)


@pytest.mark.parametrize("sizes", [(3, 3, 3), (1, 1, 7), (1, 2, 6), (1, 1, 1)])
def test_a_joint_center_of_fewer_than_two_k_says_that_and_no_count(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    data = {f"c{i}": hospital(rng, n) for i, n in enumerate(sizes)}
    with Federation.local(data, policy=POLICY, seed=1, joint=True) as fed:
        replies = fed._ask_protocol(fed._coordinator.converse(), SMALL)
    answer = replies.answers["joint (3 centers)"]
    for part in answer.parts:
        assert part.answer.aggregate is None
        assert [(r.reason, r.limit) for r in part.answer.refusals] == [(Reason.TOO_SMALL, 10)]
