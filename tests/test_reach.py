"""Every result says of how many of the centers, and of how many people, it is."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from unpooled import Federation
from unpooled.results.report.parts import Grid


def hospital(seed: int, x: int, y: int, z: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    n = x + y + z
    return pl.DataFrame(
        {
            "v": random.normal(0, 1, n),
            "w": random.normal(0, 1, n),
            "g": ["x"] * x + ["y"] * y + ["z"] * z,
            "time": random.uniform(1, 60, n).round(1),
            "died": random.integers(0, 2, n),
        }
    )


SMALL = {f"S{i}": (4, 3, 2) for i in range(3)}  # they refuse whatever names a group
LARGE = {"Haifa": (70, 60, 50), "Bern": (80, 90, 60)}


def federation(**centers: tuple[int, int, int]) -> Federation:
    rows = {name: hospital(i, *sizes) for i, (name, sizes) in enumerate(centers.items())}
    return Federation.local(rows, seed=1)


ASKED: dict[str, Any] = {
    "compare": lambda fed: fed.compare("v", "g", groups=("x", "y")),
    "parallel": lambda fed: fed.compare("v", "g", groups=("x", "y"), method="parallel"),
    "by table": lambda fed: fed.compare("v", "g", groups=("x", "y"), method="table"),
    "quantiles": lambda fed: fed.quantiles("v", 0.5, "g", groups=("x", "y")),
    "yj-table": lambda fed: fed.quantiles("v", 0.5, "g", groups=("x", "y"), method="yj-table"),
    "yj-grid": lambda fed: fed.quantiles("v", 0.5, "g", groups=("x", "y"), method="yj-grid"),
    "table": lambda fed: fed.table("v", "g", groups=("x", "y")),
    "smooth": lambda fed: fed.table("v", "g", groups=("x", "y"), method="parallel"),
    "describe": lambda fed: fed.describe("v", "g", groups=("x", "y")),
    "survival": lambda fed: fed.survival("time", "died", "g", groups=("x", "y"), horizon=60),
}


@pytest.mark.parametrize("name", ASKED)
def test_where_centers_did_not_answer_their_number_is_given(name: str) -> None:
    text = str(ASKED[name](federation(**LARGE, **SMALL)))
    assert "over 2 of 5 centers, 300 people" in text.replace("Over", "over")
    assert "all centers." not in text


@pytest.mark.parametrize("name", ASKED)
def test_where_all_centers_answered_it_is_their_number(name: str) -> None:
    text = str(ASKED[name](federation(**LARGE)))
    assert "over 2 centers, 300 people" in text.replace("Over", "over")


def test_groups_and_several_variables_say_it_too() -> None:
    fed = federation(**LARGE, **SMALL)
    three = fed.compare("v", "g", groups=("x", "y", "z"))
    assert "Over 2 of 5 centers, 410 people." in str(three)
    many = fed.compare(["v", "w"], "g", groups=("x", "y"))
    grid = many.parts()[0]
    assert isinstance(grid, Grid)
    assert all(row[-2:] == ["2 of 5", "300"] for row in grid.rows)
    assert "v, parallel: over 2 of 5 centers" in str(fed.quantiles(["v", "w"], 0.5))


def test_thousands_of_people_are_easy_to_read() -> None:
    assert "over 1 center, 1,200 people" in str(federation(A=(600, 600, 0)).describe("v"))


def test_charts_name_those_that_answered() -> None:
    result = federation(**LARGE, **SMALL).compare("v", "g", groups=("x", "y"))
    datasets = result.forest().to_dict()["datasets"].values()
    drawn = [row["center"] for rows in datasets for row in rows if "estimate" in row]
    assert drawn == ["Haifa", "Bern", "2 of 5 centers", "random effects"]
