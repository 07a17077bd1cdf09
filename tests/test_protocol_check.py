"""The dry run of a protocol: it says what the run would tell, and nothing else."""

import json
from collections.abc import Iterator

import pytest

from tests.test_protocol import ARM, PEOPLE, PLAN, SEX, K, federation
from unpooled import Federation
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Grouping,
    Protocol,
    ProtocolCheck,
    ProtocolVariable,
    Reason,
)
from unpooled.results.protocol_check import ProtocolCheckResult

SMALL = Protocol(
    title="Small",
    groups=(ARM, SEX, Grouping(name="pain")),
    variables={"crp": ProtocolVariable(), "stage": ProtocolVariable()},
)


@pytest.fixture(scope="module")
def checked() -> ProtocolCheckResult:
    with federation() as fed:
        return fed.check(SMALL)


def test_a_check_follows_from_what_the_run_tells_and_changes_nothing_of_it() -> None:
    with federation() as fed:
        answer = {one.center: one.payload for one in fed.ask_protocol(SMALL).received}
    with federation() as fed:
        checks = fed.check(SMALL).checks
        replies = fed.ask_protocol(SMALL)
    assert {one.center: one.payload for one in replies.received} == answer
    assert checks == {center: ProtocolCheck.of(a) for center, a in replies.answers.items()}


def numbers(tree: object) -> Iterator[float]:
    match tree:
        case bool():
            return
        case int() | float():
            yield tree
        case dict():
            for name, part in tree.items():
                if name not in ("question", "limit", "k"):
                    yield from numbers(part)
        case list():
            for part in tree:
                yield from numbers(part)


def test_a_check_tells_no_number_of_anybody() -> None:
    with federation() as fed:
        fed.check(SMALL)
        for one in fed.releases:
            assert not list(numbers(json.loads(one.payload)))


def test_what_is_merged_is_said_of_each_center_and_grouping(checked: ProtocolCheckResult) -> None:
    assert {one.center for one in checked.groupings} == set(PEOPLE)
    for one in checked.groupings:
        assert one.groupings == ("arm", "sex", "pain")
        assert one.merged["arm"] == 0  # the most important is kept apart
        assert one.merged["pain"] > 0
        assert len(one.blocks) >= 4
    text = str(checked)
    assert "pain in " in text
    assert "pain is merged in" in " ".join(text.split())


def test_a_variable_that_a_center_lacks_is_lost_there_alone() -> None:
    people = {"Haifa": PEOPLE["Haifa"].drop("crp"), "Bern": PEOPLE["Bern"]}
    with Federation.local(people, k=K, seed=1) as fed:
        lost = fed.check(SMALL).lost
    assert {(r.center, r.variable, r.reason) for r in lost} == {
        ("Haifa", "crp", Reason.UNKNOWN_VARIABLE.value)
    }


def test_a_grouping_that_no_center_has_is_the_one_to_drop() -> None:
    plan = Protocol(title="x", groups=(ARM, Grouping(name="region")), variables=SMALL.variables)
    with federation() as fed:
        (advice,) = fed.check(plan).advice
    assert advice == "No center can answer anything. Drop the grouping 'region'."


def test_a_check_counts_in_the_budget_of_refusals() -> None:
    with federation(refusals_a_day=1) as fed:
        assert len(fed.check(SMALL).checks) == len(PEOPLE)
        again = fed.check(PLAN)
    assert not again.checks
    assert {refusal.reason for refusal in again.refusals} == {Reason.BUDGET.value}


def test_without_a_steward_only_declared_groupings_and_cuts_are_crossed() -> None:
    policy = Policy(k=K, groupings={"arm": (), "age": (65.0,)})

    def reasons(fed: Federation, *groups: Grouping) -> set[str]:
        plan = Protocol(title="x", groups=groups, variables={"crp": ProtocolVariable()})
        return {refusal.reason for refusal in fed.check(plan).lost}

    with Federation.local(PEOPLE, policy=policy, seed=1) as fed:
        assert not reasons(fed, ARM, Grouping(name="age", cuts=(65.0,)))
        assert reasons(fed, SEX) == {Reason.ONLY_GROUPINGS.value}
        assert reasons(fed, Grouping(name="age", cuts=(64.0,))) == {Reason.ONLY_GROUPINGS.value}
        assert reasons(fed, Grouping(name="age")) == {Reason.ONLY_GROUPINGS.value}
