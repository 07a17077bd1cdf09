"""A result shows itself as text at >>>, as HTML, and as a data frame."""

import dataclasses
import re
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest

from unpooled import Federation
from unpooled.errors import InputError
from unpooled.results.report.parts import Grid


@pytest.fixture
def fed() -> Federation:
    frames = {}
    for seed, name in enumerate(("Haifa", "Bern", "Oslo")):
        random = np.random.default_rng(seed)
        group = np.repeat(["a", "b", "c"], 200)
        frames[name] = pl.DataFrame(
            {
                "v": random.normal(0, 1, 600) + (group == "b"),
                "w": random.normal(0, 1, 600),
                "g": group,
                "time": random.uniform(1, 60, 600).round(1),
                "died": random.integers(0, 2, 600),
            }
        )
    return Federation.local(frames, seed=1)


TWO = {"groups": ("a", "b")}
INTERVAL = ("estimate", "low", "high")
PAIR = ("variable", "x", "y", "method", "statistic", "p_value")
BH = "benjamini_hochberg"
ADJUSTED = ("variable", "method", "p_value", "log10_p", "holm", "holm_log10", BH, f"{BH}_log10")
RESULTS: dict[str, tuple[Any, list[str], int]] = {
    "describe": (
        lambda fed: fed.describe("v", "g"),
        ["variable", "group", "n", "missing", "missing_hidden", "mean", "sd"],
        3,
    ),
    "compare": (
        lambda fed: fed.compare("v", "g", **TWO, method="all"),
        [*PAIR, "log10_p", *INTERVAL, "note"],
        5,
    ),
    "groups": (
        lambda fed: fed.compare("v", "g"),
        [*PAIR, "p_holm", *INTERVAL, "centers"],
        3,
    ),
    "quantiles": (
        lambda fed: fed.quantiles("v", [0.25, 0.5], "g"),
        ["variable", "method", "group", "p", "estimate", "low", "high", "note"],
        6,
    ),
    "methods": (
        lambda fed: fed.quantiles("v", 0.5, "g", **TWO, method=["parallel", "yj-table"]),
        ["variable", "method", "group", "p", "estimate", "low", "high", "note"],
        4,
    ),
    "table": (
        lambda fed: fed.table("v", "g", max_bins=8),
        ["variable", "group", "lower", "upper", "people"],
        -1,
    ),
    "smooth": (
        lambda fed: fed.table("v", "g", method="parallel", max_bins=5),
        ["variable", "group", "lower", "upper", "people", "low", "high"],
        -1,
    ),
    "survival": (
        lambda fed: fed.survival("time", "died", "g", **TWO, horizon=60),
        ["group", "time", "survival", "low", "high", "at_risk"],
        -1,
    ),
    "several": (
        lambda fed: fed.compare(["v", "w"], "g", **TWO),
        [*ADJUSTED, *INTERVAL, "centers", "people"],
        2,
    ),
    "several groups": (
        lambda fed: fed.compare(["v", "w"], "g"),
        [*ADJUSTED, "statistic", "df", "centers", "people"],
        2,
    ),
    "several quantiles": (
        lambda fed: fed.quantiles(["v", "w"], 0.5),
        ["variable", "method", "group", "p", "estimate", "low", "high", "note"],
        2,
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_a_tidy_frame_and_prints_itself(fed: Federation, name: str) -> None:
    ask, columns, rows = RESULTS[name]
    result = ask(fed)
    frame = result.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == columns
    assert rows in (-1, frame.height)
    assert repr(result).splitlines()[0] == str(result).splitlines()[0] == result.title
    assert not repr(result).startswith(type(result).__name__)
    assert len(repr(result)) < 3000
    assert result.title.split(":")[0] in result._repr_html_()


def test_a_frame_has_the_numbers_of_the_result(fed: Federation) -> None:
    result = fed.compare("v", "g", groups=("a", "b"), method="all")
    frame = result.to_frame()
    assert frame["p_value"].to_list() == [test.p_value for test in result.methods]
    by_method = {row["method"]: row for row in frame.to_dicts()}
    assert result.effect is not None
    assert result.pooled is not None
    assert by_method["weighted"]["estimate"] == result.effect.estimate
    assert by_method["parallel"]["estimate"] == result.pooled.effect.estimate
    assert by_method["table"]["estimate"] is None
    table = fed.table("v", "g", max_bins=8)
    assert table.to_frame().height == table.counts.size
    people = table.to_frame().group_by("group", maintain_order=True).agg(pl.col("people").sum())
    assert people["people"].to_list() == pytest.approx(table.counts.sum(axis=1).tolist())


def test_at_the_prompt_a_long_table_is_cut_and_says_so(fed: Federation) -> None:
    result = fed.table("v", max_bins=40)
    shown, whole = repr(result).splitlines(), str(result).splitlines()
    assert len(whole) > len(shown) > 12
    assert shown[-1] == f"… {result.table.bins - 12} more rows: print() shows all"
    assert [line.split() for line in whole[4:16]] == [line.split() for line in shown[4:16]]


def test_refusals_are_cut_too_where_many_centers_refuse() -> None:
    frames = {f"H{i:02d}": pl.DataFrame({"v": range(30 if i else 900)}) for i in range(40)}
    frames |= {f"S{i:02d}": pl.DataFrame({"v": range(4)}) for i in range(30)}
    result = Federation.local(frames, seed=1).describe("v")
    assert "over 40 of 70 centers, 2,070 people" in repr(result)
    assert repr(result).count("refused: ") == 12
    assert str(result).count("refused: ") == 30
    assert "… 18 more lines" in repr(result)


def test_releases_are_short_at_the_prompt_and_a_frame(fed: Federation) -> None:
    result = fed.describe("v")
    assert repr(result.record.releases) == "6 releases from 3 centers"
    frame = result.record.releases.to_frame()
    assert frame.columns == ["center", "question", "answer", "bytes"]
    assert frame["answer"].to_list() == [r.payload.decode() for r in result.record.releases]


def test_without_polars_it_is_a_pandas_frame_and_without_both_an_error(
    fed: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pandas

    result = fed.describe("v", "g")
    monkeypatch.setitem(sys.modules, "polars", None)
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["n"].tolist() == [600, 600, 600]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="Hint: pip install polars"):
        result.to_frame()


def test_the_old_keyword_value_still_works_and_warns(fed: Federation) -> None:
    new = {name: ask(fed).to_dict() for name, ask in OLD.items()}
    for name, ask in OLD.items():
        with pytest.warns(DeprecationWarning, match="value= is now variable="):
            old = ask(fed, keyword="value")
        assert old.to_dict() == new[name]
    with pytest.warns(DeprecationWarning, match=r"result\.value is now result\.variable"):
        assert fed.describe("v").value == "v"
    with pytest.raises(TypeError, match="variable"):
        fed.describe()  # type: ignore[call-arg]


def ask_for(method: str) -> Any:
    return lambda fed, keyword="variable": getattr(fed, method)(**{keyword: "v"}, by="g", **TWO)


OLD = {name: ask_for(name) for name in ("table", "describe", "compare", "quantiles")}


def test_two_groups_three_groups_and_ordered_ones_are_one_type(fed: Federation) -> None:
    two = fed.compare("v", "g", groups=("a", "b"))
    three = fed.compare("v", "g")
    trend = fed.compare("v", "g", groups=("a", "b"), ordered=True)
    assert type(two) is type(three) is type(trend)
    assert [len(result.pairs) for result in (two, three, trend)] == [1, 3, 1]
    assert two.effect == two.pairs[0].effect == three.pairs[0].effect
    assert two.pairs[0].test == two.test
    names = ("mann-whitney", "kruskal-wallis", "jonckheere-terpstra")
    assert tuple(result.test_name for result in (two, three, trend)) == names


def test_results_stay_frozen_and_slotted(fed: Federation) -> None:
    result = fed.describe("v")
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.rounds = 3  # type: ignore[misc]
    assert not hasattr(result, "__dict__")


@pytest.mark.parametrize("method", ["chain", "parallel"])
def test_nobody_is_a_fraction_of_a_person(fed: Federation, method: str) -> None:
    """Counts that are shared out or estimated are whole in the table, and exact in the records."""
    table = fed.table("v", by="g", method=method)
    assert any(count != round(count) for count in table.counts.ravel().tolist())
    (grid,) = (part for part in table.parts() if isinstance(part, Grid))
    cells = [cell for row in grid.rows for cell in row[1:]]
    assert all(re.fullmatch(r"(<1|\d+)( \(\d+ to \d+\))?", cell) for cell in cells), cells
