"""Several rows of one person: other rows of the same people are not other people.

Each attack is tried on a real center and, where it succeeds, on one without the rule.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from tests.privacy.taken_out import exact_numbers
from tests.privacy.test_composition import answer_to, ask, difference, forgetful, open_center, sums
from unpooled.center import Center
from unpooled.center import center as center_module
from unpooled.center.policy import PerPerson, Policy
from unpooled.center.questions import Answer, MomentsQuestion, Reason

__all__ = ["forgetful"]  # a fixture

PEOPLE, CHOSEN = 100, 17


@pytest.fixture(autouse=True)
def to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing but the rule can stop an attack."""
    exact_numbers(monkeypatch)


def visits(*, constant: bool = False) -> pl.DataFrame:
    """Two visits of everybody; the chosen person is the one aged 58."""
    random = np.random.default_rng(0)
    first, second = random.normal(20, 5, (2, PEOPLE)).round(2)
    age = random.integers(20, 50, PEOPLE)
    age[CHOSEN] = 58
    return pl.DataFrame(
        {
            "who": np.repeat(np.arange(PEOPLE), 2),
            "visit": np.tile([1, 2], PEOPLE),
            "crp": np.stack((first, first if constant else second), axis=1).ravel(),
            "age": np.repeat(age, 2),
            "sex": np.repeat(random.permutation(["F", "M"] * (PEOPLE // 2)), 2),
        }
    )


def hospital(rows: pl.DataFrame, rule: PerPerson) -> Center:
    return open_center(rows, Policy(ad_hoc="free", person="who", per_person=rule))


def one_person(center: Center, less: dict[str, str]) -> float | None:
    """Somebody's value, where everybody and fewer people differ by one."""
    without, everybody = answer_to(center, **less), answer_to(center)
    if not (without and everybody):
        return None
    n, value = difference(sums(everybody), sums(without))
    return value if n == 1 else None


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("rule", ["first", "mean", "max"])
def test_other_rows_of_the_same_people_are_not_other_people(
    rule: PerPerson, constant: bool, forgetful: Callable[[], None]
) -> None:
    rows = visits(constant=constant)
    less = {"where": "visit == 1 and age != 58"}
    assert one_person(hospital(rows, rule), less) is None
    forgetful()
    result = one_person(hospital(rows, rule), less)
    if constant or rule == "first":
        assert result == pytest.approx(rows["crp"][2 * CHOSEN])


def moved(center: Center) -> float | None:
    """First visits by name, then everybody's first row: they differ where visits are swapped."""
    named, first = answer_to(center, where="visit == 1"), answer_to(center)
    return difference(sums(first), sums(named))[1] if named and first else None


def mixed(center: Center) -> float | None:
    """Twice the mean of two visits, less the second, less the first of everybody but one."""
    both, second = answer_to(center), answer_to(center, where="visit == 2")
    first = answer_to(center, where="visit == 1 and age != 58")
    if not (both and second and first):
        return None
    return 2 * sums(both)[0][1] - sums(second)[0][1] - sums(first)[0][1]


def test_one_person_has_one_value_of_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = visits()
    at = 2 * CHOSEN
    one, other = rows["crp"][at], rows["crp"][at + 1]
    swapped = rows.with_columns(visit=pl.Series(np.tile([1, 2], PEOPLE)))
    swapped[at, "visit"], swapped[at + 1, "visit"] = 2, 1
    assert moved(hospital(swapped, "first")) is None
    assert mixed(hospital(rows, "mean")) is None
    monkeypatch.setattr(center_module, "rows_chosen", lambda *_: frozenset())
    assert moved(hospital(swapped, "first")) == pytest.approx(one - other)


def test_means_of_visits_add_up_to_the_mean_of_both(forgetful: Callable[[], None]) -> None:
    """Why other rows are refused even where they give other values."""
    rows = visits()
    assert mixed(hospital(rows, "mean")) is None
    forgetful()
    assert mixed(hospital(rows, "mean")) == pytest.approx(rows["crp"][2 * CHOSEN])


def reasons(answer: Answer) -> list[Reason]:
    return [refusal.reason for refusal in answer.refusals]


def test_no_series_of_refusals_finds_a_value_among_several() -> None:
    """Whether a condition takes both rows of a person, one or none is not to be found out."""
    center = hospital(visits(), "mean")
    assert answer_to(center)
    answer = {
        tuple(reasons(ask(center, MomentsQuestion(variable="crp", where=where))))
        for limit in range(5, 25, 5)
        for where in (f"sex == 'F' or (age == 58 and crp > {limit})", f"crp > {limit}")
    }
    assert answer == {(Reason.WOULD_ISOLATE,)}


@pytest.mark.parametrize("rows", ["", "visit == 1"])
def test_the_same_rows_are_told_of_in_other_groups(rows: str) -> None:
    center = hospital(visits(), "mean")
    everybody = {"where": rows} if rows else {}
    first = answer_to(center, **everybody)
    assert first["all"][0] == PEOPLE
    assert answer_to(center, **everybody) == first
    assert set(answer_to(center, by="sex", **everybody)) == {"F", "M"}
    assert answer_to(center, where=" and ".join(filter(None, (rows, "age < 35"))))
    assert not answer_to(center, where="visit == 2")


def test_a_variable_with_one_value_in_all_rows_is_told_of_any_rows() -> None:
    center = hospital(visits(constant=True), "first")
    assert answer_to(center, where="visit == 1")
    assert answer_to(center, where="visit == 2 and age < 35")
    assert answer_to(center)
