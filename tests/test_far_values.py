"""One value far from all others: no mean may be told, ranks may."""

import polars as pl

from unpooled import Federation

FAR = [*map(float, range(30)), 1e6]
NEAR = [*map(float, range(5, 45))]


def hospital() -> Federation:
    people = {"arm": ["a"] * len(FAR) + ["b"] * len(NEAR), "crp": FAR + NEAR}
    return Federation.local({"Haifa": pl.DataFrame(people)}, k=10)


def test_groups_with_one_value_far_from_the_others_are_ranked() -> None:
    assert not hospital().compare("crp", by="arm").refusals


def test_no_mean_is_told_of_a_group_with_one_value_far_from_the_others() -> None:
    answer = hospital().describe("crp", by="arm")
    assert [group.mean is None for group in answer.groups] == [True, False]
