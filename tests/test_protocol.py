"""A protocol is asked once: what a center says to it, and how."""

import json

import numpy as np
import polars as pl
import pytest

from unpooled import Federation
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies, ask_protocol
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Categories,
    CategoryQuestion,
    Grouping,
    LatticeQuestion,
    LatticeTables,
    Moments,
    MomentsQuestion,
    Protocol,
    ProtocolAnswer,
    ProtocolOutcome,
    ProtocolVariable,
    Reason,
    Sizes,
    SurvivalTables,
    block_levels,
    decode_answer,
)

K = 10
ARM = Grouping(name="arm", levels=("control", "patient"))
SEX = Grouping(name="sex", levels=("F", "M"))
AGE = Grouping(name="age_band", of="age", cuts=(65.0,), labels=("young", "old"))
WARD = Grouping(name="ward", with_=("arm",))


def hospital(seed: int, size: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    arm = random.random(size) < 0.5
    chol = np.round(random.normal(220, 40, size))
    chol[random.random(size) < 0.2] = 0.0
    return pl.DataFrame(
        {
            "arm": np.where(arm, "patient", "control"),
            "sex": np.where(random.random(size) < 0.6, "M", "F"),
            "age": random.integers(30, 90, size),
            "ward": random.choice(["ICU", "medicine", "surgery"], size),
            "crp": np.round(random.lognormal(1.0 + 0.3 * arm, 0.8, size), 1),
            "chol": chol,
            "stage": random.choice(["I", "II", "III"], size, p=[0.6, 0.35, 0.05]),
            "pain": random.integers(0, 4, size),
            "died": (random.random(size) < 0.4).astype(int),
            "months": np.round(random.exponential(30, size), 1),
        }
    )


PEOPLE = {"Haifa": hospital(1, 320), "Bern": hospital(2, 150)}
PLAN = Protocol(
    title="CRP",
    groups=(ARM, SEX, AGE, WARD),
    variables={
        "crp": ProtocolVariable(),
        "chol": ProtocolVariable(missing=(0.0,)),
        "stage": ProtocolVariable(levels=("I", "II", "III"), ordered=True),
        "pain": ProtocolVariable(),
    },
    survival=(ProtocolOutcome(time="months", event="died", horizon=60.0),),
)


def federation(**policy: object) -> Federation:
    settings = {"k": K, "ad_hoc": "free"} | policy
    return Federation.local(PEOPLE, policy=Policy(**settings), seed=1)  # type: ignore[arg-type]


def replies(fed: Federation, plan: Protocol = PLAN) -> ProtocolReplies:
    return ask_protocol(fed._coordinator.converse(), plan)


@pytest.fixture(scope="module")
def answered() -> ProtocolReplies:
    with federation() as fed:
        return replies(fed)


def parts(answer: ProtocolAnswer, kind: type, variable: str | None = None) -> list[object]:
    return [
        part.answer.aggregate
        for part in answer.parts
        if isinstance(part.answer.aggregate, kind) and variable in (None, part.question.variable)
    ]


def members(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """The people of a block of the crossed groupings, as a pooled analyst would choose them."""
    arm, sex, band = block_levels(label)
    bands = pl.when(pl.col("age") < 65).then(pl.lit("young")).otherwise(pl.lit("old"))
    return frame.filter(
        pl.col("arm").is_in(arm) & pl.col("sex").is_in(sex) & bands.is_in(list(band))
    )


def test_one_round_brings_every_variable_of_every_center(answered: ProtocolReplies) -> None:
    assert answered.rounds == 1
    assert set(answered.answers) == set(PEOPLE)
    assert answered.missing == ()
    for answer in answered.answers.values():
        assert {
            type(aggregate) for part in answer.parts if (aggregate := part.answer.aggregate)
        } == {
            Sizes,
            Moments,
            LatticeTables,
            Categories,
            SurvivalTables,
        }


def test_every_person_is_in_one_block_and_each_block_has_twice_k(
    answered: ProtocolReplies,
) -> None:
    for center, frame in PEOPLE.items():
        crossed, side = parts(answered.answers[center], Sizes)
        assert isinstance(crossed, Sizes)
        assert isinstance(side, Sizes)
        for sizes in (crossed, side):
            assert sum(size.n for size in sizes.sizes) == len(frame)
            assert min(size.n for size in sizes.sizes) >= 2 * K
        assert {size.group: size.n for size in crossed.sizes} == {
            size.group: len(members(frame, size.group)) for size in crossed.sizes
        }


def test_tables_count_the_people_that_they_name(answered: ProtocolReplies) -> None:
    for center, frame in PEOPLE.items():
        for tables in parts(answered.answers[center], LatticeTables, "crp")[:1]:
            assert isinstance(tables, LatticeTables)
            for group in tables.groups:
                crp = members(frame, group.group)["crp"].to_numpy()
                counts = np.diff(
                    np.searchsorted(np.sort(crp), group.table.edges, "right"),
                    prepend=0,
                    append=len(crp),
                )
                assert counts.tolist() == list(group.table.counts)


def test_the_codes_that_mean_missing_are_no_values(answered: ProtocolReplies) -> None:
    frame = PEOPLE["Haifa"]
    (moments, *_) = parts(answered.answers["Haifa"], Moments, "chol")
    assert isinstance(moments, Moments)
    for group in moments.moments:
        chol = members(frame, group.group)["chol"]
        zeros = int((chol == 0).sum())
        if zeros >= K:
            assert (group.n, group.missing) == (len(chol) - zeros, zeros)
            assert group.mean == pytest.approx(chol.filter(chol != 0).mean(), rel=0.05)
        else:
            assert (group.n, group.missing) == (len(chol), None)


def test_kinds_are_recognised_and_few_whole_numbers_are_a_category(
    answered: ProtocolReplies,
) -> None:
    for answer in answered.answers.values():
        asked = {(type(part.question), part.question.variable) for part in answer.parts}
        assert (CategoryQuestion, "pain") in asked
        assert (CategoryQuestion, "stage") in asked
        assert (LatticeQuestion, "crp") in asked
        assert (MomentsQuestion, "pain") not in asked


def test_levels_of_too_few_people_are_told_with_their_neighbours(
    answered: ProtocolReplies,
) -> None:
    frame = PEOPLE["Haifa"]
    (stages, *_) = parts(answered.answers["Haifa"], Categories, "stage")
    assert isinstance(stages, Categories)
    merged = False
    for group in stages.groups:
        part = members(frame, group.group)["stage"]
        for cell in group.cells:
            assert cell.count == part.is_in(list(cell.levels)).sum()
            assert cell.count >= K or cell.count == 0
            merged |= cell.levels == ("II", "III")
    assert merged


def test_the_same_protocol_again_is_the_same_bytes_after_a_restart_too(
    tmp_path: object,
) -> None:
    policy = Policy(k=K, ad_hoc="free")
    with Federation.local(PEOPLE, policy=policy, ledger=str(tmp_path)) as fed:
        first = [one.payload for one in replies(fed).received]
        assert [one.payload for one in replies(fed).received] == first
    with Federation.local(PEOPLE, policy=policy, ledger=str(tmp_path)) as fed:
        assert [one.payload for one in replies(fed).received] == first


def test_each_part_has_a_line_in_the_ledger_and_the_whole_has_the_last() -> None:
    with federation() as fed:
        answer = replies(fed).answers["Bern"]
        ledger = fed._coordinator.link._centers["Bern"].ledger  # type: ignore[attr-defined]
        entries = list(ledger)
        assert len(entries) == len(answer.parts) + 1
        assert decode_answer(entries[-1].answer.encode()).aggregate == answer
        for entry, part in zip(entries, answer.parts, strict=False):
            assert decode_answer(entry.answer.encode()) == part.answer
            assert json.loads(entry.question)["variable"] == part.question.variable


def test_a_protocol_counts_as_one_question_in_the_budget_of_refusals() -> None:
    lacking = Protocol(title="x", variables={f"no{i}": ProtocolVariable() for i in range(5)})
    with federation(refusals_a_day=2) as fed:
        for number in range(2):
            named = Protocol(title=f"x{number}", variables=lacking.variables)
            answer = replies(fed, named).answers["Haifa"]
            assert all(
                part.answer.refusals[0].reason is Reason.UNKNOWN_VARIABLE
                for part in answer.parts[1:]
            )
        refused = dict(replies(fed, Protocol(title="x3", variables=lacking.variables)).refusals)
        assert refused["Haifa"].reason is Reason.BUDGET


def test_only_a_protocol_has_blocks() -> None:
    by_block = MomentsQuestion(variable="crp", blocks=(ARM,))
    without_codes = MomentsQuestion(variable="chol", missing=(0.0,))
    with federation() as fed:
        for asked in (by_block, without_codes):
            round_ = fed._coordinator.converse().ask(asked, Moments)
            reasons = {refusal.reason for _, refusal in round_.refusals}
            assert reasons == {Reason.UNREADABLE_QUESTION}


def test_a_center_with_too_few_people_says_so_before_it_looks_at_anything() -> None:
    with Federation.local({"tiny": PEOPLE["Bern"].head(K - 1)}, k=K) as fed:
        answer = replies(fed).answers["tiny"]
        assert {r.reason for part in answer.parts for r in part.answer.refusals} == {
            Reason.TOO_SMALL
        }
        assert all(part.answer.aggregate is None for part in answer.parts)


def test_the_protocols_own_k_is_kept_where_it_is_higher() -> None:
    with federation() as fed:
        answer = replies(
            fed, Protocol(title="x", k=20, groups=PLAN.groups[:3], variables=PLAN.variables)
        )
        for each in answer.answers.values():
            assert each.k == 20
            for sizes in parts(each, Sizes):
                assert isinstance(sizes, Sizes)
                assert min(size.n for size in sizes.sizes) >= 40
