"""Small centers count in a joint center, and nobody is told of twice."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.joint.hospitals import PROTOCOL, hospital, hospitals
from unpooled import Federation
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies
from unpooled.apps.cli import app
from unpooled.center import Center
from unpooled.center.approval.steward import Steward, decide, pending
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Answer,
    LatticeTables,
    Moments,
    Protocol,
    ProtocolAnswer,
    Reason,
    Refusal,
    Sizes,
    SurvivalTables,
    block_levels,
    decode_answer,
    encode,
)
from unpooled.center.questions.category import Categories
from unpooled.center.questions.joint import JointNote, JointQuestion, JointShares
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import read, verify
from unpooled.center.records.sealing import SealKey, seal
from unpooled.center.records.signatures import without_receipts
from unpooled.errors import HeldError, JointError, RefusedError
from unpooled.results.provenance.steward_text import held_text

FREE = Policy(k=5, ad_hoc="free")


def ask(fed: Federation, protocol: Protocol = PROTOCOL) -> ProtocolReplies:
    return fed._ask_protocol(fed._coordinator.converse(), protocol)


def federation(frames: Mapping[str, pl.DataFrame], policy: Policy = FREE) -> Federation:
    return Federation.local(frames, policy=policy, seed=1, joint=True)


def joint_received(replies: ProtocolReplies) -> Answer:
    """What the joint center said, as it was received."""
    name = f"joint ({len(replies.members)} centers)"
    (payload,) = [one.payload for one in replies.received if one.center == name]
    return decode_answer(payload)


def joint_parts(replies: ProtocolReplies) -> dict[str, object]:
    """The joint center's aggregates, by the kind of their question."""
    answer = replies.answers[f"joint ({len(replies.members)} centers)"]
    return {type(p.question).__name__: p.answer.aggregate for p in answer.parts}


def test_everybody_is_counted_once_alone_or_in_the_joint_center() -> None:
    frames = hospitals(1, 1, 12)
    with federation(frames) as fed:
        replies = ask(fed)
    assert replies.no_joint is None
    assert list(replies.members) == [name for name in frames if name.startswith("small")]
    assert set(replies.answers) == {"large 0", "joint (12 centers)"}
    assert not replies.refusals
    everybody = pl.concat([frames[name] for name in replies.members])
    parts = joint_parts(replies)
    sizes, moments = parts["SizesQuestion"], parts["MomentsQuestion"]
    assert isinstance(sizes, Sizes)
    assert isinstance(moments, Moments)
    assert sum(size.n for size in sizes.sizes) == len(everybody)
    for size in sizes.sizes:
        arms, bands = block_levels(size.group)
        old = pl.col("age") >= 65
        inside = pl.any_horizontal([old if b == "65 and over" else ~old for b in bands])
        assert size.n == len(everybody.filter(pl.col("arm").is_in(list(arms)) & inside))
    tables, levels = parts["LatticeQuestion"], parts["CategoryQuestion"]
    statuses = parts["SurvivalQuestion"]
    assert isinstance(tables, LatticeTables)
    assert isinstance(levels, Categories)
    assert isinstance(statuses, SurvivalTables)
    n = {size.group: size.n for size in sizes.sizes}
    assert {g.group: sum(g.table.counts) for g in tables.groups} == n
    assert {g.group: g.n for g in levels.groups} == n
    followed = {g.group: sum(sum(t.counts) for _, t in g.tables()) for g in statuses.groups}
    assert followed == n


def test_means_are_those_of_everybody_to_their_precision() -> None:
    frames = hospitals(2, 0, 30)
    protocol = msgspec.structs.replace(PROTOCOL, groups=())
    with federation(frames) as fed:
        moments = joint_parts(ask(fed, protocol))["MomentsQuestion"]
    assert isinstance(moments, Moments)
    values = pl.concat(frames.values())["crp"].drop_nans().to_numpy()
    (everybody,) = moments.moments
    assert everybody.mean is not None
    assert everybody.mean == pytest.approx(
        values.mean(),
        abs=0.7 * values.std() / len(values) ** 0.5,  # one in twenty is drawn
    )
    assert everybody.sd == pytest.approx(values.std(ddof=1), rel=0.15)  # some are drawn, limits far


