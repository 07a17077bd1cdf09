"""Whatever is told, no number that follows from it speaks for fewer than K people."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.linear_attack import fewest_people
from unpooled.center.rule.disclosure import Told, TooClose
from unpooled.maths.arrays import BoolArray

K = 3
ONE = np.ones(1, dtype=np.int64)


def people(*members: int, of: int = 20) -> BoolArray:
    mask = np.zeros(of, dtype=bool)
    mask[list(members)] = True
    return mask


def tell(answers: Told, some: BoolArray, answer: int = 1) -> Told:
    return answers.tell(some.astype(np.int32), ONE, answer)


@st.composite
def sets(draw: st.DrawFn) -> list[BoolArray]:
    size = draw(st.integers(6, 16))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    columns = [random.integers(0, draw(st.integers(2, 3)), size) for _ in range(3)]
    result = []
    for _ in range(draw(st.integers(2, 9))):
        mask = np.ones(size, dtype=bool)
        for column in draw(st.sets(st.integers(0, 2), max_size=2)):
            mask &= columns[column] == draw(st.integers(0, 2))
        if draw(st.booleans()):
            mask[draw(st.integers(0, size - 1))] ^= True
        result.append(mask)
    return result


@settings(max_examples=300)
@given(sets())
def test_no_sequence_of_sets_singles_out_fewer_than_k_people(asked: list[BoolArray]) -> None:
    answer, aggregate = Told.nothing(len(asked[0]), K), []
    for some in asked:
        if some.sum() < K:
            continue
        try:
            answer = tell(answer, some)
            aggregate.append(some)
        except TooClose:
            continue
    assert fewest_people(aggregate, K) == K


def test_the_attacker_finds_a_refused_group() -> None:
    everybody = people(*range(12))
    assert fewest_people([everybody, people(*range(10))], K) == 2
    assert fewest_people([everybody, people(*range(9))], K) == K


def test_the_sum_of_disjoint_sets_is_known_and_takes_no_place() -> None:
    answer = tell(tell(Told.nothing(20, K), people(*range(12))), people(*range(12, 20)))
    assert len(answer.elements) == 2
    assert answer.follows(people(*range(20)).astype(np.int32))
    assert tell(answer, people(*range(20))) is answer


def test_a_set_that_differs_by_few_is_refused_either_way() -> None:
    answer = tell(Told.nothing(20, K), people(*range(12)), answer=7)
    for other in (range(11), range(13), range(1, 13)):
        with pytest.raises(TooClose) as close:
            tell(answer, people(*other), answer=8)
        assert close.value.against == 7


def test_two_groupings_and_their_crossing_may_be_told_in_any_order() -> None:
    sex, arm = people(*range(10)), people(*range(0, 20, 2))
    for order in ([sex, arm, sex & arm], [sex & arm, arm, sex], [sex, sex & arm, arm]):
        answer = tell(Told.nothing(20, K), people(*range(20)))
        for some in order:
            answer = tell(answer, some)
        assert len(answer.elements) == 4


def test_a_set_of_fewer_than_k_people_is_refused_and_one_of_nobody_tells_nothing() -> None:
    nothing = Told.nothing(20, K)
    with pytest.raises(TooClose):
        tell(nothing, people(1, 2))
    assert tell(nothing, people()) is nothing


def test_a_list_goes_on_however_long_it_is() -> None:
    """After 150 disclosures all that was new was refused, as if it would isolate people."""
    answers = Told.nothing(600, K)
    for answer in range(200):
        answers = tell(answers, people(*range(3 * answer, 3 * answer + 3), of=600), answer)
    assert len(answers.elements) == 200


def test_what_one_answer_tells_of_different_people_becomes_one_disclosure() -> None:
    answer = tell(Told.nothing(20, K), people(0, 1, 2, 3, 10, 11, 12), 1)
    for group in range(3):
        answer = tell(answer, people(*range(5 * group, 5 * group + 5)), 2)
    assert len(answer.elements) == 4
    assert len(answer.gathered(2).elements) == 2
    everybody = np.ones(20, dtype=np.int32)
    assert tell(answer, everybody > 0, 3).follows(people(*range(15, 20)).astype(np.int32))
