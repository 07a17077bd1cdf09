"""The rows a center spoke of are known again, and a file that changes is noticed."""

import os
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unpooled.center.data.scratch import Scratch
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.rule.fingerprint import people_changed, people_fingerprint
from unpooled.errors import LedgerError

RANDOM = np.random.default_rng(3)
ROWS = pl.DataFrame(
    {
        "id": [f"P{i}" for i in range(60)],
        "crp": RANDOM.gamma(4, 1, 60),
        "age": RANDOM.integers(20, 90, 60),
        "sex": ["F", "M", None] * 20,
        "seen": pl.Series(RANDOM.integers(0, 20_000, 60)).cast(pl.Date),
    }
)
POLICY = Policy(ad_hoc="free", variables=("crp", "age", "sex", "seen"), person="id")


def changed(before: pl.DataFrame, now: pl.DataFrame, policy: Policy = POLICY) -> str | None:
    truth = people_fingerprint(open_source(before), policy)
    return people_changed(truth, people_fingerprint(open_source(now), policy, truth))


def test_the_same_rows_are_known_however_they_are_read(tmp_path: Path) -> None:
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    ROWS.write_csv(csv)
    ROWS.write_parquet(parquet)
    bounded = open_source(parquet, Scratch(256, tmp_path))
    reordered = ROWS.select(reversed(ROWS.columns))
    sources = [open_source(data) for data in (ROWS, reordered, csv, parquet)]
    assert len({people_fingerprint(source, POLICY) for source in (*sources, bounded)}) == 1


@pytest.mark.parametrize("column", ROWS.columns)
def test_one_value_of_one_person_in_any_column_is_noticed(column: str) -> None:
    other = {"id": "P99", "crp": 3.0, "age": 19, "sex": "?", "seen": date(1999, 9, 9)}[column]
    third = pl.int_range(pl.len()) == 2
    now = ROWS.with_columns(
        pl.when(third).then(pl.lit(other)).otherwise(pl.col(column)).alias(column)
    )
    assert changed(ROWS, now) == f"values changed, in {column}"


def test_somebody_who_came_went_or_moved_is_noticed() -> None:
    assert changed(ROWS, ROWS[:59]) == "there were 60 rows, now there are 59"
    moved = changed(ROWS, pl.concat([ROWS[1:], ROWS[:1]]))
    assert moved is not None
    assert moved.startswith("values changed, or the order of the rows, in age, crp, id")


def test_what_the_policy_does_not_allow_may_change() -> None:
    narrow = Policy(ad_hoc="free", variables=("crp",), person="id")
    assert changed(ROWS, ROWS.with_columns(age=1), narrow) is None
    assert changed(ROWS, ROWS.with_columns(id=pl.lit("P1")), narrow) == "values changed, in id"


def test_a_policy_that_allows_more_or_less_leaves_the_people_as_they_are() -> None:
    """Yet a column stays known, so that one that was told cannot change while it is not allowed."""
    narrow, wide = (
        Policy(ad_hoc="free", variables=("crp",)),
        Policy(ad_hoc="free", variables=("crp", "age")),
    )
    before = people_fingerprint(open_source(ROWS), narrow)
    more = people_fingerprint(open_source(ROWS), wide, before)
    assert people_changed(before, more) is None
    less = people_fingerprint(open_source(ROWS), narrow, more)
    assert less == more
    other = open_source(ROWS.with_columns(age=1))
    now = people_fingerprint(other, narrow, more)
    assert people_changed(more, now) == "values changed, in age"
    gone = people_fingerprint(open_source(ROWS.drop("age")), narrow, more)
    assert people_changed(more, gone) == "columns are missing now: age"


def test_another_meaning_of_a_person_is_a_change() -> None:
    source = open_source(ROWS)
    one, two = Policy(ad_hoc="free", person="id"), Policy(ad_hoc="free", person="age")
    answer = people_changed(people_fingerprint(source, one), people_fingerprint(source, two))
    assert answer == "a person was named by id, now by age"
    mean = Policy(ad_hoc="free", person="id", per_person="mean")
    answer = people_changed(people_fingerprint(source, one), people_fingerprint(source, mean))
    assert answer == "per_person was None, now it is mean"


def test_what_is_no_fingerprint_is_said() -> None:
    with pytest.raises(LedgerError, match="no fingerprint of people"):
        people_changed("60 rows, 3f2a", "60 rows, 3f2a")


def test_a_parquet_file_that_is_replaced_or_rewritten_is_noticed(tmp_path: Path) -> None:
    path, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    ROWS.write_parquet(path)
    source = open_source(path)
    part = source.derived(f"(SELECT crp FROM {source.relation})")
    assert source.unchanged()
    assert part.unchanged()
    ROWS.write_parquet(other)
    os.replace(other, path)  # the same bytes, and yet nobody knows that without reading them
    assert not source.unchanged()
    assert not part.unchanged()
    os.utime(path, (1e9, 1e9))  # clocks of files may be coarse
    again = open_source(path)
    assert again.unchanged()
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(content)
    assert not again.unchanged()
    last = open_source(path)
    path.unlink()
    assert not last.unchanged()


def test_what_was_read_as_a_whole_stays_as_it_is(tmp_path: Path) -> None:
    csv = tmp_path / "a.csv"
    ROWS.write_csv(csv)
    source = open_source(csv)
    truth = people_fingerprint(source, POLICY)
    csv.write_text("crp\n1\n")
    assert source.unchanged()
    assert people_fingerprint(source, POLICY) == truth
    assert open_source(ROWS).unchanged()