def test_what_leaves_a_member_is_sealed_and_as_long_whoever_is_there() -> None:
    rng = np.random.default_rng(3)
    lengths = set()
    for people in (1, 9):
        frames = hospitals(3, 0, 4) | {"small 0": hospital(rng, people)}
        with federation(frames) as fed:
            ask(fed)
            releases = [r for r in fed.releases.received if isinstance(r.question, JointQuestion)]
        (payload,) = [r.payload for r in releases if r.center == "small 0"]
        lengths.add(len(payload))
    assert len(lengths) == 1


def test_a_steward_reads_the_share_of_their_center_and_decides(tmp_path: Path) -> None:
    frames = hospitals(4, 0, 4)
    with Federation.local(frames, policy=FREE, ledger=tmp_path, seed=1, joint=True) as fed:
        ask(fed)
        question = next(
            r.question for r in fed.releases.received if isinstance(r.question, JointQuestion)
        )
    frame = frames["small 1"]
    steward = Steward(tmp_path / "pending")
    publics = {keeper.name: keeper.public for keeper in question.keepers}
    center = Center(
        "small 1",
        open_source(frame),
        FREE,
        CenterKey.from_seed(1, "small 1"),
        steward=steward,
        keepers=publics,
    )
    with pytest.raises(HeldError):
        center.answer(encode(question))
    (held,) = pending(tmp_path / "pending")
    assert held.share[0] == f"everybody: {len(frame)}"
    lacking = frame["crp"].is_nan().sum()
    points = question.plan.parts[0].width
    crp = f"crp, at {points} points: {len(frame) - lacking}; without a value: {lacking}"
    assert crp in held.share
    blocks = [line for line in held.share if line.startswith("arm ")]
    assert sum(int(line.rsplit(": ", 1)[1]) for line in blocks) == len(frame)
    text = held_text(tmp_path / "pending", held)
    assert all(f"of your people, {line}" in text for line in held.share)
    assert "purpose:      not stated" in text
    decide(tmp_path / "pending", held, "approved")
    shares = decode_answer(center.answer(encode(question)).payload).aggregate
    assert isinstance(shares, JointShares)
    assert all(line.encode() not in encode(shares) for line in held.share)
    center.close()


def test_the_same_again_is_the_same_also_after_a_restart(tmp_path: Path) -> None:
    frames = hospitals(4, 0, 6)
    first = Federation.local(frames, policy=FREE, ledger=tmp_path, joint=True)
    with first:
        one, again = ask(first), ask(first)
    with Federation.local(frames, policy=FREE, ledger=tmp_path, joint=True) as later:
        third = ask(later)
    assert one.members == tuple(frames)
    assert one.answers == again.answers == third.answers


def test_each_member_keeps_a_ledger_of_what_the_joint_center_said(tmp_path: Path) -> None:
    frames = hospitals(4, 1, 6)
    with Federation.local(frames, policy=FREE, ledger=tmp_path, joint=True) as fed:
        replies = ask(fed)
        ask(fed)  # the same again is written down once
    for name in frames:
        file = tmp_path / f"{name}.joint.ledger"
        assert file.exists() == (name in replies.members)
        if file.exists():
            assert verify(file).ok
            (entry,) = read(file)[1]
            assert decode_answer(entry.answer.encode()) == joint_received(replies)
    verdict = CliRunner().invoke(app, ["ledger", "verify", str(tmp_path / "small 1.joint.ledger")])
    assert verdict.exit_code == 0, verdict.output


