"""Protocols that do not fit what a center has: clear refusals, and everything else is answered."""

import polars as pl

from tests.test_protocol import AGE, ARM, PEOPLE, SEX, K, parts
from unpooled import Federation
from unpooled.center.questions import (
    Categories,
    Grouping,
    Protocol,
    ProtocolAnswer,
    ProtocolVariable,
    Reason,
    Refusal,
    Sizes,
    block_levels,
)

CRP = {"crp": ProtocolVariable()}


def answer(frame: pl.DataFrame, plan: Protocol) -> ProtocolAnswer:
    with Federation.local({"A": frame}, k=K, seed=1) as fed:
        return fed.ask_protocol(plan).answers["A"]


def refusals(aggregate: ProtocolAnswer) -> list[tuple[str, Refusal]]:
    return [
        (p.question.variable, refusal) for p in aggregate.parts for refusal in p.answer.refusals
    ]


def test_a_grouping_at_the_side_that_a_center_lacks_is_refused_by_name_and_nothing_else() -> None:
    ward = Grouping(name="ward", with_=("arm",))
    plan = Protocol(title="x", groups=(ARM, SEX, ward), variables=CRP)
    aggregate = answer(PEOPLE["Haifa"].drop("ward"), plan)
    by_ward = [
        any(g.name == "ward" for g in part.question.blocks or ()) for part in aggregate.parts
    ]
    crossed = [part for part, side in zip(aggregate.parts, by_ward, strict=True) if not side]
    side = [part for part, side in zip(aggregate.parts, by_ward, strict=True) if side]
    assert len(side) == len(crossed) == 3
    assert all(part.answer.aggregate is not None for part in crossed)
    for part in side:
        (refusal,) = part.answer.refusals
        assert (refusal.reason, refusal.name) == (Reason.UNKNOWN_VARIABLE, "ward")


def test_levels_that_nobody_has_leave_everybody_in_a_block() -> None:
    arm = Grouping(name="arm", levels=("placebo", "control", "patient"))
    aggregate = answer(PEOPLE["Haifa"], Protocol(title="x", groups=(arm, AGE), variables=CRP))
    (sizes,) = parts(aggregate, Sizes)
    assert isinstance(sizes, Sizes)
    assert sum(size.n for size in sizes.sizes) == len(PEOPLE["Haifa"])
    assert len({block_levels(size.group)[0] for size in sizes.sizes}) == 2


def test_people_without_a_declared_level_are_other_and_without_any_missing() -> None:
    frame = PEOPLE["Haifa"].with_columns(
        pl.when(pl.int_range(pl.len()) % 4 == 0).then(None).otherwise("ward").alias("ward")
    )
    ward = Grouping(name="ward", levels=("medicine",))
    (sizes,) = parts(answer(frame, Protocol(title="x", groups=(ward,), variables=CRP)), Sizes)
    assert isinstance(sizes, Sizes)
    truth = frame["ward"] != "medicine"
    assert {size.group: size.n for size in sizes.sizes} == {
        '[["medicine"]]': int((~truth).sum()),
        '[["other"]]': int(truth.sum()),
        '[["missing"]]': frame["ward"].null_count(),
    }


def test_a_text_of_which_no_level_has_k_people_is_told_as_other() -> None:
    frame = PEOPLE["Haifa"].with_columns(pl.int_range(pl.len()).cast(pl.String).alias("name"))
    aggregate = answer(frame, Protocol(title="x", variables={"name": ProtocolVariable()}))
    (names,) = parts(aggregate, Categories)
    assert isinstance(names, Categories)
    assert [(cell.levels, cell.count) for cell in names.groups[0].cells] == [
        (("other",), len(frame))
    ]


def test_a_category_of_too_many_levels_is_refused_with_a_way_on() -> None:
    levels = [str(number % 201) for number in range(201 * K)]
    frame = pl.DataFrame({"code": levels, "crp": range(len(levels))})
    plan = Protocol(title="x", variables={"code": ProtocolVariable(kind="category"), **CRP})
    aggregate = answer(frame, plan)
    assert [(name, r.reason) for name, r in refusals(aggregate)] == [
        ("code", Reason.TOO_MANY_LEVELS)
    ]
    assert "levels" in refusals(aggregate)[0][1].rule
    grouped = Protocol(title="y", groups=(Grouping(name="code"),), variables=CRP)
    assert {r.reason for _, r in refusals(answer(frame, grouped))} == {Reason.TOO_MANY_LEVELS}


def test_a_variable_without_any_value_is_refused_and_others_are_told() -> None:
    frame = PEOPLE["Haifa"].with_columns(pl.lit(None, dtype=pl.Float64).alias("empty"))
    variables = {"empty": ProtocolVariable(kind="number"), **CRP}
    aggregate = answer(frame, Protocol(title="x", groups=(ARM,), variables=variables))
    assert {(name, r.reason) for name, r in refusals(aggregate)} == {("empty", Reason.ALL_MISSING)}


def test_a_column_of_text_is_no_number() -> None:
    plan = Protocol(title="x", variables={"ward": ProtocolVariable(kind="number")})
    assert {r.reason for _, r in refusals(answer(PEOPLE["Haifa"], plan))} == {Reason.NOT_NUMERIC}


def test_cuts_of_a_text_are_refused_by_name() -> None:
    plan = Protocol(title="x", groups=(Grouping(name="ward", cuts=(1.0,)),), variables=CRP)
    aggregate = refusals(answer(PEOPLE["Haifa"], plan))
    assert {(r.reason, r.name) for _, r in aggregate} == {(Reason.NOT_NUMERIC, "ward")}


def test_a_level_that_is_spelled_in_two_ways_is_noticed() -> None:
    frame = PEOPLE["Haifa"].with_columns(
        pl.when(pl.int_range(pl.len()) % 2 == 0)
        .then(pl.col("sex").str.to_lowercase())
        .otherwise("sex")
        .alias("sex")
    )
    with Federation.local({"A": frame}, k=K, seed=1) as fed:
        plan = Protocol(title="x", groups=(Grouping(name="sex"),), variables=CRP)
        advice = fed.check(plan).advice
    assert "sex: 'M' and 'm' look like one level. Spell it one way at the centers." in advice
