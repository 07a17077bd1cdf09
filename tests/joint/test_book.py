"""A book with a joint center: every analysis says whom it rests on."""

from pathlib import Path

import msgspec
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.joint.hospitals import PROTOCOL, hospitals
from unpooled import Federation
from unpooled.analyses.protocols.book import Book
from unpooled.apps.cli import app
from unpooled.center.policy import Policy
from unpooled.center.questions import Grouping, ProtocolVariable

FREE = Policy(k=10, ad_hoc="free")
PLAN = msgspec.structs.replace(PROTOCOL, k=10)


@pytest.fixture(scope="module")
def book() -> Book:
    with Federation.local(hospitals(1, 3, 20), policy=FREE, seed=1, joint=True) as fed:
        return fed.run(PLAN)


@pytest.fixture(scope="module")
def alone() -> Book:
    large = {n: f for n, f in hospitals(1, 3, 20).items() if n.startswith("large")}
    with Federation.local(large, policy=FREE, seed=1) as fed:
        return fed.run(PLAN)


def test_nobody_is_missing_where_small_centers_count_together(book: Book) -> None:
    assert book.missing == ()
    assert len(book.members) == 20
    assert book.centers == ("large 0", "large 1", "large 2", "joint (20 centers)")


def test_a_check_says_whom_a_joint_center_brings_back(alone: Book) -> None:
    with Federation.local(hospitals(1, 3, 20), policy=FREE, seed=1, joint=True) as fed:
        check = fed.check(PLAN)
        assert fed.run(PLAN).members == check.joined
    assert len(check.joined) == 20
    assert "A joint center brings back 20 of the centers: small 0, small 1," in str(check)


def test_every_analysis_says_how_many_are_alone_and_how_many_joint(book: Book) -> None:
    for result in (
        book.compare("crp", by="arm"),
        book.quantiles("crp", by="arm"),
        book.describe("crp", by="arm"),
        book.survival("months", event="died", by="arm"),
        book.crosstab("stage", by="arm"),
    ):
        assert "23 centers (3 alone" in str(result), str(result)
        assert "20 joint" in str(result)


def test_heterogeneity_speaks_of_centers_that_are_told_alone(book: Book, alone: Book) -> None:
    together, part = (some.compare("crp", by="arm") for some in (book, alone))
    assert together.heterogeneity is not None
    assert part.heterogeneity is not None
    assert together.heterogeneity.df == part.heterogeneity.df == 2
    assert len(together.centers) == 4
    ratios = (some.survival("months", event="died", by="arm") for some in (book, alone))
    assert [r.ratios[0].heterogeneity.df for r in ratios] == [2, 2]


def test_odds_ratios_differ_between_centers_that_are_told_alone(tmp_path: Path) -> None:
    two = ProtocolVariable(kind="category", levels=("I", "II or III"))
    plan = msgspec.structs.replace(PLAN, variables={"stage": two}, survival=())
    frames = {
        name: frame.with_columns(
            stage=pl.col("stage").replace({"II": "II or III", "III": "II or III"})
        )
        for name, frame in hospitals(1, 3, 20).items()
    }
    with Federation.local(frames, policy=FREE, seed=1, joint=True) as fed:
        together = fed.run(plan).crosstab("stage", by="arm").two_by_two
    large = {name: frame for name, frame in frames.items() if name.startswith("large")}
    with Federation.local(large, policy=FREE, seed=1) as fed:
        alone = fed.run(plan).crosstab("stage", by="arm").two_by_two
    assert together is not None
    assert alone is not None
    assert together.spread == alone.spread
    assert together.breslow_day == alone.breslow_day
    assert together.odds_ratio != alone.odds_ratio  # which the joint center's people are part of


def test_a_check_foresees_what_must_be_declared_for_a_joint_center() -> None:
    crp = PLAN.variables["crp"]
    plan = msgspec.structs.replace(
        PLAN,
        groups=(Grouping(name="arm"),),
        variables={
            "crp": msgspec.structs.replace(crp, upper=None),
            "stage": ProtocolVariable(kind="category"),
        },
    )
    with Federation.local(hospitals(1, 0, 8), policy=FREE, seed=1, joint=True) as fed:
        check, book = str(fed.check(plan)), fed.run(plan)
    assert "the levels of arm (levels), which no center tells" in check
    assert "between which limits crp lies (upper), which no center tells" in check
    assert "the levels of stage (levels), which no center tells" in check
    assert "declared in the protocol" in str(book.no_joint)
    with Federation.local(hospitals(1, 1, 8), policy=FREE, seed=1, joint=True) as fed:
        check, book = str(fed.check(plan)), fed.run(plan)
    assert "which no center tells" not in check
    assert book.no_joint is None


def test_the_command_line_has_a_joint_center_too(tmp_path: Path) -> None:
    files = []
    for name, frame in hospitals(1, 1, 12).items():
        files.append(f"{name}={tmp_path / name}.csv")
        frame.write_csv(f"{tmp_path / name}.csv")
    plan = tmp_path / "plan.toml"
    plan.write_text(TOML)
    called = ["protocol", "run", str(plan), "--joint", "--k", "10", "--centers", *files]
    done = CliRunner().invoke(app, called)
    assert done.exit_code == 0, done.output
    assert "joint (12 centers)" in done.output
    assert Book.open(tmp_path / "plan.book").members == tuple(f"small {i}" for i in range(12))


TOML = """
title = "CRP"
[[groups]]
name = "arm"
levels = ["control", "patient"]
[variables.crp]
kind = "number"
resolution = 1
lower = 0
upper = 120
"""


def test_a_saved_book_keeps_who_counts_in_the_joint_center(book: Book, tmp_path: object) -> None:
    path = f"{tmp_path}/sepsis.book"
    book.save(path)
    again = Book.open(path)
    assert again.members == book.members
    assert str(again.compare("crp", by="arm")) == str(book.compare("crp", by="arm"))


def test_why_there_is_no_joint_center_is_said_before_and_after() -> None:
    outcome = msgspec.structs.replace(PLAN.survival[0], event_is=None)
    undeclared = msgspec.structs.replace(PLAN, survival=(outcome,))
    with Federation.local(hospitals(1, 1, 4), policy=FREE, seed=1, joint=True) as fed:
        assert "which value of died means the event (event_is)" in str(fed.check(undeclared))
        book = fed.run(undeclared)
    assert "needs event_is declared in the protocol" in str(book.no_joint)
    assert f"no joint center: {book.no_joint}" in str(book)
    with Federation.local(hospitals(1, 1, 2), policy=FREE, seed=1, joint=True) as fed:
        assert "There is no joint center: it takes 3 centers" in str(fed.check(PLAN))
        assert "no joint center: fewer than 3 centers" in str(fed.run(PLAN))