def test_what_the_keepers_did_not_say_is_not_written_down() -> None:
    """The coordinator passes it on, and can neither change it nor make it up."""
    with federation(hospitals(4, 0, 4)) as fed:
        link, notes = fed._coordinator.link, list[bytes]()
        ask_link = link.ask

        def listening(
            question: bytes, centers: Sequence[str], *, stewards: bool = True
        ) -> Mapping[str, bytes | Refusal]:
            if question.startswith(b'{"ask":"joint-note"'):
                notes.append(question)
            return ask_link(question, centers, stewards=stewards)

        link.ask = listening  # type: ignore[method-assign]
        ask(fed)
        note = msgspec.json.decode(notes[0], type=JointNote)
        answer = decode_answer(note.answer.encode())
        assert isinstance(answer.aggregate, ProtocolAnswer)
        fewer = msgspec.structs.replace(answer.aggregate, parts=answer.aggregate.parts[:1])
        for wrong in (
            msgspec.structs.replace(answer, aggregate=fewer),
            msgspec.structs.replace(answer, k=7),
            without_receipts(answer),
        ):
            changed = msgspec.structs.replace(note, answer=encode(wrong).decode())
            replies = ask_link(encode(changed), note.question.members)
            for payload in replies.values():
                assert isinstance(payload, bytes)
                (refusal,) = decode_answer(payload).refusals
                assert refusal.reason is Reason.WRONG_RECEIPT


def test_another_protocol_over_the_same_people_is_refused_with_the_reason() -> None:
    with federation(hospitals(5, 0, 6)) as fed:
        ask(fed)
        other = msgspec.structs.replace(PROTOCOL, title="another", groups=PROTOCOL.groups[:1])
        replies = ask(fed, other)
        with pytest.raises(RefusedError, match="joined"):
            fed.describe("crp")
    assert not replies.members
    assert replies.no_joint == "fewer than 3 centers take part"
    assert {refusal.reason for _, refusal in replies.refusals} == {
        Reason.JOINED,
        Reason.OTHER_JOINT,
    }


def test_another_membership_is_refused_by_the_keepers_who_say_whose_people_they_have() -> None:
    frames = hospitals(6, 0, 6)
    with federation(frames) as fed:
        conversation = fed._coordinator.converse()
        first = ask(fed)
        question = next(
            r.question for r in fed.releases.received if isinstance(r.question, JointQuestion)
        )
        fewer = msgspec.structs.replace(question, members=question.members[1:])
        shares = conversation.ask(fewer, JointShares, fewer.members)
        assert fed._keepers is not None
        with pytest.raises(JointError, match=f"has the people of {question.members[1]}"):
            fed._keepers.compute(fewer, shares.aggregates)
    assert first.members == tuple(frames)


def test_who_was_told_of_alone_does_not_count_in_a_joint_center() -> None:
    rng = np.random.default_rng(7)
    frames = {f"h{i}": hospital(rng, 8) for i in range(5)}  # K people, too few for blocks
    with federation(frames) as fed:
        fed.describe("crp")
        replies = ask(fed)
    assert not replies.members
    assert set(replies.answers) == set(frames)


@pytest.mark.parametrize("members", [1, 2])
def test_of_fewer_than_three_members_nothing_is_opened(members: int) -> None:
    with federation(hospitals(8, 1, members)) as fed:
        replies = ask(fed)
        asked = [r for r in fed.releases.received if isinstance(r.question, JointQuestion)]
    assert replies.no_joint == "fewer than 3 centers take part"
    assert not asked
    assert set(replies.answers) == {"large 0"}


def test_of_fewer_than_two_k_people_in_all_nothing_is_told() -> None:
    rng = np.random.default_rng(9)
    with federation({f"h{i}": hospital(rng, 3) for i in range(3)}) as fed:
        replies = ask(fed)
    answer = replies.answers["joint (3 centers)"]
    assert isinstance(answer, ProtocolAnswer)
    for part in answer.parts:
        assert part.answer.aggregate is None
        (refusal,) = part.answer.refusals
        assert (refusal.reason, refusal.limit) == (Reason.TOO_SMALL, 10)


def test_a_policy_shares_nothing_or_everything() -> None:
    frames = hospitals(10, 2, 4)
    no = Policy(k=5, ad_hoc="free", joint="no")
    with federation(frames, no) as fed:
        replies = ask(fed)
        assert replies.no_joint == "no center's people count in one"
        assert not replies.members
    with federation(frames, msgspec.structs.replace(no, joint="all")) as fed:
        replies = ask(fed)
        assert list(replies.members) == list(frames)
        assert set(replies.answers) == {"joint (6 centers)"}


def test_a_center_that_cannot_tell_the_first_grouping_apart_counts_in_the_joint_center() -> None:
    frames = hospitals(14, 1, 4)
    one_arm = pl.lit(["patient"] * 3 + ["control"] * 57).explode()
    frames["lopsided"] = hospital(np.random.default_rng(1), 60).with_columns(arm=one_arm)
    with federation(frames) as fed:
        replies = ask(fed)
    assert set(replies.answers) == {"large 0", "joint (5 centers)"}
    assert "lopsided" in replies.members


def test_no_value_beyond_the_limits_of_a_protocol_makes_a_center_say_so() -> None:
    frames = hospitals(11, 0, 6)
    far = {**frames, "small 2": frames["small 2"].with_columns(crp=pl.lit(500.0))}
    answer = []
    for some in (frames, far):
        with federation(some) as fed:
            answer.append(ask(fed))
    assert answer[0].members == answer[1].members == tuple(frames)
    assert answer[0].refusals == answer[1].refusals == ()


def test_a_center_that_lacks_a_variable_is_left_out_and_the_others_go_on() -> None:
    frames = hospitals(11, 0, 6)
    frames["small 2"] = frames["small 2"].drop("stage")
    with federation(frames) as fed:
        replies = ask(fed)
    assert len(replies.members) == 5
    assert ("small 2", Reason.UNKNOWN_VARIABLE) in {(c, r.reason) for c, r in replies.refusals}


def test_without_limits_and_without_a_center_that_tells_them_there_is_no_joint_center() -> None:
    protocol = msgspec.structs.replace(
        PROTOCOL, variables={"crp": msgspec.structs.replace(PROTOCOL.variables["crp"], upper=None)}
    )
    with federation(hospitals(12, 0, 5)) as fed:
        assert "lower and upper" in str(ask(fed, protocol).no_joint)
    with federation(hospitals(12, 1, 5)) as fed:  # the large one says where values lie
        assert ask(fed, protocol).no_joint is None


def test_where_nobody_knows_how_far_a_variable_spreads_the_keepers_agree_on_it_first() -> None:
    """Limits that are far wider than the values say nothing of their spread."""
    crp = msgspec.structs.replace(PROTOCOL.variables["crp"], upper=5000, resolution=None)
    protocol = msgspec.structs.replace(
        PROTOCOL, groups=(), survival=(), variables={"crp": crp, "age": crp}
    )
    frames = hospitals(2, 0, 30)
    values = pl.concat(frames.values())["crp"].drop_nans().to_numpy()
    with federation(frames) as fed:
        replies = ask(fed, protocol)
    tables = [
        part.answer.aggregate
        for part in replies.answers["joint (30 centers)"].parts
        if isinstance(part.answer.aggregate, LatticeTables)
    ]
    spread = np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.349
    assert tables[0].scale == pytest.approx(100, abs=0.1)  # the finest of a window of 5000
    assert spread < tables[0].scale
    wide = msgspec.structs.replace(crp, upper=120)
    protocol = msgspec.structs.replace(protocol, variables={"crp": wide})
    with federation(frames) as fed:
        parts = joint_parts(ask(fed, protocol))
    table = parts["LatticeQuestion"]
    assert isinstance(table, LatticeTables)
    assert 0.6 < table.scale / spread < 1.7
    assert len(table.groups[0].table.counts) > 10


def test_keepers_that_a_center_does_not_know_get_no_shares() -> None:
    frames = hospitals(13, 0, 4)
    with federation(frames) as fed, Federation.local(frames, policy=FREE, seed=2, joint=True) as b:
        fed._keepers = b._keepers
        replies = ask(fed)
    assert not replies.members
    assert Reason.OTHER_KEEPERS in {refusal.reason for _, refusal in replies.refusals}


def test_a_repeated_seal_is_the_same_bytes_and_a_new_one_is_not() -> None:
    """A center's secret draws the key of a seal: the same shares leave as the same bytes."""
    key, again = SealKey(bytes(32)), bytes(range(1, 33))
    sealed = [seal(key.public, b"shares", b"for", again) for _ in range(2)]
    assert sealed[0] == sealed[1]
    assert seal(key.public, b"shares", b"for") != seal(key.public, b"shares", b"for")
    assert key.open(sealed[0], b"for") == b"shares"
